"""Estimators that run any registered algorithm; the only part that needs scikit-learn."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

_WHERE = {
    "ApproximatedKernels": "weights",
    "CrossValidatedEstimator": "search",
    "KernelClassifier": "kernel",
    "KernelLearningClassifier": "generic",
    "KernelLearningRegressor": "generic",
    "KernelRegressor": "kernel",
    "SpreadRegressor": "kernel",
    "WeightedKernels": "weights",
    "one_or_several": "search",
}

if TYPE_CHECKING:
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


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("sklearn"):
            raise
        raise ImportError(
            f"{name} needs scikit-learn, which is not installed: pip install 'scikit-learn>=1.6'"
        ) from error
