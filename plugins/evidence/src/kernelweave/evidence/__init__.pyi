from .columns import Dimension, Encoded

__all__ = ["Dimension", "Encoded", "__version__"]
__version__: str
