"""Branch and bound on supports: enumeration, the relaxation, the branches."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, count

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.clock import expired
from kernelweave.kernels_core.formula import Solution
from kernelweave.kernels_core.result import Status, check_bounds, relative_gap
from kernelweave.qp_smo.saddle import (
    MasterSolution,
    NestedPenalty,
    SaddleEvaluation,
    SaddleOracle,
    SaddleSearch,
    WeightPenalty,
    least_over,
    lower_bound_from,
    mixed_cut,
    objective_upper,
    solve_cut_master,
)
from numpy.typing import NDArray

from . import pricing
from .sweep import Singles, Sweep, are_single

# Rounds of the relaxation before it may end early, and between two looks at sparse weights.
_FIRST_ROUNDS, _MORE_ROUNDS = 40, 10
# The relaxation is solved to this share of what separates it from the best sparse weights.
_ROOT_SHARE, _UNPRICED_SHARE = 0.2, 0.4
# Supports that are enumerated without a relaxation: for fewer it costs as little as they do. Up to
# so many are enumerated to the end; of more, unless all were looked at after so many learner solves
# or branches, the relaxation takes over.
_OUTRIGHT, _FEW_ENOUGH, _MOST_SOLVES, _MOST_BRANCHES = 100, 1000, 512, 100_000
# Branches bounded by the master problem before supports are enumerated, and how many may be then.
_FEW_NODES = 32
_ENUMERABLE = 2_000_000
# Supports that are enumerated whatever the relaxation says.
_LOOKED_AT = 100_000
# Where the relaxation's bound is further than `_LOOSE` below the best sparse weights, cuts of
# sparse points bound branches badly: each gets a relaxation of its own, of at most so many rounds,
# and only small branches are enumerated, smaller ones where they are far from the best.
_LOOSE, _NODE_ROUNDS, _FEW_SUPPORTS, _FEWER_SUPPORTS = 0.35, 40, 1_000, 100
# Solves at the same weights that leave the bound as it is before rounding closes a branch.
_SETTLED = 5
# Branches at most that another one is covered by.
_MOST_PARTS = 100
# Kernels that are tried in the place of one of the best.
_SWAPPED = 3
# A weight above this share of 1/k₀ is one that a support can hardly do without.
_STRONG = 0.75


@dataclass(order=True)
class _Node:
    """A branch: its bound, the multipliers behind it, the cuts that the master knew.

    - `above` of shape (q,): where the relaxation of the branch above was lowest
    - `settled`: the bound and its weights when the learner was solved there last, and how often
      neither has changed since
    """

    lower: float
    order: int
    penalty: WeightPenalty = field(compare=False)
    multipliers: FloatArray = field(compare=False)
    weights: FloatArray | None = field(compare=False, default=None)
    n_cuts: int = field(compare=False, default=0)
    above: FloatArray | None = field(compare=False, default=None)
    settled: tuple[float, bytes, int] = field(compare=False, default=(-np.inf, b"", 0))


class SupportSearch:
    """The relaxation, then best-first branch and bound over supports; all share the cuts.

    A branch requires some kernels and excludes others; its bound is the k-support relaxation of
    what is left, from the cuts alone: first with the multipliers of the branch above, in closed
    form, and only where that is the lowest bound left by the master problem. Where few supports
    are left, or the relaxation has not closed the gap soon, they are enumerated (`Sweep`). The
    learner is solved only at sparse weights. Where a support is one kernel, there is no relaxation:
    each is tried (`Singles`); nor where all supports are soon enumerated.

    Parameters
    ----------
    oracle : SaddleOracle
    penalty : WeightPenalty
        Of the root.
    tol : float
        Relative gap to reach.
    """

    def __init__(self, oracle: SaddleOracle, penalty: WeightPenalty, tol: float) -> None:
        self.oracle = oracle
        self.tol = tol
        self.upper = np.inf
        self.best: SaddleEvaluation | None = None
        self.working = pricing.WorkingSet(oracle, penalty, 0.1 * tol)
        self.relaxation = self.working.search()
        self.relaxation_bound = -np.inf
        self.is_branching = False
        self.n_relaxation_solves = 0
        self.n_screened = 0
        self._root = penalty
        self._order = count()
        self._open: list[_Node] = []
        self._closed = self._held = np.inf
        self._sweep: Sweep | Singles | None = None
        self._n_bounded = self._n_swept = 0
        self._tried: set[tuple[bytes, int]] = set()
        self._outright: Iterator[None] = iter(())
        if are_single(penalty):
            self.is_branching, self._sweep = True, Singles(self, penalty)
        elif _OUTRIGHT <= penalty.n_supports < (_FEW_ENOUGH if self.working.is_wide else np.inf):
            self._outright = self._enumerates()

    @property
    def lower(self) -> float:
        """Return the proven lower bound: that of the lowest branch, open or closed."""
        if not self.is_branching:
            return float(min(self.relaxation_bound, self.upper))
        lowest = self._open[0].lower if self._open else np.inf
        swept = np.inf if self._sweep is None else self._sweep.lower
        return float(min(lowest, swept, self._held, self._closed, self.upper))

    @property
    def gap(self) -> float:
        """Return the relative gap."""
        return relative_gap(self.lower, self.upper)

    @property
    def threshold(self) -> float:
        """Return the bound at which a branch is closed, a little above what ``tol`` asks."""
        return self.upper - 0.999 * self.tol * abs(self.upper)

    @property
    def n_nodes(self) -> int:
        """Return how many branches and supports were bounded."""
        return self._n_bounded + self._n_swept + (self._sweep.n_nodes if self._sweep else 0)

    @property
    def outcome(self) -> Status | None:
        """Stop where no open branch can raise the lower bound: rounding lets none be closed."""
        if not self.is_branching or self._sweep is not None:
            return None
        is_stuck = not self._open or self._closed <= self._open[0].lower
        return Status.STALLED if is_stuck else None

    @property
    def parameters(self) -> FloatArray:
        """Return the best sparse weights, shape (q,)."""
        assert self.best is not None
        return self.best.weights

    @property
    def solution(self) -> Solution:
        """Return the learner's solution at the best weights."""
        assert self.best is not None
        return self.best.solution

    @property
    def counts(self) -> dict[str, int]:
        """Return learner solves, master solves and branches."""
        counts = self.oracle.counts
        return {
            "n_svm_solves": counts.n_svm_solves,
            "n_master_solves": counts.n_master_solves,
            "n_nodes": self.n_nodes,
        }

    def step(self) -> None:
        """Take a round of the relaxation, advance a sweep, or process the lowest branch."""
        if next(self._outright, self) is None:
            return
        if not self.is_branching:
            self._relax()
        elif self._sweep is not None:
            self._advance_sweep(self._sweep)
        else:
            node = heapq.heappop(self._open)
            # open until it is processed, for what is recorded meanwhile, or told after a Ctrl-C
            self._held = node.lower
            self._process_branch(node)
            self._held = np.inf

    def visit(
        self, weights: FloatArray, finer: float = 1.0, below: float = 0.0
    ) -> SaddleEvaluation:
        """Evaluate sparse weights and keep them if they are the best.

        `finer`: than usual; `below`: how far the cuts there are below the threshold, of which the
        learner need not know more than a tenth.
        """
        want = 0.2 * finer * self.tol * abs(self.upper) if np.isfinite(self.upper) else np.inf
        evaluation = self.oracle.evaluate(weights, max(want, 0.1 * below))
        self.take(evaluation)
        return evaluation

    @property
    def relaxed_bound(self) -> float:
        """Return the bound of the relaxation, or of the cuts where it was not needed."""
        if self.relaxation.best is not None:
            return self.relaxation_bound
        return min(solve_cut_master(self.oracle.pool, self._root).lower_bound, self.lower)

    def take(self, evaluation: SaddleEvaluation) -> None:
        """Keep sparse weights that were evaluated, if they are the best."""
        upper = objective_upper(evaluation, self._root.on_support(evaluation.weights > 0.0))
        if upper < self.upper or self.best is None:
            self.upper, self.best = upper, evaluation
        check_bounds("the relaxation", self.relaxation_bound, self.upper)

    def refine(self) -> None:
        """Evaluate the best weights again, so that their objective is good to more digits."""
        if self.best is not None and relative_gap(self.lower, self.upper) > 1e-9:
            self.visit(self.best.weights, finer=1e-3)

    def _enumerates(self) -> Iterator[None]:
        """Enumerate all supports, measured by good ones, unless that takes long."""
        root, counts = self._root, self.oracle.counts
        self.relaxation_bound = self._bound(np.ones(1), root)
        most = np.inf if root.n_supports < _FEW_ENOUGH else counts.n_svm_solves + _MOST_SOLVES
        if self.best is None:
            forms = self.oracle.evaluate(root.allowed / root.allowed.sum(), np.inf).forms
            one = np.argmax(np.where(root.allowed, forms, -1.0))
            self.visit(1.0 * (np.arange(forms.size) == one))
            yield
        for _ in self._improves():
            yield
            if counts.n_svm_solves > most:
                break
        self.is_branching = True
        sweep = self._sweep = Sweep(self, root, self.relaxation_bound, np.ones(1))
        while not sweep.is_done:
            self._advance_sweep(sweep)
            yield
            is_long = counts.n_svm_solves > most or sweep.n_nodes > _MOST_BRANCHES
            if is_long and most < np.inf and not sweep.is_enumerated:
                self.relaxation_bound = self.lower
                self._n_swept += sweep.n_nodes
                self.is_branching, self._sweep = False, None
                return

    def _improves(self) -> Iterator[None]:
        """Sweep the supports around the best, with a kernel more or another, while one is better.

        Every support is measured by the best weights: good ones close others sooner.
        """
        root, used = self._root, np.zeros(self._root.required.size, dtype=bool)
        assert self.best is not None
        while (used != (self.best.weights > 0.0)).any():
            used = self.best.weights > 0.0
            each = np.eye(used.size, dtype=bool)
            for kept in [used, *(used & ~each[i] for i in np.flatnonzero(used))]:
                more = [root.is_met(kept | one) for one in each] & root.allowed
                if not (more & ~kept).any():
                    continue
                branch = WeightPenalty(root.lam, 1, kept, ~(kept | more))
                sweep = Sweep(self, branch, -np.inf, np.ones(1))
                while not sweep.is_done:
                    sweep.step()
                    yield
                self._n_swept += sweep.n_nodes
                if (used != (self.best.weights > 0.0)).any():
                    break

    def _relax(self) -> None:
        """Take a round of the relaxation; begin to branch where it is good enough."""
        if not self.working.has_begun:
            for point in self.working.begin():
                self.take(point)
            self.relaxation = self.working.search()
            self.relaxation_bound = self._master(self._root).lower_bound
        root = self.relaxation
        root.step()
        n_rounds = root.n_visits
        is_closed = root.gap <= root.tol or root.outcome is not None
        if self.working.is_priced:
            self.relaxation_bound = max(self.relaxation_bound, root.lower)
        assert root.best is not None
        if self._root.is_met(root.best.weights > 0.0):
            self.take(root.best)
        elif self.best is None or is_closed or n_rounds % _MORE_ROUNDS == 0:
            self.visit(sparse_part(root.best.weights, self._root))
        share = _ROOT_SHARE if self.working.is_priced else _UNPRICED_SHARE
        enough = share * relative_gap(root.lower, self.upper)
        if is_closed or (n_rounds >= _FIRST_ROUNDS and root.gap <= enough):
            self.start()

    def start(self) -> None:
        """Open the root, without the kernels that its bound decides, once all are priced."""
        self.oracle.complete()
        master = self._master(self._root)
        self.relaxation_bound = max(self.relaxation_bound, master.lower_bound)
        lower, root = self.relaxation_bound, self.relaxation
        if not self.working.is_priced and not self.working.price(master, root.lower, self.upper):
            assert root.best is not None
            self.relaxation = self.working.search()
            self.relaxation.bound()
            self.relaxation.visit(root.best.weights)
            return
        self.is_branching, self._held = True, lower
        self.n_relaxation_solves = self.oracle.counts.n_svm_solves
        if lower >= self.threshold:
            self._closed, self._held = lower, np.inf
            return
        if self.working.is_wide:
            self._swaps()
        if self._is_loose:
            for _ in self._improves():
                if expired():
                    break
        penalty = self._screened(master.multipliers)
        heapq.heappush(self._open, _Node(lower, next(self._order), penalty, master.multipliers))
        self._held = np.inf

    def _swaps(self) -> None:
        """Put the kernels that the learner misses most without one of the best in its place.

        As long as that is better: of many kernels the relaxation alone often finds some, not all.
        """
        assert self.best is not None
        used = np.zeros(self._root.required.size, dtype=bool)
        while (used != (self.best.weights > 0.0)).any():
            weights = self.best.weights
            used = weights > 0.0
            for i in np.flatnonzero(used):
                kept = np.where(np.arange(used.size) == i, 0.0, weights)
                rest = kept if kept.any() else self._root.allowed * 1.0
                forms = self.oracle.evaluate(rest / rest.sum(), 0.01 * abs(self.upper)).forms
                others = np.where(self._root.allowed & ~used, forms, -np.inf)
                for j in np.argsort(-others)[:_SWAPPED]:
                    support = (kept > 0.0) | (np.arange(used.size) == j)
                    if expired() or not self._root.is_met(support):
                        continue
                    self.visit(kept + weights[i] * (np.arange(used.size) == j))
                    self.visit(self._master(self._root.on_support(support)).weights)
                if (used != (self.best.weights > 0.0)).any():
                    break

    def _screened(self, multipliers: FloatArray) -> WeightPenalty:
        """Exclude each kernel whose presence no optimum can afford, require the others' opposite.

        What is left out was bounded: the least of these bounds counts among the closed. In a view
        the bound with a kernel required falls as its entry of the mixed cut grows, so that a
        bisection finds all those to exclude; only the largest entries can be required.
        """
        penalty, n, pool = self._root, multipliers.size, self.oracle.pool
        top, half = mixed_cut(pool.kappa[:n], pool.half_forms[:n], multipliers)
        views = penalty.view if isinstance(penalty, NestedPenalty) else np.zeros(half.size)
        free = np.flatnonzero(penalty.free)
        order = free[np.lexsort((-half[free], views[free]))]
        for members in np.split(order, np.flatnonzero(np.diff(views[order])) + 1):
            least, first, last = np.inf, 0, members.size
            while first < last:
                middle = (first + last) // 2
                halves = _halves(penalty, int(members[middle]))
                bound = least_over(top, half, halves[0][0]) if halves else -np.inf
                if bound >= self.threshold:
                    least, last = bound, middle
                else:
                    first = middle + 1
            out = np.isin(np.arange(half.size), members[last:])
            if (penalty.allowed & ~out).any():
                self._closed = min(self._closed, least)
                self.n_screened += members.size - last
                penalty = penalty.restricted(penalty.required, penalty.excluded | out)
            for j in members[: min(last, penalty.capacity)]:
                for with_j, without_j in _halves(penalty, int(j))[:1] if penalty.free[j] else []:
                    bound = least_over(top, half, without_j)
                    if bound >= self.threshold:
                        self._closed = min(self._closed, bound)
                        self.n_screened += 1
                        penalty = with_j
        return penalty

    def _bound(self, multipliers: FloatArray, penalty: WeightPenalty) -> float:
        """Return what multipliers of the first cuts prove of a branch."""
        n = multipliers.size
        pool = self.oracle.pool
        return lower_bound_from(pool.kappa[:n], pool.half_forms[:n], multipliers, penalty)

    def _advance_sweep(self, sweep: Sweep | Singles) -> None:
        sweep.step()
        if sweep.is_done:
            self._closed = min(self._closed, max(sweep.closed, sweep.lower))
            self._n_swept += sweep.n_nodes
            self._sweep = None

    def _process_branch(self, node: _Node) -> None:
        """Close, bound, enumerate, evaluate or split the lowest branch."""
        if node.lower >= self.threshold:
            self._closed = min(self._closed, node.lower)
        elif self.working.is_wide and node.weights is None and self._peels(node):
            return
        elif node.weights is None or node.n_cuts < len(self.oracle.pool):
            master = self._master(node.penalty)
            node.lower = max(node.lower, master.lower_bound)
            node.weights, node.multipliers = master.weights, master.multipliers
            node.n_cuts = len(self.oracle.pool)
            heapq.heappush(self._open, node)
        elif self._root.is_met(node.weights > 0.0):
            self._settle(node, node.weights)
        elif self._is_loose and self._closes(node):
            return
        elif self._n_bounded >= _FEW_NODES and node.penalty.n_supports <= self._enumerable(node):
            self._sweep = Sweep(self, node.penalty, node.lower, node.multipliers)
        else:
            self._try_support(node, node.weights)
            self._split(node, node.weights)

    def _peels(self, node: _Node) -> bool:
        """Close a branch but for the supports with one of few kernels, or enumerate what is left.

        Those are required in turn, without the ones before. Returns whether that was done.
        """
        required, excluded = node.penalty.required, node.penalty.excluded
        if required.any() and node.penalty.n_supports <= _ENUMERABLE:
            self._sweep = Sweep(self, node.penalty, node.lower, node.multipliers)
            return True
        peeled = self.working.peel(node.penalty, self.threshold)
        self._n_bounded += 1
        if peeled is None:
            return False
        self._closed = min(self._closed, peeled.bound)
        multipliers = np.zeros(len(self.oracle.pool))
        multipliers[peeled.cut] = 1.0
        for j in peeled.kernels:
            chosen = np.arange(required.size) == j
            child = node.penalty.restricted(required | chosen, excluded)
            excluded = excluded | chosen
            lower = max(node.lower, self.working.bound(peeled.cut, child))
            self._push(_Node(lower, next(self._order), child, multipliers))
        return True

    def _push(self, node: _Node) -> None:
        """Open a branch, or close it where its bound reaches the threshold."""
        if node.lower >= self.threshold:
            self._closed = min(self._closed, node.lower)
        else:
            heapq.heappush(self._open, node)

    @property
    def _is_loose(self) -> bool:
        """Whether the relaxation says little, and there are too many supports to look at each."""
        if self._root.n_supports <= _LOOKED_AT or len(self.oracle.grams) >= pricing.WIDE:
            return False
        return relative_gap(self.relaxation_bound, self.upper) > _LOOSE

    @property
    def _strong(self) -> NDArray[np.bool_]:
        """Return which kernels a support can hardly do without: the best weights live on them."""
        assert self.best is not None
        return self.best.weights > _STRONG / self._root.capacity

    def _enumerable(self, node: _Node) -> int:
        """Return how many supports of a branch are enumerated at most."""
        if not self._is_loose:
            return _ENUMERABLE
        return _FEWER_SUPPORTS if (self._strong & node.penalty.excluded).any() else _FEW_SUPPORTS

    def _closes(self, node: _Node) -> bool:
        """Solve the relaxation of a branch until it closes it, or a point shows it cannot.

        Its cuts are those of weights that are not sparse: one closes supports by the thousand.
        """
        search = SaddleSearch(self.oracle, node.penalty, 0.1 * self.tol)
        search.bound()
        start = np.where(node.penalty.allowed, 0.0 if node.above is None else node.above, 0.0)
        if start.sum() > 0.0:
            search.visit(start / start.sum())
        for _ in range(_NODE_ROUNDS):
            if search.lower >= self.threshold or search.upper < self.threshold or expired():
                break
            search.step()
        node.lower = max(node.lower, search.lower)
        if node.lower >= self.threshold:
            self._closed = min(self._closed, node.lower)
            return True
        node.weights = node.weights if search.best is None else search.best.weights
        return False

    def _master(self, penalty: WeightPenalty) -> MasterSolution:
        master = solve_cut_master(self.oracle.pool, penalty)
        self.oracle.counts.n_master_solves += 1
        self._n_bounded += 1
        return master

    def _settle(self, node: _Node, weights: FloatArray) -> None:
        """Evaluate a branch whose minimiser is sparse; what is left of it is opened again.

        Where the learner has nothing new to say there, not even with a finer tolerance, or what it
        says changes nothing again and again, rounding closes the branch at the bound it has.
        """
        lower, at, times = node.settled
        same = node.lower <= lower and weights.tobytes() == at
        node.settled = node.lower, weights.tobytes(), times + 1 if same else 0
        if node.settled[2] >= _SETTLED:
            self._closed = min(self._closed, node.lower)
        elif self.visit(weights).is_new or self.visit(weights, finer=1e-3).is_new:
            heapq.heappush(self._open, node)
        else:
            self._closed = min(self._closed, node.lower)

    def _covering(self, node: _Node, weights: FloatArray) -> list[WeightPenalty]:
        """Return branches that hold every support, so small that the first of them closes."""
        left, parts = node.penalty.capacity, list[WeightPenalty]()
        for n_groups in range(left + 1, 2 * left + 4):
            smaller = _cover(node.penalty, weights, n_groups)
            if not smaller or len(smaller) > _MOST_PARTS:
                break
            parts = smaller
            first = _Node(node.lower, -1, parts[0], node.multipliers, above=weights)
            if self._closes(first):
                return parts[1:]
        return parts

    def _try_support(self, node: _Node, weights: FloatArray) -> None:
        """Evaluate the cuts' best weights on the largest ones of a fractional minimiser."""
        support = self._root.largest(np.where(node.penalty.required, 2.0, 0.0) + weights)
        key = (support.tobytes(), len(self.oracle.pool))
        if key in self._tried:
            return
        self._tried.add(key)
        master = self._master(self._root.on_support(support))
        if master.lower_bound < self.threshold:
            self.visit(master.weights)

    def _split(self, node: _Node, weights: FloatArray) -> None:
        """Require, then exclude, the largest weight among the free kernels, or cover the branch."""
        free, above, parts = node.penalty.free, weights, list[WeightPenalty]()
        if self._is_loose:
            # they tell supports apart, as the relaxation does not
            if (self._strong & free).any():
                weights = np.where(self._strong, 1.0 + weights, 0.0)
            elif (self._strong & node.penalty.excluded).any():
                parts = self._covering(node, weights)
        at = int(np.argmax(np.where(free, weights, -1.0)))
        for penalty in parts or [penalty for penalty, _ in _halves(node.penalty, at)]:
            lower = max(node.lower, self._bound(node.multipliers, penalty))
            self._push(_Node(lower, next(self._order), penalty, node.multipliers, above=above))


def _halves(penalty: WeightPenalty, j: int) -> list[tuple[WeightPenalty, WeightPenalty]]:
    """Return the branch that requires kernel j with the one that excludes it, and the reverse.

    Nothing where j is the only kernel left: the branch without it has no weights at all.
    """
    chosen = np.zeros(penalty.required.size, dtype=bool)
    chosen[j] = True
    if not (penalty.allowed & ~chosen).any():
        return []
    with_j = penalty.restricted(penalty.required | chosen, penalty.excluded)
    without_j = penalty.restricted(penalty.required, penalty.excluded | chosen)
    return [(with_j, without_j), (without_j, with_j)]


def _cover(penalty: WeightPenalty, weights: FloatArray, n_groups: int) -> list[WeightPenalty]:
    """Return branches that hold every support: r kernels lie in r of some groups of kernels.

    Groups are alike in weight. Excluding kernels raises a bound, and requiring one that is like
    the others does not. Nothing where there are too few kernels, or limits of views.
    """
    free = np.flatnonzero(penalty.free)
    if isinstance(penalty, NestedPenalty) or free.size < n_groups:
        return []
    group = np.full(penalty.required.size, -1)
    group[free[np.argsort(-weights[free])]] = np.arange(free.size) % n_groups
    return [
        penalty.restricted(penalty.required, penalty.excluded | np.isin(group, others))
        for others in combinations(range(n_groups), n_groups - penalty.capacity)
    ]


def sparse_part(weights: FloatArray, penalty: WeightPenalty) -> FloatArray:
    """Return the largest weights of a support, rescaled to sum to 1, shape (q,)."""
    sparse = np.where(penalty.largest(weights), weights, 0.0)
    scaled: FloatArray = sparse / sparse.sum()
    return scaled
