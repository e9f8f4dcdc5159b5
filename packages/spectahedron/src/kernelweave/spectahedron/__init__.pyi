from .constraint import Spectahedron
from .estimators import TessellatedKernelClassifier, TessellatedKernelRegressor
from .projection import project_simplex, project_spectahedron
from .scaling import ScaledFeatures

__all__ = [
    "ScaledFeatures",
    "Spectahedron",
    "TessellatedKernelClassifier",
    "TessellatedKernelRegressor",
    "__version__",
    "project_simplex",
    "project_spectahedron",
]
__version__: str
