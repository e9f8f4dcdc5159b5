"""Targets in units of their spread, so that C and ε mean the same for prices and for fractions."""

from __future__ import annotations

import numpy as np

from ..arrays import FloatArray
from ..checks import NONNEGATIVE, one_of
from ..formula.problem import Problem
from ..kernels.scaled import Scaling
from ..parameters import parameter
from ..result import Result
from .machine import KernelMachineRegressor
from .samples import Samples


def spread_of(y: FloatArray, weight: FloatArray | None) -> float:
    """Return the standard deviation of targets of shape (n_samples,), 1 where they do not vary."""
    mass = np.ones(len(y)) if weight is None else weight
    # a weight of 2 and the sample twice have the same bits, and a weight of 0 has none
    y, place = np.unique(y[mass > 0], return_inverse=True)
    share = np.bincount(place, weights=mass[mass > 0])
    # a square may overflow where the target does not
    if not len(y):
        # weights that are all 0 are refused where they are checked
        return 1.0
    unit = float(np.abs(y).max()) or 1.0
    off = y / unit - np.average(y / unit, weights=share)
    spread = unit * float(np.sqrt(np.average(off * off, weights=share)))
    return spread if 0.0 < spread < np.inf else 1.0


class SpreadRegressor(KernelMachineRegressor):
    """Base of support vector regressors that learn targets in units of their spread."""

    epsilon: float = parameter(
        "Half-width of the tube without loss, in the unit that ``units`` says.",
        default=0.1,
        rule=NONNEGATIVE,
    )
    units: str = parameter(
        'The unit in which y is learned: ``"scale"`` is its standard deviation, so that ``C``, '
        "``epsilon`` and the bounds mean the same for prices and for fractions; "
        '``"absolute"`` takes y as it is.',
        default="scale",
        rule=one_of("scale", "absolute"),
    )

    def _unit_of(self, targets: FloatArray, weight: FloatArray) -> float:
        """Return what is 1 in the problem, for targets of shape (1, n_samples)."""
        return 1.0 if self.units == "absolute" else spread_of(targets[0], weight)

    def _learned(self, targets: FloatArray, weight: FloatArray) -> FloatArray:
        self._unit = self._unit_of(targets, weight)
        return targets / self._unit

    def _store(
        self, problem: Problem, result: Result, samples: Samples, scaling: Scaling | None
    ) -> None:
        super()._store(problem, result, samples, scaling)
        self._coef = self._coef * self._unit
        self.dual_coef_ = self.dual_coef_ * self._unit
        self.intercept_ = self.intercept_ * self._unit
