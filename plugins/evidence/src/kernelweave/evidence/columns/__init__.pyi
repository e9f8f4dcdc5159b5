from .encoded import Dimension, Encoded
from .encoder import ColumnEncoder
from .errors import CellError
from .report import ColumnReport

__all__ = ["CellError", "ColumnEncoder", "ColumnReport", "Dimension", "Encoded"]
