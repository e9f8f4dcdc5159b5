from .encoded import Dimension, Encoded
from .encoder import ColumnEncoder
from .report import ColumnReport

__all__ = ["ColumnEncoder", "ColumnReport", "Dimension", "Encoded"]
