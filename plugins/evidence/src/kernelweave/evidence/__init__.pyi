from .columns import CellError, ColumnEncoder, ColumnReport, Dimension, Encoded

__all__ = ["CellError", "ColumnEncoder", "ColumnReport", "Dimension", "Encoded", "__version__"]
__version__: str
