"""Training rows: numbers, codes of levels, targets, weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """Training rows as numbers and codes.

    Attributes
    ----------
    numeric : ndarray of shape (n, p)
    codes : ndarray of shape (n, q)
    targets : ndarray of shape (n_outputs, n)
    weight : ndarray of shape (n,) or None
        ``None`` where all are one.
    """

    numeric: FloatArray
    codes: NDArray[np.int64]
    targets: FloatArray
    weight: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.numeric)

    @property
    def mass(self) -> FloatArray:
        """The weights, ones where there are none."""
        return np.ones(len(self)) if self.weight is None else self.weight

    def take(self, rows: NDArray[np.intp]) -> Rows:
        """Return some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        return Rows(self.numeric[rows], self.codes[rows], self.targets[:, rows], weight)


@dataclass(frozen=True)
class Standardised:
    """Targets in units of their own spread, one row an output.

    Attributes
    ----------
    values : ndarray of shape (n_outputs, n)
    centre, spread, low, high : ndarray of shape (n_outputs,)
        Predictions are cut at ``low`` and ``high``: the range and 0.3 standard deviations.
    """

    values: FloatArray
    centre: FloatArray
    spread: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, rows: Rows) -> Standardised:
        """Centre and scale the targets of training rows."""
        targets = rows.targets
        share = np.ones(len(rows)) if rows.weight is None else rows.weight
        share = share / share.sum()
        centre = targets @ share
        rest = targets - centre[:, None]
        size = np.abs(rest).max(axis=1)
        size[size == 0] = 1.0
        spread = size * np.sqrt((rest / size[:, None]) ** 2 @ share)
        # a fold may hold one value only
        spread[spread == 0] = 1.0
        low, high = targets.min(axis=1) - 0.3 * spread, targets.max(axis=1) + 0.3 * spread
        return cls(rest / spread[:, None], centre, spread, low, high)
