"""Support vector machines over low-rank Gram matrices, by coordinate descent on their dual."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index, RealArray

from . import _njit_descent
from .feasible import starting_point
from .problem import BoxProblem, Budget
from .unstored import rates

_UNIT = 2.0**-53
# sweeps over the samples that may still move, between two looks at all of them: more where they
# are few, as long as a look costs more
_SWEEPS, _MOST_SWEEPS = 8, 64
# such rounds at most, and those in which the violation must halve; blocks of samples go on from
# there, for which few are left
_ROUNDS, _PATIENCE = 200, 20
# what a sample at a bound cannot take of its share is shared again
_SHARES = 4


class LowRankGram:
    """``Σⱼ βⱼZⱼZⱼᵀ`` as entries of an `UnstoredKernel`.

    - `factors` of shape (n, r): Z₁ … Z_q side by side, C-contiguous
    - `ends` of shape (q + 1,): the columns of Zⱼ are those from ``ends[j]`` to ``ends[j + 1]``
    - `weights` of shape (q,): β ≥ 0
    - `diagonals` of shape (q, n): of each ``ZⱼZⱼᵀ``

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.qp_smo import SVC, UnstoredKernel
    >>> from kernelweave.qp_smo.descent import LowRankGram
    >>> x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> entries = LowRankGram(x, np.array([0, 1]), np.ones(1), (x**2).T)
    >>> found = SVC(C=10.0).solve(UnstoredKernel(entries, nbytes=2**20), np.sign(x[:, 0]))
    >>> found.dual_coef.round(3)
    array([[ 0. , -0.5,  0.5,  0. ]])
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
        count = (sum(self.factors.shape) + 8.0) * _UNIT
        return np.asarray(1.01 * count * root.max() * (np.abs(W) @ root))


def _balanced(u: FloatArray, problem: BoxProblem) -> FloatArray:
    """Return u with a sum of 0, moved where it is free: what is at a bound stays there."""
    u = u.copy()
    for _ in range(_SHARES):
        free = np.flatnonzero((u > problem.lower) & (u < problem.upper) & (u != 0.0))
        if len(free):
            share = float(u.sum()) / len(free)
            u[free] = np.clip(u[free] - share, problem.lower[free], problem.upper[free])
    return starting_point(u, problem.lower, problem.upper)


def _is_over(budget: Budget, n_iter: int) -> bool:
    return budget.expired or n_iter >= budget.max_iter


def descend(
    problem: BoxProblem, start: FloatArray | None, budget: Budget
) -> tuple[FloatArray, int]:
    """Return a dual point that violates its conditions by half of ``tol``, or slowly less.

    Coordinate descent (Hsieh and others, "A dual coordinate descent method for large-scale linear
    SVM", ICML 2008) with the sum of u held to 0 by a multiplier and its square. Samples that a
    look at all of them finds stuck at a bound are left out until the next.

    `problem`: whose K is an `UnstoredKernel` of a `LowRankGram`; `start` of shape (n,). Returns `u`
    of shape (n,); `n_iter`: samples visited.
    """
    kernel: Any = problem.K
    gram: LowRankGram = kernel.entries
    diagonal = gram.diagonal()
    rho = float(diagonal.mean())
    u = np.zeros(len(diagonal)) if start is None else start.copy()
    draw, b, n_iter, best, least = np.random.RandomState(0), 0.0, 0, u, np.inf
    halved, at = np.inf, 0
    for k in range(_ROUNDS):
        u = _balanced(u, problem)
        v = gram.sums(u)
        up, down = rates(problem, u, gram.values(v))
        high, low = float(up.max()), float(down.min())
        violation = high - low
        if violation < least:
            best, least = u.copy(), violation
        if violation <= 0.5 * halved:
            halved, at = violation, k
        is_slow = k - at >= _PATIENCE
        if violation <= 0.5 * budget.tol or is_slow or _is_over(budget, n_iter):
            break
        middle = 0.5 * (high + low)
        stuck = (up < middle - violation) & (down > middle + violation)
        free = np.flatnonzero(~stuck)
        if n_iter == 0:
            b = middle
        for _ in range(min(_MOST_SWEEPS, max(_SWEEPS, 2 * len(u) // len(free)))):
            order = draw.permutation(free)
            total = _njit_descent.sweep(
                gram.factors, gram.begin, gram.end, gram.weights[gram.used], order, problem.p,
                problem.lower, problem.upper, problem.epsilon, diagonal, rho, b, u, v,
            )  # fmt: skip
            b += rho * total
            n_iter += len(order)
    return best, n_iter
