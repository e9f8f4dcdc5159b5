"""The problem that all packages solve: min over θ ∈ Θ, max over u of κ(u) − ½ Σₜ uₜᵀ K(θ) uₜ.

`learner` defines κ and the inner maximum, `set` defines Θ, and `problem` puts them together.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
