from .displays import (
    ConvergenceDisplay,
    GramDisplay,
    KernelWeightsDisplay,
    SpectrumDisplay,
)
from .models import Header, Model, load_model, save_model

__all__ = [
    "ConvergenceDisplay",
    "GramDisplay",
    "Header",
    "KernelWeightsDisplay",
    "Model",
    "SpectrumDisplay",
    "__version__",
    "load_model",
    "save_model",
]
__version__: str
