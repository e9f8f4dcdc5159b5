"""Stacks of Gram matrices, stored or low-rank: weighted sums and quadratic forms, with margins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import FloatArray, Index, Rows
from ..config import run_blocks
from ..exceptions import NotPSDError
from ..rounding import UNIT
from . import _njit_grams
from ._fill import _FOR_BLAS, largest, row_blocks
from .psd import KernelArray, as_gram, check_gram, require_psd
from .unstored import LowRankOperator, UnstoredKernel

# Bytes of the rows that are worked on at a time: they stay in cache while the matrices pass by.
_BLOCK_BYTES = 1 << 18
# Matrices that one compiled pass adds.
_AT_ONCE = 4
# of the part of K over the samples that descent leaves to blocks: some 4,000 of them
_DESCENT_BYTES = 1 << 27
# Parts of a stack that threads share out: one for each matrix costs more than its form.
_BLOCKS = 16


class Stack(ABC):
    """K₁ … K_q on n samples: all that the saddle over kernel weights asks of them."""

    @abstractmethod
    def __len__(self) -> int:
        """Return q."""

    @property
    @abstractmethod
    def n_samples(self) -> int:
        """Return n."""

    @property
    @abstractmethod
    def diagonals(self) -> FloatArray:
        """Return the diagonal of each matrix, shape (q, n)."""

    @property
    @abstractmethod
    def largest(self) -> FloatArray:
        """Return the largest ``|Kᵢₖ|`` of each matrix, or more, shape (q,)."""

    @property
    @abstractmethod
    def matrices(self) -> tuple[KernelArray, ...]:
        """Return the matrices, or raise where there are none to look at."""

    @abstractmethod
    def combine(self, weights: FloatArray) -> Any:
        """Return ``Σ βⱼKⱼ`` as a learner takes it: each entry within (q + 4) roundings."""

    @abstractmethod
    def quadratic_forms(self, u: FloatArray) -> FloatArray:
        """Return ``uᵀKⱼu`` of each matrix, rounded up, shape (q,), for u of shape (n,)."""

    @abstractmethod
    def forms_of(self, points: FloatArray, kernels: Index) -> FloatArray:
        """Return ``uᵀKⱼu`` of some matrices, rounded up, shape (b, k), for points of shape (b, n).

        Many points share one pass through each matrix.
        """

    def largest_forms(self, u: FloatArray) -> FloatArray:
        """Return ``(Σᵢ √Kᵢᵢ|uᵢ|)²``, at least any form of u, shape (q,): no matrix is read."""
        size = (np.sqrt(np.maximum(self.diagonals, 0.0)) @ np.abs(u)) ** 2
        return np.asarray(size * (1.0 + 4.0 * (u.size + 8) * UNIT))


def as_stack(grams: Stack | ArrayLike | Sequence[ArrayLike], *, check: bool = True) -> Stack:
    """Return a stack as it is, and Gram matrices as a `GramStack`."""
    return grams if isinstance(grams, Stack) else GramStack(grams, check=check)


class GramStack(Stack):
    """K₁ … K_q on n samples, never copied where they are contiguous.

    Parameters
    ----------
    grams : ndarray of shape (q, n, n) or sequence of q ndarrays of shape (n, n)
        Symmetric positive semidefinite, float64 or float32.
    check : bool
        Whether to check that each is finite, symmetric and positive semidefinite up to rounding:
        ``n³/3`` flops a matrix. No bound holds with an indefinite one.

    Raises
    ------
    ValueError
        If there is none, the shapes differ, or one is not finite and symmetric.
    NotPSDError
        If one has a negative eigenvalue; names it and the eigenvalue.

    Examples
    --------
    >>> stack = GramStack(np.stack([np.eye(3), np.ones((3, 3))]))
    >>> stack.combine(np.array([0.5, 0.5]))[0]
    array([1. , 0.5, 0.5])
    """

    def __init__(self, grams: ArrayLike | Sequence[ArrayLike], *, check: bool = True) -> None:
        items: list[ArrayLike] = list(grams)  # type: ignore[arg-type]
        shapes = {np.shape(K) for K in items}
        if not items or any(len(shape) != 2 for shape in shapes):
            raise ValueError(
                f"grams must hold Gram matrices, shape (q, n, n) with q >= 1, "
                f"got {len(items)} of shapes {shapes}"
            )
        self._matrices: tuple[KernelArray, ...] = tuple(as_gram(K) for K in items)
        shapes = {K.shape for K in self.matrices}
        if len(shapes) > 1:
            raise ValueError(f"grams must all have one shape, got {sorted(shapes)}")
        if check:
            for j, K in enumerate(self.matrices):
                try:
                    check_gram(K)
                except NotPSDError:
                    pass  # the check below knows the eigenvalue
                except ValueError as error:
                    raise ValueError(f"grams[{j}]: {error}") from None
                require_psd(K, f"grams[{j}]")

    def __len__(self) -> int:
        return len(self.matrices)

    @property
    def matrices(self) -> tuple[KernelArray, ...]:
        """Return K₁ … K_q."""
        return self._matrices

    @property
    def n_samples(self) -> int:
        """Return n."""
        return int(self.matrices[0].shape[0])

    @cached_property
    def diagonals(self) -> FloatArray:
        """Return the diagonal of each matrix, shape (q, n)."""
        return np.stack([np.diagonal(K) for K in self.matrices]).astype(np.float64)

    @property
    def largest(self) -> FloatArray:
        """Return the largest ``|Kᵢₖ|`` of each matrix, shape (q,): n² loads each."""
        return np.array([largest(K) for K in self.matrices])

    def combine(self, weights: FloatArray) -> NDArray[np.float64]:
        """Return ``Σ βⱼKⱼ`` in float64, shape (n, n), from the matrices of nonzero weight.

        An entry is within (q + 1) roundings of ``Σ βⱼ|Kⱼ|`` of the exact sum. ``2n²`` flops a
        matrix, in row blocks that stay in cache, on two threads or more where n is large.
        """
        n = self.n_samples
        out = np.empty((n, n))
        used = np.flatnonzero(weights)
        groups = np.split(used, range(_AT_ONCE, len(used), _AT_ONCE))
        step = max(1, _BLOCK_BYTES // (8 * n))

        def fill(start: int, stop: int) -> None:
            block = out[start:stop]
            block[:] = 0.0
            for some in groups:
                parts = [self.matrices[j][start:stop] for j in some]
                if len(some) == _AT_ONCE and len({K.dtype for K in parts}) == 1:
                    _njit_grams.add_four(*parts, tuple(weights[some].tolist()), block)
                    continue
                for j, K in zip(some, parts, strict=True):
                    _njit_grams.add_rows(K, float(weights[j]), block)

        bounds = [(start, min(start + step, n)) for start in range(0, n, step)]
        run_blocks(fill, bounds, 2.0 * n * n * len(used))
        return out

    def quadratic_forms(self, u: FloatArray) -> FloatArray:
        """Return ``uᵀKⱼu`` of each, rounded up, shape (q,): only rows with u ≠ 0 are read."""
        rows = np.flatnonzero(u)

        def forms(start: int, stop: int) -> list[tuple[float, float]]:
            return [_njit_grams.quadratic_form(K, rows, u) for K in self.matrices[start:stop]]

        step = -(-len(self) // _BLOCKS)
        bounds = [(j, min(j + step, len(self))) for j in range(0, len(self), step)]
        steps = float(len(self) * rows.size * self.n_samples)
        value, size = np.vstack(run_blocks(forms, bounds, steps)).T
        rounding = 1.01 * (self.n_samples + rows.size + 8) * UNIT
        raised: FloatArray = value + rounding * size
        return raised

    def forms_of(self, points: FloatArray, kernels: Index) -> FloatArray:
        """Return ``uᵀKⱼu`` of some matrices, rounded up, shape (b, k): 2bn² flops a matrix.

        The error of a sum is within ``γ Σ|uᵢKᵢₖuₖ|``, which the diagonal bounds as K is positive
        semidefinite.
        """
        columns = np.ascontiguousarray(points.T)
        forms = np.empty((len(points), len(kernels)))
        for place, j in enumerate(kernels):
            forms[:, place] = np.einsum("ib,ib->b", columns, self.matrices[j] @ columns)
        roots = np.sqrt(np.maximum(self.diagonals[kernels], 0.0))
        size = (np.abs(points) @ roots.T) ** 2
        return np.asarray(forms + 1.01 * (2 * self.n_samples + 8) * UNIT * size)


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
        self._diagonals = np.empty((len(self), self.n_samples))
        n_rows, n_columns = self._factors.shape
        for rows in row_blocks(n_rows, n_columns, _FOR_BLAS):
            self._diagonals[:, rows] = self._squares(self._factors[rows], self._all).T

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
            "this needs Gram matrices, and the kernels are stored as low-rank factors: set "
            "approximation=None"
        )

    def combine(self, weights: FloatArray) -> UnstoredKernel:
        """Return ``Σ βⱼZⱼZⱼᵀ``; nothing is computed."""
        entries = LowRankOperator(self._factors, self._ends, weights, self._diagonals)
        return UnstoredKernel(entries, _DESCENT_BYTES)

    def quadratic_forms(self, u: FloatArray) -> FloatArray:
        """Return ``‖Zⱼᵀu‖²`` of each matrix, rounded up, shape (q,), for u of shape (n,)."""
        return np.asarray(self.forms_of(u[None], self._all)[0])

    def forms_of(self, points: FloatArray, kernels: Index) -> FloatArray:
        """Return ``‖Zⱼᵀu‖²`` of some matrices, rounded up, shape (b, k), for points (b, n)."""
        is_all = np.array_equal(kernels, self._all)
        columns: Any = slice(None) if is_all else self._columns(kernels)
        forms = self._squares(points @ self._factors[:, columns], kernels)
        size = (np.abs(points) @ self._roots[kernels].T) ** 2
        count = 2 * self.n_samples + max(np.diff(self._ends)) + 8
        return np.asarray(forms + 1.01 * count * UNIT * size)

    @property
    def _all(self) -> Index:
        return np.arange(len(self))

    @cached_property
    def _roots(self) -> FloatArray:
        return np.sqrt(self._diagonals)

    def _columns(self, kernels: Index) -> Index:
        """Return the columns of some kernels, one after the other."""
        sizes = np.diff(self._ends)[kernels]
        shifts = self._ends[:-1][kernels] - (np.cumsum(sizes) - sizes)
        return np.asarray(np.arange(sizes.sum()) + np.repeat(shifts, sizes), dtype=np.intp)

    def _squares(self, values: FloatArray, kernels: Index) -> FloatArray:
        """Return sums of squares over the columns of each kernel, (b, k), of values (b, r)."""
        sizes = np.diff(self._ends)[kernels]
        out = np.zeros((len(values), len(sizes)))
        # a kernel without columns is 0
        filled = np.flatnonzero(sizes)
        if filled.size:
            starts = (np.cumsum(sizes) - sizes)[filled]
            out[:, filled] = np.add.reduceat(values * values, starts, axis=1)
        return out


def fit_family(family: Any, X: Rows) -> Any:
    """Return the fitted dictionary of a family: with factors where it has them, else matrices."""
    return family.fit_factors(X) if hasattr(family, "fit_factors") else family.fit_grams(X)


def stack_of(fitted: Any) -> Stack:
    """Return the stack of what `fit_family` returned."""
    if hasattr(fitted, "factors"):
        return LowRankStack(fitted.factors, fitted.ends)
    return GramStack(fitted.grams, check=False)
