"""A kernel of unit diagonal, and the weighted sum that multiple kernel learning finds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Points, RealArray
from ..checks import check_weights
from ..grams._fill import add_scaled, scale_outer
from .base import KERNEL, DerivedKernel, Kernel, all_psd, first_refuser


class UnitDiagonal(DerivedKernel):
    """k(x, y) = k₁(x, y) / √(k₁(x, x) k₁(y, y)), the cosine in k₁'s feature space.

    A point with k₁(x, x) = 0 is the origin of the feature space and stays there: k = 0.

    Parameters
    ----------
    kernel : Kernel
        k₁, with a nonnegative diagonal.

    Examples
    --------
    >>> from kernelweave.kernels_core.kernels import Linear, UnitDiagonal
    >>> UnitDiagonal(Linear())([[3.0, 0.0]], [[1.0, 1.0]]).round(4)
    array([[0.7071]])
    """

    name = "unit-diagonal"

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def _inverse_norms(self, d: RealArray) -> RealArray:
        if d.size and d.min() < 0:
            raise ValueError(
                f"{self.kernel!r} has the negative diagonal value {d.min():.3g}: "
                "a unit diagonal needs a positive semidefinite kernel"
            )
        out = np.zeros_like(d, dtype=np.float64)
        np.divide(1.0, np.sqrt(d, dtype=np.float64), out=out, where=d > 0)
        return out

    def scale(self, K: RealArray, d_x: RealArray, d_y: RealArray | None) -> None:
        """Turn k₁(X, Y) into k(X, Y) in place, given k₁'s diagonals at X and Y (None: X)."""
        u = self._inverse_norms(d_x)
        scale_outer(K, u, u if d_y is None else self._inverse_norms(d_y))
        if d_y is None:
            np.fill_diagonal(K, (u > 0).astype(K.dtype))

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        K = self.kernel._gram(X, Y)
        self.scale(K, self.kernel._diag(X), None if Y is None else self.kernel._diag(Y))
        return K

    def _features(self, X: Points) -> RealArray | None:
        Z = self.kernel._features(X)
        return None if Z is None else self._inverse_norms(self.kernel._diag(X))[:, None] * Z

    def _diag(self, X: Points) -> RealArray:
        return (self._inverse_norms(self.kernel._diag(X)) > 0).astype(X.dtype)


class Combination(Kernel):
    """k(x, y) = Σⱼ βⱼ kⱼ(x, y), the kernel that multiple kernel learning finds.

    Kernels of weight 0 are not evaluated.

    Parameters
    ----------
    kernels : list of Kernel, length q
    weights : array, shape (q,)
        β.

    Examples
    --------
    >>> from kernelweave.kernels_core.kernels import RBF, Combination, Linear
    >>> Combination([Linear(), RBF(gamma=1.0)], [0.25, 0.75])([[2.0]])
    array([[1.75]])
    """

    name = "combination"

    def __init__(self, kernels: Sequence[Kernel], weights: ArrayLike) -> None:
        self.kernels = kernels
        self.weights = weights

    def _terms(self) -> list[tuple[float, Kernel]]:
        pairs = zip(np.asarray(self.weights, dtype=float).tolist(), self.kernels, strict=True)
        return [(w, k) for w, k in pairs if w != 0.0]

    @property
    def is_psd(self) -> bool | None:
        """Whether it is positive semidefinite: False if a weight is negative, None if unknown."""
        terms = self._terms()
        return False if any(w < 0 for w, _ in terms) else all_psd([k for _, k in terms])

    def _sparse_refuser(self) -> Kernel | None:
        return first_refuser([k for _, k in self._terms()])

    def _validate(self) -> None:
        for index, kernel in enumerate(self.kernels):
            KERNEL.check(f"Combination: kernels[{index}]", kernel)._validate()
        check_weights(self.weights, len(self.kernels), signed=True)

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        out = np.zeros((X.shape[0], (X if Y is None else Y).shape[0]), dtype=X.dtype)
        for weight, kernel in self._terms():
            add_scaled(out, kernel._gram(X, Y), weight)
        return out

    def _diag(self, X: Points) -> RealArray:
        out = np.zeros(X.shape[0], dtype=X.dtype)
        for weight, kernel in self._terms():
            out += out.dtype.type(weight) * kernel._diag(X)
        return out
