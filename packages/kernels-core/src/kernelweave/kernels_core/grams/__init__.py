"""Gram matrices: one or a stack of them, stored, of low rank, or computed where asked for."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
