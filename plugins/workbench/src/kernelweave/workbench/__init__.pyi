from .data import Table, read_table
from .displays import plot_convergence, plot_gram
from .models import Header, Model, load_model, save_model

__all__ = [
    "Header",
    "Model",
    "Table",
    "__version__",
    "load_model",
    "plot_convergence",
    "plot_gram",
    "read_table",
    "save_model",
]
__version__: str
