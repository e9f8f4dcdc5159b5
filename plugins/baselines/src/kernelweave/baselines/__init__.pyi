from .alignment import AlignmentWeights as AlignmentWeights
from .alignment import alignment_weights as alignment_weights
from .easymkl import EasyMKLWeights as EasyMKLWeights
from .easymkl import easymkl_weights as easymkl_weights
from .elastic_net import ElasticNetWeights as ElasticNetWeights
from .elastic_net import elastic_net_weights as elastic_net_weights
from .estimators import AverageMKLClassifier as AverageMKLClassifier
from .estimators import CKAClassifier as CKAClassifier
from .estimators import EasyMKLClassifier as EasyMKLClassifier
from .estimators import ElasticNetMKLClassifier as ElasticNetMKLClassifier
from .estimators import ElasticNetMKLRegressor as ElasticNetMKLRegressor
from .estimators import PWMKClassifier as PWMKClassifier
from .estimators import SimpleMKLClassifier as SimpleMKLClassifier
from .estimators import SimpleMKLRegressor as SimpleMKLRegressor
from .proportional import AverageWeights as AverageWeights
from .proportional import ProportionalWeights as ProportionalWeights
from .quantile import KernelQuantileRegressor as KernelQuantileRegressor
from .simplemkl import Simplex as Simplex

__version__: str
