from .displays import (
    ConvergenceDisplay,
    GramDisplay,
    KernelWeightsDisplay,
    PathDisplay,
    SpectrumDisplay,
    SurfaceDisplay,
)
from .models import Header, Model, load_model, save_model

__all__ = [
    "ConvergenceDisplay",
    "GramDisplay",
    "Header",
    "KernelWeightsDisplay",
    "Model",
    "PathDisplay",
    "SpectrumDisplay",
    "SurfaceDisplay",
    "__version__",
    "load_model",
    "save_model",
]
__version__: str
