"""What the searches over positive matrices tell the driver, once for all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
from kernelweave.kernels_core.driver import Search
from kernelweave.kernels_core.formula.learner import Solution

from .saddle import SpectahedronOracle


class SpectahedronSearch:
    """Solution and counts, read from what the search holds.

    - `lower`, `upper`: the proved bounds, public units
    - `inner`: the learner's solution, as the oracle solved it; there once a bound is
    """

    oracle: SpectahedronOracle
    lower: float
    upper: float
    inner: Solution | None = None

    @property
    def solution(self) -> Solution:
        """The learner's solution in public units: α and bounds divided by v."""
        scale, inner = self.oracle.scale, self.inner
        assert inner is not None
        return replace(
            inner,
            dual_coef=inner.dual_coef / scale,
            linear=inner.linear / scale,
            slope=inner.slope / scale,
            lower_bound=inner.lower_bound / scale,
            upper_bound=inner.upper_bound / scale,
        )

    @property
    def counts(self) -> dict[str, int]:
        """Learner solves, inner iterations and Grams so far."""
        return self.oracle.counts()

    @property
    def scale(self) -> float:
        """What the best constant prediction costs."""
        return self.oracle.constant_cost

    @property
    def remark(self) -> str:
        """Why the search came to a stop, where that is not the precision of numbers."""
        if self.inner is None:
            return ""
        P = np.asarray(cast(Search, self).parameters)
        return self.oracle.remark(self.inner, P, self.upper - self.lower)
