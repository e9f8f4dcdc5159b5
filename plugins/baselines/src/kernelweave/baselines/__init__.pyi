from .alignment import AlignmentWeights, alignment_weights, centered_products
from .average import AverageWeights, average_weights
from .easymkl import EasyMKLWeights, easymkl_weights, margin_distribution
from .estimators import (
    AverageMKLClassifier,
    CKAClassifier,
    EasyMKLClassifier,
    PWMKClassifier,
    SimpleMKLClassifier,
    SimpleMKLRegressor,
)
from .proportional import ProportionalWeights, proportional_weights, single_kernel_accuracies
from .simplex import Simplex

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
    "average_weights",
    "centered_products",
    "easymkl_weights",
    "margin_distribution",
    "proportional_weights",
    "single_kernel_accuracies",
]
__version__: str
