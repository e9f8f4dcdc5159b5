from .encoded import Dimension, Encoded
from .encoder import ColumnEncoder
from .errors import CellError, ColumnWarning
from .report import ColumnReport

__all__ = ["CellError", "ColumnEncoder", "ColumnReport", "ColumnWarning", "Dimension", "Encoded"]
