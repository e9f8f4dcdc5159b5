from .censored.calibration_display import SurvivalCalibrationDisplay as SurvivalCalibrationDisplay
from .censored.display import SurvivalDisplay as SurvivalDisplay
from .columns import ColumnEncoder as ColumnEncoder
from .columns import Dimension as Dimension
from .columns import Encoded as Encoded
from .distributions import PredictiveDistribution as PredictiveDistribution
from .estimators import EvidenceKernelClassifier as EvidenceKernelClassifier
from .estimators import EvidenceKernelRegressor as EvidenceKernelRegressor
from .explaining.display import EffectDisplay as EffectDisplay
from .explaining.effects import ColumnEffect as ColumnEffect
from .explaining.effects import PairEffect as PairEffect
from .explaining.importance import ColumnImportance as ColumnImportance
from .explaining.values import ShapleyValues as ShapleyValues
from .kernel import EvidenceKernel as EvidenceKernel
from .large.batches import Batch as Batch
from .large.batches import Batches as Batches
from .living.merge import merge as merge
from .living.relearn import RelearnWarning as RelearnWarning
from .living.sharing import SharedSums as SharedSums
from .mkl.estimators import EvidenceMKLClassifier as EvidenceMKLClassifier
from .mkl.estimators import EvidenceMKLRegressor as EvidenceMKLRegressor
from .mkl.step import PricedOrthant as PricedOrthant
from .new_rows import HeldOutWarning as HeldOutWarning

__version__: str
