"""Pictures of a fit in scikit-learn's style: how the bounds closed, and what was learned."""

from __future__ import annotations

from .convergence import ConvergenceDisplay
from .gram import GramDisplay, cosine_gram
from .spectrum import SpectrumDisplay
from .weights import KernelWeightsDisplay, learned_weights

__all__ = [
    "ConvergenceDisplay",
    "GramDisplay",
    "KernelWeightsDisplay",
    "SpectrumDisplay",
    "cosine_gram",
    "learned_weights",
]
