from .errors import TableError
from .source import read_table
from .table import Table
from .target import Target, choose_target, read_target

__all__ = [
    "Table",
    "TableError",
    "Target",
    "__version__",
    "choose_target",
    "read_table",
    "read_target",
]
__version__: str
