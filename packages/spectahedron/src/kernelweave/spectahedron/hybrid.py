"""Frank-Wolfe first, then the accelerated primal-dual method: ``tkl-hybrid``.

Talitckii, Colbert and Peet (2024), Algorithm 6, which switches at a gap; the version of 2021
switches where the step length has become short.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from kernelweave.kernels_core import Problem, relative_gap

from .apd import PrimalDualPath
from .frank_wolfe_search import FrankWolfeSearch
from .settings import FrankWolfe, Hybrid


class HybridSearch:
    """``tkl-hybrid``: `tkl-frank-wolfe` until a rule says stop, then `tkl-apd` from its pair.

    `stage`: the search in charge, which answers what is asked.
    """

    settings: Hybrid = Hybrid()

    def __init__(
        self,
        problem: Problem,
        random_state: np.random.RandomState,
        settings: Hybrid = settings,
    ) -> None:
        """Start Frank-Wolfe.

        `problem`: with a positive-matrix family and a spectahedron; `random_state`: unused: the
        method is deterministic.
        """
        self.settings = settings
        first = FrankWolfeSearch(problem, random_state, FrankWolfe(dtype=settings.dtype))
        self.stage: FrankWolfeSearch | PrimalDualPath = first

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stage, name)

    def step(self) -> None:
        """Take a step of the stage in charge; begin the second where that is due."""
        self.stage.step()
        if isinstance(self.stage, FrankWolfeSearch) and self._is_over(self.stage):
            first, every = self.stage, self.settings.certify_every
            self.stage = PrimalDualPath(first.oracle, first.parameters, first.inner, every)
            self.stage.lower = max(first.lower, self.stage.lower)

    def _is_over(self, first: FrankWolfeSearch) -> bool:
        gap = relative_gap(first.lower, first.upper)
        left = first.length if self.settings.switch == "step" else gap
        return first.stalled or left <= self.settings.threshold

    @property
    def counts(self) -> dict[str, int]:
        """Learner solves, inner iterations, Grams and the stage, 1 or 2."""
        return {**self.stage.counts, "stage": 2 - isinstance(self.stage, FrankWolfeSearch)}
