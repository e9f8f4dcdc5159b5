from .estimators import TessellatedKernelClassifier, TessellatedKernelRegressor
from .model_selection import TessellatedKernelClassifierCV, TessellatedKernelRegressorCV
from .settings import (
    AcceleratedPrimalDual,
    FrankWolfe,
    Hybrid,
    InteriorPoint,
    LowRank,
    Spectahedron,
    Start,
)

__all__ = [
    "AcceleratedPrimalDual",
    "FrankWolfe",
    "Hybrid",
    "InteriorPoint",
    "LowRank",
    "Spectahedron",
    "Start",
    "TessellatedKernelClassifier",
    "TessellatedKernelClassifierCV",
    "TessellatedKernelRegressor",
    "TessellatedKernelRegressorCV",
    "__version__",
]
__version__: str
