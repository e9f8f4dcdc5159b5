"""Kernels as values, dictionaries of kernels, and what fits them to training points.

Names are imported on first use, so importing this package loads numpy at most.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .base import Columns, Kernel, Product, Scaled, Sum
    from .compose import Combination, UnitDiagonal
    from .conformance import check_kernel
    from .dictionary import PAPER_FIFTY, PAPER_TEN, KernelDictionary, default_kernels
    from .fitted import Centered, Clipped
    from .fitted_dictionary import FittedDictionary, FittedFamily
    from .fitted_factors import FittedFactors, LowRankDictionary
    from .gp import as_sklearn_gp_kernel
    from .nystroem import Nystroem
    from .scaled import ScaledFeatures
    from .standard import RBF, Laplacian, Linear, Polynomial, Sigmoid, standard_kernels

_HOMES = {
    "Kernel": "base",
    "check_kernel": "conformance",
    "Columns": "base",
    "Combination": "compose",
    "Product": "base",
    "Scaled": "base",
    "Sum": "base",
    "UnitDiagonal": "compose",
    "KernelDictionary": "dictionary",
    "Centered": "fitted",
    "Clipped": "fitted",
    "FittedDictionary": "fitted_dictionary",
    "FittedFamily": "fitted_dictionary",
    "FittedFactors": "fitted_factors",
    "LowRankDictionary": "fitted_factors",
    "as_sklearn_gp_kernel": "gp",
    "Nystroem": "nystroem",
    "PAPER_FIFTY": "dictionary",
    "PAPER_TEN": "dictionary",
    "default_kernels": "dictionary",
    "ScaledFeatures": "scaled",
    "RBF": "standard",
    "Laplacian": "standard",
    "Linear": "standard",
    "Polynomial": "standard",
    "Sigmoid": "standard",
    "standard_kernels": "standard",
}

__all__ = [  # noqa: RUF022
    "Kernel", "Linear", "Polynomial", "RBF", "Laplacian", "Sigmoid", "standard_kernels",
    "Sum", "Product", "Scaled", "Columns", "Combination", "UnitDiagonal", "Centered", "Clipped",
    "ScaledFeatures", "Nystroem",
    "KernelDictionary", "FittedDictionary", "FittedFamily", "FittedFactors", "LowRankDictionary",
    "PAPER_TEN", "PAPER_FIFTY", "default_kernels",
    "as_sklearn_gp_kernel", "check_kernel",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOMES))
