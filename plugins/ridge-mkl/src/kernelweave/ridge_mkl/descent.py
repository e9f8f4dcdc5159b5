"""What the algorithms share: starts, stopping at stationary points, and the driver's protocol."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import Problem, Status
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.formula import Solution

from .oracle import Evaluation, Oracle
from .settings import DescentSettings

# Share of the promised fall that a step of a line search must keep: small, so that nearly every
# real fall is taken.
ARMIJO = 1e-4


@dataclass(frozen=True)
class DescentState:
    """An iterate of a descent method.

    - `at`: the objective there
    - `step_size`: step length, radius or damping that the method carries along
    - `memory`: whatever else it carries
    - `n_left`: starting points not used yet
    - `stalled`: whether no progress is possible from here
    """

    at: Evaluation
    step_size: float = 1.0
    memory: dict[str, Any] = field(default_factory=dict)
    n_left: int = 0
    stalled: bool = False


class Descent:
    """Base of the algorithms over kernel weights, for the driver of `kernels_core.solve`.

    A subclass writes `advance`; `first_step` and `check` where it has needs of its own.
    """

    settings: DescentSettings = DescentSettings()

    def __init__(
        self,
        problem: Problem,
        random_state: np.random.RandomState,
        settings: DescentSettings | None = None,
    ) -> None:
        """Evaluate the first start; those after it come from ``random_state``.

        Raises ValueError if the start is not acceptable or the method cannot solve the problem.
        """
        if settings is not None:
            self.settings = settings
        self.oracle = Oracle(problem)
        self.constraint = problem.constraint
        lacking = self.needs()
        if lacking is not None:
            raise ValueError(lacking)
        self.random_state = random_state
        n_starts = self.settings.n_starts
        count = (1 if self.oracle.convex else 5) if n_starts is None else n_starts
        self.state = self.enter(self._first_start(self.settings.mu_init), count - 1)

    def _first_start(self, mu_init: npt.ArrayLike | None) -> FloatArray:
        p = self.oracle.n_kernels
        if mu_init is None:
            return np.asarray(self.constraint.start(p))
        mu = np.asarray(mu_init, dtype=np.float64)
        if mu.shape != (p,) or not np.isfinite(mu).all() or (mu < 0).any():
            raise ValueError(f"mu_init must be {p} finite numbers >= 0, got {mu_init!r}")
        if self.oracle.degree > 1 and not mu.any():
            raise ValueError(
                "mu_init is zero, a stationary maximum above degree 1: start anywhere else"
            )
        return np.asarray(self.constraint.project(mu))

    def needs(self) -> str | None:
        """Return what the problem lacks for this method and which method does without, or None."""
        return None

    def first_step(self, at: Evaluation) -> tuple[float, dict[str, object]]:
        """Return the first step length and memory at a starting point, see `DescentState`."""
        return self.given_step(1.0), {}

    def given_step(self, otherwise: float) -> float:
        """Return the first step length of the settings, or another where they have none."""
        return otherwise if self.settings.step is None else float(self.settings.step)

    def enter(self, mu: FloatArray, n_left: int) -> DescentState:
        """Return the state at a starting point μ, shape (p,), with ``n_left`` starts after it."""
        at = self.oracle.evaluate(mu)
        size, memory = self.first_step(at)
        return DescentState(at, size, memory, n_left)

    def step(self) -> None:
        """Take a step, or go to another start where this one is done."""
        state = self.state
        if state.n_left > 0 and self._done:
            mu = self.constraint.random_start(self.oracle.n_kernels, self.random_state)
            self.state = self.enter(mu, state.n_left - 1)
        else:
            self.state = self.advance(state)

    def advance(self, state: DescentState) -> DescentState:
        """Return the next state of the method."""
        raise NotImplementedError

    @property
    def lower(self) -> float:
        """The proved lower bound."""
        return self.state.at.lower

    @property
    def upper(self) -> float:
        """The proved upper bound."""
        return self.state.at.upper

    @property
    def parameters(self) -> FloatArray:
        """μ, shape (p,)."""
        return self.state.at.mu.copy()

    @property
    def solution(self) -> Solution:
        """The learner's solution, without its factors and images."""
        return replace(self.state.at.solution, details=None)

    @property
    def counts(self) -> dict[str, int]:
        """The cumulative counts."""
        return self.oracle.counts()

    @property
    def outcome(self) -> Status | None:
        """Why to stop here, or ``None``."""
        if self.state.n_left > 0 and self._done:
            return None
        if not self.oracle.convex and self._is_stationary:
            return Status.STATIONARY
        return Status.STALLED if self.state.stalled else None

    @property
    def _done(self) -> bool:
        return not self.oracle.convex and (self.state.stalled or self._is_stationary)

    @property
    def _is_stationary(self) -> bool:
        return self.residual(self.state.at) <= self.settings.stationary_tol

    def residual(self, at: Evaluation) -> float:
        """Return max |P(μ − ηg) − μ| / max μ: how far a point is from stationary.

        η is such that the longest entry of ηg is max μ, or 1 over the curvature of a penalty.
        """
        size, steepest = float(at.mu.max(initial=0.0)), float(np.abs(at.gradient).max(initial=0.0))
        if size == 0.0 or steepest == 0.0:
            return 0.0
        if self.constraint.curvature > 0.0:
            eta = 1.0 / self.constraint.curvature
        else:
            eta = size / steepest
        moved = np.asarray(self.constraint.project(at.mu - eta * at.gradient))
        return float(np.abs(moved - at.mu).max()) / size
