from .plan import Cell, Drawing, MissingDataError, PaperTable, Plan, Request, Sheet, tables

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
