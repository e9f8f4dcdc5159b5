from .estimators import GeneralizedMKLClassifier as GeneralizedMKLClassifier
from .estimators import RidgeMKLClassifier as RidgeMKLClassifier
from .estimators import RidgeMKLClassifierCV as RidgeMKLClassifierCV
from .estimators import RidgeMKLRegressor as RidgeMKLRegressor
from .estimators import RidgeMKLRegressorCV as RidgeMKLRegressorCV
from .families import HadamardPower as HadamardPower
from .families import PowerDictionary as PowerDictionary
from .proof import prove as prove
from .rademacher import margin_bound as margin_bound
from .rademacher import rademacher_bound as rademacher_bound
from .sets import LqBall as LqBall
from .sets import Orthant as Orthant
from .settings import IIA as IIA
from .settings import Automatic as Automatic
from .settings import GeneralizedMKL as GeneralizedMKL
from .settings import GeneralizedMKLForLabels as GeneralizedMKLForLabels
from .settings import MajorizeMinimize as MajorizeMinimize
from .settings import ProjectedNewton as ProjectedNewton
from .settings import SpectralProjectedGradient as SpectralProjectedGradient
from .settings import TrustRegion as TrustRegion

__version__: str
