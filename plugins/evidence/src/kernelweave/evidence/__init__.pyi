from .columns import ColumnEncoder, Dimension, Encoded
from .estimators import (
    EvidenceKernelClassifier,
    EvidenceKernelRegressor,
    PredictiveDistribution,
)
from .explaining.display import EffectDisplay
from .explaining.effects import ColumnEffect, PairEffect
from .explaining.importance import ColumnImportance
from .explaining.values import ShapleyValues
from .kernel import EvidenceKernel
from .large.batches import Batch, Batches
from .mkl.estimators import EvidenceMKLClassifier, EvidenceMKLRegressor
from .mkl.step import PricedOrthant
from .new_rows import HeldOutWarning

__all__ = [
    "Batch",
    "Batches",
    "ColumnEffect",
    "ColumnEncoder",
    "ColumnImportance",
    "Dimension",
    "EffectDisplay",
    "Encoded",
    "EvidenceKernel",
    "EvidenceKernelClassifier",
    "EvidenceKernelRegressor",
    "EvidenceMKLClassifier",
    "EvidenceMKLRegressor",
    "HeldOutWarning",
    "PairEffect",
    "PredictiveDistribution",
    "PricedOrthant",
    "ShapleyValues",
    "__version__",
]
__version__: str
