"""Sequential minimal optimisation: chunks of compiled steps, shrinking, and Newton steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.formula.learner import SolveStatus
from kernelweave.kernels_core.grams import KernelArray
from numpy.typing import NDArray
from scipy.linalg import lapack

from . import _njit_smo
from . import point as passes
from .problem import BoxProblem, Budget

# Entries of K that the steps of a chunk read, between two looks at the time limit: some 10 ms.
_CHUNK = 10_000_000
_SMALLEST_COMPACTED = 200
_COMPACT_BELOW = 0.7
# Steps between two looks at which samples a violating pair may contain.
_SHRINK_EVERY = 500
_TINY = 1e-300
# Steps before which no run is called endless; it is where the coefficients move as far in the
# second half of the steps as in the first, by nine tenths, and the violation does not halve.
_MANY, _EVEN = 2**17, 0.9


def offsets(
    u: FloatArray, lower: FloatArray, upper: FloatArray, epsilon: float
) -> tuple[FloatArray, FloatArray]:
    """Return what the gradient's entry lacks to the rates at which each sample may go up and down.

    Infinite at a bound.
    """
    up = np.where(u >= upper, -np.inf, np.where(u >= 0.0, -epsilon, epsilon))
    down = np.where(u <= lower, np.inf, np.where(u > 0.0, -epsilon, epsilon))
    return up, down


@dataclass
class Workspace:
    """The arrays that the compiled steps change, for all samples or for the active ones.

    `index` of shape (m,): the samples of the whole problem; None means all of them.
    """

    K: KernelArray
    diag: FloatArray
    u: FloatArray
    g: FloatArray
    lower: FloatArray
    upper: FloatArray
    epsilon: float
    index: np.ndarray | None = None

    def __post_init__(self) -> None:
        self.up, self.down = offsets(self.u, self.lower, self.upper, self.epsilon)
        self.score = np.empty_like(self.u)

    def step(self, tol: float, tau: float, n_steps: int) -> tuple[int, float, float, bool]:
        """Take compiled steps."""
        rates = self.g + self.up
        first = int(rates.argmax())
        return _njit_smo.smo_steps(  # type: ignore[no-any-return]
            self.K,
            self.diag,
            self.u,
            self.g,
            self.lower,
            self.upper,
            self.up,
            self.down,
            self.score,
            self.epsilon,
            tol,
            tau,
            n_steps,
            first,
            float(rates[first]),
            float((self.g + self.down).min()),
        )

    def compacted(self, top: float, bottom: float, n_steps: int) -> Workspace | None:
        """Return a workspace without the samples that no violating pair contains, if it pays.

        A copied entry costs about what a sample costs in a step, and as many steps are expected as
        there were.
        """
        m = self.u.size
        keep = (self.g + self.up >= bottom) | (self.g + self.down <= top)
        n_keep = int(np.count_nonzero(keep))
        pays = n_keep * n_keep <= n_steps * (m - n_keep)
        if not pays or n_keep > _COMPACT_BELOW * m or n_keep < 2:
            return None
        local = np.flatnonzero(keep)
        sub = np.empty((n_keep, n_keep), dtype=self.K.dtype)
        _njit_smo.sub_gram(self.K, local, sub)
        sub.flags.writeable = False
        all_of = self.diag, self.u, self.g, self.lower, self.upper
        diag, u, g, lower, upper = (each[local] for each in all_of)
        index = local if self.index is None else self.index[local]
        return Workspace(sub, diag, u, g, lower, upper, self.epsilon, index)


@dataclass
class SmoRun:
    """Where a run of SMO stopped.

    `u` of shape (n,): in the box, ``Σu = 0`` up to rounding; `f` of shape (n,): ``Ku`` as the steps
    have carried it; `rows`: rows of K read, in units of n entries.
    """

    u: FloatArray
    f: FloatArray
    n_iter: int
    rows: float
    status: SolveStatus


def smo(problem: BoxProblem, u: FloatArray, f: FloatArray, budget: Budget) -> SmoRun:
    """Maximise the dual by second-order SMO from a feasible point.

    Fan, Chen, Lin, JMLR 2005, on n signed variables; samples at a bound that no violating pair
    contains are dropped by copying the active part of K, at most half of it. The run returns to
    Python about every 10 ms, where the time limit and Ctrl-C are seen. Where K is singular and C
    huge, pairs crawl along a direction of no curvature towards bounds that they would not reach
    within ``max_iter``: such a run ends early.

    ``f`` is ``Ku``; u is changed in place.
    """
    n = u.size
    diag = problem.diagonal
    tau = max(1e-12 * abs(float(diag.sum())) / n, _TINY)
    full = Workspace(
        problem.K, diag, u, problem.p - f, problem.lower, problem.upper, problem.epsilon
    )
    run = SmoRun(u, f, 0, 0.0, SolveStatus.CONVERGED)
    work = full
    until_shrink = 0 if u.any() else _SHRINK_EVERY
    pace = _Pace(u.copy())
    while True:
        chunk = max(16, _CHUNK // (2 * work.u.size + 200))
        limit = min(chunk, until_shrink, budget.max_iter - run.n_iter)
        done, top, bottom, stalled = work.step(budget.tol, tau, limit)
        run.n_iter += done
        run.rows += 2.0 * done * work.u.size / n
        until_shrink -= done
        stalled = stalled or not np.isfinite(work.g).all()
        finished = stalled or top - bottom <= budget.tol
        endless = pace.is_endless(work, run.n_iter, budget.max_iter, top - bottom)
        over = run.n_iter >= budget.max_iter or budget.expired or endless
        if (finished or over) and work is not full:
            run.rows += _restore(problem, full, work)
            work, until_shrink = full, _SHRINK_EVERY
        elif finished:
            run.status = SolveStatus.STALLED if stalled else SolveStatus.CONVERGED
            break
        if over:
            late = run.n_iter < budget.max_iter
            run.status = SolveStatus.MAX_TIME if late else SolveStatus.MAX_ITER
            run.status = SolveStatus.ENDLESS if endless else run.status
            break
        if until_shrink <= 0:
            until_shrink = _SHRINK_EVERY
            many = work.u.size > _SMALLEST_COMPACTED
            smaller = work.compacted(top, bottom, run.n_iter) if many else None
            if smaller is not None:
                if work is not full:
                    full.u[work.index] = work.u
                run.rows += smaller.u.size * smaller.u.size / n
                work = smaller
    run.f = problem.p - full.g
    return run


@dataclass
class _Pace:
    """How far coefficients have moved, looked at whenever the steps have doubled.

    `start` of shape (n,): where they began; `steps`, `distance`, `violation`: at the last look.
    """

    start: FloatArray
    steps: int = _MANY // 2
    distance: float = 0.0
    violation: float = np.inf

    def is_endless(self, work: Workspace, n_iter: int, max_iter: int, violation: float) -> bool:
        """Return whether they move evenly to bounds that ``max_iter`` steps do not reach."""
        if n_iter < (self.steps if self.distance == 0.0 else 2 * self.steps):
            return False
        start = self.start if work.index is None else self.start[work.index]
        moved = work.u - start
        most = int(np.abs(moved).argmax())
        pace, before = abs(float(moved[most])) / n_iter, self.distance / self.steps
        is_even = self.distance > 0.0 and pace > _EVEN * before and violation > 0.5 * self.violation
        end = work.upper[most] if moved[most] > 0.0 else work.lower[most]
        self.steps, self.distance, self.violation = n_iter, pace * n_iter, violation
        return bool(is_even and pace * max_iter < abs(end - start[most]))


def _restore(problem: BoxProblem, full: Workspace, active: Workspace) -> int:
    """Write the active part back and compute the gradient of all samples afresh."""
    full.u[active.index] = active.u
    f, _, n_rows, _ = passes.product(problem.K, full.u, bounded=False)
    np.subtract(problem.p, f, out=full.g)
    full.up, full.down = offsets(full.u, full.lower, full.upper, full.epsilon)
    return n_rows


def newton_steps(
    problem: BoxProblem, u: FloatArray, f: FloatArray, work: float, max_free: int
) -> tuple[int, int, float]:
    """Maximise the dual over the free variables, dropping one at each bound that is met.

    `u`, `f` of shape (n,): a feasible point and ``f = Ku``; both are changed in place; `work`:
    Multiply-adds after which no further step starts; `max_free`: with more free variables nothing
    is done. Returns: the number of steps, of free variables m, and of multiply-adds.

    ``m³/6`` multiply-adds for the first factor, the part behind the dropped row for each later
    one, and nm at the end for f.
    """
    lower, upper, eps = problem.lower, problem.upper, problem.epsilon
    inside = (lower < u) & (u < upper)
    free = np.flatnonzero(inside & (u != 0.0) if eps > 0.0 else inside)
    if not 2 <= free.size <= max_free:
        return 0, 0, 0.0
    gram = problem.K[np.ix_(free, free)].astype(np.float64)
    x, low, high = u[free], lower[free], upper[free]
    g = problem.p[free] - f[free]
    if eps > 0.0:
        g -= np.where(x > 0.0, eps, -eps)
        low[x > 0.0] = 0.0
        high[x < 0.0] = 0.0
    trace = float(gram.trace())
    ridge = 1e-13 * trace if trace > 1e-287 else 1e-300
    steps, spent = _climb(gram, x, g, low, high, ridge, work)
    moved = np.flatnonzero(x != u[free])
    chosen = free[moved]
    if moved.size:
        f += (x[moved] - u[chosen]) @ problem.K[chosen].astype(np.float64, copy=False)
        u[chosen] = x[moved]
    return steps, free.size, spent


def _extend(
    gram: FloatArray, keep: NDArray[np.intp], first: int, ridge: float, factor: FloatArray
) -> bool:
    """Write the rows from ``first`` on of the Cholesky factor of ``gram[keep, keep] + ridge·I``."""
    left = factor[first:, :first]
    corner = gram[np.ix_(keep[first:], keep[first:])] - left @ left.T
    corner.flat[:: corner.shape[0] + 1] += ridge
    lower, info = lapack.dpotrf(corner, lower=1, clean=1)
    factor[first:, first:] = lower
    return bool(info == 0)


def _direction(factor: FloatArray, g: FloatArray) -> tuple[FloatArray, float]:
    """Return the Newton direction δ with ``Σδ = 0`` for the gradient g, and ``gᵀδ``."""
    solved, _ = lapack.dpotrs(factor, np.stack([g, np.ones_like(g)], axis=1), lower=1)
    delta = solved[:, 0] - solved[:, 0].sum() / solved[:, 1].sum() * solved[:, 1]
    delta -= delta.mean()
    return delta, float(g @ delta)


def _climb(
    gram: FloatArray,
    x: FloatArray,
    g: FloatArray,
    low: FloatArray,
    high: FloatArray,
    ridge: float,
    work: float,
) -> tuple[int, float]:
    """Climb on all variables of a small problem, dropping each that meets its bound.

    Changes x and the gradient g; returns the number of steps, and of multiply-adds.
    """
    keep = np.arange(x.size)
    factor = np.zeros_like(gram)
    first = steps = 0
    spent = 0.0
    while keep.size >= 2 and spent < work:
        m = keep.size
        spent += (m**3 - first**3) / 6.0 + 4.0 * m * m
        if not _extend(gram, keep, first, ridge, factor):
            break
        delta, slope = _direction(factor, g[keep])
        if not 0.0 < slope < np.inf:
            break
        bound = np.where(delta > 0.0, high[keep], low[keep])
        room = np.full(m, np.inf)
        with np.errstate(over="ignore"):  # a bound that far away stops no step
            np.divide(bound - x[keep], delta, out=room, where=delta != 0.0)
        at = int(np.abs(room, out=room).argmin())
        blocked = bool(room[at] < 1.0)
        step = min(float(room[at]), 1.0) * delta
        x[keep] += step
        g -= step @ gram[keep]
        steps += 1
        if not blocked:
            break
        x[keep[at]] = bound[at]
        keep, first = np.delete(keep, at), at
        rows = np.delete(factor[:, :at], at, axis=0)
        factor = np.zeros((m - 1, m - 1))
        factor[:, :at] = rows
    return steps, spent
