from .catalogue import tables
from .plan import Cell, Drawing, MissingDataError, Plan, Request, Sheet, Table

__all__ = [
    "Cell",
    "Drawing",
    "MissingDataError",
    "Plan",
    "Request",
    "Sheet",
    "Table",
    "__version__",
    "tables",
]
__version__: str
