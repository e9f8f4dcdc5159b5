"""Output kernel learning with a squared Frobenius norm (Dinuzzo, Ong, Gehler, Pillonetto 2011).

    min over C, L ⪰ 0 of (1/l)‖K C L − Y‖² + λ tr(Cᵀ K C L) + ρ‖L‖²

J(L) is convex, so the problem is: any C certifies. From J(L) ≥ λ(2⟨C, Y⟩ − λl‖C‖² − ⟨B, L⟩),
B = Cᵀ K C, the minimum is at least λ(2⟨C, Y⟩ − λl‖C‖²) − λ²‖B‖²/(4ρ). C and L are solved for
exactly in turn, L at the present function, where the reference has the present C.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core import Problem, Status
from kernelweave.kernels_core.arrays import Matrix
from scipy.linalg import eigh

from .constraint import given_weights
from .objective import JointEvaluation
from .parameters import SeparableKernel, VectorSolution
from .rounding import in_problem_units
from .setting import objective_of
from .settings import OutputKernelLearning

_PATIENCE = 5


@dataclass
class OutputState:
    """An iterate.

    `point`: J and C at the iterate; `value`: J + ρ‖L‖²; `idle`: steps in a row that changed the
    value by rounding only.
    """

    point: JointEvaluation
    value: float
    idle: int = 0


class OutputKernelSearch:
    """``vv-dinuzzo``: K decomposed once, C and the unconstrained L solved exactly in turn."""

    settings: OutputKernelLearning = OutputKernelLearning()
    keeps_states = True

    def init(self, problem: Problem, random_state: np.random.RandomState) -> OutputState:
        """Start at L = I.

        `problem`: with a dictionary, vector-valued least squares and `FrobeniusOutputKernels`;
        `random_state`: unused: the method is deterministic.
        """
        problem.constraint.validate()
        self.objective = objective_of(
            problem, dtype=self.settings.dtype, method="eigen", fixed_input=True
        )
        # a problem's objective is J/(2λ) plus what the set charges
        self.rho = 2.0 * self.objective.lam * float(problem.constraint.rho)
        self.weights = given_weights(problem.constraint.weights, self.objective.grams.n_kernels)
        return self._state(np.eye(self.objective.n_outputs))

    def _state(self, L: Matrix, previous: OutputState | None = None) -> OutputState:
        point = self.objective.evaluate(self.weights, L)
        value = point.value + self.rho * float(np.vdot(L, L))
        idle = 0
        if previous is not None and abs(value - previous.value) <= 1e-14 * abs(value):
            idle = previous.idle + 1
        return OutputState(point, value, idle)

    def step(self, state: OutputState) -> OutputState:
        """Minimise over L at the present function, then solve for C."""
        point, lam = state.point, self.objective.lam
        return self._state(frobenius_output_step(point.B, point.L, lam=lam, rho=self.rho), state)

    def gap(self, state: OutputState) -> tuple[float, float]:
        """Return the proved bounds."""
        point, lam = self.objective.in_samples(state.point), self.objective.lam
        frobenius = self.rho * float(np.vdot(point.L, point.L))
        norm = float(np.linalg.norm(point.B)) + point.sizes.gram_error
        a, b = self.objective.dual_parts(point)
        lower = lam * (2.0 * a - b) - (lam * norm) ** 2 / (4.0 * self.rho) * (1 + 1e-12)
        return in_problem_units(lower, (point.upper + frobenius) * (1.0 + 1e-12), lam)

    def best(self, state: OutputState) -> SeparableKernel:
        """Return weights and output kernel."""
        return state.point.kernel

    def solution(self, state: OutputState) -> VectorSolution:
        """Return the function at the iterate."""
        return self.objective.solution(state.point)

    def counts(self, state: OutputState) -> dict[str, int]:
        """Return C solves and their cost so far."""
        return self.objective.counts()

    def outcome(self, state: OutputState) -> Status | None:
        """Stop where nothing moves."""
        return Status.STALLED if state.idle >= _PATIENCE else None


def frobenius_output_step(B: Matrix, L: Matrix, *, lam: float, rho: float) -> Matrix:
    """Return the L that minimises the objective at the present function f = K C L₀.

    With F = C L₀ the terms in L are λ tr(Fᵀ K F L⁻¹) + ρ‖L‖², least where 2ρL³ = λ L₀ B L₀. The
    step at a fixed C, of the reference, leaves the cone where outputs are more than samples, and is
    slow where λ is small.

    - `B` of shape (n_outputs, n_outputs): Cᵀ K C
    - `L` of shape (n_outputs, n_outputs): L₀, which C belongs to
    - `lam`, `rho`: λ and ρ

    Returns shape (n_outputs, n_outputs): the next output kernel, positive semidefinite.
    """
    values, U = eigh(L @ B @ L, check_finite=False)
    new: Matrix = (U * np.cbrt(0.5 * lam / rho * np.maximum(values, 0.0))) @ U.T
    return new
