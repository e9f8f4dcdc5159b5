"""Gaussian kernels on every column by a grid of widths, computed where they are used."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import RBF, memory
from kernelweave.kernels_core.arrays import Matrix, Vector
from kernelweave.kernels_core.checks import COUNT, POSITIVE
from kernelweave.kernels_core.config import row_bounds, run_blocks
from kernelweave.kernels_core.kernels import Combination, Kernel
from numpy.typing import DTypeLike

# Rows that are mirrored at a time, so that a part and its transpose stay in cache.
_ROWS = 128


@dataclass(frozen=True)
class GaussianGrid:
    """k_{c,s}(x, z) = exp(−2ˢ γ₀ (x_c − z_c)²) for every column c and s = 0 … n_widths − 1.

    The widths 1/√(2γ) lie on a √2 grid, as V's thirteen per variable may. No matrix but their sum
    is ever stored: where a stack needs 8 m l² bytes, this needs 16 l², and a pass takes one
    exponential per pair and column, the wider powers being squares of the narrower.

    Parameters
    ----------
    gamma : float, default=2**-6
        γ₀, of the widest kernel; columns of unit variance suit it.
    n_widths : int, default=13
        Widths per column.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.vv_rkhs import GaussianGrid, MatrixValuedKernelRegressor
    >>> X = np.random.default_rng(0).standard_normal((40, 3))
    >>> model = MatrixValuedKernelRegressor(GaussianGrid(n_widths=5)).fit(X, np.sin(X[:, 1]))
    >>> int(model.weights_.reshape(3, 5).sum(axis=1).argmax())
    1
    """

    name: ClassVar[str] = "dictionary"
    degree: ClassVar[int] = 1
    gamma: float = 2.0**-6
    n_widths: int = 13

    def fit_grams(self, X: npt.ArrayLike, dtype: DTypeLike = np.float64) -> FittedGrid:
        """Return the grid on training points.

        Nothing is stored. Raises ValueError if γ₀ or the number of widths is not positive.
        """
        POSITIVE.check("gamma", self.gamma)
        COUNT.check("n_widths", self.n_widths)
        if math.log2(self.gamma) + self.n_widths > 1000:
            raise ValueError(
                "n_widths must be less, gamma * 2**n_widths at most 2**1000, got "
                f"{self.n_widths!r} for gamma={self.gamma!r}"
            )
        return FittedGrid(self, np.ascontiguousarray(X, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class FittedGrid:
    """A `GaussianGrid` on training points; itself the family of a `Problem`.

    Every sum and inner product computes the kernels anew.

    `grid`: the kernels. `X` of shape (n_samples, n_features): training points. Samples of a problem
    are positions in them. `root_weight` of shape (n_samples,): roots of the sample weights.
    """

    name: ClassVar[str] = "dictionary"
    degree: ClassVar[int] = 1
    grid: GaussianGrid
    X: Matrix
    root_weight: Vector | None = None

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels one by one, column by column."""
        steps = range(self.grid.n_widths)
        columns = range(self.X.shape[1])
        return [RBF(gamma=self.grid.gamma * 2.0**s).on([c]) for c in columns for s in steps]

    @property
    def names(self) -> tuple[str, ...]:
        """A name per kernel."""
        return tuple(repr(kernel) for kernel in self.kernels)

    def kernel(self, weights: npt.ArrayLike) -> Combination:
        """Return Σ ηⱼ kⱼ as one kernel, for new points."""
        return Combination(self.kernels, np.asarray(weights, dtype=np.float64))

    def fit_grams(self, X: npt.ArrayLike, dtype: DTypeLike = np.float64) -> FittedGrid:
        """Return the grid of the samples at positions X, shape (n_samples, 1)."""
        rows = np.asarray(X).reshape(-1).astype(np.intp)
        return FittedGrid(self.grid, np.ascontiguousarray(self.X[rows]))

    def gram(self, X: npt.ArrayLike, weights: npt.ArrayLike) -> Matrix:
        """Return Σ ηⱼ Kⱼ at positions X, shape (n_samples, n_samples)."""
        return self.fit_grams(X).weighted(None).combine(np.asarray(weights, dtype=np.float64))

    def weighted(self, root_weight: Vector | None) -> FittedGrid:
        """Return the grid of S½ Kⱼ S½, S½ = diag(root_weight).

        Raises MemoryBudgetError if a Gram matrix and two like it do not fit.
        """
        l = len(self.X)
        memory.require(
            3 * 8 * l**2,
            f"a Gram matrix of {l} samples and two like it",
            alternative="fit fewer samples or raise {memory_limit}",
        )
        return replace(self, root_weight=root_weight)

    @property
    def _shape(self) -> tuple[int, int]:
        return int(self.X.shape[1]), int(self.grid.n_widths)

    def __len__(self) -> int:
        return self._shape[0] * self._shape[1]

    @property
    def n_samples(self) -> int:
        """l."""
        return len(self.X)

    @property
    def norms(self) -> Vector:
        """The trace of each weighted matrix, shape (m,): at least its Frobenius norm."""
        l = float(len(self.X)) if self.root_weight is None else float((self.root_weight**2).sum())
        return np.full(len(self), l * (1.0 + 1e-9))

    def combine(self, weights: Vector) -> Matrix:
        """Return Σ ηⱼ Kⱼ (l²/2 exponentials per column in use, l² flops per kernel)."""
        from ._njit_gaussian_grid import combine_rows

        table = np.ascontiguousarray(weights, dtype=np.float64).reshape(self._shape)
        K = np.empty((len(self.X), len(self.X)))
        run_blocks(
            lambda a, b: combine_rows(self.X, float(self.grid.gamma), table, a, b, K),
            row_bounds(len(K), lower=True),
            self._steps,
        )
        for start in range(0, len(K), _ROWS):
            rows = slice(start, start + _ROWS)
            K[:start, rows] = K[rows, :start].T
            square = K[rows, rows]
            K[rows, rows] = np.tril(square) + np.tril(square, -1).T
        if self.root_weight is not None:
            for start in range(0, len(K), _ROWS):
                rows = slice(start, start + _ROWS)
                K[rows] *= self.root_weight[rows, None] * self.root_weight
        return K

    def inner(self, C: Matrix, L: Matrix) -> Vector:
        """Return wⱼ = ⟨Kⱼ, C L Cᵀ⟩ (d l²/2 exponentials, 1.5 l² flops per kernel, 2 l²n once)."""
        from ._njit_gaussian_grid import inner_rows

        scaled = C if self.root_weight is None else C * self.root_weight[:, None]
        M = (scaled @ L) @ scaled.T

        def part(start: int, stop: int) -> Matrix:
            products = np.zeros(self._shape)
            inner_rows(self.X, float(self.grid.gamma), M, start, stop, products)
            return products

        parts = run_blocks(part, row_bounds(len(M), lower=True), self._steps)
        total: Vector = np.sum(parts, axis=0).reshape(-1)
        return total

    @property
    def _steps(self) -> float:
        """Exponentials and products of one pass."""
        return 0.5 * len(self.X) ** 2 * len(self)
