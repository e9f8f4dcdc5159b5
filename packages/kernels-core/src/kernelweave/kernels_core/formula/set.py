"""The set Θ of kernel weights: what an algorithm may ask of it, and the bound it gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy.typing as npt

from ..arrays import FloatArray
from ..rounding import UNIT
from .learner import Solution

# Golden sections: 40 leave 4e-9 of the interval. Any point met is a bound, so more only sharpen it.
_STEPS = 40
_GOLDEN = 0.5 * (5.0**0.5 - 1.0)


@runtime_checkable
class WeightSet(Protocol):
    """A set of weights θ ≥ 0, one for each kernel, with what it charges for them.

    These members are all that a proof needs. A set may offer more, and algorithms say what they
    need of it: ``project``, ``total``, ``weights``, ``k0``, ….
    """

    @property
    def name(self) -> str:
        """Lower-case words joined by hyphens."""

    def validate(self, n_kernels: int | None = None) -> None:
        """Raise ValueError if a parameter is out of range, or does not fit the kernels."""

    def start(self, n_kernels: int) -> FloatArray:
        """Return weights to start from, of shape (q,)."""

    def penalty(self, weights: npt.ArrayLike) -> float:
        """Return what the objective charges for weights; 0 where nothing."""

    def worst(self, forms: FloatArray) -> float:
        """Return max over θ of formsᵀθ − penalty(θ), rounded up, for forms ≥ 0 of shape (q,)."""


def lower_bound(solution: Solution, constraint: WeightSet, forms: FloatArray) -> float:
    """Return a proved lower bound of the optimum over a set, from any feasible u.

    The largest s·linear − ½s²·quadratic − worst(½s²·forms) found over feasible multiples su. In s
    it is concave.

    Parameters
    ----------
    solution : Solution
        Of a learner at any kernel, with the feasible u.
    constraint : WeightSet
        The set Θ.
    forms : ndarray of shape (q,)
        Σₜ uₜᵀKⱼuₜ for each kernel, at least 0 and rounded up.

    Returns
    -------
    float
        Rounded down, and at least that of u = 0, the least penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.formula import Solution, lower_bound
    >>> class Simplex:
    ...     name = "simplex"
    ...     def worst(self, forms):
    ...         return float(forms.max())
    >>> u = np.zeros((1, 2))
    >>> at = Solution(dual_coef=u, intercept=u[0, :1], lower_bound=0.0, upper_bound=9.0,
    ...               function_values=u, slope=u, linear=3.0)
    >>> round(lower_bound(at, Simplex(), np.array([1.0, 2.0])), 9)
    2.0
    """

    def value(s: float) -> float:
        half = 0.5 * s * s
        linear, rest = s * solution.linear, half * solution.quadratic
        charge = constraint.worst(half * forms * (1.0 + 4.0 * UNIT))
        return linear - rest - charge - 8.0 * UNIT * (abs(linear) + rest + abs(charge))

    nothing = value(0.0)
    if not solution.linear > 0.0:
        return nothing
    full = min(1.0, solution.longest)
    half = 0.5 * full * full
    cost = max(constraint.worst(half * forms), 0.0) / half
    s = min(solution.longest, _quotient(solution.linear, solution.quadratic + cost, full))
    best = max(nothing, value(full), value(s))
    charge = constraint.worst(0.5 * s * s * forms)
    if abs(charge - 0.5 * s * s * cost) <= 1e-9 * abs(charge):
        return best
    return max(best, _highest(value, min(2.0 * s, solution.longest)))


def _quotient(linear: float, bottom: float, fallback: float) -> float:
    """Return linear/bottom, the best multiple where the charge is quadratic in it."""
    s = linear / bottom if bottom > 0.0 else fallback
    return s if 0.0 < s < 1e100 else fallback


def _highest(value: Callable[[float], float], longest: float) -> float:
    """Return the highest value that a golden section search from 0 to ``longest`` meets."""
    low, high = 0.0, longest
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = value(left), value(right)
    best = max(at_left, at_right)
    for _ in range(_STEPS):
        if at_left >= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = value(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = value(right)
        best = max(best, at_left, at_right)
    return best
