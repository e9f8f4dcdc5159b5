"""The family of given Gram matrices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import memory
from kernelweave.kernels_core.arrays import Matrix, RealArray, Vector
from kernelweave.kernels_core.grams import as_grams
from numpy.typing import DTypeLike
from scipy.linalg.blas import daxpy

from .gaussian_grid import FittedGrid

# Bytes in float64 of the rows that are summed at a time: about what fits into a core's cache.
_BLOCK_BYTES = 1 << 21
# Rows of a strip. Symmetric matrices are read as strips from the first column to the diagonal
# block: shorter strips read fewer entries twice, longer ones give BLAS more to do.
_STRIP = 128


@dataclass(frozen=True, eq=False)
class PrecomputedFamily:
    """K(η) = Σ ηⱼ Kⱼ for given matrices; a sample is its position in them.

    X of the `Problem` is a column of positions, e.g. ``np.arange(l)[:, None]``.

    Parameters
    ----------
    grams : ndarray of shape (n_kernels, n, n)
        Gram matrices, float64 or float32, never copied when every sample is used in order. float32
        halves the memory; sums are float64 always, and bounds are those of the rounded matrices.
    check : bool, default=True
        Whether to check that entries are finite and matrices symmetric, in one pass. Every bound
        also needs positive semidefinite matrices, which `require_psd` checks.
    root_weight : ndarray of shape (n,), optional
        Roots of sample weights S: the solvers then see S½ Kⱼ S½.

    Raises
    ------
    ValueError
        If ``grams`` are not finite and symmetric matrices of that shape.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.vv_rkhs import PrecomputedFamily
    >>> family = PrecomputedFamily(np.stack([np.eye(3), np.ones((3, 3))]))
    >>> family.gram(np.array([[0], [2]]), [1.0, 2.0])
    array([[3., 2.],
           [2., 3.]])
    """

    name: ClassVar[str] = "dictionary"
    degree: ClassVar[int] = 1
    grams: RealArray
    check: bool = True
    root_weight: Vector | None = None

    def __post_init__(self) -> None:
        if self.check:
            object.__setattr__(self, "grams", as_grams(self.grams, "grams", square=True))

    def __len__(self) -> int:
        return len(self.grams)

    @property
    def n_samples(self) -> int:
        """Number of samples, l."""
        return int(self.grams.shape[1])

    def fit_grams(self, X: npt.ArrayLike, dtype: DTypeLike = np.float64) -> PrecomputedFamily:
        """Return the family of the samples at positions X.

        Itself where they are 0, 1, …, n − 1; else a copy of the matrices, of their own type. Raises
        ValueError if a position is none of the samples.
        """
        rows = _positions(X, self.n_samples)
        if np.array_equal(rows, np.arange(self.n_samples)):
            return self
        root = None if self.root_weight is None else self.root_weight[rows]
        memory.require(
            self.grams.itemsize * len(self.grams) * len(rows) ** 2,
            f"a copy of {len(self.grams)} Gram matrices for {len(rows)} of their samples",
            alternative="give the matrices of these samples only, or raise {memory_limit}",
        )
        grams = np.stack([K[np.ix_(rows, rows)] for K in self.grams])
        return PrecomputedFamily(grams, check=False, root_weight=root)

    def weighted(self, root_weight: Vector | None) -> PrecomputedFamily:
        """Return the family of S½ Kⱼ S½, S½ = diag(root_weight); itself without weights."""
        if root_weight is None:
            return self
        return replace(self, check=False, root_weight=root_weight)

    def gram(self, X: npt.ArrayLike, weights: npt.ArrayLike) -> Matrix:
        """Return Σ ηⱼ Kⱼ at positions X, shape (n_samples, n_samples)."""
        return self.fit_grams(X).combine(np.asarray(weights, dtype=np.float64))

    @cached_property
    def norms(self) -> Vector:
        """At least the Frobenius norm of each weighted matrix, shape (m,), measured once."""
        s = np.ones(self.n_samples) if self.root_weight is None else self.root_weight**2
        squares = np.zeros(len(self))
        for rows, before in _strips(self.n_samples):
            for j, K in enumerate(self.grams):
                left, square = _lower_parts(K, rows, before)
                squares[j] += 2.0 * float(s[rows] @ (left**2 @ s[before]))
                squares[j] += float(s[rows] @ (square**2 @ s[rows]))
        return np.asarray(np.sqrt(squares) * (1.0 + 1e-9))

    def combine(self, weights: Vector) -> Matrix:
        """Return Σ ηⱼ S½ Kⱼ S½ (2 l² flops per weight that is not 0)."""
        n = self.n_samples
        used = np.flatnonzero(weights)
        out: Matrix
        plain = self.grams.dtype == np.float64 and self.grams.flags.c_contiguous
        if plain and 2 * len(used) > len(self):
            out = (weights @ self.grams.reshape(len(self), -1)).reshape(n, n)
        else:
            out = np.zeros((n, n))
            for j in used:
                if plain:
                    daxpy(self.grams[j].reshape(-1), out.reshape(-1), a=float(weights[j]))
                    continue
                for rows, block in _blocks(self.grams[j]):
                    out[rows] += weights[j] * block
        if self.root_weight is not None:
            out *= self.root_weight[:, None]
            out *= self.root_weight
        return out

    def inner(self, C: Matrix, L: Matrix) -> Vector:
        """Return wⱼ = ⟨S½ Kⱼ S½, C L Cᵀ⟩ (2 l² flops per kernel, and l²n once).

        Rows are summed first: the rounding error then grows with l, not with l². In float32 each
        strip of a matrix is read once, as the lower triangle does for both.
        """
        scaled = C if self.root_weight is None else C * self.root_weight[:, None]
        plain = self.grams.dtype == np.float64 and self.grams.flags.c_contiguous
        if plain and scaled.shape[1] == 1:
            # one output: all matrices are read once, in one product
            c = scaled[:, 0]
            images = (self.grams.reshape(-1, len(c)) @ c).reshape(len(self), -1)
            products: Vector = L[0, 0] * (images @ c)
            return products
        right = scaled @ L
        w = np.zeros(len(self))
        for rows, before in _strips(self.n_samples):
            if self.grams.dtype == np.float64:
                M = right[rows] @ scaled.T
                w += np.matmul(self.grams[:, rows].transpose(1, 0, 2), M[:, :, None]).sum(0)[:, 0]
                continue
            M = right[rows] @ scaled[: rows.stop].T
            for j, K in enumerate(self.grams):
                left, square = _lower_parts(K, rows, before)
                w[j] += 2.0 * np.einsum("ij,ij->i", left, M[:, before]).sum()
                w[j] += np.einsum("ij,ij->i", square, M[:, rows]).sum()
        return w


def _blocks(K: RealArray) -> Iterator[tuple[slice, Matrix]]:
    step = max(1, _BLOCK_BYTES // (8 * K.shape[1]))
    for start in range(0, K.shape[0], step):
        rows = slice(start, start + step)
        yield rows, K[rows].astype(np.float64, copy=False)


def _strips(n_samples: int) -> list[tuple[slice, slice]]:
    """Return slices of rows, each with that of all rows before them."""
    starts = range(0, n_samples, _STRIP)
    return [(slice(a, min(a + _STRIP, n_samples)), slice(0, a)) for a in starts]


def _lower_parts(K: RealArray, rows: slice, before: slice) -> tuple[Matrix, Matrix]:
    """Return the part of rows left of the diagonal block, and the block, in float64."""
    return (
        K[rows, before].astype(np.float64, copy=False),
        K[rows, rows].astype(np.float64, copy=False),
    )


def _positions(X: npt.ArrayLike, n_samples: int) -> npt.NDArray[np.intp]:
    rows = np.asarray(X, dtype=np.float64).reshape(-1)
    if not np.isin(rows, np.arange(n_samples)).all():
        raise ValueError(
            f"X must hold positions of samples, whole numbers from 0 to {n_samples - 1} as there "
            f"are {n_samples} samples in the matrices"
        )
    return rows.astype(np.intp)


# what the solvers use: matrices that are there, or a grid that computes them
InputKernels: TypeAlias = PrecomputedFamily | FittedGrid


def as_input_kernels(fitted: Any) -> InputKernels:
    """Return a fitted family, e.g. of ``KernelDictionary.fit_grams``, as the solvers use it."""
    if isinstance(fitted, PrecomputedFamily | FittedGrid):
        return fitted
    return PrecomputedFamily(fitted.grams, check=False)
