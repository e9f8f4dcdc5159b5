"""Intervals for the mean of paired differences, and what prediction intervals hold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import pandas as pd

# rows of a slab at least: of fewer, chance says more than the intervals
_FEWEST = 20


class MeanInterval(NamedTuple):
    """A mean and both ends of its interval."""

    mean: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 or −1 where zero lies outside, else 0."""
        return int(self.low > 0.0) - int(self.high < 0.0)


def corrected_resampled(
    differences: ArrayLike, test_share: float, level: float = 0.95
) -> MeanInterval:
    """Return d̄ ± t·s·√(1/k + ρ): the mean of k differences on overlapping training parts.

    The folds of a cross-validation share training samples, so that the variance of the mean is
    more than s²/k; ρ = n_test / n_train accounts for it (Nadeau and Bengio, *Inference for the
    generalization error*, Machine Learning 52, 2003, Section 3).

    Examples
    --------
    >>> from kernelweave.workbench.scoring import corrected_resampled
    >>> found = corrected_resampled([1.0, 2.0, 3.0, 2.0, 2.0], 0.25)
    >>> round(found.mean, 3), round(found.low, 3), round(found.high, 3)
    (2.0, 0.683, 3.317)
    """
    if not test_share > 0.0:
        raise ValueError(f"test_share must be n_test / n_train > 0, got {test_share!r}")
    return _around(differences, test_share, level)


def of_independent(values: ArrayLike, level: float = 0.95) -> MeanInterval:
    """Return Student's interval for the mean of independent values, one a data set.

    Examples
    --------
    >>> from kernelweave.workbench.scoring import of_independent
    >>> round(of_independent([1.0, 2.0, 3.0]).high, 3)
    4.484
    """
    return _around(values, 0.0, level)


def _around(values: ArrayLike, share: float, level: float) -> MeanInterval:
    from scipy.stats import t

    d = np.asarray(values, dtype=np.float64)
    if d.ndim != 1 or len(d) < 2:
        raise ValueError(f"an interval needs two or more numbers, got shape {d.shape}")
    mean, k = float(d.mean()), len(d)
    half = float(t.ppf(0.5 + level / 2.0, k - 1)) * math.sqrt(
        (1 / k + share) * float(d.var(ddof=1))
    )
    return MeanInterval(mean, mean - half, mean + half)


@dataclass(frozen=True)
class Coverage:
    """What share of the targets prediction intervals hold, and where they hold least.

    - `level`: what was asked for
    - `share`: of all rows
    - `worst`, `n_rows`, `where`: share, number and name of the rows where it is smallest, over
      quarters of the prediction and of each column of numbers, and over categories; NaN, 0 and
      empty where all have too few rows
    - `chance`: the worst share that there would be if each held `level`, in the median
    """

    level: float
    share: float
    worst: float
    n_rows: int
    where: str
    chance: float

    @classmethod
    def of(
        cls, level: float, inside: NDArray[np.bool_], predicted: ArrayLike, X: pd.DataFrame
    ) -> Coverage:
        """Return the coverage of rows of a table.

        `inside`, `predicted` of shape (n_rows,); `X` of shape (n_rows, n_columns).
        """
        from scipy.stats import binom

        slabs = list(_slabs(np.asarray(predicted), X))
        share = float(inside.mean())
        if not slabs:
            return cls(level, share, math.nan, 0, "", math.nan)
        worst, rows, where = min(
            ((float(inside[rows].mean()), rows, where) for where, rows in slabs),
            key=lambda slab: slab[0],
        )
        # the median of the least of independent shares, of slabs of about this size
        n_rows = int(np.count_nonzero(rows))
        chance = binom.ppf(1.0 - 0.5 ** (1.0 / len(slabs)), n_rows, level) / n_rows
        return cls(level, share, worst, n_rows, where, float(chance))

    @property
    def told(self) -> str:
        """The lowest coverage in words, empty where there is none."""
        if not self.where:
            return ""
        return (
            f"{self.worst:.1%} of {self.n_rows} rows with {self.where} "
            f"({self.chance:.0%} expected by chance)"
        )


def _slabs(
    predicted: NDArray[np.float64], X: pd.DataFrame
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield names and rows of quarters of numbers and of categories, if they have rows enough."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    named = [("a prediction", predicted)]
    named += [(str(name), X[name].to_numpy()) for name in X.columns]
    for name, values in named:
        numbers = is_numeric_dtype(values) and not is_bool_dtype(values)
        if numbers and len(np.unique(values[~np.isnan(values)])) > 4:
            cuts = np.unique(np.nanquantile(values, (0.25, 0.5, 0.75)))
            ends = [-math.inf, *cuts, math.inf]
            found = [
                (_between(name, low, high), (low < values) & (values <= high))
                for low, high in pairwise(ends)
            ]
        else:
            labels = np.array([str(each) for each in values])
            found = [(f"{name} {label}", labels == label) for label in np.unique(labels)]
        yield from ((where, rows) for where, rows in found if rows.sum() >= _FEWEST)


def _between(name: str, low: float, high: float) -> str:
    if math.isinf(low):
        return f"{name} up to {high:.4g}"
    return f"{name} above {low:.4g}" + ("" if math.isinf(high) else f" up to {high:.4g}")
