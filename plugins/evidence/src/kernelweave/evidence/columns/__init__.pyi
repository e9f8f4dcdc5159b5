from .encoded import Dimension, Encoded
from .encoder import ColumnEncoder

__all__ = ["ColumnEncoder", "Dimension", "Encoded"]
