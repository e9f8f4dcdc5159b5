from .alignment import AlignmentWeights, alignment_weights
from .easymkl import EasyMKLWeights, easymkl_weights
from .estimators import (
    AverageMKLClassifier,
    CKAClassifier,
    EasyMKLClassifier,
    PWMKClassifier,
    SimpleMKLClassifier,
    SimpleMKLRegressor,
)
from .proportional import AverageWeights, ProportionalWeights
from .simplemkl import Simplex

__all__ = [
    "AlignmentWeights",
    "AverageMKLClassifier",
    "AverageWeights",
    "CKAClassifier",
    "EasyMKLClassifier",
    "EasyMKLWeights",
    "PWMKClassifier",
    "ProportionalWeights",
    "SimpleMKLClassifier",
    "SimpleMKLRegressor",
    "Simplex",
    "__version__",
    "alignment_weights",
    "easymkl_weights",
]
__version__: str
