"""Learners as values: what a kernel-learning algorithm asks of a support vector machine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import NONNEGATIVE, POSITIVE, check_limits, check_vector
from kernelweave.kernels_core.clock import time_limit
from kernelweave.kernels_core.formula.learner import Solution, collect, sum_rounded
from kernelweave.kernels_core.grams import (
    KernelArray,
    LowRankOperator,
    UnstoredKernel,
    as_gram,
    check_gram,
)
from numpy.typing import ArrayLike

from . import _njit_descent
from .bounds import FunctionValues, dual_value, kkt_violation, primal_bound
from .engine import Backend, Outcome, solve_box
from .point import GridPoint, starting_point
from .problem import (
    BoxProblem,
    Budget,
    DualSolution,
    check_bounds,
    check_labels,
    classification,
    regression,
)
from .svm import DEFAULT_MAX_ITER, solution_from
from .unstored import rates, solve_by_blocks

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

    `problem`: whose K is an `UnstoredKernel` of a `LowRankOperator`; `start` of shape (n,). Returns
    `u` of shape (n,); `n_iter`: samples visited.
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


def solve_unstored(problem: BoxProblem, start: FloatArray | None, budget: Budget) -> Outcome:
    """Solve in blocks, low-rank factors first by descent; only the blocks' rows are counted."""
    kernel = problem.K
    assert isinstance(kernel, UnstoredKernel)
    log: tuple[str, ...] = ()
    n_visited = 0
    if isinstance(kernel.entries, LowRankOperator):
        start, n_visited = descend(problem, start, budget)
        log = (f"descent: {n_visited} samples visited",)
    run = solve_by_blocks(problem, start, budget)
    log += (f"blocks: {run.n_blocks} blocks, {run.n_iter} steps, {run.status.value}",)
    n_iter = n_visited + run.n_iter
    return Outcome(run.feasible, run.status, n_iter, float(run.n_rows), "blocks", log)


def _part(problem: BoxProblem, found: DualSolution) -> Solution:
    """Return one task's duals as a learner's solution."""
    return Solution(
        dual_coef=found.dual_coef[None],
        intercept=np.array([found.intercept]),
        lower_bound=found.lower_bound,
        upper_bound=found.upper_bound,
        function_values=found.function_values[None],
        slope=np.maximum(problem.upper, -problem.lower)[None],
        linear=found.kappa,
        violation=found.kkt_violation,
        n_iter=found.n_iter,
        n_kernel_rows=found.n_kernel_rows,
        status=found.status,
        stretch=found.stretch,
    )


class BoxLearner(ABC):
    """What both learners share; the problem of one task is all they add."""

    name: ClassVar[str]
    task: ClassVar[str]

    @abstractmethod
    def validate(self) -> None:
        """Raise ValueError if a parameter is out of range."""

    @abstractmethod
    def problem(
        self,
        K: KernelArray,
        target: FloatArray,
        sample_weight: ArrayLike | None = None,
        *,
        asymmetry: float = 0.0,
    ) -> BoxProblem:
        """Return the box problem of one task; ``target`` has shape (n,)."""

    def solve(
        self,
        K: ArrayLike | UnstoredKernel,
        targets: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        dual0: ArrayLike | None = None,
        tol: float = 1e-3,
        max_time: float | None = None,
        backend: Backend = "auto",
        check: bool = True,
        max_iter: int = DEFAULT_MAX_ITER,
        gram_error: float = 0.0,
    ) -> Solution:
        """Solve ``Σₜ max κₜ(uₜ) − ½uₜᵀKuₜ``, one task after the other.

        Parameters
        ----------
        K : ndarray of shape (n, n), float64 or float32, or UnstoredKernel
            An `UnstoredKernel` is solved in blocks, whatever the backend; it is not checked.
        targets : ndarray of shape (t, n) or (n,)
            Rows of ±1 (one-vs-rest) for classification, of real numbers for regression.
        sample_weight : ndarray of shape (n,), optional
        dual0 : ndarray of shape (t, n) or (n,), optional
            Warm starts, signed, feasible or not.
        tol : float
        max_time : float, optional
            Seconds for all tasks together.
        backend : {"auto", "smo", "interior-point", "libsvm"}
        check : bool
            Whether to check that K is finite and symmetric.
        max_iter : int
            Of each task.
        gram_error : float
            A bound on the error of any entry of K: the interval then holds for every positive
            semidefinite matrix that near.

        Returns
        -------
        Solution
            ``details`` holds the `DualSolution` of each task. No warning is raised when a task
            stops early: the status says so, and the bounds hold.

        Raises
        ------
        ValueError
            If a parameter, a shape or a value is out of range.
        """
        self.validate()
        kernel: Any = K if isinstance(K, UnstoredKernel) else as_gram(K)
        unstored = isinstance(K, UnstoredKernel)
        check_limits(tol, max_iter, max_time, exact=False)
        rows = np.atleast_2d(np.asarray(targets, dtype=np.float64))
        starts = None if dual0 is None else np.atleast_2d(np.asarray(dual0, dtype=np.float64))
        if starts is not None and starts.shape != rows.shape:
            raise ValueError(
                f"dual0 must have the shape of targets, {rows.shape}, got {starts.shape}"
            )
        asymmetry = check_gram(kernel) if check and not unstored else 0.0
        asymmetry += 2.0 * gram_error
        budget = Budget(tol, max_iter)
        parts, tasks = [], []
        with time_limit(max_time):
            for t, target in enumerate(rows):
                problem = self.problem(kernel, target, sample_weight, asymmetry=asymmetry)
                start = None if starts is None else check_vector("alpha0", starts[t], target.size)
                outcome = (
                    solve_unstored(problem, start, budget)
                    if unstored
                    else solve_box(problem, start, budget, backend)
                )
                signed = self.task == "regression"
                tasks.append(solution_from(problem, outcome, signed=signed))
                parts.append(_part(problem, tasks[-1]))
        return collect(parts, tuple(tasks))

    def primal_at(
        self,
        targets: ArrayLike,
        dual_coef: ArrayLike,
        values: FloatArray,
        errors: FloatArray,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> tuple[float, FloatArray]:
        """Return a proven upper bound of ``Σₜ max κₜ(uₜ) − ½uₜᵀKuₜ`` from given values of Kuₜ.

        The primal value at these with the best intercept, for any u.

        - `targets`, `dual_coef` of shape (t, n) or (n,)
        - `values` of shape (t, n): computed ``Kuₜ``, of a positive semidefinite K that need not
          exist in memory. A constant in each row is free where the dual point sums to exactly 0
        - `errors` of shape (t,) or (t, n): bounds of the error of the entries of each row of
          ``values``, or of each
        - `sample_weight` of shape (n,)

        Returns `upper`; `intercept` of shape (t,): the best one at the values of each task.
        """
        self.validate()
        rows = np.atleast_2d(np.asarray(targets, dtype=np.float64))
        duals = np.atleast_2d(np.asarray(dual_coef, dtype=np.float64))
        nothing = np.broadcast_to(np.float64(0.0), (rows.shape[1], rows.shape[1]))
        ends, intercepts = [], []
        for target, u, f, error in zip(rows, duals, values, errors, strict=True):
            problem = self.problem(nothing, target, sample_weight)
            at = FunctionValues(f, np.array(np.broadcast_to(error, f.shape)), 0)
            left = kkt_violation(problem, GridPoint(u, problem.lower, problem.upper), f)
            found = primal_bound(problem, at, dual_value(problem, u, at), left)
            ends.append(found.upper)
            intercepts.append(found.intercept)
        return sum_rounded(ends, np.inf), np.array(intercepts)


@dataclass(frozen=True)
class SVC(BoxLearner):
    """``max 1ᵀα − ½(y∘α)ᵀK(y∘α)`` over ``0 ≤ αᵢ ≤ C·wᵢ``, ``yᵀα = 0``: a value.

    Parameters
    ----------
    C : float
        Checked by `validate`, and so by `solve`, not here.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.qp_smo.learners import SVC
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> SVC(C=10.0).solve(np.outer(x, x), np.sign(x)).dual_coef
    array([[ 0. , -0.5,  0.5,  0. ]])
    """

    C: float = 1.0
    name: ClassVar[str] = "svc"
    task: ClassVar[str] = "classification"

    def validate(self) -> None:
        """Raise ValueError unless C is finite and positive."""
        POSITIVE.check("C", self.C)

    def problem(
        self,
        K: KernelArray,
        target: FloatArray,
        sample_weight: ArrayLike | None = None,
        *,
        asymmetry: float = 0.0,
    ) -> BoxProblem:
        """Return the box problem of one task; ``target`` has shape (n,)."""
        bound = check_bounds(self.C, sample_weight, K.shape[0])
        labels = check_labels(target, bound)
        return classification(K, labels, bound, asymmetry)


@dataclass(frozen=True)
class SVR(BoxLearner):
    """``max yᵀα − ε‖α‖₁ − ½αᵀKα`` over ``|αᵢ| ≤ C·wᵢ``, ``Σα = 0``: a value.

    Parameters
    ----------
    C, epsilon : float
        Checked by `validate`, and so by `solve`, not here.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.qp_smo.learners import SVR
    >>> x = np.array([-1.0, 0.0, 1.0])
    >>> SVR(C=10.0, epsilon=0.5).solve(np.outer(x, x), x).dual_coef
    array([[-0.25,  0.  ,  0.25]])
    """

    C: float = 1.0
    epsilon: float = 0.1
    name: ClassVar[str] = "svr"
    task: ClassVar[str] = "regression"

    def validate(self) -> None:
        """Raise ValueError unless C is positive and epsilon at least 0, both finite."""
        POSITIVE.check("C", self.C)
        NONNEGATIVE.check("epsilon", self.epsilon)

    def problem(
        self,
        K: KernelArray,
        target: FloatArray,
        sample_weight: ArrayLike | None = None,
        *,
        asymmetry: float = 0.0,
    ) -> BoxProblem:
        """Return the box problem of one task; ``target`` has shape (n,)."""
        bound = check_bounds(self.C, sample_weight, K.shape[0])
        values = check_vector("y", target, bound.size)
        return regression(K, values, bound, float(self.epsilon), asymmetry)
