"""A kernel whose Gram matrix is not in memory, and the support vector machine over it.

Blocks of samples are solved one after the other: the part of K over a block is stored, as large as
the memory allows, and kept from block to block where they overlap; the gradient of all samples
follows by products with K that store nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.formula.learner import SolveStatus
from kernelweave.kernels_core.grams import KernelArray, LowRankOperator, UnstoredKernel

from . import _njit_descent
from .bounds import FeasiblePoint, FunctionValues, dual_value, kkt_violation
from .engine import Outcome
from .point import product, starting_point, to_grid
from .problem import BoxProblem, Budget
from .smo import SmoRun, offsets, smo

# Attempts to make the point exactly feasible within the tolerance: each costs one product with
# all of K, and after that many only rounding keeps the violation above the tolerance.
_MAX_FEASIBLE_POINTS = 6
# Entries of the rows that are computed at a time: 32 MiB in float64 beside the stored block.
_CHUNK = 2**22
# A block is solved to this share of the violation seen before it: tighter, its steps are spoiled by
# the next block's; looser, there are more blocks, each with a product over all samples.
_EASIER = 0.1
# sweeps over the samples that may still move, between two looks at all of them: more where they
# are few, as long as a look costs more
_SWEEPS, _MOST_SWEEPS = 8, 64
# such rounds at most, and those in which the violation must halve; blocks of samples go on from
# there, for which few are left
_ROUNDS, _PATIENCE = 200, 20
# what a sample at a bound cannot take of its share is shared again
_SHARES = 4


class StoredBlock:
    """The stored part of K over a block of samples, updated where the block changes."""

    def __init__(self, kernel: UnstoredKernel) -> None:
        self._kernel = kernel
        size = kernel.block_size
        self._store = np.empty((size, size), dtype=kernel.dtype)
        self.samples: Index = np.empty(0, dtype=np.intp)
        self.n_rows = 0

    def move(self, chosen: Index) -> KernelArray:
        """Make ``chosen`` the block; rows of samples that stay are not computed again.

        Where samples stay, they keep their places, and `samples` says which sample is where.
        """
        stay = np.isin(self.samples, chosen)
        if len(chosen) != len(self.samples) or not stay.any():
            self.samples, places = chosen.copy(), np.arange(len(chosen))
        else:
            places = np.flatnonzero(~stay)
            self.samples[places] = np.setdiff1d(chosen, self.samples[stay])
        n = len(chosen)
        self.n_rows += len(places)
        K = self._store.reshape(-1)[: n * n].reshape(n, n)
        step = max(1, _CHUNK // max(1, n))
        for start in range(0, len(places), step):
            rows = places[start : start + step]
            part = self._part(self.samples[rows])
            K[rows] = part
            K[:, rows] = part.T
        view: KernelArray = K.view()
        view.flags.writeable = False
        return view

    def _part(self, rows: Index) -> FloatArray:
        part = np.empty((len(rows), len(self.samples)))
        self._kernel.entries.block(rows, self.samples, part)
        if self._store.dtype != np.float64:
            middle = self._kernel.middle
            part -= middle[rows, None]
            part -= middle[self.samples] - middle.min()
        return part


def rates(problem: BoxProblem, u: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the rates at which each sample may go up and down, infinite at a bound."""
    up, down = offsets(u, problem.lower, problem.upper, problem.epsilon)
    gradient = problem.p - f
    return gradient + up, gradient + down


def choose_block(problem: BoxProblem, u: FloatArray, f: FloatArray, size: int) -> Index:
    """Return the samples farthest from optimal, in increasing order; free ones come next.

    Half of them by how fast they may go up, half by how fast down.
    """
    up, down = rates(problem, u, f)
    middle = 0.5 * (up.max() + down.min())
    score = np.maximum(up - middle, middle - down)
    # both ends of the worst pair are in, whatever the rest
    score[[int(np.argmax(up)), int(np.argmin(down))]] = np.inf
    if size >= len(score):
        return np.arange(len(score))
    return np.sort(np.argpartition(-score, size - 1)[:size])


def _solve_block(
    problem: BoxProblem, gram: StoredBlock, u: FloatArray, f: FloatArray, size: int, budget: Budget
) -> tuple[Index, FloatArray, SmoRun]:
    """Return a block, how its coefficients should change, and the run of its steps."""
    K = gram.move(choose_block(problem, u, f, size))
    rows = gram.samples
    start = u[rows].copy()
    inner = product(K, start)[0]
    part = replace(
        problem,
        K=K,
        p=problem.p[rows] - (f[rows] - inner),
        lower=problem.lower[rows],
        upper=problem.upper[rows],
        exact_kappa=False,
    )
    run = smo(part, start, inner, budget)
    return rows, run.u - u[rows], run


def make_feasible_unstored(problem: BoxProblem, u: FloatArray) -> FeasiblePoint:
    """Make a nearly feasible u exactly feasible and evaluate it by products."""
    kernel = problem.K
    assert isinstance(kernel, UnstoredKernel)
    point = to_grid(u, problem.lower, problem.upper)
    row = point.u[None]
    f = np.asarray(kernel.entries.product(row)[0])
    error = float(kernel.entries.product_error(row)[0])
    error += 0.51 * problem.asymmetry * float(np.abs(point.u).sum())
    values = FunctionValues(f, np.full(f.shape, error), len(f))
    violation = kkt_violation(problem, point, f)
    return FeasiblePoint(point, values, violation, dual_value(problem, point.u, values))


def _balanced(u: FloatArray, problem: BoxProblem) -> FloatArray:
    """Return u with a sum of 0, moved where it is free: what is at a bound stays there."""
    u = u.copy()
    for _ in range(_SHARES):
        free = np.flatnonzero((u > problem.lower) & (u < problem.upper) & (u != 0.0))
        if len(free):
            share = float(u.sum()) / len(free)
            u[free] = np.clip(u[free] - share, problem.lower[free], problem.upper[free])
    return starting_point(u, problem.lower, problem.upper)


def descend(
    problem: BoxProblem, start: FloatArray | None, budget: Budget
) -> tuple[FloatArray, int]:
    """Return a dual point that violates its conditions by half of ``tol``, or slowly less.

    Coordinate descent (Hsieh and others, "A dual coordinate descent method for large-scale linear
    SVM", ICML 2008) with the sum of u held to 0 by a multiplier and its square. Samples that a
    look at all of them finds stuck at a bound are left out until the next.

    K is an `UnstoredKernel` of a `LowRankOperator`. Beside the point stands how many samples were
    visited.
    """
    kernel: Any = problem.K
    gram: LowRankOperator = kernel.entries
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
        if violation <= 0.5 * budget.tol or is_slow or budget.expired or n_iter >= budget.max_iter:
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


def solve_unstored(problem: BoxProblem, start: FloatArray | None, budget: Budget) -> Outcome:
    """Solve in blocks, low-rank factors first by descent; only the blocks' rows are counted."""
    kernel = problem.K
    assert isinstance(kernel, UnstoredKernel)
    if not isinstance(kernel.entries, LowRankOperator):
        return solve_by_blocks(problem, start, budget)
    start, n_visited = descend(problem, start, budget)
    run = solve_by_blocks(problem, start, budget)
    log = (f"descent: {n_visited} samples visited", *run.log)
    return replace(run, n_iter=n_visited + run.n_iter, log=log)


def solve_by_blocks(problem: BoxProblem, start: FloatArray | None, budget: Budget) -> Outcome:
    """Maximise the dual over blocks of samples until the violation of all is within tol.

    A block is solved to a tenth of the violation seen before it. Cost of a block of b samples: its
    new rows, ``b`` entries each, ``n b`` entries for the gradient, and the steps of SMO inside.
    """
    kernel = problem.K
    assert isinstance(kernel, UnstoredKernel)
    n = problem.n_samples
    u = np.zeros(n) if start is None else starting_point(start, problem.lower, problem.upper)
    f = kernel.entries.product(u[None])[0] if u.any() else np.zeros(n)
    gram, n_iter, n_blocks, n_feasible, endless = StoredBlock(kernel), 0, 0, 0, False
    while True:
        up, down = rates(problem, u, f)
        violation = float(up.max() - down.min())
        over = budget.expired or n_iter >= budget.max_iter
        if violation <= budget.tol or over:
            feasible = make_feasible_unstored(problem, u)
            n_feasible += 1
            if feasible.violation <= budget.tol or over or n_feasible > _MAX_FEASIBLE_POINTS:
                break
            u = starting_point(feasible.point.u, problem.lower, problem.upper)
            f = feasible.values.f.copy()
            continue
        tol = max(0.5 * budget.tol, _EASIER * violation)
        inner = Budget(tol, budget.max_iter - n_iter)
        rows, change, run = _solve_block(problem, gram, u, f, kernel.block_size, inner)
        moved = np.zeros((1, n))
        moved[0, rows] = change
        u[rows] += change
        f += kernel.entries.product(moved)[0]
        n_iter += run.n_iter
        n_blocks += 1
        endless = run.status is SolveStatus.ENDLESS
        if endless or not change.any():
            feasible = make_feasible_unstored(problem, u)
            break
    if feasible.violation <= budget.tol:
        status = SolveStatus.CONVERGED
    elif budget.expired:
        status = SolveStatus.MAX_TIME
    elif endless:
        status = SolveStatus.ENDLESS
    else:
        limit = n_iter >= budget.max_iter
        status = SolveStatus.MAX_ITER if limit else SolveStatus.STALLED
    log = (f"blocks: {n_blocks} blocks, {n_iter} steps, {status.value}",)
    return Outcome(feasible, status, n_iter, float(gram.n_rows), "blocks", log)
