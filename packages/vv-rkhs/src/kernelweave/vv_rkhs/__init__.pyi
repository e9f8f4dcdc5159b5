from .constraint import FrobeniusOutputKernels, SeparableKernel, SeparableKernels, VectorSolution
from .estimators import MatrixValuedKernelClassifier, MatrixValuedKernelRegressor
from .family import PrecomputedFamily
from .gaussian_grid import GaussianGrid
from .learner import VectorLeastSquares
from .output import OutputSubproblem, closed_form_output_kernel
from .penalties import ElasticNet, Penalty, SquaredLpNorm
from .rademacher import rademacher_bound
from .settings import BlockDescent, OutputKernelLearning, SpectralGradient
from .sylvester import (
    EigenFactors,
    NystromFactors,
    SpectrumEstimate,
    SylvesterSolution,
    solve_sylvester,
)

__all__ = [
    "BlockDescent",
    "EigenFactors",
    "ElasticNet",
    "FrobeniusOutputKernels",
    "GaussianGrid",
    "MatrixValuedKernelClassifier",
    "MatrixValuedKernelRegressor",
    "NystromFactors",
    "OutputKernelLearning",
    "OutputSubproblem",
    "Penalty",
    "PrecomputedFamily",
    "SeparableKernel",
    "SeparableKernels",
    "SpectralGradient",
    "SpectrumEstimate",
    "SquaredLpNorm",
    "SylvesterSolution",
    "VectorLeastSquares",
    "VectorSolution",
    "__version__",
    "closed_form_output_kernel",
    "rademacher_bound",
    "solve_sylvester",
]
__version__: str
