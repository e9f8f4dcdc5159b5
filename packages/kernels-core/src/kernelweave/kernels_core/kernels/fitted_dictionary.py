"""A kernel dictionary fitted to training points: its Gram matrices and what test points need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .. import memory
from ..arrays import Points, RealArray, Rows
from ..checks import check_weights
from ..grams._fill import row_blocks
from ._validation import check_samples
from .base import Kernel
from .compose import Combination
from .fitted import is_same


def require_stack(n_kernels: int, n_x: int, n_y: int, dtype: DTypeLike) -> None:
    """Refuse a stack of Gram matrices that the memory limit forbids."""
    memory.require(
        n_kernels * n_x * n_y * np.dtype(dtype).itemsize,
        f"{n_kernels} Gram matrices of {n_x} x {n_y} samples",
        alternative="use fewer kernels or samples, or raise memory_limit",
    )


@dataclass(frozen=True, eq=False)
class FittedDictionary:
    """The kernels of a dictionary on its training points, clipped and normalised.

    Built by `KernelDictionary.fit_grams`.

    Attributes
    ----------
    names : tuple of str, length q
        Names of the kernels that are left.
    kernels : tuple of Kernel, length q
        The same kernels with everything that clipping and normalisation learned: they take any
        points, and ``kernels[j](X_new, X)`` is row block j of ``cross(X_new)``.
    X : ndarray or CSR, shape (n, n_features)
        Training points.
    grams : ndarray, shape (q, n, n)
        Their Gram matrices, exactly symmetric.
    dropped : dict of str to float
        Kernels left out by ``psd="drop"``, with their smallest eigenvalue.
    clipped : dict of str to float
        Kernels repaired by ``psd="clip"``, with the smallest eigenvalue they had.
    kept : ndarray of int, shape (q,)
        Position in the dictionary of each kernel that is left.
    """

    names: tuple[str, ...]
    kernels: tuple[Kernel, ...]
    X: Points
    grams: RealArray
    dropped: dict[str, float]
    clipped: dict[str, float]
    kept: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.kernels)

    def _samples(self, X: Rows) -> Points:
        new = check_samples(X, "X_new", dtype=self.X.dtype)
        if new.shape[1] != self.X.shape[1]:
            raise ValueError(
                f"X_new has {new.shape[1]} features, the dictionary was fitted on {self.X.shape[1]}"
            )
        return new

    def cross(self, X_new: Rows) -> RealArray:
        """Return the cross-Gram matrices kⱼ(X_new, X).

        `X_new` of shape (n_new, n_features). Returns shape (q, n_new, n).
        """
        new = self._samples(X_new)
        shape = (len(self), new.shape[0], self.X.shape[0])
        require_stack(*shape, self.X.dtype)
        out = np.empty(shape, dtype=self.X.dtype)
        for j, kernel in enumerate(self.kernels):
            out[j] = kernel(new, self.X)
        return out

    def diag(self, X_new: Rows) -> RealArray:
        """Return kⱼ(xᵢ, xᵢ) at new points, shape (q, n_new)."""
        new = self._samples(X_new)
        return np.array([kernel.diag(new) for kernel in self.kernels])

    def gram(self, weights: ArrayLike) -> RealArray:
        """Return Σⱼ βⱼ Kⱼ on the training points, shape (n, n), exactly symmetric.

        Beside the result only a block of rows is allocated. Cost: 2qn² operations, for weights
        that are not 0.

        `weights` of shape (q,): β.
        """
        beta = check_weights(weights, len(self), signed=True)
        _, n_rows, n_columns = self.grams.shape
        out = np.zeros((n_rows, n_columns), dtype=self.grams.dtype)
        used = np.flatnonzero(beta)
        for rows in row_blocks(n_rows, n_columns):
            for j in used:
                out[rows] += self.grams[j, rows] * out.dtype.type(beta[j])
        return out

    def kernel(self, weights: ArrayLike) -> Combination:
        """Return Σⱼ βⱼ kⱼ as one picklable kernel for any points.

        It holds the kernels of weight 0 no longer, and the training points only if clipping or
        centring needs them.

        `weights` of shape (q,): β.
        """
        beta = check_weights(weights, len(self), signed=True)
        used = np.flatnonzero(beta)
        if not len(used):
            used = np.array([0])
        return Combination([self.kernels[j] for j in used], beta[used])

    def as_family(self) -> FittedFamily:
        """Return the same as a family of a `Problem`, whose Gram matrices are already there."""
        return FittedFamily(self)


@dataclass(frozen=True, eq=False)
class FittedFamily:
    """K(β) = Σⱼ βⱼ Kⱼ with kernels clipped and normalised on training points, as a family.

    Unlike a `KernelDictionary` with such options it needs no further statistics, so ``gram`` and
    ``kernel`` work for any points; on the training points the matrices are not computed again.

    Attributes
    ----------
    fitted : FittedDictionary
    """

    name: ClassVar[str] = "dictionary"
    degree: ClassVar[int] = 1
    fitted: FittedDictionary

    def __len__(self) -> int:
        return len(self.fitted)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the kernels."""
        return self.fitted.names

    def fit_grams(self, X: Rows, dtype: DTypeLike = np.float64) -> FittedDictionary:
        """Return the fitted dictionary; ``X`` and ``dtype`` must be those it was fitted with.

        Raises ValueError if they are not.
        """
        if np.dtype(dtype) != self.fitted.X.dtype or not self._is_training(X):
            raise ValueError(
                "this family was fitted on other samples or another dtype: "
                "call fit_grams of the KernelDictionary"
            )
        return self.fitted

    def _is_training(self, X: Rows) -> bool:
        return X is self.fitted.X or is_same(
            check_samples(X, dtype=self.fitted.X.dtype), self.fitted.X
        )

    def gram(self, X: Rows, weights: ArrayLike, Y: Rows | None = None) -> RealArray:
        """Return Σⱼ βⱼ kⱼ(X, Y), shape (n_x, n_y), for β of shape (q,)."""
        if Y is None and self._is_training(X):
            return self.fitted.gram(weights)
        return self.fitted.kernel(weights)(X, Y)

    def kernel(self, weights: ArrayLike) -> Combination:
        """Return Σⱼ βⱼ kⱼ as one kernel."""
        return self.fitted.kernel(weights)

    def diag(self, X: Rows) -> RealArray:
        """Return kⱼ(xᵢ, xᵢ), shape (q, n)."""
        return self.fitted.diag(X)
