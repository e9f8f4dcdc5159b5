from .constraint import Spectahedron
from .estimators import TessellatedKernelClassifier, TessellatedKernelRegressor
from .model_selection import TessellatedKernelClassifierCV, TessellatedKernelRegressorCV
from .projection import project_simplex, project_spectahedron
from .settings import AcceleratedPrimalDual, FrankWolfe, Hybrid, InteriorPoint, LowRank
from .sparse_sdp import SparseSDPSolution, sparse_sdp
from .start import Start

__all__ = [
    "AcceleratedPrimalDual",
    "FrankWolfe",
    "Hybrid",
    "InteriorPoint",
    "LowRank",
    "SparseSDPSolution",
    "Spectahedron",
    "Start",
    "TessellatedKernelClassifier",
    "TessellatedKernelClassifierCV",
    "TessellatedKernelRegressor",
    "TessellatedKernelRegressorCV",
    "__version__",
    "project_simplex",
    "project_spectahedron",
    "sparse_sdp",
]
__version__: str
