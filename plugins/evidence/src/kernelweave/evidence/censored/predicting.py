"""What predictors of targets known by half share: a centre, a width and a shape of residuals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray

from ..mixture import Expansion
from .residuals import LOGARITHM, ResidualDistribution


@dataclass(frozen=True)
class ByResiduals(ABC):
    """Predictions around a centre, by the distribution of residuals of rows held out.

    - `distribution`: of residuals, in deviations
    - `held_out_spread` of shape (2, n_rows): of rows held out, the deviation of the posterior mean
      and that of a new observation; 0 of other rows
    - `log`: whether targets are logarithms
    """

    distribution: ResidualDistribution = field(kw_only=True)
    held_out_spread: FloatArray = field(kw_only=True)
    log: bool = field(kw_only=True)

    @abstractmethod
    def moments(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return centres, their deviations and those of new observations, as learned, (3, n)."""

    def to_medians(self, expansion: Expansion) -> Expansion:
        """Return an expansion of centres as one of medians."""
        warps = (LOGARITHM,) if self.log else ()
        return replace(expansion, target=replace(expansion.target, warps=warps), width=0.0)

    def deviation(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return the standard deviation of a new observation, shape (n, 1)."""
        return np.asarray(self.moments(numeric, codes)[2][:, None] * self.distribution.scale)

    def interval(
        self, numeric: FloatArray, codes: NDArray[np.int64], confidence: float
    ) -> FloatArray:
        """Return ends that leave as much on either side, shape (2, n, 1)."""
        return self._at(self.distribution.ends(confidence), numeric, codes)

    def members(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return quantiles of new targets, ascending, shape (n_quantiles, n, 1)."""
        return self._at(self.distribution.quantiles, numeric, codes)

    def fold_scores(self) -> list[FloatArray]:
        """Return nothing: a residual that is known by half is no score."""
        return []

    def _at(
        self, quantiles: FloatArray, numeric: FloatArray, codes: NDArray[np.int64]
    ) -> FloatArray:
        centre, _, deviation = self.moments(numeric, codes)
        return np.asarray((centre + quantiles[:, None] * deviation)[..., None])
