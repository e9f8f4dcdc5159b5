"""Block coordinate descent over C, weights and output kernel (V, section 3.1), corrected.

As printed, L is updated with a C that belongs to the previous weights, which can raise the
objective; the update of the weights oscillates for p > 1; Hazan's line search leaves the cone.
Here C is solved again before every L step, and the formulas are those of ERRATA.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import Problem, Status
from kernelweave.kernels_core.arrays import Matrix

from .objective import JointEvaluation
from .output import OutputSubproblem, closed_form_output_kernel
from .parameters import SeparableKernel, VectorSolution
from .setting import Setting, setting_of
from .settings import BlockDescent

_PATIENCE = 5


@dataclass
class BlockState:
    """An iterate.

    `point`: J and C at the iterate; `idle`: steps in a row that changed the value by rounding only.
    """

    point: JointEvaluation
    idle: int = 0


class BlockDescentSearch:
    """``vv-block-descent``: C by conjugate gradients, η in closed form, L by Hazan's algorithm."""

    settings: BlockDescent = BlockDescent()
    keeps_states = True
    setting: Setting

    def init(self, problem: Problem, random_state: np.random.RandomState) -> BlockState:
        """Evaluate the start: even weights, L = (τ/n) I.

        `problem`: with a dictionary, vector-valued least squares and `SeparableKernels`;
        `random_state`: unused: the method is deterministic.
        """
        asked = self.settings
        self.stationarity_tol = 1e-5 if asked.stationarity_tol is None else asked.stationarity_tol
        self.setting = setting_of(problem, dtype=asked.dtype, method=asked.method)
        return BlockState(self.setting.start(asked.cg_tol))

    def step(self, state: BlockState) -> BlockState:
        """Update the weights, solve for C, update L, solve for C."""
        bounds = self.setting.bounds
        point = state.point
        if bounds.learn_input:
            alpha = point.weights * np.sqrt(np.maximum(point.w, 0.0))
            point = self._evaluate(point, bounds.penalty.update(alpha), point.L)
        if bounds.learn_output:
            point = self._evaluate(point, point.weights, self._output_step(point))
        change = abs(bounds.value(state.point) - bounds.value(point))
        idle = state.idle + 1 if change <= 1e-14 * bounds.value(point) else 0
        return BlockState(point, idle)

    def _evaluate(
        self, point: JointEvaluation, weights: npt.NDArray[np.float64], L: Matrix
    ) -> JointEvaluation:
        return self.setting.objective.evaluate(weights, L, start=point, tol=self.settings.cg_tol)

    def _output_step(self, point: JointEvaluation) -> Matrix:
        objective, tau = self.setting.objective, self.setting.bounds.tau
        if self.settings.output_step == "closed-form":
            return closed_form_output_kernel(point.L, point.B, tau)
        part = OutputSubproblem(
            *(point.A, point.B, objective.targets(point), objective.lam, tau),
            objective.total_weight,
        )
        if self.settings.output_step == "exact":
            return part.solve(point.L)
        searched = self.settings.output_step == "hazan"
        return part.hazan(point.L, n_iter=self.settings.sdp_iter, line_search=searched).L

    def gap(self, state: BlockState) -> tuple[float, float]:
        """Return the proved bounds; of a relaxation for joint learning, where it ends."""
        return self.setting.bounds.interval(state.point, self.stationarity_tol)

    def best(self, state: BlockState) -> SeparableKernel:
        """Return weights and output kernel."""
        return state.point.kernel

    def solution(self, state: BlockState) -> VectorSolution:
        """Return the function at the iterate."""
        return self.setting.objective.solution(state.point)

    def counts(self, state: BlockState) -> dict[str, int]:
        """Return C solves and their cost so far."""
        return self.setting.objective.counts()

    def outcome(self, state: BlockState) -> Status | None:
        """Stop where joint learning is stationary, or where nothing moves."""
        bounds = self.setting.bounds
        joint = bounds.learn_input and bounds.learn_output
        if joint and bounds.stationarity(state.point) <= self.stationarity_tol:
            return Status.STATIONARY
        return Status.STALLED if state.idle >= _PATIENCE else None
