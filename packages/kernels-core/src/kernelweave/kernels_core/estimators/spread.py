"""Targets in units of their spread, so that C and ε mean the same for prices and for fractions."""

from __future__ import annotations

from ..arrays import FloatArray
from ..checks import NONNEGATIVE, one_of
from ..formula.problem import Problem
from ..kernels.scaled import Scaling
from ..parameters import parameter
from ..result import Result
from .machine import KernelMachineRegressor
from .samples import Samples, spread_of


class SpreadMachine(KernelMachineRegressor):
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
