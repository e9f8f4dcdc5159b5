"""Gram matrices, one or a stack: stored, precomputed, of low rank, or computed on demand."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
