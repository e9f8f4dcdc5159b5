from .displays import (
    ConvergenceDisplay,
    DecisionCalibrationDisplay,
    GramDisplay,
    KernelWeightsDisplay,
    OutputGraphDisplay,
    PathDisplay,
    SpectrumDisplay,
    SurfaceDisplay,
)
from .models import Header, Model, load_model, save_model

__all__ = [
    "ConvergenceDisplay",
    "DecisionCalibrationDisplay",
    "GramDisplay",
    "Header",
    "KernelWeightsDisplay",
    "Model",
    "OutputGraphDisplay",
    "PathDisplay",
    "SpectrumDisplay",
    "SurfaceDisplay",
    "__version__",
    "load_model",
    "save_model",
]
__version__: str
