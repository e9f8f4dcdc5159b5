from .errors import CellError, ColumnWarning, TableError
from .plans import READERS, ColumnPlan, plan_columns
from .sources import read_table
from .table import Table
from .target import Target, choose_target, read_target, split_by_target

__all__ = [
    "READERS",
    "CellError",
    "ColumnPlan",
    "ColumnWarning",
    "Table",
    "TableError",
    "Target",
    "__version__",
    "choose_target",
    "plan_columns",
    "read_table",
    "read_target",
    "split_by_target",
]
__version__: str
