"""The certified global optimum of sparse kernel weights: branch and bound on supports."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np
from kernelweave.kernels_core.checks import check_limits, check_sample_weight
from kernelweave.kernels_core.clock import Stopwatch, expired, time_limit
from kernelweave.kernels_core.result import History, Status, relative_gap
from kernelweave.qp_smo import LearnerSolution
from kernelweave.qp_smo.saddle import (
    CutPool,
    Evaluation,
    GramStack,
    KSupport,
    Learner,
    SaddleOracle,
    SaddleSearch,
    SolveCounts,
    WeightPenalty,
    as_learner,
    objective_upper,
    run_search,
    solve_cut_master,
)
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class GlobalOptimum:
    """Sparse kernel weights with the proven interval of the global optimum.

    Attributes
    ----------
    weights : ndarray of shape (q,)
        At most k₀ are not 0.
    lower_bound, upper_bound : float
        The optimum lies between them; the upper one is the objective at ``weights``.
    gap : float
        ``(upper − lower)/max(|upper|, |lower|)``.
    status : Status
    n_svm_solves : int
        Learner solves, those of the relaxation among them.
    n_svm_solves_relaxation : int
    n_nodes : int
        Branches that were bounded.
    relaxation_bound : float
        The proven lower bound of the convex relaxation at the root.
    relaxation_weights : ndarray of shape (q,)
        Where the relaxation is least.
    solution : LearnerSolution
        The learner at ``weights``.
    pool : CutPool
        All cuts.
    counts : SolveCounts
    history : History
    seconds : float
    """

    weights: FloatArray
    lower_bound: float
    upper_bound: float
    gap: float
    status: Status
    n_svm_solves: int
    n_svm_solves_relaxation: int
    n_nodes: int
    relaxation_bound: float
    relaxation_weights: FloatArray
    solution: LearnerSolution
    pool: CutPool
    counts: SolveCounts
    history: History
    seconds: float

    @property
    def support(self) -> NDArray[np.intp]:
        """Return which kernels are used."""
        return np.flatnonzero(self.weights)


@dataclass(order=True)
class _Node:
    """A branch: its bound, and the cuts that were known when it was computed."""

    lower: float
    order: int
    penalty: WeightPenalty = field(compare=False)
    weights: FloatArray = field(compare=False)
    n_cuts: int = field(compare=False)


class SupportSearch:
    """Best-first branch and bound over supports; all branches share the cuts.

    A branch requires some kernels and excludes others; its bound is the k-support relaxation of
    what is left, from the cuts alone. The learner is solved only at sparse weights: at the
    minimiser of a branch that happens to be sparse, and at the cuts' best weights on the support
    that a fractional branch suggests.

    Parameters
    ----------
    oracle : SaddleOracle
    penalty : WeightPenalty
        Of the root.
    k0 : int
    tol : float
        Relative gap to reach.
    """

    def __init__(self, oracle: SaddleOracle, penalty: WeightPenalty, k0: int, tol: float) -> None:
        self.oracle = oracle
        self.k0 = k0
        self.tol = tol
        self.upper = np.inf
        self.best: Evaluation | None = None
        self.history = History()
        self.n_nodes = 0
        self._watch = Stopwatch()
        self._root = penalty
        self._order = count()
        self._open: list[_Node] = []
        self._closed = np.inf
        self._tried: set[tuple[bytes, int]] = set()

    @property
    def lower(self) -> float:
        """Return the proven lower bound: that of the lowest branch, open or closed."""
        lowest = self._open[0].lower if self._open else np.inf
        return float(min(lowest, self._closed, self.upper))

    @property
    def gap(self) -> float:
        """Return the relative gap."""
        return relative_gap(self.lower, self.upper)

    @property
    def is_stuck(self) -> bool:
        """Whether no open branch can raise the lower bound."""
        return not self._open or self._closed <= self._open[0].lower

    def start(self, lower: float = -np.inf) -> None:
        """Open the root; ``lower`` is a bound already proven for it."""
        self._push(self._root, lower)

    def step(self) -> None:
        """Close, evaluate or split the lowest branch."""
        node = heapq.heappop(self._open)
        if node.n_cuts < len(self.oracle.pool):
            self._push(node.penalty, node.lower)
            return
        if self._is_closed(node.lower):
            self._closed = min(self._closed, node.lower)
            return
        if np.count_nonzero(node.weights) <= self.k0:
            self._settle(node)
        else:
            self._try_support(node)
            self._split(node)

    def visit(self, weights: FloatArray, finer: float = 1.0) -> Evaluation:
        """Evaluate sparse weights and keep them if they are the best."""
        want = 0.2 * finer * self.tol * abs(self.upper) if np.isfinite(self.upper) else np.inf
        found = self.oracle.evaluate(weights, want)
        dense = self._root.on_support(weights > 0.0)
        upper = objective_upper(found, dense)
        if upper < self.upper or self.best is None:
            self.upper, self.best = upper, found
        self.record(upper)
        return found

    def refine(self) -> None:
        """Evaluate the best weights again, so that their objective is good to more digits."""
        if self.best is not None and relative_gap(self.lower, self.upper) > 1e-9:
            self.visit(self.best.weights, finer=1e-3)

    def record(self, value: float) -> None:
        """Add a line to the history."""
        self.history.append(
            lower=self.lower if self._open else -np.inf,
            upper=self.upper,
            value=value,
            seconds=self._watch.seconds,
            counts={"n_svm_solves": self.oracle.counts.n_svm_solves, "n_nodes": self.n_nodes},
        )

    def _is_closed(self, lower: float) -> bool:
        return np.isfinite(self.upper) and relative_gap(lower, self.upper) <= self.tol

    def _push(self, penalty: WeightPenalty, lower: float) -> None:
        """Bound a branch by the cuts and open it."""
        watch = Stopwatch()
        master = solve_cut_master(self.oracle.pool, penalty)
        self.oracle.counts.n_master_solves += 1
        self.oracle.counts.add_time("master", watch)
        self.n_nodes += 1
        node = _Node(
            max(lower, master.lower_bound),
            next(self._order),
            penalty,
            master.weights,
            len(self.oracle.pool),
        )
        heapq.heappush(self._open, node)

    def _settle(self, node: _Node) -> None:
        """Evaluate a branch whose minimiser is sparse; what is left of it is opened again.

        Where the learner has nothing new to say there, not even with a finer tolerance, rounding
        closes the branch at the bound it has.
        """
        heapq.heappush(self._open, node)
        if self.visit(node.weights).is_new or self.visit(node.weights, finer=1e-3).is_new:
            return
        self._open.remove(node)
        heapq.heapify(self._open)
        self._closed = min(self._closed, node.lower)

    def _try_support(self, node: _Node) -> None:
        """Evaluate the cuts' best weights on the largest k₀ of a fractional minimiser."""
        rank = np.where(node.penalty.required, 2.0, 0.0) + node.weights
        keep = np.argsort(-rank, kind="stable")[: self.k0]
        support = np.zeros(rank.size, dtype=bool)
        support[keep] = True
        key = (support.tobytes(), len(self.oracle.pool))
        if key in self._tried:
            return
        self._tried.add(key)
        master = solve_cut_master(self.oracle.pool, self._root.on_support(support))
        self.oracle.counts.n_master_solves += 1
        if not self._is_closed(master.lower_bound):
            self.visit(master.weights)

    def _split(self, node: _Node) -> None:
        """Require, then exclude, the largest weight among the free kernels."""
        free = node.penalty.free
        at = int(np.argmax(np.where(free, node.weights, -1.0)))
        chosen = np.zeros(free.size, dtype=bool)
        chosen[at] = True
        required, excluded = node.penalty.required, node.penalty.excluded
        self._push(node.penalty.restricted(required | chosen, excluded), node.lower)
        self._push(node.penalty.restricted(required, excluded | chosen), node.lower)


def sparse_part(weights: FloatArray, k0: int) -> FloatArray:
    """Return the k₀ largest weights, rescaled to sum to 1, shape (q,)."""
    largest = np.argsort(-weights, kind="stable")[:k0]
    sparse = np.zeros_like(weights)
    sparse[largest] = weights[largest]
    scaled: FloatArray = sparse / sparse.sum()
    return scaled


def solve_global(
    grams: ArrayLike | Sequence[ArrayLike] | GramStack,
    y: ArrayLike,
    *,
    C: float | None = None,
    lam: float,
    k0: int,
    learner: Learner | None = None,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-4,
    max_time: float | None = None,
    max_nodes: int = 1_000_000,
    pool: CutPool | None = None,
    check: bool = True,
) -> GlobalOptimum:
    """Solve ``min over β ≥ 0, Σβ = 1, ‖β‖₀ ≤ k₀ of max κ(u) − ½uᵀK(β)u + λ‖β‖²`` globally.

    Cutting planes for the convex relaxation, then branch and bound on the support with the same
    cuts. Both ends are proven: the upper one is the learner's primal value plus the penalty, the
    lower one the dual of the master problem of the lowest branch.

    Parameters
    ----------
    grams : ndarray of shape (q, n, n), sequence of (n, n) arrays, or GramStack
        Symmetric positive semidefinite.
    y : ndarray of shape (n,) or (t, n)
        Labels ±1 or targets; rows are tasks that share the weights.
    C : float, optional
        Of ``SVC(C)``; give either this or ``learner``.
    lam : float
        λ ≥ 0.
    k0 : int
        Kernels at most.
    learner : Learner, optional
        E.g. ``SVR(C=1.0, epsilon=0.1)``.
    sample_weight : ndarray of shape (n,), optional
    tol : float
        Relative gap at which to stop.
    max_time : float, optional
        Seconds; what is proven by then is returned.
    max_nodes : int
        Branches at most.
    pool : CutPool, optional
        Cuts of the same Grams, targets, weights and learner: those of another λ or k₀.
    check : bool
        Whether to check that the Grams are finite, symmetric and positive semidefinite: n³/3
        flops each. Those of a `KernelDictionary` have been checked where it is needed.

    Returns
    -------
    GlobalOptimum

    Raises
    ------
    NotPSDError
        If a Gram matrix has a negative eigenvalue; no bound would hold.
    ValueError
        If an argument is out of range.

    Notes
    -----
    The problem is (4) of Bertsimas, Iglesias, Johnson, *Sparse multiple kernel learning:
    alternating best response and semidefinite relaxations*, 2025. The search follows Quesada and
    Grossmann, Computers and Chemical Engineering 1992: one tree, cuts added at sparse points.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.relaxations import solve_global
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> grams = np.stack([np.outer(x, x), np.eye(4), np.ones((4, 4))])
    >>> s = solve_global(grams, np.sign(x), C=10.0, lam=0.1, k0=1)
    >>> s.support, s.gap <= 1e-4
    (array([0]), True)
    """
    stack = grams if isinstance(grams, GramStack) else GramStack(grams, check=check)
    targets = np.atleast_2d(np.asarray(y, dtype=np.float64))
    weight = check_sample_weight(sample_weight, stack.n_samples)
    check_limits(tol, 1, None)
    watch = Stopwatch()
    oracle = SaddleOracle(stack, targets, as_learner(C, learner), weight, pool)
    penalty = KSupport(lam, k0).on(len(stack))
    root = SaddleSearch(oracle, penalty, 0.1 * tol)
    search = SupportSearch(oracle, penalty, penalty.capacity, tol)
    with time_limit(max_time):
        run_search(root, max_iter=200)
        n_root = oracle.counts.n_svm_solves
        status = _run(search, root, max_nodes)
    search.refine()
    assert search.best is not None
    assert root.best is not None
    return GlobalOptimum(
        weights=search.best.weights,
        lower_bound=search.lower,
        upper_bound=search.upper,
        gap=search.gap,
        status=status,
        n_svm_solves=oracle.counts.n_svm_solves,
        n_svm_solves_relaxation=n_root,
        n_nodes=search.n_nodes,
        relaxation_bound=root.lower,
        relaxation_weights=root.best.weights,
        solution=search.best.solution,
        pool=oracle.pool,
        counts=oracle.counts,
        history=search.history,
        seconds=watch.seconds,
    )


def _run(search: SupportSearch, root: SaddleSearch, max_nodes: int) -> Status:
    """Search until the gap is closed or a limit is reached; there is always a best point."""
    assert root.best is not None
    search.start(root.lower)
    search.visit(sparse_part(root.best.weights, search.k0))
    while search.gap > search.tol:
        if search.is_stuck:
            return Status.STALLED
        if search.n_nodes >= max_nodes:
            return Status.MAX_ITER
        if expired():
            return Status.MAX_TIME
        search.step()
    return Status.CONVERGED
