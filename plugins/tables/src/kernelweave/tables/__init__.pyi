from .errors import TableError
from .sources import read_table
from .table import Table
from .target import Target, choose_target, read_target, split_by_target

__all__ = [
    "Table",
    "TableError",
    "Target",
    "__version__",
    "choose_target",
    "read_table",
    "read_target",
    "split_by_target",
]
__version__: str
