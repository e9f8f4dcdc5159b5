from .data import Table, read_table
from .displays import (
    plot_calibration,
    plot_convergence,
    plot_gap,
    plot_gram,
    plot_residuals,
    plot_spectrum,
    plot_weights,
)
from .models import Header, Model, load_model, save_model

__all__ = [
    "Header",
    "Model",
    "Table",
    "__version__",
    "load_model",
    "plot_calibration",
    "plot_convergence",
    "plot_gap",
    "plot_gram",
    "plot_residuals",
    "plot_spectrum",
    "plot_weights",
    "read_table",
    "save_model",
]
__version__: str
