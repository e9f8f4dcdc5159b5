"""Pictures of a fit: how the bounds closed, and the kernel that was learned."""

from __future__ import annotations

from .convergence import plot_convergence, plot_gap
from .gram import cosine_gram, plot_gram
from .picture import demo_picture, is_demo_picture
from .predictions import plot_calibration, plot_residuals
from .weights import plot_spectrum, plot_weights

__all__ = [
    "cosine_gram",
    "demo_picture",
    "is_demo_picture",
    "plot_calibration",
    "plot_convergence",
    "plot_gap",
    "plot_gram",
    "plot_residuals",
    "plot_spectrum",
    "plot_weights",
]
