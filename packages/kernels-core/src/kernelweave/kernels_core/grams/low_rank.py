"""Low-rank Gram matrices ZⱼZⱼᵀ that are never formed: a weighted sum of them, and a stack."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import FloatArray, Index, RealArray, Rows
from ..rounding import UNIT
from .stack import GramStack, Stack
from .unstored import Operator, UnstoredKernel

# of the part of K over the samples that descent leaves to blocks: some 4,000 of them
_BLOCK_BYTES = 2**27


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

    @cached_property
    def columns(self) -> Index:
        """Return the columns of kernels with a positive weight."""
        spans = zip(self.begin, self.end, strict=True)
        return np.concatenate([np.arange(a, b) for a, b in spans])

    @cached_property
    def column_weights(self) -> FloatArray:
        """Return the weight of each column, 0 of those that are not used, shape (r,)."""
        out = np.zeros(self.factors.shape[1])
        for j, a, b in zip(self.used, self.begin, self.end, strict=True):
            out[a:b] = self.weights[j]
        return out

    def block(self, rows: Index, columns: Index | slice, out: RealArray) -> None:
        """Write the entries of some rows and columns."""
        at = self.columns
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


class LowRankStack(Stack):
    """``Kⱼ = ZⱼZⱼᵀ`` for q factors of n rows: weighted sums and quadratic forms, never a matrix.

    Parameters
    ----------
    factors : ndarray of shape (n, r)
        Z₁ … Z_q side by side, finite; never copied where it is C-contiguous.
    ends : array-like of int, shape (q + 1,)
        The columns of Zⱼ are those from ``ends[j]`` to ``ends[j + 1]``.

    Raises
    ------
    ValueError
        If there is no kernel, or the columns do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.grams import LowRankStack
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> stack = LowRankStack(np.stack([x, x**2], axis=1), [0, 1, 2])
    >>> stack.quadratic_forms(np.sign(x)).round(9)
    array([36.,  0.])
    """

    def __init__(self, factors: ArrayLike, ends: ArrayLike) -> None:
        self._factors = np.ascontiguousarray(factors, dtype=np.float64)
        self._ends = np.asarray(ends, dtype=np.intp)
        n_columns = self._factors.shape[1] if self._factors.ndim == 2 else None
        fits = self._ends.ndim == 1 and self._ends.size > 1 and self._ends[0] == 0
        if not fits or self._ends[-1] != n_columns or (np.diff(self._ends) < 0).any():
            raise ValueError(
                f"ends must rise from 0 to the columns of factors, got {ends!r} for factors of "
                f"shape {self._factors.shape}"
            )
        self._diagonals = np.array([np.einsum("ir,ir->i", Z, Z) for Z in self._each()])

    def _each(self) -> list[FloatArray]:
        """Return Z₁ … Z_q."""
        return np.split(self._factors, self._ends[1:-1], axis=1)

    def __len__(self) -> int:
        return len(self._ends) - 1

    @property
    def factors(self) -> FloatArray:
        """Return Z₁ … Z_q side by side, shape (n, r)."""
        return self._factors

    @property
    def n_samples(self) -> int:
        """Return n."""
        return len(self._factors)

    @property
    def diagonals(self) -> FloatArray:
        """Return the diagonal of each matrix, shape (q, n)."""
        return self._diagonals

    @property
    def largest(self) -> FloatArray:
        """Return the largest diagonal entry of each matrix, shape (q,): no entry is larger."""
        return np.asarray(self._diagonals.max(axis=1))

    @property
    def matrices(self) -> NoReturn:
        """Refuse."""
        raise ValueError(
            "this needs Gram matrices, and the kernels are approximated by low-rank factors: set "
            "approximation=None"
        )

    def combine(self, weights: FloatArray) -> UnstoredKernel:
        """Return ``Σ βⱼZⱼZⱼᵀ``; nothing is computed."""
        entries = LowRankOperator(self._factors, self._ends, weights, self._diagonals)
        return UnstoredKernel(entries, _BLOCK_BYTES)

    def quadratic_forms(self, u: FloatArray) -> FloatArray:
        """Return ``‖Zⱼᵀu‖²`` of each matrix, rounded up, shape (q,), for u of shape (n,)."""
        return np.asarray(self.forms_of(u[None], np.arange(len(self)))[0])

    def forms_of(self, points: FloatArray, kernels: Index) -> FloatArray:
        """Return ``‖Zⱼᵀu‖²`` of some matrices, rounded up, shape (b, k), for points (b, n)."""
        parts = [self._factors[:, self._ends[j] : self._ends[j + 1]] for j in kernels]
        forms = np.array([np.sum((points @ Z) ** 2, axis=1) for Z in parts]).T
        size = (np.abs(points) @ np.sqrt(self._diagonals[kernels]).T) ** 2
        count = 2 * self.n_samples + max(np.diff(self._ends)) + 8
        return np.asarray(forms + 1.01 * count * UNIT * size)


def fit_family(family: Any, X: Rows) -> Any:
    """Return the fitted dictionary of a family: with factors where it has them, else matrices."""
    return family.fit_factors(X) if hasattr(family, "fit_factors") else family.fit_grams(X)


def stack_of(fitted: Any) -> Stack:
    """Return the stack of what `fit_family` returned."""
    if hasattr(fitted, "factors"):
        return LowRankStack(fitted.factors, fitted.ends)
    return GramStack(fitted.grams, check=False)
