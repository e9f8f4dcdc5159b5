"""The saddle over kernel weights by cutting planes, with both ends of the interval proven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import (
    POSITIVE,
    check_limits,
    check_sample_weight,
    check_weights,
)
from kernelweave.kernels_core.clock import Stopwatch, expired, time_limit
from kernelweave.kernels_core.formula import Learner, Solution
from kernelweave.kernels_core.grams import Stack, as_stack
from kernelweave.kernels_core.result import Status, check_bounds, relative_gap
from numpy.typing import ArrayLike, NDArray

from ..learners import SVC
from .cuts import CutPool, SaddleEvaluation, SaddleOracle, SolveCounts, objective_upper
from .master import solve_cut_master
from .penalties import KSupport, WeightPenalty

_L = TypeVar("_L", bound=Learner)
# How far to go from the best point towards the minimiser of the cuts.
_STEP_OUT = 0.5
# The cuts are trusted where they are wrong by at most this share of the gap.
_TRUST = 0.25
# The share of the largest weight below which a weight that the cuts set to 0 is 0.
_FADED = 0.08
# Rounds in a row that move neither bound: rounding lets nothing move them.
_MOST_IDLE = 5


@dataclass(frozen=True)
class KernelWeights:
    """Kernel weights with the proven interval of the saddle value.

    Attributes
    ----------
    weights : ndarray of shape (q,)
        β of the best upper bound.
    lower_bound, upper_bound : float
        The saddle value lies between them; rounding is accounted for.
    gap : float
        ``(upper − lower)/max(|upper|, |lower|)``.
    status : Status
    solution : Solution
        The learner's duals and intercepts at ``weights``.
    pool : CutPool
        All cuts, for another penalty or the next point of a path.
    counts : SolveCounts
        Learner solves and master solves.
    seconds : float
    """

    weights: FloatArray
    lower_bound: float
    upper_bound: float
    gap: float
    status: Status
    solution: Solution
    pool: CutPool
    counts: SolveCounts
    seconds: float

    @property
    def value(self) -> float:
        """Return the objective at ``weights``: the upper bound."""
        return self.upper_bound

    @property
    def n_svm_solves(self) -> int:
        """Return how many times the learner was solved."""
        return self.counts.n_svm_solves


class SaddleSearch:
    """The state of a cutting-plane search for one penalty, up to a relative gap of ``tol``.

    Each round solves the master for a lower bound, then evaluates the saddle function between its
    minimiser and the best point so far: moving only part of the way keeps the points from jumping
    between the corners of the simplex. `kernels` (q,): of which its cuts are known; None is all.
    """

    def __init__(
        self,
        oracle: SaddleOracle,
        penalty: WeightPenalty,
        tol: float,
        kernels: NDArray[np.bool_] | None = None,
    ) -> None:
        self.oracle = oracle
        self.penalty = penalty
        self.tol = tol
        self.kernels = kernels
        self.multipliers = np.zeros(0)
        self.lower, self.upper = -np.inf, np.inf
        self.best: SaddleEvaluation | None = None
        self.n_visits = 0
        self._watch = Stopwatch()
        self._share = _STEP_OUT
        self._outer: FloatArray | None = None
        self._idle = 0

    @property
    def gap(self) -> float:
        """Return the relative gap."""
        return relative_gap(self.lower, self.upper)

    @property
    def parameters(self) -> FloatArray:
        """Return the best weights, shape (q,)."""
        assert self.best is not None
        return self.best.weights

    @property
    def solution(self) -> Solution:
        """Return the learner's solution at the best weights."""
        assert self.best is not None
        return self.best.solution

    @property
    def counts(self) -> dict[str, int]:
        """Return how many times the learner was solved."""
        return {"n_svm_solves": self.oracle.counts.n_svm_solves}

    @property
    def outcome(self) -> Status | None:
        """Return that rounding lets neither bound move, where that is so."""
        return Status.STALLED if self._idle >= _MOST_IDLE else None

    def bound(self) -> None:
        """Solve the master: raise the lower bound and find where the cuts are lowest."""
        if not len(self.oracle.pool):
            return
        master = solve_cut_master(self.oracle.pool, self.penalty, self._outer)
        self.oracle.counts.n_master_solves += 1
        self.lower = max(self.lower, master.lower_bound)
        self._outer, self.multipliers = master.weights, master.multipliers

    def visit(self, weights: FloatArray) -> SaddleEvaluation:
        """Evaluate a point and keep it if it is the best."""
        self.n_visits += 1
        evaluation = self.oracle.evaluate(weights, self._wanted(), kernels=self.kernels)
        upper = objective_upper(evaluation, self.penalty)
        if upper < self.upper or self.best is None:
            self.upper, self.best = upper, evaluation
        self.bound()
        return evaluation

    def next_point(self) -> FloatArray:
        """Return the point to evaluate next."""
        if self._outer is None:
            start = self.penalty.allowed.astype(np.float64)
            uniform: FloatArray = start / start.sum()
            return uniform
        if self.best is None:
            return self._outer
        between = self._share * self._outer + (1.0 - self._share) * self.best.weights
        # halving for ever what the cuts do not want would read a Gram matrix each time
        fading = (self._outer == 0.0) & (between < _FADED * between.max())
        between[fading | (between < 1e-9 * between.max())] = 0.0
        point: FloatArray = between / between.sum()
        return point

    def step(self) -> None:
        """Take one round.

        Where the cuts were already accurate at the point visited, they are trusted next time and
        the whole way to their minimiser is taken.
        """
        before = (self.lower, self.upper)
        point = self.next_point()
        modelled = self.oracle.pool.model(point)
        left = self.upper - self.lower
        evaluation = self.visit(point)
        error = evaluation.upper_bound - modelled
        self._share = 1.0 if error <= _TRUST * left else _STEP_OUT
        self._idle = self._idle + 1 if (self.lower, self.upper) == before else 0

    def advance(self) -> Status | None:
        """Take one round, and return why the search ends there, or ``None``."""
        self.step()
        check_bounds("cutting planes", self.lower, self.upper)
        if self.gap <= self.tol:
            return Status.CONVERGED
        return self.outcome or (Status.MAX_TIME if expired() else None)

    def _wanted(self) -> float:
        """Return the gap that the learner should reach: a share of what is left to close."""
        if not np.isfinite(self.upper):
            return np.inf
        left = self.upper - max(self.lower, 0.0)
        return max(0.1 * left, 0.2 * self.tol * abs(self.upper), 1e-14 * abs(self.upper))

    def result(self, status: Status) -> KernelWeights:
        """Return the best point with its interval."""
        assert self.best is not None
        return KernelWeights(
            weights=self.best.weights,
            lower_bound=self.lower,
            upper_bound=self.upper,
            gap=self.gap,
            status=status,
            solution=self.best.solution,
            pool=self.oracle.pool,
            counts=self.oracle.counts,
            seconds=self._watch.seconds,
        )


def run_search(search: SaddleSearch, *, max_iter: int) -> Status:
    """Take rounds until the gap is within tol, or a limit is reached, also that of `time_limit`."""
    search.bound()
    for _ in range(max_iter):
        outcome = search.advance()
        if outcome is not None:
            return outcome
    return Status.MAX_ITER


def as_learner(C: float | None, learner: _L | None) -> _L | SVC:
    """Return the learner: ``SVC(C)`` unless one is given; ValueError if neither or both are."""
    if (C is None) == (learner is None):
        raise ValueError(
            f"give either C, for SVC(C), or learner, e.g. SVR(C=1.0), got C={C!r} and "
            f"learner={learner!r}"
        )
    if learner is not None:
        return learner
    assert C is not None
    return SVC(C=float(POSITIVE.check("C", C)))


def solve_kernel_weights(
    grams: ArrayLike | Sequence[ArrayLike] | Stack,
    y: ArrayLike,
    *,
    C: float | None = None,
    learner: Learner | None = None,
    penalty: KSupport | None = None,
    sample_weight: ArrayLike | None = None,
    weights0: ArrayLike | None = None,
    pool: CutPool | None = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
    max_time: float | None = None,
    check: bool = True,
) -> KernelWeights:
    """Solve ``min over β ≥ 0, Σβ = 1 of [Σₜ max κ(uₜ) − ½ Σⱼ βⱼ uₜᵀKⱼuₜ] + penalty(β)``.

    Every feasible dual point u gives the cut ``κ(u) − ½ Σ βⱼ uᵀKⱼu``, whatever the tolerance of
    the solve it came from. The master problem over the cuts gives the lower bound by its own
    dual, the learner's primal value the upper one; both are rounded outwards.

    Parameters
    ----------
    grams : ndarray of shape (q, n, n), sequence of (n, n) arrays, or Stack
        Symmetric positive semidefinite, float64 or float32; never copied if contiguous.
    y : ndarray of shape (n,) or (t, n)
        Labels ±1 or targets; several rows are tasks that share the weights.
    C : float, optional
        Of ``SVC(C)``; give either this or ``learner``.
    learner : Learner, optional
        E.g. ``SVR(C=1.0, epsilon=0.1)``.
    penalty : KSupport, optional
        None is no penalty.
    sample_weight : ndarray of shape (n,), optional
        Multiplies C per sample.
    weights0 : ndarray of shape (q,), optional
        Where to start; by default the minimiser of the cuts in ``pool``, or equal weights.
    pool : CutPool, optional
        Cuts of the same Grams, targets, weights and learner, which are used and added to.
    tol : float
        Relative gap.
    max_iter : int
        Rounds: one learner solve each, sometimes two.
    max_time : float, optional
        Seconds; the deadline of the running solve (`kernelweave.kernels_core.clock`) holds too.
    check : bool
        Whether to check that the Grams are finite, symmetric and positive semidefinite
        (`GramStack`): n³/3 flops each.

    Returns
    -------
    KernelWeights

    Raises
    ------
    ValueError
        If an argument is out of range.
    NotPSDError
        If a Gram matrix has a negative eigenvalue.

    Notes
    -----
    Kelley's method as in Sonnenburg, Rätsch, Schäfer, Schölkopf, *Large scale multiple kernel
    learning*, JMLR 2006, with a penalty, steps between the best and the outer point, inexact
    solves and proven bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.qp_smo.saddle import KSupport, solve_kernel_weights
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> grams = np.stack([np.outer(x, x), np.eye(4)])
    >>> s = solve_kernel_weights(grams, np.sign(x), C=10.0, penalty=KSupport(0.1))
    >>> s.weights.round(2), bool(s.gap <= 1e-4)
    (array([1., 0.]), True)
    """
    stack = as_stack(grams, check=check)
    chosen = as_learner(C, learner)
    targets = np.atleast_2d(np.asarray(y, dtype=np.float64))
    if targets.shape[1:] != (stack.n_samples,):
        raise ValueError(
            f"y must have shape ({stack.n_samples},) or (t, {stack.n_samples}), got {np.shape(y)}"
        )
    check_limits(tol, max_iter, max_time, exact=False)
    if pool is not None and pool.n_kernels != len(stack):
        raise ValueError(f"pool holds cuts of {pool.n_kernels} kernels, grams {len(stack)}")
    weight = check_sample_weight(sample_weight, stack.n_samples)
    oracle = SaddleOracle(stack, targets, chosen, weight, pool)
    form = (penalty or KSupport(0.0)).on(len(stack))
    search = SaddleSearch(oracle, form, tol)
    with time_limit(max_time):
        if weights0 is not None:
            search.visit(on_simplex(weights0, len(stack)))
        status = run_search(search, max_iter=max_iter)
    return search.result(status)


def on_simplex(weights: ArrayLike, n_kernels: int) -> FloatArray:
    """Return weights on the simplex, scaled to sum to 1.

    Raises ValueError if the shape is wrong, a weight is negative or not finite, or all are 0.
    """
    array = check_weights(weights, n_kernels)
    if not array.sum() > 0.0:
        raise ValueError("weights must not all be 0")
    scaled: FloatArray = array / array.sum()
    return scaled
