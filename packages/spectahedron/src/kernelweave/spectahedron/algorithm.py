"""What the algorithms over positive matrices answer the driver, once for all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import Status
from kernelweave.kernels_core.formula.learner import Solution

from .saddle import SaddleOracle


class SaddleAlgorithm:
    """Bounds, P, solution and counts, read from the state and the oracle.

    Who inherits sets ``oracle`` in ``init``. A state has ``lower`` and ``upper`` (public units),
    ``solution`` (the learner's, as the oracle solved it) and ``P``; `best` is there to be replaced
    where it holds P as something else.
    """

    oracle: SaddleOracle

    def gap(self, state: Any) -> tuple[float, float]:
        """Return the proved bounds."""
        return state.lower, state.upper

    def best(self, state: Any) -> npt.NDArray[np.float64]:
        """Return P."""
        P: npt.NDArray[np.float64] = state.P
        return P

    def solution(self, state: Any) -> Solution:
        """Return the learner's solution in public units: α and bounds divided by v."""
        scale = self.oracle.scale
        inner: Solution = state.solution
        return replace(
            inner,
            dual_coef=inner.dual_coef / scale,
            linear=inner.linear / scale,
            slope=inner.slope / scale,
            lower_bound=inner.lower_bound / scale,
            upper_bound=inner.upper_bound / scale,
        )

    def counts(self, state: Any) -> dict[str, int]:
        """Return learner solves, inner iterations and Grams so far."""
        return self.oracle.counts()

    def scale(self, state: Any) -> float:
        """Return what the best constant prediction costs."""
        return self.oracle.constant_cost

    def outcome(self, state: Any) -> Status | None:
        """Never stop by itself."""
        return None
