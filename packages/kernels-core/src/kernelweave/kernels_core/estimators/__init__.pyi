from .generic import KernelLearningClassifier, KernelLearningRegressor
from .kernel import KernelClassifier, KernelRegressor, SpreadRegressor
from .search import CrossValidatedEstimator, one_or_several
from .weights import ApproximatedKernels, WeightedKernels

__all__ = [
    "ApproximatedKernels",
    "CrossValidatedEstimator",
    "KernelClassifier",
    "KernelLearningClassifier",
    "KernelLearningRegressor",
    "KernelRegressor",
    "SpreadRegressor",
    "WeightedKernels",
    "one_or_several",
]
