"""One fit, from samples to what predicts: frozen values, and plain functions between them.

An estimator says by ``formula(samples)`` which problem it has. `solved` solves it and returns the
attributes that a fitted estimator has, a `Predictor` among them. None of them is set before all are
there: see `estimators.base.assigned_last`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from . import interrupts
from .arrays import FloatArray, Index, Points, Rows, row_slices
from .checks import check_decision
from .clock import LATE_SECONDS, time_limit
from .config import blas_threads
from .driver import solve
from .estimators.samples import Samples, match_sparsity
from .formula import lower_bound
from .formula.learner import Solution
from .formula.problem import Problem
from .grams.precomputed import PrecomputedGrams, PrecomputedKernel
from .kernels import FittedFactors, Kernel
from .kernels.scaled import Scaling
from .memory import limit_bytes
from .result import Certificate, Result, SolveInterrupted, Status, check_bounds
from .settings import Settings

# Rows whose kernel values with all support vectors are in memory at once.
_BLOCK = 4096
# what a fit leaves to predict with: from points, or matrices where kernels are precomputed, to f(X)
# of shape (n, n_tasks)
Predicts: TypeAlias = Callable[[Any], FloatArray]
PROOFS = (
    "a feasible dual point and a proven bound of the maximum over the kernels",
    "the primal value of the learner at the learned kernel",
)
_OF_FACTORS = "of the approximated kernels ZZᵀ; exact_certificate_ says what holds for K"
_EXACT_PROOFS = (
    "a multiple of the fitted dual point, with forms uᵀKu of the exact kernels or more",
    "the primal value with ZZᵀ: K − ZZᵀ is positive semidefinite, up to rounding",
)


@dataclass(frozen=True, eq=False)
class Formula:
    """Min over a set of kernels of a learner's maximum: what an estimator says of its problem.

    - `family`, `learner`, `set`: of the `Problem`
    - `algorithm`, `settings`: what solves it; ``tol`` and ``max_iter`` among the settings count
      more than the estimator's
    - `scaling`: of the features, before the family sees them
    - `unit`: what is 1 to the learner, in the unit of the targets
    - `kernel`: from parameters to the learned kernel, where the family's own will not do
    - `proofs`: where the lower and the upper bound come from, a sentence each
    - `attributes`: from a result to what only this estimator tells of it
    """

    family: Any
    learner: Any
    set: Any
    algorithm: str | Settings
    settings: Mapping[str, Any] = field(default_factory=dict)
    scaling: Scaling | None = None
    unit: float = 1.0
    kernel: Callable[[Any], Any] | None = None
    proofs: tuple[str, str] = PROOFS
    attributes: Callable[[Problem, Result], Mapping[str, Any]] = lambda problem, result: {}

    def problem(self, samples: Samples, targets: FloatArray) -> Problem:
        """Return the problem for merged samples, and targets in the unit of the learner."""
        X = samples.scaled(self.scaling).X
        return Problem(self.family, self.learner, self.set, X, targets, samples.weight)


@dataclass(frozen=True, eq=False)
class FitResult:
    """What a fit found, by attribute, and the Ctrl-C that ended it, if one did."""

    attributes: dict[str, Any]
    stopped: KeyboardInterrupt | None = None


@dataclass(frozen=True, eq=False)
class Predictor:
    """f(x) = Σᵢ k(x, xᵢ) cᵢ + b.

    `kernel`: k; `points` of shape (n_used, n_features): xᵢ; `coef` of shape (n_tasks, n_used);
    `offset` of shape (n_tasks,): b.
    """

    kernel: Kernel
    points: Points
    coef: FloatArray
    offset: FloatArray

    def __call__(self, X: Points) -> FloatArray:
        """Return f(X), with kernel values in blocks of rows that respect the memory limit."""
        n_used = self.points.shape[0]
        if n_used == 0:
            return np.zeros((X.shape[0], len(self.coef))) + self.offset
        block = max(1, min(X.shape[0], _BLOCK, limit_bytes() // (8 * 8 * n_used)))
        with np.errstate(over="ignore", invalid="ignore"), blas_threads(n_used):
            parts = [
                self.kernel(match_sparsity(self.points, X[rows]), self.points) @ self.coef.T
                for rows in row_slices(X.shape[0], block)
            ]
        values: FloatArray = np.vstack(parts)
        check_decision(values, X)
        return values + self.offset


@dataclass(frozen=True, eq=False)
class PrecomputedPredictor:
    """The same of cross-Gram matrices that the user computed.

    `places` of shape (n_used,): columns of the support vectors; `shape`: the kernels and the
    training samples that the matrices must have.
    """

    kernel: PrecomputedKernel
    places: Index
    coef: FloatArray
    offset: FloatArray
    shape: tuple[int, int]

    def __call__(self, X: Rows) -> FloatArray:
        """Return f, for one cross-Gram matrix per kernel, (n_kernels, n, n_train)."""
        grams, (n_kernels, n_train) = PrecomputedGrams.of(X), self.shape
        if (grams.n_kernels, grams.shape[1]) != self.shape:
            raise ValueError(
                f"X must have shape ({n_kernels}, n_samples, {n_train}), one "
                f"cross-Gram matrix per kernel, got {(grams.n_kernels, *grams.shape)}"
            )
        u = np.zeros((n_train, len(self.coef)))
        # samples that are copies of one another may share a place
        np.add.at(u, self.places, self.coef.T)
        return self.kernel.times(grams, u) + self.offset


@dataclass(frozen=True, eq=False)
class ExpansionPredictor:
    """The same of approximated kernels: a sum over the drawn points of each kernel.

    `expansions`: (kⱼ, P, c) of each kernel, see `FittedFactors.expansions`; `points`: training
    rows, sparse or dense as new ones shall be; `scaling`: of new rows.
    """

    expansions: list[tuple[Kernel, Points, FloatArray]]
    points: Points
    scaling: Scaling | None
    offset: FloatArray

    def __call__(self, X: Points) -> FloatArray:
        """Return f(X), block by block."""
        X = match_sparsity(self.points, X)
        scaled = X if self.scaling is None else self.scaling(X)
        values = np.zeros((X.shape[0], len(self.offset)))
        with np.errstate(over="ignore", invalid="ignore"):
            for rows in row_slices(X.shape[0], _BLOCK):
                for kernel, points, dual in self.expansions:
                    values[rows] += kernel(scaled[rows], points) @ dual
        check_decision(values, X)
        return values + self.offset


def solved(
    problem: Problem,
    algorithm: str | Settings,
    describe: Callable[[Problem, Result], dict[str, Any]],
    **settings: Any,
) -> FitResult:
    """Solve a problem and return its result as attributes.

    A Ctrl-C ends it with the best point so far, which is handed back with the exception that is to
    be raised once it is kept.
    """
    attributes: dict[str, Any] | None = None
    stopped: KeyboardInterrupt | None = None
    try:
        result = solve(problem, algorithm, **settings)
    except SolveInterrupted as stop:
        result, stopped = stop.result, stop
    try:
        with interrupts.defer_interrupt():
            attributes = describe(problem, result)
    except KeyboardInterrupt as stop:
        if attributes is None:
            raise
        if settings.get("on_interrupt") == "return":
            return interrupted(attributes, stop, "return")
        # the search had ended: its status stays
        stopped = stop
    return FitResult(attributes, stopped)


def interrupted(
    attributes: dict[str, Any], stop: KeyboardInterrupt, on_interrupt: str
) -> FitResult:
    """Return the fit of a whole model, after which a Ctrl-C ended what was to be done with it."""
    found = attributes["result_"]
    parts = found if isinstance(found, list) else [found]
    parts = [replace(each, status=Status.INTERRUPTED) for each in parts]
    attributes = {**attributes, "result_": parts if isinstance(found, list) else parts[0]}
    if on_interrupt == "return":
        return FitResult(attributes)
    raised = SolveInterrupted(parts[-1])
    raised.__cause__ = stop
    return FitResult(attributes, raised)


def attributes_of(
    samples: Samples, formula: Formula, problem: Problem, result: Result
) -> dict[str, Any]:
    """Return what every fitted estimator of one kernel has, and what the formula adds."""
    solution = _solution_at(problem, result) if result.solution is None else result.solution
    kernel = (formula.kernel or problem.family.kernel)(result.parameters)
    u = np.atleast_2d(solution.dual_coef).astype(np.float64)
    intercept = np.atleast_1d(np.asarray(solution.intercept, dtype=np.float64)) * formula.unit
    spread = samples.to_original_rows(u) * formula.unit
    used = np.flatnonzero(u.any(axis=0))
    coef = u[:, used] * formula.unit
    attributes: dict[str, Any] = {
        "result_": result,
        "certificate_": Certificate(
            result.lower_bound, result.upper_bound, *formula.proofs, premise=result.premise
        ),
        "dual_gap_": result.dual_gap,
        # making the first iterate counts, as in scikit-learn
        "n_iter_": max(1, result.n_iter),
        "kernel_": kernel if formula.scaling is None else formula.scaling.of_kernel(kernel),
        "support_": np.flatnonzero(spread.any(axis=0)),
        "dual_coef_": spread if len(spread) > 1 else spread[0],
        "intercept_": intercept if len(intercept) > 1 else float(intercept[0]),
    }
    # the same array as the problem's, where one keeps it, is stored once
    points = samples.X if len(used) == samples.X.shape[0] else samples.X[used]
    if samples.grams is not None:
        shape = samples.grams.n_kernels, samples.grams.shape[1]
        attributes["_predictor"] = PrecomputedPredictor(
            kernel, samples.places[used], coef, intercept, shape
        )
    elif isinstance(problem.family, FittedFactors) and not problem.family.is_exact:
        stored = problem.family
        attributes |= _of_factors(problem, result, stored, attributes["certificate_"])
        scaled = points if formula.scaling is None else formula.scaling(points)
        parts = stored.expansions(result.parameters, scaled, coef)
        attributes["_predictor"] = ExpansionPredictor(parts, points[:0], formula.scaling, intercept)
    else:
        attributes["_predictor"] = Predictor(attributes["kernel_"], points, coef, intercept)
    return attributes | dict(formula.attributes(problem, result))


def _solution_at(problem: Problem, result: Result) -> Solution:
    """Solve the learner at the best kernel, for algorithms that keep no solution.

    After a limit or a Ctrl-C it has a second, and its best point is good enough.
    """
    is_late = result.status in (Status.MAX_TIME, Status.INTERRUPTED)
    with time_limit(LATE_SECONDS if is_late else None):
        K = problem.family.gram(problem.X, result.parameters)
        solution: Solution = problem.learner.solve(
            K, problem.targets, sample_weight=problem.sample_weight, tol=1e-4
        )
        return solution


def _of_factors(
    problem: Problem, result: Result, stored: FittedFactors, proved: Certificate
) -> dict[str, Certificate]:
    """Return the certificate of approximated kernels, and bounds of the optimum of the exact ones.

    With K − ZZᵀ positive semidefinite the learner's maximum is lower with K than with ZZᵀ at all
    weights, so that every upper bound stays one. A feasible dual point is feasible for both, and
    bounds from below what its quadratic forms in K allow.
    """
    lower, upper = (f"{proof}; {_OF_FACTORS}" for proof in (proved.lower_proof, proved.upper_proof))
    certificates = {"certificate_": replace(proved, lower_proof=lower, upper_proof=upper)}
    # a third party's algorithm may keep no solution to bound it by
    if result.solution is None:
        return certificates
    charge: Any = problem.constraint
    if getattr(charge, "is_point", False):
        # a set of one vector of weights: the worst of it is their quadratic form
        charge = SimpleNamespace(worst=lambda forms: float(result.parameters @ forms))
    forms = stored.exact_forms(np.atleast_2d(result.solution.dual_coef))
    least, most = lower_bound(result.solution, charge, forms), result.upper_bound
    check_bounds("the exact kernels", least, most)
    exact = Certificate(min(least, most), most, *_EXACT_PROOFS)
    return certificates | {"exact_certificate_": exact}
