"""Weighted sums of Gram matrices that the user computed, as a kernel and as a family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..arrays import FloatArray, RealArray, Rows
from .precomputed import PrecomputedGrams


@dataclass(frozen=True, eq=False)
class PrecomputedKernel:
    """(Σ βⱼ Xⱼ)^{∘d} of a stack X of cross-Gram matrices: the learned kernel on precomputed ones.

    `weights` of shape (q,): β; `degree`: d, a Hadamard power.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.grams import PrecomputedKernel
    >>> PrecomputedKernel(np.array([0.5, 0.5]))(np.array([[[1.0, 2.0]], [[3.0, 4.0]]]))
    array([[2., 3.]])
    """

    weights: FloatArray
    degree: int = 1

    def __call__(self, X: Rows) -> FloatArray:
        """Return the combined matrix, (n_x, n_train); only matrices of nonzero weight are read.

        `X`: cross-Gram matrices of shape (q, n_x, n_train), or a `PrecomputedGrams` of them. Raises
        ValueError if X does not hold one matrix per weight.
        """
        grams = PrecomputedGrams.of(X)
        if grams.n_kernels != len(self.weights):
            raise ValueError(
                f"X must hold {len(self.weights)} Gram matrices, one per kernel, got "
                f"{grams.n_kernels}"
            )
        out = np.zeros(grams.shape)
        for j in np.flatnonzero(self.weights):
            out += self.weights[j] * grams.matrix(int(j))
        return out if self.degree == 1 else np.asarray(out**self.degree)

    def times(self, grams: PrecomputedGrams, u: FloatArray) -> FloatArray:
        """Return the combined matrix times u of shape (n_train, t); a sum of them is not formed."""
        if self.degree > 1:
            used = np.flatnonzero(u.any(axis=1))
            return np.asarray(self(grams[:, used]) @ u[used])
        out = np.zeros((len(grams), u.shape[1]))
        for j in np.flatnonzero(self.weights):
            out += self.weights[j] * (grams.matrix(int(j)) @ u)
        return out


@dataclass(frozen=True, eq=False)
class PrecomputedStack:
    """Σ βⱼKⱼ of given Gram matrices: a fitted dictionary and a family in one.

    `grams` of shape (q, n, n): Gram matrices of the training points, symmetric and positive
    semidefinite.
    """

    grams: RealArray
    name: ClassVar[str] = "dictionary"
    degree: ClassVar[int] = 1

    def __len__(self) -> int:
        return len(self.grams)

    @property
    def names(self) -> tuple[str, ...]:
        """``"K0"``, ``"K1"``, and so on."""
        return tuple(f"K{j}" for j in range(len(self)))

    @property
    def kept(self) -> NDArray[np.intp]:
        """Position of each kernel, shape (q,): none is left out."""
        return np.arange(len(self))

    @property
    def dropped(self) -> dict[str, float]:
        """Nothing is left out."""
        return {}

    def as_family(self) -> PrecomputedStack:
        """Return itself."""
        return self

    def fit_grams(self, X: Rows, dtype: DTypeLike = np.float64) -> PrecomputedStack:
        """Return itself: ``X`` are positions in the stack, and ``dtype`` is that of the stack."""
        return self

    def gram(self, X: Rows, weights: ArrayLike, Y: Rows | None = None) -> FloatArray:
        """Return Σ βⱼKⱼ of the training points, shape (n, n), for ``weights`` of shape (q,)."""
        return PrecomputedKernel(np.asarray(weights, dtype=np.float64))(
            PrecomputedGrams.of_checked(self.grams)
        )

    def kernel(self, weights: ArrayLike) -> PrecomputedKernel:
        """Return what combines a stack of cross-Gram matrices with these weights."""
        return PrecomputedKernel(np.asarray(weights, dtype=np.float64))
