"""Scores of predictions with their standard errors, and the lead of one over another."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import FloatArray, Index, Labels

# More digits are rounding of the scores themselves.
_MOST_DIGITS = 8


class Score(NamedTuple):
    """A score and its standard error over the rows.

    `value`, `error`: of R² or accuracy.
    """

    value: float
    error: float

    def __str__(self) -> str:
        return self.told()

    def told(self, digits: int = 4, sign: str = "") -> str:
        """Return value ± error, with as many more digits as a small error needs.

        `digits`: behind the point, at least; `sign`: ``"+"`` writes that of positive values too.

        Examples
        --------
        >>> Score(0.98765, 0.012).told(), Score(0.999912, 0.00002).told(sign="+")
        ('0.9877 ± 0.0120', '+0.99991 ± 0.00002')
        """
        digits = self._digits(digits)
        # z: no "-0.0000"
        return f"{self.value:{sign}z.{digits}f} ± {self.error:.{digits}f}"

    def interval(self, digits: int = 3, least: float = -math.inf) -> str:
        """Return the value and its interval of two errors, no better than 1.

        `digits`: behind the point, at least; `least`: that the score can be.

        Examples
        --------
        >>> Score(0.98765, 0.012).interval()
        '0.988 (95 % interval 0.964 to 1.000)'
        """
        digits = self._digits(digits)
        low, high = max(self.value - 2.0 * self.error, least), min(self.value + 2.0 * self.error, 1)
        told = f"95 % interval {low:z.{digits}f} to {high:z.{digits}f}"
        return f"{self.value:z.{digits}f} ({told})"

    def _digits(self, digits: int) -> int:
        if 0.0 < self.error < 10.0**-digits:
            return min(_MOST_DIGITS, math.ceil(-math.log10(self.error)))
        return digits


def measure_name(task: str, *, weighted: bool = False) -> str:
    """Return what `score` measures.

    `task`: ``"classification"`` or ``"regression"``; `weighted`: whether classes have weights.
    """
    if task == "regression":
        return "R²"
    return "class-weighted accuracy" if weighted else "accuracy"


def score(
    truth: Labels, predicted: Labels, weight: FloatArray, task: str, groups: Index | None = None
) -> Score:
    """Return R² or accuracy and its standard error.

    - `truth`, `predicted` of shape (n,): numbers or labels
    - `weight` of shape (n,): of each row
    - `task`: ``"classification"`` or ``"regression"``
    - `groups` of shape (n,): rows of one number are drawn together

    The error is that of a mean, or of a ratio of two means; where every answer is right, or wrong,
    half the bound of the rule of three.

    Examples
    --------
    >>> import numpy as np
    >>> print(score(np.array([1, 0, 1, 1]), np.array([1, 0, 1, 0]), np.ones(4), "classification"))
    0.7500 ± 0.2165
    """
    value, influence = _with_influence(truth, predicted, weight, task)
    return Score(value, _spread(influence, weight, task, groups))


def lead(
    truth: Labels,
    ours: Labels,
    other: Labels,
    weight: FloatArray,
    task: str,
    groups: Index | None = None,
) -> Score:
    """Return how much better one prediction is than another of the same rows, with its error.

    `truth`, `ours`, `other` of shape (n,): numbers or labels; `weight` of shape (n,): of each row;
    `task` and `groups`: as for `score`. Positive where ``ours`` is better. The error
    is that of the paired difference, which is mostly smaller than that of either score.
    """
    first, one = _with_influence(truth, ours, weight, task)
    second, two = _with_influence(truth, other, weight, task)
    return Score(first - second, _spread(one - two, weight, task, groups))


def _with_influence(
    truth: npt.NDArray[Any], predicted: npt.NDArray[Any], weight: FloatArray, task: str
) -> tuple[float, FloatArray]:
    """Return a score, and what each row adds to its deviation from the expected one."""
    share = weight / weight.sum()
    if task == "classification":
        right = np.asarray(truth == predicted, dtype=np.float64)
        # of whole weights the last digit too is that of a count
        value = float(weight @ right / weight.sum())
        return value, right - value
    # squares of small targets would underflow
    size = np.abs(truth).max() or 1.0
    y, guess = truth / size, predicted / size
    spreads, squares = (y - share @ y) ** 2, (y - guess) ** 2
    total = float(share @ spreads)
    if total == 0.0:
        return float("nan"), np.full(len(y), np.nan)
    lost = float(share @ squares) / total
    return 1.0 - lost, -(squares - lost * spreads) / total


def _spread(influence: FloatArray, weight: FloatArray, task: str, groups: Index | None) -> float:
    share = weight / weight.sum()
    if groups is not None:
        masses = np.bincount(groups, share)
        sums = np.bincount(groups, share * influence)
        share, influence = (
            masses,
            np.divide(sums, masses, out=np.zeros_like(sums), where=masses > 0),
        )
    if task == "classification" and np.ptp(influence) == 0.0:
        # what n rows never show is rarer than 3 / n, in 95 of 100 samples: two errors
        return float(1.5 * np.sum(share**2))
    return float(np.sqrt(np.sum((share * influence) ** 2)))
