"""The measured choice among the algorithms of this package."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from kernelweave.kernels_core import Problem, Status
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.formula import Solution

from .descent import Descent, DescentState
from .projected_newton import ProjectedNewtonSearch
from .settings import Automatic
from .spectral_gradient import SpectralProjectedGradientSearch
from .trust_region import TrustRegionSearch

_MANY_KERNELS = 1000


def choose(problem: Problem, n_kernels: int) -> type[Descent]:
    """Return the algorithm to run.

    `problem`: what to solve; `n_kernels`: p. Projected Newton at degree 1 with at most 1000 kernels
    (from 30 to 600 kernels it took 4 to 10 evaluations; at q = 1 the spectral gradient took 100 and
    more). Above degree 1 the trust region where its sphere lies in the orthant. The spectral
    gradient otherwise.
    """
    if int(getattr(problem.family, "degree", 1)) == 1:
        few = n_kernels <= _MANY_KERNELS
        return ProjectedNewtonSearch if few else SpectralProjectedGradientSearch
    ball: Any = problem.constraint
    on_sphere = ball.name == "lq-ball" and ball.q == 2.0
    if on_sphere and n_kernels <= _MANY_KERNELS and ball.radius <= np.min(ball.center):
        return TrustRegionSearch
    return SpectralProjectedGradientSearch


class AutomaticSearch:
    """``krr-auto``: runs what `choose` returns."""

    settings: Automatic = Automatic()

    def init(self, problem: Problem, random_state: np.random.RandomState) -> DescentState:
        """Return the first state of the chosen algorithm.

        `problem`, `random_state`: as in `Descent.init`.
        """
        size = len(problem.family) if hasattr(problem.family, "__len__") else 1
        self.chosen = choose(problem, size)()
        asked = {each.name: getattr(self.settings, each.name) for each in fields(self.settings)}
        self.chosen.settings = self.chosen.settings.changed(asked)
        return self.chosen.init(problem, random_state)

    def step(self, state: DescentState) -> DescentState:
        """Return the next state from ``state``."""
        return self.chosen.step(state)

    def gap(self, state: DescentState) -> tuple[float, float]:
        """Return proved bounds at ``state``."""
        return self.chosen.gap(state)

    def best(self, state: DescentState) -> FloatArray:
        """Return the weights of ``state``."""
        return self.chosen.best(state)

    def solution(self, state: DescentState) -> Solution:
        """Return the learner's solution at ``state``."""
        return self.chosen.solution(state)

    def counts(self, state: DescentState) -> dict[str, int]:
        """Return the cumulative counts at ``state``."""
        return self.chosen.counts(state)

    def outcome(self, state: DescentState) -> Status | None:
        """Return why to stop at ``state``, or ``None``."""
        return self.chosen.outcome(state)
