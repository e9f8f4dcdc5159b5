"""All supports below a branch: bounded by the cuts in compiled code, settled by few solves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.rounding import UNIT
from kernelweave.qp_smo.saddle import (
    NestedPenalty,
    SaddleEvaluation,
    WeightPenalty,
    solve_cut_master,
)
from numpy.typing import NDArray

from . import _njit_supports

if TYPE_CHECKING:
    from .search import SupportSearch

# Supports held open at a time; above half of it, learner solves come before more supports.
_CAPACITY = 256
# At most how many open supports one learner solve is placed between; its accuracy as a share of the
# threshold; at most how many single supports come before the next try.
_TOGETHER, _COARSE, _PAUSE = 64, 0.02, 64
# Steps on the multipliers of one support, where most need fewer than 100.
_LIMIT = 1000
# Steps and branches between two looks at the clock: a few hundredths of a second.
_BUDGET = 20_000
# How finely the learner is tried at one of many kernels, as a share of the best objective.
_ROUGH = 0.02


class Shape:
    """What supports of the largest size look like: so many kernels, of so many views.

    A view with fewer kernels than it may have gets others that no minimum uses, so that all
    supports are of one size.

    - `size`: kernels of a support; `within`, `n_views`: of a view, and views
    - `view` of shape (q + extra,), `free` of the same shape
    """

    def __init__(self, penalty: WeightPenalty) -> None:
        free = penalty.free
        self.view = np.zeros(free.size, dtype=np.int64)
        self.size = int(penalty.required.sum()) + min(penalty.capacity, int(free.sum()))
        self.within, self.n_views, self.free = self.size, 1, free
        if isinstance(penalty, NestedPenalty):
            counts = np.bincount(penalty.view[penalty.required | free], minlength=1)
            places = np.flatnonzero(counts)
            self.within, self.n_views = penalty.capacity, min(penalty.n_views, places.size)
            self.size = self.within * self.n_views
            missing = np.maximum(self.within - counts[places], 0)
            self.view = np.append(penalty.view, np.repeat(places, missing))
            self.free = np.append(free, np.ones(int(missing.sum()), dtype=bool))

    def filled(self, kappa: FloatArray, half: FloatArray, lam: float) -> FloatArray:
        """Return the halves of the forms with those of the extra kernels, which are huge."""
        extra = self.view.size - half.shape[1]
        if not extra:
            return half
        huge = 1e3 * (float(np.abs(kappa).max()) + float(np.abs(half).max()) + lam + 1.0)
        return np.hstack([half, np.full((len(half), extra), -huge)])


class Sweep:
    """The supports below one branch, each closed by a proved bound or by learner solves.

    The cuts close most supports for microseconds each, since one set of multipliers bounds many.
    A support that they cannot close has a point where all of them are low: there the learner is
    solved, the lowest point first, and its cut is tried on all supports that are open.

    `penalty`: of the branch; `lower`: a bound proven for the branch; `multipliers` of shape (m,):
    of the cuts, to start from. `closed`: the least bound of what was closed; `n_nodes`: branches
    and supports that were bounded.
    """

    def __init__(
        self, search: SupportSearch, penalty: WeightPenalty, lower: float, multipliers: FloatArray
    ) -> None:
        self.closed = np.inf
        self.n_nodes = 0
        self._search = search
        self._penalty = penalty
        self._start = lower
        self._mu = multipliers
        self._together, self._pause, self._wait = 2, 1, 0
        required = np.flatnonzero(penalty.required)
        shape = Shape(penalty)
        size = shape.size
        self._shape = shape
        self._path = np.zeros(size, dtype=np.int64)
        self._path[: required.size] = required
        self._place = np.array([required.size, required.size, 0], dtype=np.int64)
        self._free = np.tile(shape.free, (size + 1, 1))
        self._found = np.zeros((_CAPACITY, size), dtype=np.int64)
        self._weights = np.zeros((_CAPACITY, size))
        self._ends = np.zeros((_CAPACITY, 2))
        # the multipliers of a support of k kernels that need be positive are k + 1
        self._marks = np.zeros((_CAPACITY, size + 2), dtype=np.int64)
        self._shares = np.zeros((_CAPACITY, size + 2))

    @property
    def n_open(self) -> int:
        """Return how many supports the cuts have not closed."""
        return int(self._place[2])

    @property
    def is_enumerated(self) -> bool:
        """Whether every support was looked at."""
        return bool(self._place[0] < self._place[1])

    @property
    def is_done(self) -> bool:
        """Whether every support is closed."""
        return self.is_enumerated and self.n_open == 0

    @property
    def lower(self) -> float:
        """Return the proven bound of the branch."""
        if not self.is_enumerated:
            return self._start
        lowest = float(self._ends[: self.n_open, 0].min(initial=np.inf))
        return max(self._start, min(self.closed, lowest))

    def step(self) -> None:
        """Look at more supports, or solve the learner at one that is open."""
        if not self.is_enumerated and 2 * self.n_open <= _CAPACITY:
            self._enumerate()
        elif self.n_open:
            s = int(np.argmin(self._ends[: self.n_open, 1]))
            if self._wait == 0 and self.n_open > 1:
                self._solve_many(s)
            else:
                self._wait = max(self._wait - 1, 0)
                self._solve(s)

    @property
    def _open_parts(self) -> tuple[NDArray[np.number], ...]:
        """Return the arrays with an entry per open support."""
        return self._found, self._weights, self._ends, self._marks, self._shares

    def _cuts(self) -> tuple[FloatArray, FloatArray, FloatArray, float, float, int]:
        """Return the first arguments of compiled functions; let μ grow with the pool."""
        pool = self._search.oracle.pool
        grown = np.zeros(len(pool))
        grown[: self._mu.size] = self._mu
        self._mu = grown
        half = self._shape.filled(pool.kappa, pool.half_forms, self._penalty.lam)
        columns = np.ascontiguousarray(half.T)
        return pool.kappa, half, columns, self._penalty.lam, self._search.threshold, _LIMIT

    def _enumerate(self) -> None:
        closed, n_nodes, _ = _njit_supports.enumerate_supports(
            *self._cuts(),
            _BUDGET,
            self._mu,
            self._place,
            self._path,
            self._free,
            self._shape.view,
            self._shape.within,
            self._shape.n_views,
            *self._open_parts,
        )
        self.closed = min(self.closed, closed)
        self.n_nodes += n_nodes

    def _solve_many(self, s: int) -> None:
        """Solve the learner between the points of several supports, from s on; close what it can.

        Its cut is low on none of their kernels. Where most supports lie far above the threshold,
        it closes many at once; where it closes less than half of the several, fewer are tried next.
        """
        n_old, before = len(self._search.oracle.pool), self.n_open
        some = np.roll(np.arange(before), -s)[: self._together]
        weights = np.zeros(self._shape.view.size)
        np.add.at(weights, self._found[some], self._weights[some])
        weights = weights[: self._search.oracle.pool.n_kernels]
        coarse = _COARSE * abs(self._search.threshold)
        self._search.oracle.evaluate(weights / weights.sum(), coarse)
        self._recheck_open_supports(n_old)
        if 2 * (before - self.n_open) >= some.size:
            self._together, self._pause = min(2 * self._together, _TOGETHER), 1
        elif self._together > 2:
            self._together //= 2
        else:
            self._wait, self._pause = self._pause, min(2 * self._pause, _PAUSE)

    def _solve(self, s: int) -> None:
        """Solve the learner where the cuts are lowest on one support, and close what that closes.

        Where the learner has nothing new to say there, not even with a finer tolerance, rounding
        closes the support at the bound it has.
        """
        n_old = len(self._search.oracle.pool)
        verdict, bound, lowest, _ = _njit_supports.minimise_over_support(
            *self._cuts(), self._found[s], self._weights[s], self._marks[s], self._shares[s]
        )
        self._ends[s] = max(bound, self._ends[s, 0]), lowest
        weights = np.zeros(self._shape.view.size)
        weights[self._found[s]] = self._weights[s] / self._weights[s].sum()
        weights = weights[: self._search.oracle.pool.n_kernels]
        if verdict == _njit_supports.UNDECIDED:
            weights = self._exactly(s)
        if self._ends[s, 0] >= self._search.threshold:
            self._close(s)
            return
        if self._learns(weights, self._search.threshold - lowest):
            self._recheck_open_supports(n_old)
        else:
            self._exactly(s)
            self._close(s)

    def _learns(self, weights: FloatArray, below: float) -> bool:
        """Solve the learner, first no finer than the cuts' distance to the threshold asks."""
        visit = self._search.visit
        coarse = visit(weights, below=below).is_new
        return coarse or visit(weights).is_new or visit(weights, finer=1e-3).is_new

    def _recheck_open_supports(self, n_old: int) -> None:
        kept, closed, _ = _njit_supports.recheck_open_supports(
            *self._cuts(), n_old, *self._open_parts, self.n_open
        )
        self._place[2] = kept
        self.closed = min(self.closed, closed)

    def _exactly(self, s: int) -> FloatArray:
        """Raise the bound of a support by the master problem; return its minimiser."""
        support = np.zeros(self._shape.view.size, dtype=bool)
        support[self._found[s]] = True
        support = support[: self._search.oracle.pool.n_kernels]
        master = solve_cut_master(self._search.oracle.pool, self._penalty.on_support(support))
        self._search.oracle.counts.n_master_solves += 1
        self._ends[s, 0] = max(self._ends[s, 0], master.lower_bound)
        return master.weights

    def _close(self, s: int) -> None:
        """Close an open support at its bound; the last one takes its place."""
        self.closed = min(self.closed, float(self._ends[s, 0]))
        last = self.n_open - 1
        for part in self._open_parts:
            part[s] = part[last]
        self._place[2] = last


def are_single(penalty: WeightPenalty) -> bool:
    """Whether every support is one kernel."""
    views = penalty.n_views if isinstance(penalty, NestedPenalty) else 1
    return penalty.capacity * views == 1 and not penalty.required.any()


class Singles:
    """The supports where each is one kernel: every kernel is tried, first roughly.

    A kernel that a rough solve shows to be worse than the best leaves no cut, which would read all
    the matrices; one that a cut of the pool closes is not solved at all. The others are solved
    until their own bound closes them.

    `search`: that these are a part of; `penalty`: of the root. `closed`, `n_nodes`: as for `Sweep`.
    """

    def __init__(self, search: SupportSearch, penalty: WeightPenalty) -> None:
        pool, n_kernels = search.oracle.pool, penalty.required.size
        self.closed, self.n_nodes = np.inf, 0
        self._search = search
        self._lam = penalty.lam
        values = pool.kappa[:, None] - pool.half_forms
        self._lower = self._with_penalty(values.max(axis=0))
        self._open = penalty.allowed.copy()
        self._tried = np.zeros(n_kernels, dtype=bool)
        self._last: FloatArray | None = None

    @property
    def is_done(self) -> bool:
        """Whether every kernel is closed."""
        return not self._open.any()

    @property
    def lower(self) -> float:
        """Return the proven bound of all supports."""
        lowest = float(self._lower[self._open].min(initial=np.inf))
        return min(self.closed, lowest)

    def _with_penalty(self, values: FloatArray) -> FloatArray:
        """Return lower bounds of the learner plus the penalty of one kernel, rounded down."""
        return values + self._lam - 16.0 * UNIT * (np.abs(values) + self._lam)

    def step(self) -> None:
        """Solve the learner at the kernel with the lowest bound, or close all that are left."""
        j = int(np.argmin(np.where(self._open, self._lower, np.inf)))
        search, weights = self._search, np.zeros(self._open.size)
        weights[j] = 1.0
        if self._lower[j] >= search.threshold:
            self._close(self._open.copy())
        elif not self._tried[j]:
            self._try(j, weights)
        elif not self._raises(j, search.visit(weights)) and not self._raises(
            j, search.visit(weights, finer=1e-3)
        ):
            self._close(weights > 0.0)

    def _try(self, j: int, weights: FloatArray) -> None:
        """Solve roughly, from the dual point of the last kernel."""
        search = self._search
        want = _ROUGH * abs(search.upper) if np.isfinite(search.upper) else np.inf
        evaluation = search.oracle.evaluate(weights, want, start=self._last, cuts=False)
        self._last = evaluation.solution.dual_coef
        self._tried[j], self.n_nodes = True, self.n_nodes + 1
        search.take(evaluation)
        self._raises(j, evaluation)

    def _raises(self, j: int, evaluation: SaddleEvaluation) -> bool:
        """Raise the bound of a kernel to the dual value there; whether that is news.

        The rounding of the matrix is charged as the upper bound charges it.
        """
        margin = evaluation.upper_bound - evaluation.solution.upper_bound
        bound = float(self._with_penalty(np.array(evaluation.lower_bound - margin)))
        before = self._lower[j]
        self._lower[j] = max(before, bound)
        return bool(self._lower[j] > before)

    def _close(self, which: NDArray[np.bool_]) -> None:
        self.closed = min(self.closed, float(self._lower[which].min()))
        self._open &= ~which
