from .base import Columns, Kernel, Product, Scaled, Sum
from .compose import Combination, UnitDiagonal
from .dictionary import PAPER_FIFTY, PAPER_TEN, KernelDictionary, default_kernels
from .fitted import Centered, Clipped, FittedDictionary
from .fitted_factors import FittedFactors, LowRankDictionary, Nystroem
from .gp import as_sklearn_gp_kernel
from .scaled import ScaledFeatures
from .standard import RBF, Laplacian, Linear, Polynomial, Sigmoid, standard_kernels

__all__ = [
    "PAPER_FIFTY",
    "PAPER_TEN",
    "RBF",
    "Centered",
    "Clipped",
    "Columns",
    "Combination",
    "FittedDictionary",
    "FittedFactors",
    "Kernel",
    "KernelDictionary",
    "Laplacian",
    "Linear",
    "LowRankDictionary",
    "Nystroem",
    "Polynomial",
    "Product",
    "Scaled",
    "ScaledFeatures",
    "Sigmoid",
    "Sum",
    "UnitDiagonal",
    "as_sklearn_gp_kernel",
    "default_kernels",
    "standard_kernels",
]
