from .constraint import Spectahedron
from .estimators import TessellatedKernelClassifier, TessellatedKernelRegressor
from .model_selection import TessellatedKernelClassifierCV, TessellatedKernelRegressorCV
from .projection import project_simplex, project_spectahedron
from .rank_one import FrankWolfeSolution, SparseSDPSolution, frank_wolfe, sparse_sdp
from .settings import AcceleratedPrimalDual, FrankWolfe, Hybrid, InteriorPoint, LowRank
from .start import Start

__all__ = [
    "AcceleratedPrimalDual",
    "FrankWolfe",
    "FrankWolfeSolution",
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
    "frank_wolfe",
    "project_simplex",
    "project_spectahedron",
    "sparse_sdp",
]
__version__: str
