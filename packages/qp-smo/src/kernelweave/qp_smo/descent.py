"""Support vector machines over low-rank Gram matrices, by coordinate descent on their dual."""

from __future__ import annotations

from typing import Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.grams import LowRankGram

from . import _njit_descent
from .feasible import starting_point
from .problem import BoxProblem, Budget
from .unstored import rates

# sweeps over the samples that may still move, between two looks at all of them: more where they
# are few, as long as a look costs more
_SWEEPS, _MOST_SWEEPS = 8, 64
# such rounds at most, and those in which the violation must halve; blocks of samples go on from
# there, for which few are left
_ROUNDS, _PATIENCE = 200, 20
# what a sample at a bound cannot take of its share is shared again
_SHARES = 4


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
