"""Positive-matrix kernel families: ``k(x, y) = Σᵢⱼ Pᵢⱼ Gᵢⱼ(x, y)`` with a matrix ``P ⪰ 0``.

Importing this package imports neither numba nor scipy; both are reached on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
