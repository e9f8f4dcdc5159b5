"""The formula: min over θ ∈ Θ, max over u of κ(u) − ½ Σₜ uₜᵀ K(θ) uₜ, one file for each noun."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
