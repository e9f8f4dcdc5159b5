from .errors import CellError as CellError
from .errors import ColumnWarning as ColumnWarning
from .errors import TableError as TableError
from .half_known import Event as Event
from .half_known import choose_event as choose_event
from .plans import READERS as READERS
from .plans import ColumnPlan as ColumnPlan
from .plans import plan_columns as plan_columns
from .sources import read_table as read_table
from .table import Table as Table
from .target import Target as Target
from .target import choose_target as choose_target
from .target import read_target as read_target
from .target import split_by_target as split_by_target

__version__: str
