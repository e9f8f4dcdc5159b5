"""Learners as values: what a kernel-learning algorithm asks of a support vector machine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import NONNEGATIVE, POSITIVE, check_limits, check_vector
from kernelweave.kernels_core.clock import time_limit
from kernelweave.kernels_core.formula.learner import Solution, collect, sum_rounded
from kernelweave.kernels_core.grams import KernelArray, UnstoredKernel, as_gram, check_gram
from numpy.typing import ArrayLike

from .bounds import FunctionValues, dual_value, kkt_violation, primal_bound
from .engine import Backend, solve_box
from .point import GridPoint
from .problem import (
    QUANTILE,
    BoxProblem,
    Budget,
    DualSolution,
    check_bounds,
    check_labels,
    classification,
    quantile_regression,
    regression,
)
from .svm import DEFAULT_MAX_ITER, solution_from
from .unstored import solve_unstored


def _part(problem: BoxProblem, dual: DualSolution) -> Solution:
    """Return one task's duals as a learner's solution."""
    return Solution(
        dual_coef=dual.dual_coef[None],
        intercept=np.array([dual.intercept]),
        lower_bound=dual.lower_bound,
        upper_bound=dual.upper_bound,
        function_values=dual.function_values[None],
        slope=np.maximum(problem.upper, -problem.lower)[None],
        linear=dual.kappa,
        violation=dual.kkt_violation,
        n_iter=dual.n_iter,
        status=dual.status,
        stretch=dual.stretch,
    )


class BoxLearner(ABC):
    """What these learners share; the problem of one task is all they add."""

    C: float
    name: ClassVar[str]
    task: ClassVar[str]

    @abstractmethod
    def validate(self) -> None:
        """Raise ValueError if a parameter is out of range."""

    @abstractmethod
    def _problem(self, K: KernelArray, target: FloatArray, bound: FloatArray) -> BoxProblem:
        """Return the box problem of one task with these bounds, both of shape (n,)."""

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
        return replace(self._problem(K, target, bound), asymmetry=asymmetry)

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
                tasks.append(solution_from(problem, outcome))
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
            primal = primal_bound(problem, at, dual_value(problem, u, at), left)
            ends.append(primal.upper)
            intercepts.append(primal.intercept)
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

    def _problem(self, K: KernelArray, target: FloatArray, bound: FloatArray) -> BoxProblem:
        return classification(K, check_labels(target, bound), bound)


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

    def _problem(self, K: KernelArray, target: FloatArray, bound: FloatArray) -> BoxProblem:
        values = check_vector("y", target, bound.size)
        return regression(K, values, bound, float(self.epsilon))


@dataclass(frozen=True)
class QuantileSVR(BoxLearner):
    """``max yᵀα − ½αᵀKα`` over ``(τ − 1)C·wᵢ ≤ αᵢ ≤ τC·wᵢ``, ``Σα = 0``: a value.

    The dual of ``min ½‖f‖² + Σ Cᵢ ρ(yᵢ − f(xᵢ) − b)`` with the pinball loss
    ``ρ(r) = max(τr, (τ − 1)r)`` and ``Cᵢ = C·wᵢ``: kernel quantile regression. At τ = ½ it is
    `SVR` with half of C and ``epsilon=0``.

    Parameters
    ----------
    C : float
    quantile : float
        τ in (0, 1): at most this share of the samples, by weight, lies below the function, and
        at most the rest above it. Like C checked by `validate`, and so by `solve`, not here.

    References
    ----------
    Takeuchi, Le, Sears and Smola, "Nonparametric quantile estimation", JMLR 2006, equation 10
    and lemma 3.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.qp_smo import QuantileSVR
    >>> y = np.array([0.0, 1.0, 2.0, 10.0])
    >>> QuantileSVR(quantile=0.9).solve(np.zeros((4, 4)), y).intercept
    array([10.])
    """

    C: float = 1.0
    quantile: float = 0.5
    name: ClassVar[str] = "quantile-svr"
    task: ClassVar[str] = "regression"

    def validate(self) -> None:
        """Raise ValueError unless C is finite and positive and the quantile in (0, 1)."""
        POSITIVE.check("C", self.C)
        QUANTILE.check("quantile", self.quantile)

    def _problem(self, K: KernelArray, target: FloatArray, bound: FloatArray) -> BoxProblem:
        values = check_vector("y", target, bound.size)
        return quantile_regression(K, values, bound, float(self.quantile))
