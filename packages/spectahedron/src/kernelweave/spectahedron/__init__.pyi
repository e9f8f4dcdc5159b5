from .estimators import TessellatedKernelClassifier, TessellatedKernelRegressor
from .model_selection import TessellatedKernelClassifierCV, TessellatedKernelRegressorCV
from .proof import prove
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
    "prove",
]
__version__: str
