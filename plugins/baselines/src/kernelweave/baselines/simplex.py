"""The simplex of kernel weights."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.parameters import Value


class Simplex(Value):
    """{β ≥ 0, Σβ = 1}.

    Examples
    --------
    >>> from kernelweave.baselines import Simplex
    >>> Simplex().start(4)
    array([0.25, 0.25, 0.25, 0.25])
    >>> Simplex().project([1.0, 0.6, 0.0])
    array([0.7, 0.3, 0. ])
    """

    name: ClassVar[str] = "simplex"
    total: ClassVar[float] = 1.0
    curvature: ClassVar[float] = 0.0

    def validate(self, n_kernels: int | None = None) -> None:
        """Do nothing: there is nothing to choose, and any number of kernels fits."""

    def start(self, n_kernels: int) -> FloatArray:
        """Return equal weights.

        `n_kernels`: q. Returns shape (q,): 1/q each.
        """
        return np.full(n_kernels, 1.0 / n_kernels)

    def random_start(self, n_kernels: int, random_state: np.random.RandomState) -> FloatArray:
        """Return a point drawn evenly from the simplex, shape (q,), for q = ``n_kernels``."""
        drawn = random_state.exponential(size=n_kernels)
        return np.asarray(drawn / drawn.sum())

    def project(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the nearest weights, shape (q,): (β − τ)₊ with the τ that makes them sum to 1."""
        beta = np.asarray(weights, dtype=np.float64)
        order = np.sort(beta)[::-1]
        thresholds = (np.cumsum(order) - 1.0) / np.arange(1, len(order) + 1)
        tau = thresholds[np.flatnonzero(order > thresholds)[-1]]
        kept = np.maximum(beta - tau, 0.0)
        return np.asarray(kept / kept.sum())

    def penalty(self, weights: npt.ArrayLike) -> float:
        """Return 0: the set charges nothing."""
        return 0.0

    def penalty_gradient(self, weights: FloatArray) -> FloatArray:
        """Return zeros, shape (q,)."""
        return np.zeros(len(weights))

    def worst(self, forms: FloatArray) -> float:
        """Return max formsᵀβ, the largest entry, shape (q,): no rounding."""
        return float(np.max(forms))
