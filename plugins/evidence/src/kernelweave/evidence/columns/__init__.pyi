from .encoded import Dimension, Encoded

__all__ = ["Dimension", "Encoded"]
