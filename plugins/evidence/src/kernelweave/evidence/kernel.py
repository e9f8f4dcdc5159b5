"""The learned kernel as a value, and the kernels that are weighted where the user names none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from kernelweave.kernels_core import RBF, Kernel, Laplacian, Linear
from kernelweave.kernels_core.arrays import FloatArray, RealArray

from .cross import cross_kernel, gram_of, own_kernel
from .terms import Scales
from .views import Points, Views

# Gaussians and Laplacians of the dictionary that was measured on 31 tables: γ = c/n for n columns,
# from nearly linear to local.
_GAUSSIANS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_LAPLACIANS = (0.03, 0.1, 0.3)
# Of the product of ranks: from nearly a sum over the columns to their interactions.
_STRENGTHS = (0.5, 2.0, 8.0)
# So strong that the constant beside a column's own term is rounding: (1 + sκ)/(1 + s) is κ. Each
# such column is a Gram matrix more, so that wide tables get none.
_ALONE = 1e6
_MOST_ALONE = 20


class EvidenceKernel(Kernel):
    """Σ w₁ exp(−d²/2) + w₂ exp(−d) + w₃ Σ ℓ²xy + w₄ Π (1 + sκ)/(1 + s) + w₅ exp(−d²/200).

    d² = Σ ℓᵢ²(xᵢ − yᵢ)² of softly capped standard scores; κ is the centred tessellated kernel of
    degree 0 of their ranks. A column of categories counts as one dimension: d² gains ℓ² where
    they differ, κ is their centred overlap. If `groups` names a column, two rows of
    one group have w₆ more.

    Parameters
    ----------
    views : Views
        How numbers become standard scores and ranks, from the training rows.
    scales : sequence of Scales
        One for each kernel of the sum.

    Notes
    -----
    Rows are numbers followed by codes of categories, one column each. Every Gram matrix is positive
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
                f"numbers and {n - n_numbers} categories"
            )
        X = np.asarray(X, dtype=np.float64)
        return self.views.points(
            np.ascontiguousarray(X[:, :n_numbers]), X[:, n_numbers:].astype(np.int64)
        )

    def _gram(self, X: Any, Y: Any | None) -> RealArray:
        left = self._points(X)
        if Y is None:
            return gram_of(left, self.scales, self.views.match_weight)
        return cross_kernel(left, self._points(Y), self.scales, self.views.match_weight)

    def _diag(self, X: Any) -> RealArray:
        points = self._points(X)
        values = [own_kernel(points, each, self.views.match_weight) for each in self.scales]
        return np.asarray(np.sum(values, axis=0))


def default_kernels(X: FloatArray, weight: FloatArray | None = None) -> dict[str, Kernel]:
    """Return the kernels that are weighted where the user names none.

    Gaussians, Laplacians, a linear kernel, tessellated products of ranks, and the tessellated
    kernels of single features where these are at most twenty. `X` of shape (n, n_features):
    training points, standardised; `weight` of shape (n,): how often each counts.
    """
    n = X.shape[1]
    varying = np.flatnonzero(np.ptp(X, axis=0) > 0.0)
    views = Views.of(np.ascontiguousarray(X), np.empty((len(X), 0), dtype=np.int64), weight)
    kernels: dict[str, Kernel] = {f"gaussian {c:g}": RBF(c / n) for c in _GAUSSIANS}
    kernels |= {f"laplacian {c:g}": Laplacian(c / n) for c in _LAPLACIANS}
    if len(varying):
        kernels["linear"] = Linear()
    if len(varying) > 1:
        even = np.isin(np.arange(n), varying) / len(varying)
        kernels |= {f"product {s:g}": _product(views, s * even) for s in _STRENGTHS}
    if n <= _MOST_ALONE:
        kernels |= {f"column {i}": _product(views, _ALONE * np.eye(n)[i]) for i in varying}
    return kernels


def _product(views: Views, strength: FloatArray) -> EvidenceKernel:
    """Return the tessellated product alone of the five terms."""
    weights = np.array([0.0, 0.0, 0.0, 1.0, 0.0])
    return EvidenceKernel(views, (Scales(np.zeros(len(strength)), strength, weights, 0.0),))
