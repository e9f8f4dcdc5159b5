"""Pictures of a fit in scikit-learn's style: how the bounds closed, and what was learned."""

from __future__ import annotations

from .convergence import ConvergenceDisplay
from .gram import GramDisplay, cosine_gram
from .path import PathDisplay
from .spectrum import SpectrumDisplay
from .surface import SurfaceDisplay
from .weights import KernelWeightsDisplay, learned_weights

__all__ = [
    "ConvergenceDisplay",
    "GramDisplay",
    "KernelWeightsDisplay",
    "PathDisplay",
    "SpectrumDisplay",
    "SurfaceDisplay",
    "cosine_gram",
    "learned_weights",
]
