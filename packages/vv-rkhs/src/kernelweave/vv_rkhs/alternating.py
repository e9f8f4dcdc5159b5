"""C, weights and output kernel in turn, each at the others, and what all searches tell the driver.

**Block coordinate descent** (V, section 3.1), corrected. As printed, L is updated with a C that
belongs to the previous weights, which can raise the objective; the update of the weights
oscillates for p > 1; Hazan's line search leaves the cone. Here C is solved again before every L
step, and the formulas are those of ERRATA.

**Output kernel learning** with a squared Frobenius norm (Dinuzzo, Ong, Gehler, Pillonetto 2011):

    min over C, L ⪰ 0 of (1/l)‖K C L − Y‖² + λ tr(Cᵀ K C L) + ρ‖L‖²

J(L) is convex, so the problem is: any C certifies. From J(L) ≥ λ(2⟨C, Y⟩ − λl‖C‖² − ⟨B, L⟩),
B = Cᵀ K C, the minimum is at least λ(2⟨C, Y⟩ − λl‖C‖²) − λ²‖B‖²/(4ρ). C and L are solved for
exactly in turn, L at the present function, where the reference has the present C.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import Problem, Status
from kernelweave.kernels_core.arrays import Matrix
from scipy.linalg import eigh

from .bounds import PreparedProblem, objective_of, prepare_problem
from .constraint import SeparableKernel, VectorSolution, given_weights
from .objective import JointEvaluation, Objective
from .output import OutputSubproblem, closed_form_output_kernel
from .rounding import in_problem_units
from .settings import BlockDescent, OutputKernelLearning

# So many steps in a row that change the value by rounding only end the search: more would change
# nothing, fewer may be a pause.
_PATIENCE = 5


class SeparableSearch:
    """Parameters, solution and counts, read from `point`: J and C at the iterate."""

    objective: Objective
    point: JointEvaluation

    @property
    def parameters(self) -> SeparableKernel:
        """Weights and output kernel."""
        return self.point.kernel

    @property
    def solution(self) -> Callable[[], VectorSolution]:
        """What makes the function at the iterate."""
        return partial(self.objective.solution, self.point)

    @property
    def counts(self) -> dict[str, int]:
        """C solves and their cost so far."""
        return self.objective.counts()


class BlockDescentSearch(SeparableSearch):
    """``vv-block-descent``: C by conjugate gradients, η in closed form, L by Hazan's algorithm.

    `idle`: steps in a row that changed the value by rounding only.
    """

    settings: BlockDescent = BlockDescent()
    prepared: PreparedProblem

    def __init__(
        self,
        problem: Problem,
        random_state: np.random.RandomState,
        settings: BlockDescent = settings,
    ) -> None:
        """Evaluate the start: even weights, L = (τ/n) I."""
        self.settings, tol = settings, settings.stationarity_tol
        self.stationarity_tol = 1e-5 if tol is None else tol
        self.prepared = prepare_problem(problem, dtype=settings.dtype, method=settings.method)
        self.objective, self.idle = self.prepared.objective, 0
        self._update_bounds(self.prepared.start(settings.cg_tol))

    def _update_bounds(self, point: JointEvaluation) -> None:
        """Move to a point and compute its bounds."""
        self.point = point
        self.lower, self.upper = self.prepared.bounds.interval(point, self.stationarity_tol)

    def step(self) -> None:
        """Update the weights, solve for C, update L, solve for C."""
        bounds, point = self.prepared.bounds, self.point
        before = bounds.value(point)
        if bounds.learn_input:
            alpha = point.weights * np.sqrt(np.maximum(point.w, 0.0))
            point = self._evaluate(point, bounds.penalty.update(alpha), point.L)
        if bounds.learn_output:
            point = self._evaluate(point, point.weights, self._output_step(point))
        after = bounds.value(point)
        self.idle = self.idle + 1 if abs(before - after) <= 1e-14 * after else 0
        self._update_bounds(point)

    def _evaluate(
        self, point: JointEvaluation, weights: npt.NDArray[np.float64], L: Matrix
    ) -> JointEvaluation:
        return self.objective.evaluate(weights, L, start=point, tol=self.settings.cg_tol)

    def _output_step(self, point: JointEvaluation) -> Matrix:
        objective, tau = self.objective, self.prepared.bounds.tau
        if self.settings.output_step == "closed-form":
            return closed_form_output_kernel(point.L, point.B, tau)
        part = OutputSubproblem(
            *(point.A, point.B, objective.targets(point), objective.lam, tau),
            objective.total_weight,
        )
        if self.settings.output_step == "exact":
            return part.solve(point.L)
        searched = self.settings.output_step == "hazan"
        return part.hazan(point.L, n_iter=self.settings.sdp_iter, line_search=searched)[0]

    @property
    def outcome(self) -> Status | None:
        """Stop where joint learning is stationary, or where nothing moves."""
        bounds = self.prepared.bounds
        joint = bounds.learn_input and bounds.learn_output
        if joint and bounds.stationarity(self.point) <= self.stationarity_tol:
            return Status.STATIONARY
        return Status.STALLED if self.idle >= _PATIENCE else None


class OutputKernelSearch(SeparableSearch):
    """``vv-dinuzzo``: K decomposed once, C and the unconstrained L solved exactly in turn.

    `value`: J + ρ‖L‖²; `idle`: steps in a row that changed it by rounding only.
    """

    settings: OutputKernelLearning = OutputKernelLearning()

    def __init__(
        self,
        problem: Problem,
        random_state: np.random.RandomState,
        settings: OutputKernelLearning = settings,
    ) -> None:
        """Start at L = I."""
        problem.constraint.validate()
        self.settings = settings
        self.objective = objective_of(
            problem, dtype=settings.dtype, method="eigen", fixed_input=True
        )
        # a problem's objective is J/(2λ) plus the set's penalty
        self.rho = 2.0 * self.objective.lam * float(problem.constraint.rho)
        self.weights = given_weights(problem.constraint.weights, len(self.objective.grams))
        self.value, self.idle = np.inf, 0
        self._update_bounds(np.eye(self.objective.n_outputs))

    def step(self) -> None:
        """Minimise over L at the present function, then solve for C."""
        B, L, lam = self.point.B, self.point.L, self.objective.lam
        self._update_bounds(frobenius_output_step(B, L, lam=lam, rho=self.rho))

    def _update_bounds(self, L: Matrix) -> None:
        """Move to L: solve for C and compute the bounds."""
        self.point = self.objective.evaluate(self.weights, L)
        last, self.value = self.value, self.point.value + self.rho * float(np.vdot(L, L))
        still = abs(self.value - last) <= 1e-14 * abs(self.value)
        self.idle = self.idle + 1 if still else 0
        self.lower, self.upper = self._interval()

    def _interval(self) -> tuple[float, float]:
        point, lam = self.objective.in_samples(self.point), self.objective.lam
        frobenius = self.rho * float(np.vdot(point.L, point.L))
        norm = float(np.linalg.norm(point.B)) + point.sizes.gram_error
        a, b = self.objective.dual_parts(point)
        lower = lam * (2.0 * a - b) - (lam * norm) ** 2 / (4.0 * self.rho) * (1 + 1e-12)
        return in_problem_units(lower, (point.upper + frobenius) * (1.0 + 1e-12), lam)

    @property
    def outcome(self) -> Status | None:
        """Stop where nothing moves."""
        return Status.STALLED if self.idle >= _PATIENCE else None


def frobenius_output_step(B: Matrix, L: Matrix, *, lam: float, rho: float) -> Matrix:
    """Return the L that minimises the objective at the present function f = K C L₀.

    With F = C L₀ the terms in L are λ tr(Fᵀ K F L⁻¹) + ρ‖L‖², least where 2ρL³ = λ L₀ B L₀, B = Cᵀ
    K C. The step at a fixed C, of the reference, leaves the cone where outputs are more than
    samples, and is slow where λ is small.
    """
    values, U = eigh(L @ B @ L, check_finite=False)
    return (U * np.cbrt(0.5 * lam / rho * np.maximum(values, 0.0))) @ U.T
