from .catalogue import tables
from .plan import Cell, Drawing, MissingDataError, PaperTable, Plan, Request, Sheet

__all__ = [
    "Cell",
    "Drawing",
    "MissingDataError",
    "PaperTable",
    "Plan",
    "Request",
    "Sheet",
    "__version__",
    "tables",
]
__version__: str
