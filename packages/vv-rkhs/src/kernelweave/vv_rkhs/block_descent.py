"""Block coordinate descent over C, weights and output kernel (V, section 3.1), corrected.

As printed, L is updated with a C that belongs to the previous weights, which can raise the
objective; the update of the weights oscillates for p > 1; Hazan's line search leaves the cone.
Here C is solved again before every L step, and the formulas are those of ERRATA.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import Problem, Status
from kernelweave.kernels_core.arrays import Matrix

from .bounds import Setting, setting_of
from .constraint import SeparableKernel, VectorSolution
from .objective import JointEvaluation
from .output import OutputSubproblem, closed_form_output_kernel
from .settings import BlockDescent

# So many steps in a row that change the value by rounding only end the search: more would change
# nothing, fewer may be a pause.
_PATIENCE = 5


class BlockDescentSearch:
    """``vv-block-descent``: C by conjugate gradients, η in closed form, L by Hazan's algorithm.

    `point`: J and C at the iterate; `idle`: steps in a row that changed the value by rounding only.
    """

    settings: BlockDescent = BlockDescent()
    setting: Setting

    def __init__(
        self,
        problem: Problem,
        random_state: np.random.RandomState,
        settings: BlockDescent = settings,
    ) -> None:
        """Evaluate the start: even weights, L = (τ/n) I.

        `problem`: with a dictionary, vector-valued least squares and `SeparableKernels`;
        `random_state`: unused: the method is deterministic.
        """
        self.settings, tol = settings, settings.stationarity_tol
        self.stationarity_tol = 1e-5 if tol is None else tol
        self.setting = setting_of(problem, dtype=settings.dtype, method=settings.method)
        self.idle = 0
        self._arrive(self.setting.start(settings.cg_tol))

    def _arrive(self, point: JointEvaluation) -> None:
        """Prove the bounds at a point; of a relaxation for joint learning, where it ends."""
        self.point = point
        self.lower, self.upper = self.setting.bounds.interval(point, self.stationarity_tol)

    def step(self) -> None:
        """Update the weights, solve for C, update L, solve for C."""
        bounds, point = self.setting.bounds, self.point
        before = bounds.value(point)
        if bounds.learn_input:
            alpha = point.weights * np.sqrt(np.maximum(point.w, 0.0))
            point = self._evaluate(point, bounds.penalty.update(alpha), point.L)
        if bounds.learn_output:
            point = self._evaluate(point, point.weights, self._output_step(point))
        after = bounds.value(point)
        self.idle = self.idle + 1 if abs(before - after) <= 1e-14 * after else 0
        self._arrive(point)

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

    @property
    def parameters(self) -> SeparableKernel:
        """Weights and output kernel."""
        return self.point.kernel

    @property
    def solution(self) -> Callable[[], VectorSolution]:
        """What makes the function at the iterate."""
        return partial(self.setting.objective.solution, self.point)

    @property
    def counts(self) -> dict[str, int]:
        """C solves and their cost so far."""
        return self.setting.objective.counts()

    @property
    def outcome(self) -> Status | None:
        """Stop where joint learning is stationary, or where nothing moves."""
        bounds = self.setting.bounds
        joint = bounds.learn_input and bounds.learn_output
        if joint and bounds.stationarity(self.point) <= self.stationarity_tol:
            return Status.STATIONARY
        return Status.STALLED if self.idle >= _PATIENCE else None
