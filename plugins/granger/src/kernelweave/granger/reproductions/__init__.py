"""Figures of the matrix-valued kernel learning paper on causality, and a test with known graphs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
