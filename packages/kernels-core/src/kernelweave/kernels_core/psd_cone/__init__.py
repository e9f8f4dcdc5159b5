"""Matrices P ⪰ 0: proved bounds of eigenvalues, projections, and minimising by rank-one steps."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
