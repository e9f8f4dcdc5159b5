"""The learned kernel as a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from kernelweave.kernels_core import Kernel
from kernelweave.kernels_core.arrays import FloatArray, RealArray

from .mixture import mixed_kernel
from .terms import Scales, own_kernel
from .views import Points, Views


class EvidenceKernel(Kernel):
    """Σ w₁ exp(−d²/2) + w₂ exp(−d) + w₃ Σ ℓ²xy + w₄ Π (1 + sκ)/(1 + s) + w₅ exp(−d²/200).

    d² = Σ ℓᵢ²(xᵢ − yᵢ)² of softly capped standard scores; κ is the centred tessellated kernel of
    degree 0 of their ranks. A level counts as one dimension: d² gains ℓ² where two levels differ,
    κ is their centred overlap.

    Parameters
    ----------
    views : Views
        How numbers become standard scores and ranks, from the training rows.
    scales : sequence of Scales
        One for each kernel of the sum.

    Notes
    -----
    Rows are numbers followed by codes of levels, one column each. Every Gram matrix is positive
    semidefinite: each term is, and so are sums and products with nonnegative weights.
    """

    name: ClassVar[str] = "evidence"

    def __init__(self, views: Views, scales: Sequence[Scales]) -> None:
        self.views = views
        self.scales = scales

    @property
    def is_psd(self) -> bool | None:
        """Proved: the terms are positive semidefinite, the weights nonnegative."""
        return True

    def _validate(self) -> None:
        if not len(self.scales):
            raise ValueError("scales must hold at least one Scales, got an empty list")

    def _points(self, X: FloatArray) -> Points:
        n_numbers, n = len(self.views.knots), self.views.n_dimensions
        if X.shape[1] != n:
            raise ValueError(
                f"X has {X.shape[1]} columns, but the kernel was learned on {n}: {n_numbers} "
                f"numbers and {n - n_numbers} levels"
            )
        X = np.asarray(X, dtype=np.float64)
        return self.views.points(
            np.ascontiguousarray(X[:, :n_numbers]), X[:, n_numbers:].astype(np.int64)
        )

    def _gram(self, X: Any, Y: Any | None) -> RealArray:
        left = self._points(X)
        right = left if Y is None else self._points(Y)
        K = mixed_kernel(left, right, self.scales, self.views.jump)
        return 0.5 * (K + K.T) if Y is None else K

    def _diag(self, X: Any) -> RealArray:
        points = self._points(X)
        values = [own_kernel(points, each, self.views.jump) for each in self.scales]
        return np.asarray(np.sum(values, axis=0))
