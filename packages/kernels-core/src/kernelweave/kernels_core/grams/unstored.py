"""Gram matrices that are not stored: entries and products, computed where they are asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from ..arrays import FloatArray, Index, RealArray
from ..rounding import UNIT

# Entries of a block that is computed for a product: 32 MiB.
_ENTRIES = 2**22
# The copy that shrinking makes of a block is at most half of it.
_COPY = 1.5


class Operator(ABC):
    """The Gram matrix of one kernel, computed where it is asked for; nothing of its size is held.

    ``PreparedFamily.unstored(P)`` returns one where a family can do that. Products come from
    blocks of entries where a subclass knows no shorter way.
    """

    n_samples: int

    @abstractmethod
    def block(self, rows: Index, columns: Index | slice, out: RealArray) -> None:
        """Write the entries of some rows and columns, in the dtype of ``out``."""

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """Return the diagonal, shape (m,), float64."""

    def product(self, W: FloatArray) -> FloatArray:
        """Return ``K W``, shape (t, m), float64; columns of W (t, m) that are zero cost nothing."""
        used = np.flatnonzero(np.any(W != 0.0, axis=0))
        product = np.zeros((len(W), self.n_samples))
        step = max(1, _ENTRIES // max(1, len(used)))
        for start in range(0, self.n_samples if len(used) else 0, step):
            rows = np.arange(start, min(start + step, self.n_samples))
            part = np.empty((len(rows), len(used)))
            self.block(rows, used, part)
            product[:, rows] = W[:, used] @ part.T
        return product

    @property
    def n_additions(self) -> float:
        """Return how many additions a term of `product` meets at most."""
        return self.n_samples + 2.0

    def product_error(self, W: FloatArray) -> FloatArray:
        """Return bounds, shape (t,), on the rounding error of the sums of `product`.

        ``γₖ max√Kᵢᵢ Σₗ √Kₗₗ|Wₗ|`` for k additions; the errors of the entries come on top.
        """
        root = np.sqrt(np.maximum(self.diagonal(), 0.0))
        count = self.n_additions * UNIT
        gamma = count / (1.0 - count) * 1.001
        return np.asarray(gamma * root.max() * (np.abs(W) @ root))


class LowRankOperator(Operator):
    """``Σⱼ βⱼZⱼZⱼᵀ`` as entries of an `UnstoredKernel`.

    - `factors` of shape (n, r): Z₁ … Z_q side by side, C-contiguous
    - `ends` of shape (q + 1,): the columns of Zⱼ are those from ``ends[j]`` to ``ends[j + 1]``
    - `weights` of shape (q,): β ≥ 0
    - `diagonals` of shape (q, n): of each ``ZⱼZⱼᵀ``

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.grams import LowRankOperator
    >>> x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> K = LowRankOperator(x, np.array([0, 1]), np.ones(1), (x**2).T)
    >>> K.product(np.array([[1.0, 0, 0, 1]]))
    array([[0., 0., 0., 0.]])
    """

    def __init__(
        self, factors: FloatArray, ends: Index, weights: FloatArray, diagonals: FloatArray
    ) -> None:
        self.factors, self.weights = factors, weights
        self.n_samples = len(factors)
        self._diagonals = diagonals
        self.used = np.flatnonzero(weights)
        self.begin, self.end = ends[:-1][self.used], ends[1:][self.used]
        # of each column, 0 of those that are not used
        self.column_weights = np.repeat(weights, np.diff(ends))

    def block(self, rows: Index, columns: Index | slice, out: RealArray) -> None:
        """Write the entries of some rows and columns."""
        at = np.flatnonzero(self.column_weights)
        left = self.factors[rows][:, at] * self.column_weights[at]
        out[:] = left @ self.factors[columns][:, at].T

    def sums(self, u: FloatArray) -> FloatArray:
        """Return ``βⱼZⱼᵀu`` of all kernels, shape (r,)."""
        out = np.zeros(self.factors.shape[1])
        for j, a, b in zip(self.used, self.begin, self.end, strict=True):
            out[a:b] = self.weights[j] * (u @ self.factors[:, a:b])
        return out

    def values(self, sums: FloatArray) -> FloatArray:
        """Return ``Σⱼ Zⱼ sumsⱼ`` of the kernels with a positive weight, shape (n,)."""
        out = np.zeros(self.n_samples)
        for a, b in zip(self.begin, self.end, strict=True):
            out += self.factors[:, a:b] @ sums[a:b]
        return out

    def product(self, W: FloatArray) -> FloatArray:
        """Return ``K Wₜ``, shape (t, n)."""
        return np.array([self.values(self.sums(row)) for row in W])

    def diagonal(self) -> FloatArray:
        """Return the diagonal, shape (n,)."""
        return np.asarray(self.weights @ self._diagonals)

    def product_error(self, W: FloatArray) -> FloatArray:
        """Return bounds, shape (t,), on the rounding of `product`.

        ``γ max√Kᵢᵢ Σₗ √Kₗₗ|Wₗ|`` with n + r + 4 roundings, by Cauchy and Schwarz.
        """
        root = np.sqrt(self.diagonal())
        count = (sum(self.factors.shape) + 8.0) * UNIT
        return np.asarray(1.01 * count * root.max() * (np.abs(W) @ root))


@dataclass(frozen=True)
class UnstoredKernel:
    """A Gram matrix that is computed where it is asked for.

    Pass it to `SVC.solve` or `SVR.solve` in place of an array.

    Parameters
    ----------
    entries : Operator
        Computes entries and products, in float64.
    nbytes : int
        Memory for the part over a block of samples and the copy that shrinking makes of it.
    dtype : {"float64", "float32"}
        Precision of that part. In float32 it is centred, which changes nothing where coefficients
        sum to 0.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core import PolynomialFamily
    >>> from kernelweave.kernels_core.grams import UnstoredKernel
    >>> x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> entries = PolynomialFamily(1).prepare(x).unstored(np.diag([0.0, 1.0]))
    >>> K = UnstoredKernel(entries, nbytes=2**20)
    >>> K.shape, K.diagonal()
    ((4, 4), array([4., 1., 1., 4.]))
    """

    entries: Operator
    nbytes: int
    dtype: str = "float64"

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return (int(self.entries.n_samples),) * 2

    @property
    def block_size(self) -> int:
        """Return the samples of the largest block that fits, two at least."""
        return largest_block(self.shape[0], self.nbytes, self.dtype)

    def diagonal(self) -> FloatArray:
        """Return the diagonal in float64."""
        return np.asarray(self.entries.diagonal(), dtype=np.float64)

    @cached_property
    def middle(self) -> FloatArray:
        """Return the column of the sample with the smallest k(x, x), for centring."""
        column = np.empty((self.shape[0], 1))
        self.entries.block(np.arange(self.shape[0]), np.array([np.argmin(self.diagonal())]), column)
        return column[:, 0]


def largest_block(n_samples: int, nbytes: int, dtype: str) -> int:
    """Return how many of the samples a block holds in so many bytes, two at least."""
    most = (nbytes / (_COPY * np.dtype(dtype).itemsize)) ** 0.5
    return int(min(n_samples, max(2, most)))


# a Gram matrix as learners take it: stored, or computed where it is asked for
Gram: TypeAlias = "RealArray | UnstoredKernel"
