"""Gram matrices that the user computed, as the family of a problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from kernelweave.kernels_core.kernels.precomputed import as_grams
from kernelweave.kernels_core.kernels.psd import require_psd
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PrecomputedFamily:
    """``K(β) = Σ βⱼKⱼ`` for given K₁ … K_q; the samples of the problem are their positions.

    Attributes
    ----------
    grams : ndarray of shape (q, n, n)
    """

    grams: NDArray[Any]
    name: ClassVar[str] = "dictionary"

    @classmethod
    def from_stack(cls, stack: NDArray[Any], rows: NDArray[np.intp]) -> PrecomputedFamily:
        """Return the family of some samples of a stack; of all of them without a copy.

        Raises
        ------
        NotPSDError
            Naming the matrix and its smallest eigenvalue.
        """
        everything = rows.size == stack.shape[1]
        grams = stack if everything else np.stack([K[np.ix_(rows, rows)] for K in stack])
        for j, K in enumerate(grams):
            require_psd(K, f"X[{j}]")
        return cls(grams)

    def fit_grams(self, X: Any, dtype: Any = np.float64) -> PrecomputedFamily:
        """Return itself: nothing depends on the samples any more."""
        return self

    def gram(self, X: Any, weights: ArrayLike, Y: Any = None) -> FloatArray:
        """Return ``Σ βⱼKⱼ``, shape (n, n)."""
        return PrecomputedKernel(np.asarray(weights))(self.grams)

    def kernel(self, weights: ArrayLike) -> PrecomputedKernel:
        """Return what combines a stack with these weights."""
        return PrecomputedKernel(np.asarray(weights, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class PrecomputedKernel:
    """Combines a stack of cross-Gram matrices: ``Σ βⱼKⱼ``.

    Attributes
    ----------
    weights : ndarray of shape (q,)
    """

    weights: FloatArray

    def __call__(self, stack: Any, columns: NDArray[np.intp] | None = None) -> FloatArray:
        """Return the sum, shape (n_new, n_train) or its columns.

        Parameters
        ----------
        stack : array-like of shape (q, n_new, n_train)
        columns : ndarray of int, optional
        """
        grams = as_grams(stack)
        if grams.shape[0] != self.weights.size:
            raise ValueError(f"X holds {grams.shape[0]} Gram matrices, fit saw {self.weights.size}")
        at = slice(None) if columns is None else columns
        used = np.flatnonzero(self.weights)
        out: FloatArray = sum(self.weights[j] * grams[j][:, at] for j in used)
        return out
