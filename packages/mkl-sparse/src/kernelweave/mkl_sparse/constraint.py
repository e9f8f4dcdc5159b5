"""The set of sparse kernel weights, with the ridge on them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import COUNT, STRENGTH
from kernelweave.kernels_core.parameters import Value, parameter
from kernelweave.qp_smo.saddle import KSupport, NestedPenalty, WeightPenalty
from numpy.typing import ArrayLike


class SparseSimplex(Value):
    """``{β ≥ 0 : Σβ = 1, ‖β‖₀ ≤ k₀}`` with the penalty ``λ‖β‖²``.

    With ``n_views`` the kernels belong to views: at most so many views have a weight, and in each
    at most ``k0`` kernels have one.

    Examples
    --------
    >>> from kernelweave.mkl_sparse import SparseSimplex
    >>> SparseSimplex(k0=2, lam=0.5).penalty([0.5, 0.5, 0.0])
    0.25
    """

    name: ClassVar[str] = "sparse-simplex"
    k0: int = parameter("Maximum number of kernels.", default=3, rule=COUNT)
    lam: float = parameter("λ, the ridge penalty of the weights.", default=1.0, rule=STRENGTH)
    views: Sequence[Hashable] | None = parameter(
        "The view of each kernel, names or numbers; used with ``n_views``.",
        kind="sequence of shape (q,)",
        default=None,
    )
    n_views: int | None = parameter(
        "Maximum number of views, each with at most ``k0`` kernels; None ignores views.",
        default=None,
        rule=COUNT,
    )

    def penalty(self, weights: ArrayLike) -> float:
        """Return ``λ‖β‖²``."""
        beta = np.asarray(weights, dtype=np.float64)
        return float(self.lam * (beta @ beta))

    def worst(self, forms: FloatArray) -> float:
        """Return what the relaxed penalty charges at most for quadratic forms of shape (q,)."""
        return -self.relaxed(len(forms)).best_response(forms)[1]

    def relaxed(self, n_kernels: int) -> WeightPenalty:
        """Return the tightest convex penalty below ``λ‖β‖²`` on this set.

        Raises ValueError if ``n_views`` is given without the view of each kernel, or if there is
        no kernel. λ = 0 is none.
        """
        COUNT.check("n_kernels", n_kernels)
        if self.n_views is None:
            return KSupport(self.lam, self.k0).on(n_kernels)
        if self.views is None:
            raise ValueError(f"n_views={self.n_views} needs views, the view of each kernel")
        if len(self.views) != n_kernels:
            raise ValueError(
                f"views must name the view of each of {n_kernels} kernels, got {len(self.views)}"
            )
        return NestedPenalty.of(self.lam, self.k0, self.views, self.n_views)
