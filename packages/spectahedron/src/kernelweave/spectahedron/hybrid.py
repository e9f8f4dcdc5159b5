"""Frank-Wolfe first, then the accelerated primal-dual method: ``tkl-hybrid``.

Talitckii, Colbert and Peet (2024), Algorithm 6, which switches at a gap; the version of 2021
switches where the step length has become short.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import Problem, relative_gap

from .algorithm import SaddleAlgorithm
from .apd import AcceleratedPrimalDual, PrimalDualState
from .frank_wolfe import FrankWolfe, FrankWolfeState

State = FrankWolfeState | PrimalDualState
_RULES = ("gap", "step")


class Hybrid(SaddleAlgorithm):
    """``tkl-hybrid``: `tkl-frank-wolfe` until a rule says stop, then `tkl-apd` from its pair."""

    def init(
        self,
        problem: Problem,
        random_state: np.random.RandomState,
        *,
        dtype: str = "float64",
        switch: str = "gap",
        threshold: float = 0.01,
        certify_every: int = 10,
    ) -> State:
        """Start Frank-Wolfe.

        Parameters
        ----------
        problem : Problem
            With a positive-matrix family and a spectahedron.
        random_state : RandomState
            Unused: the method is deterministic.
        dtype : {"float64", "float32"}, default="float64"
            Precision of the Gram matrices.
        switch : {"gap", "step"}, default="gap"
            What is compared with ``threshold``: the relative gap, or the step length.
        threshold : float, default=0.01
            At or below it the second stage begins.
        certify_every : int, default=10
            As in `tkl-apd`.

        Raises
        ------
        ValueError
            If ``switch`` or ``threshold`` is not accepted.
        """
        if switch not in _RULES:
            raise ValueError(f"switch must be 'gap' or 'step', got {switch!r}")
        if not threshold > 0.0:
            raise ValueError(f"threshold must be > 0, got {threshold!r}")
        self.switch, self.threshold, self.certify_every = switch, threshold, certify_every
        self.first = FrankWolfe()
        self.second: AcceleratedPrimalDual | None = None
        state = self.first.init(problem, random_state, dtype=dtype)
        self.oracle = self.first.oracle
        return state

    def _due(self, state: FrankWolfeState) -> bool:
        if self.switch == "step":
            return state.step <= self.threshold
        return relative_gap(state.lower, state.upper) <= self.threshold

    def step(self, state: State) -> State:
        """Take a step of the stage in charge."""
        if isinstance(state, PrimalDualState):
            assert self.second is not None
            return self.second.step(state)
        following = self.first.step(state)
        if not self._due(following) and not following.stalled:
            return following
        self.second = AcceleratedPrimalDual()
        u = following.solution.dual_coef
        return self.second.begin(self.oracle, following.P, u, self.certify_every)

    def best(self, state: State) -> npt.NDArray[np.float64]:
        """Return P."""
        return state.chosen if isinstance(state, PrimalDualState) else state.P

    def counts(self, state: State) -> dict[str, int]:
        """Return learner solves, inner iterations, Grams and the stage, 1 or 2."""
        stage = 1 if self.second is None else 2
        return {**self.oracle.counts(), "stage": stage}
