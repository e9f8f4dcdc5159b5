from .columns import ColumnEncoder, ColumnReport, Dimension, Encoded

__all__ = ["ColumnEncoder", "ColumnReport", "Dimension", "Encoded", "__version__"]
__version__: str
