"""Frank-Wolfe first, then the accelerated primal-dual method: ``tkl-hybrid``.

Talitckii, Colbert and Peet (2024), Algorithm 6, which switches at a gap; the version of 2021
switches where the step length has become short.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import Problem, relative_gap

from .algorithm import SaddleAlgorithm
from .apd import PrimalDualSearch, PrimalDualState
from .frank_wolfe_search import FrankWolfeSearch, FrankWolfeState
from .settings import AcceleratedPrimalDual, FrankWolfe, Hybrid

State = FrankWolfeState | PrimalDualState


class HybridSearch(SaddleAlgorithm[State]):
    """``tkl-hybrid``: `tkl-frank-wolfe` until a rule says stop, then `tkl-apd` from its pair."""

    settings: Hybrid = Hybrid()

    def init(self, problem: Problem, random_state: np.random.RandomState) -> State:
        """Start Frank-Wolfe.

        `problem`: with a positive-matrix family and a spectahedron; `random_state`: unused: the
        method is deterministic.
        """
        self.first = FrankWolfeSearch()
        self.first.settings = FrankWolfe(dtype=self.settings.dtype)
        self.second: PrimalDualSearch | None = None
        state = self.first.init(problem, random_state)
        self.oracle = self.first.oracle
        return state

    def _due(self, state: FrankWolfeState) -> bool:
        if self.settings.switch == "step":
            return state.step <= self.settings.threshold
        return relative_gap(state.lower, state.upper) <= self.settings.threshold

    def step(self, state: State) -> State:
        """Take a step of the stage in charge."""
        if isinstance(state, PrimalDualState):
            assert self.second is not None
            return self.second.step(state)
        following = self.first.step(state)
        if not self._due(following) and not following.stalled:
            return following
        self.second = PrimalDualSearch()
        self.second.settings = AcceleratedPrimalDual(certify_every=self.settings.certify_every)
        u = following.solution.dual_coef
        return self.second.begin(self.oracle, following.P, u)

    def best(self, state: State) -> npt.NDArray[np.float64]:
        """Return P."""
        return state.chosen if isinstance(state, PrimalDualState) else state.P

    def counts(self, state: State) -> dict[str, int]:
        """Return learner solves, inner iterations, Grams and the stage, 1 or 2."""
        stage = 1 if self.second is None else 2
        return {**self.oracle.counts(), "stage": stage}
