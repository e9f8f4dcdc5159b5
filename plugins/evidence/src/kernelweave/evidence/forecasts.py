"""What forecasts met: later rows predicted from many moments, near ones and far ones.

Rows of one block after another share what changed since the rows before them, so that a few blocks
say little of how far later rows go. One factorisation in the order of the rows says it of every
moment: where S = LLᵀ and e = L⁻¹y, row i is predicted from the rows before row t with the residual
Σ L_ij eⱼ and the variance Σ L_ij², both over j from t to i.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

if TYPE_CHECKING:
    from .rows import Rows

# distances grow by this factor, up to a share of the time that forecasts are made in
_STEP, _FARTHEST = 2.0, 0.25
# of moments, that distances and their spans tell anything
_FEWEST = 8
# scores that are kept of all distances together
_MOST = 2000
# the last rows tell how far the model's deviations grow beyond them
_LATEST = 200
# of a distance, so that rows at it are known where times are rounded
_ROUNDING = 1e-9

# from numbers and codes to deviations of new rows, in units of the targets, (n, n_outputs)
Widths: TypeAlias = Callable[[FloatArray, NDArray[np.int64]], FloatArray]


@dataclass(frozen=True)
class LaterRows:
    """Rows after all others, predicted from these alone, and how they go together.

    - `rows` of shape (n,): which, in their order
    - `residuals` of shape (n, n_outputs + 1): of standardised targets and, last, of targets all one
    - `covariance` of shape (n, n): of these, noise included
    - `values` of shape (n_all, n_outputs), `mass` of shape (n_all,): standardised targets of all
      rows, and their weights, of which those known have the mean zero in a forecast
    - `spread` of shape (n_outputs,): of the targets in these units
    - `since` of shape (n_all,): when the group of each row began, where rows of known groups alone
      are to be told of; else ``None``
    """

    rows: Index
    residuals: FloatArray
    covariance: FloatArray
    values: FloatArray
    mass: FloatArray
    spread: FloatArray
    since: FloatArray | None = None

    @cached_property
    def _factor(self) -> tuple[FloatArray, FloatArray]:
        """L of the covariance, and the residuals of each row by the rows before it, L⁻¹r."""
        factor = cholesky(self.covariance, lower=True, check_finite=False)
        return factor, solve_triangular(factor, self.residuals, lower=True, check_finite=False)

    def forecasts(self, times: FloatArray, distance: float) -> tuple[Index, FloatArray, FloatArray]:
        """Return rows so far ahead of the last that is known, their scores and deviations.

        `times` of shape (n_all,). The deviations are in the spread of the targets.
        """
        own = times[self.rows]
        # the first row that is not known, of its moment too
        first = np.searchsorted(own, own - distance * (1.0 - _ROUNDING), side="right")
        is_told = first > 0
        if self.since is not None:
            is_told &= self.since[self.rows] <= own - distance * (1.0 - _ROUNDING)
        told = np.flatnonzero(is_told)
        first = first[told]
        factor, steps = self._factor
        unknown = np.where(np.arange(len(own)) >= first[:, None], factor[told], 0.0)
        both = unknown @ steps
        width = np.sqrt(np.einsum("ij,ij->i", unknown, unknown))[:, None]
        mass, products = self.mass[:, None], self.mass[:, None] * self.values
        weight, total = (
            each.sum(axis=0) - np.cumsum(each[self.rows][::-1], axis=0)[::-1][first]
            for each in (mass, products)
        )
        residuals = both[:, :-1] - total / weight * both[:, -1:]
        return self.rows[told], residuals / width, width * self.spread


@dataclass(frozen=True)
class Forecasts:
    """How large residuals of forecasts are, in the deviations of the model, by their distance.

    - `ahead` of shape (n_distances,): from the last row that was known, ascending
    - `sizes` of shape (n_distances, n_outputs): root mean squares of scores and a standard error,
      in the deviations of rows after all others
    - `rows` of shape (n,): of forecasts, and `scores` of shape (n, n_outputs), divided by the root
      mean squares
    - `last`: the moment of the last training row; `column`: of numbers, that has the moments; −1
      where none has
    """

    ahead: FloatArray
    sizes: FloatArray
    rows: Index
    scores: FloatArray
    last: float
    column: int

    def __call__(self, numeric: FloatArray) -> FloatArray:
        """Return what deviations of new rows are multiplied by, shape (n, n_outputs)."""
        # where nothing says when rows are, they are as far as half of the farthest
        ahead = np.full(len(numeric), self.ahead[-1] / 2.0)
        if self.column >= 0:
            moments = numeric[:, self.column]
            ahead = np.where(np.isfinite(moments), moments - self.last, ahead)
        return self.at(ahead)

    def at(self, ahead: FloatArray) -> FloatArray:
        """Return the factors at distances of shape (n,); beyond the ends those of the ends."""
        places = np.log(np.maximum(ahead, self.ahead[0]))
        columns = [np.interp(places, np.log(self.ahead), each) for each in self.sizes.T]
        return np.column_stack(columns)

    @classmethod
    def of(cls, rows: Rows, later: LaterRows, widths: Widths) -> Forecasts | None:
        """Return what forecasts met; ``None`` where moments are too few to tell.

        `widths`: of the model of all rows. Its deviations may grow less beyond the last row than
        those of forecasts did, as columns are seen by ranks, which end there.
        """
        times = rows.times
        assert times is not None
        begin, end = times[later.rows[0]], times.max()
        moments = np.unique(times[times >= begin])
        if len(moments) < _FEWEST:
            return None
        column = column_of_times(rows)
        latest = rows.take(np.argsort(times, kind="stable")[-_LATEST:])
        nearest, farthest = np.median(np.diff(moments)), _FARTHEST * (end - begin)
        n_steps = int(np.log(max(farthest / nearest, 1.0)) / np.log(_STEP))
        found = []
        for distance in nearest * _STEP ** np.arange(n_steps + 1):
            which, scores, held = later.forecasts(times, distance)
            spans = np.unique((times[which] - begin) // distance, return_inverse=True)[1]
            if spans.max(initial=0) < 1:
                continue
            met = _size(scores**2, rows.mass[which], spans)
            if column >= 0:
                latest.numeric[:, column] = end + distance
            new = widths(latest.numeric, latest.codes)
            ratio = np.sqrt(np.mean(held**2, axis=0) / np.mean(new**2, axis=0))
            found.append((distance, met, ratio, which, scores / met))
        if not found:
            return None
        ahead, sizes, ratios = (np.array([each[k] for each in found]) for k in range(3))
        which, scores = (np.concatenate([each[k] for each in found]) for k in (3, 4))
        # only how they grow, as these rows were learned from
        sizes = sizes * ratios / ratios[0]
        few = slice(None, None, -(-len(which) // _MOST))
        return cls(ahead, sizes, which[few], scores[few], float(end), column)


def column_of_times(rows: Rows) -> int:
    """Return the column of numbers that has the moments of the rows, −1 where none has."""
    same = [
        rows.times is not None and np.allclose(each, rows.times, rtol=_ROUNDING)
        for each in rows.numbers.T
    ]
    return int(np.argmax(same)) if any(same) else -1


def _size(squares: FloatArray, mass: FloatArray, spans: Index) -> FloatArray:
    """Return root mean squares and a standard error of them over spans, shape (n_outputs,)."""
    weights = np.bincount(spans, mass)
    sums = np.array([np.bincount(spans, mass * each) for each in squares.T]).T
    mean = sums.sum(axis=0) / weights.sum()
    rest = sums - weights[:, None] * mean
    n = len(weights)
    error = np.sqrt(n / (n - 1) * np.sum(rest**2, axis=0)) / weights.sum()
    return np.asarray(np.sqrt(np.maximum(mean + error, np.finfo(np.float64).tiny)))
