from .constraint import Spectahedron
from .estimators import TessellatedKernelClassifier, TessellatedKernelRegressor
from .projection import project_simplex, project_spectahedron
from .scaling import ScaledFeatures
from .sparse_sdp import SparseSDPSolution, sparse_sdp

__all__ = [
    "ScaledFeatures",
    "SparseSDPSolution",
    "Spectahedron",
    "TessellatedKernelClassifier",
    "TessellatedKernelRegressor",
    "__version__",
    "project_simplex",
    "project_spectahedron",
    "sparse_sdp",
]
__version__: str
