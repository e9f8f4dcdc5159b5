"""Scores of predictions with their errors, the lead of one over another, and intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from kernelweave.evidence.censored.concordance import losses
from kernelweave.evidence.scores import error_of_alike, error_over_groups, margin_of_error
from kernelweave.kernels_core.arrays import FloatArray, Index, Labels
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import pandas as pd

# More digits are rounding of the scores themselves.
_MOST_DIGITS = 6
FEWEST_PARTS = 5
# rows whose pairs tell how far their concordance is from that of others: of ten rows the intervals
# missed it in 8 of 100 draws, or held nearly all that it can be
FEWEST_OF_PAIRS = 20
CONCORDANCE = (
    "the share of pairs of rows predicted in the right order, of the pairs whose order is known; "
    "0.5 by chance"
)
# rows of a slab at least: of fewer, chance says more than the intervals
_FEWEST = 20


class Score(NamedTuple):
    """A score, of R², accuracy or concordance, and its standard error over the rows."""

    value: float
    error: float

    def __str__(self) -> str:
        return self.formatted()

    def formatted(self, digits: int = 4, sign: str = "") -> str:
        """Return value ± error, with as many more digits as a small error needs.

        The value alone where the error is not known. A `sign` of "+" writes that of positive
        values too.

        Examples
        --------
        >>> Score(0.98765, 0.012).formatted(), Score(0.999912, 0.00002).formatted(sign="+")
        ('0.9877 ± 0.0120', '+0.99991 ± 0.00002')
        """
        digits = self._digits(digits)
        # z: no "-0.0000"
        value = f"{self.value:{sign}z.{digits}f}"
        return value if math.isnan(self.error) else f"{value} ± {self.error:.{digits}f}"

    def interval(
        self, n_parts: int, *, held_out: float = 0.0, best: float = 1.0, least: float = -math.inf,
        is_share: bool = False,
    ) -> tuple[float, float]:  # fmt: skip
        """Return both ends of a 95 % interval of the score on new rows.

        Student's, as the error is known from parts alone; of cross-validation with the variance
        1 + n_test / n_train times as large, as fits on other rows differ (Nadeau and Bengio 2003).
        The distance to the best score is positive, so that the lower end is that of its logarithm;
        a share has Wilson's interval (1927), which is not empty where all answers are right.

        - `n_parts`: rows, or groups of them, that the error is over; of less than five, all that
          the score can be is returned, as they do not tell their error
        - `held_out`: n_test / n_train, all folds together; 0 of rows that no fold is made of
        - `best`, `least`: that the score can be; `is_share`: whether it is a share of the rows

        Examples
        --------
        >>> low, high = Score(0.98765, 0.012).interval(50)
        >>> round(low, 3), high
        (0.913, 1.0)
        >>> low, high = Score(0.9, 0.03).interval(100, held_out=1.25, is_share=True)
        >>> round(low, 3), round(high, 3)
        (0.776, 0.959)
        """
        value, error, away = self.value, self.error, best - self.value
        if n_parts < FEWEST_PARTS:
            return least, best
        steps = margin_of_error((1.0, n_parts)) * math.sqrt(1.0 + held_out)
        if is_share:
            # where all are right, or wrong, the error is 1.5 / n; parts that agree tell none
            n = float(n_parts)
            if error > 0.0:
                n = value * (1.0 - value) / error**2 if 0.0 < value < 1.0 else 1.5 / error
            middle = (value + 0.5 * steps**2 / n) / (1.0 + steps**2 / n)
            half = math.sqrt(value * (1.0 - value) / n + 0.25 * steps**2 / n**2)
            half *= steps / (1.0 + steps**2 / n)
            # rounding aside, of no wrong answer the upper end is 1
            return max(middle - half, 0.0), 1.0 if value == 1.0 else min(middle + half, 1.0)
        low = value - steps * error
        if 0.0 < error <= away < math.inf:
            low = best - away * math.exp(steps * error / away)
        return max(low, least), min(value + steps * error, best)

    def with_interval(self, low: float, high: float) -> str:
        """Return the value and an interval in words.

        Examples
        --------
        >>> Score(0.98765, 0.012).with_interval(0.957, 1.0)
        '0.988 (95 % interval 0.957 to 1.000)'
        """
        digits = self._digits(3)
        if low == -math.inf:
            return f"{self.value:z.{digits}f} (too few rows or groups for an interval)"
        spanned = f"95 % interval {low:z.{digits}f} to {high:z.{digits}f}"
        return f"{self.value:z.{digits}f} ({spanned})"

    def _digits(self, digits: int) -> int:
        if 10.0**-_MOST_DIGITS <= self.error < 10.0**-digits:
            return math.ceil(-math.log10(self.error))
        return digits


def measure_name(task: str, *, weighted: bool = False, half_known: bool = False) -> str:
    """Return what `score` measures.

    `task`: what is learned; `weighted`: whether classes have weights; `half_known`: whether some
    targets are known by half.
    """
    if half_known:
        return "concordance"
    if task == "regression":
        return "R²"
    return "class-weighted accuracy" if weighted else "accuracy"


def score(
    truth: Labels, predicted: Labels, weight: FloatArray, task: str, groups: Index | None = None
) -> Score:
    """Return R² or accuracy and its standard error, rows of one group being drawn together.

    Of a `truth` of shape (n_rows, 2), the ends of targets known by half, it is the concordance: the
    share of pairs in the right order, of those whose order is known; NaN where no order is known.
    The error is that of a mean, or of a ratio of two means; where every answer or pair is right, or
    wrong, half the bound of the rule of three.

    Examples
    --------
    >>> import numpy as np
    >>> print(score(np.array([1, 0, 1, 1]), np.array([1, 0, 1, 0]), np.ones(4), "classification"))
    0.7500 ± 0.2165
    """
    value, influence, masses = _with_influence(truth, predicted, weight, task)
    return Score(value, _standard_error(influence, weight, masses, groups))


def lead(
    truth: Labels,
    ours: Labels,
    other: Labels,
    weight: FloatArray,
    task: str,
    groups: Index | None = None,
) -> Score:
    """Return how much better one prediction is than another of the same rows, with its error.

    Positive where ``ours`` is better. The error is that of the paired difference, which is mostly
    smaller than that of either score.
    """
    first, one, masses = _with_influence(truth, ours, weight, task)
    second, two, _ = _with_influence(truth, other, weight, task)
    return Score(first - second, _standard_error(one - two, weight, masses, groups))


def _with_influence(
    truth: npt.NDArray[Any], predicted: npt.NDArray[Any], weight: FloatArray, task: str
) -> tuple[float, FloatArray, FloatArray | None]:
    """Return a score, what each row adds to its deviation from the expected one, and its mass.

    The mass is what a row counts for in a share of rows, or of pairs; ``None`` of R².
    """
    share = weight / weight.sum()
    if truth.ndim == 2:
        return _concordance(truth, predicted, weight)
    if task == "classification":
        right = np.asarray(truth == predicted, dtype=np.float64)
        # of whole weights the last digit too is that of a count
        value = float(weight @ right / weight.sum())
        return value, right - value, weight
    # squares of small targets would underflow
    size = np.abs(truth).max() or 1.0
    y, guess = truth / size, predicted / size
    spreads, squares = (y - share @ y) ** 2, (y - guess) ** 2
    total = float(share @ spreads)
    if total == 0.0:
        return float("nan"), np.full(len(y), np.nan), None
    lost = float(share @ squares) / total
    return 1.0 - lost, -(squares - lost * spreads) / total, None


def _concordance(
    ends: FloatArray, predicted: FloatArray, weight: FloatArray
) -> tuple[float, FloatArray, FloatArray | None]:
    """Return the concordance with targets known by half, as `_with_influence` does.

    `ends` of shape (n_rows, 2). NaN, and no mass, where the order of no pair is known.
    """
    share = weight / weight.sum()
    lost, pairs = (each[:, 0] for each in losses(ends.T, predicted, weight))
    n_pairs = float(share @ pairs)
    if n_pairs == 0.0:
        return float("nan"), np.full(len(ends), np.nan), None
    wrong = float(share @ lost) / n_pairs
    return 1.0 - wrong, -(lost - wrong * pairs) / n_pairs, weight * pairs


def _standard_error(
    influence: FloatArray, weight: FloatArray, masses: FloatArray | None, groups: Index | None
) -> float:
    terms = weight / weight.sum() * influence
    which = np.arange(len(terms)) if groups is None else groups
    alike = not (np.abs(np.bincount(which, terms)) > 1e-12).any()
    if masses is not None and alike and (groups is None or np.ptp(groups)):
        return error_of_alike(np.bincount(which, masses))
    return float(np.sqrt(terms @ terms)) if groups is None else error_over_groups(terms, groups)


class MeanInterval(NamedTuple):
    """A mean and both ends of its interval."""

    mean: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 or −1 where zero lies outside, else 0."""
        return int(self.low > 0.0) - int(self.high < 0.0)


def mean_interval(values: ArrayLike, test_share: float = 0.0) -> MeanInterval:
    """Return d̄ ± t·s·√(1/k + ρ): Student's 95 % interval of the mean of k values.

    Of independent ones ρ = 0. The folds of a cross-validation share training samples, so that the
    variance of the mean is more than s²/k; ρ = n_test / n_train accounts for it (Nadeau and Bengio,
    *Inference for the generalization error*, Machine Learning 52, 2003, Section 3).

    Examples
    --------
    >>> from kernelweave.workbench.scoring.scores import mean_interval
    >>> found = mean_interval([1.0, 2.0, 3.0, 2.0, 2.0], 0.25)
    >>> round(found.mean, 3), round(found.low, 3), round(found.high, 3)
    (2.0, 0.683, 3.317)
    """
    d = np.asarray(values, dtype=np.float64)
    if d.ndim != 1 or len(d) < 2:
        raise ValueError(f"an interval needs two or more numbers, got shape {d.shape}")
    mean, k = float(d.mean()), len(d)
    half = margin_of_error((math.sqrt((1 / k + test_share) * float(d.var(ddof=1))), k))
    return MeanInterval(mean, mean - half, mean + half)


@dataclass(frozen=True)
class Coverage:
    """What share of the targets intervals, or sets of classes, hold, and where they hold least.

    - `level`: what was asked for
    - `share`: of all rows
    - `worst`, `n_rows`, `where`: share, number and name of the rows where it is smallest, over
      quarters of the prediction and of each column of numbers, and over categories and predicted
      classes; NaN, 0 and empty where all have too few rows
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
        """Return the coverage of rows of a table, some of which are ``inside``."""
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
    def lowest(self) -> str:
        """The lowest coverage in words, empty where all parts have too few rows."""
        if not self.where:
            return ""
        return (
            f"{self.worst:.1%} of {self.n_rows} rows with {self.where} "
            f"(about {self.chance:.0%} by chance alone)"
        )


def _slabs(predicted: NDArray[Any], X: pd.DataFrame) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield names and rows of quarters of numbers and of categories, if they have rows enough."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    named = [("a prediction", predicted)]
    if predicted.dtype.kind != "f":
        # classes that are numbers have no quarters
        named = [("a prediction of", predicted.astype(str))]
    named += [(str(name), X[name].to_numpy()) for name in X.columns]
    for name, values in named:
        numbers = is_numeric_dtype(values) and not is_bool_dtype(values)
        if numbers and len(np.unique(values[~np.isnan(values)])) > 4:
            cuts = np.unique(np.nanquantile(values, (0.25, 0.5, 0.75)))
            ends = [-math.inf, *cuts, math.inf]
            slabs = [
                (_between(name, low, high), (low < values) & (values <= high))
                for low, high in pairwise(ends)
            ]
        else:
            labels = np.array([str(each) for each in values])
            slabs = [(f"{name} {label}", labels == label) for label in np.unique(labels)]
        yield from ((where, rows) for where, rows in slabs if rows.sum() >= _FEWEST)


def _between(name: str, low: float, high: float) -> str:
    if math.isinf(low):
        return f"{name} up to {high:.4g}"
    return f"{name} above {low:.4g}" + ("" if math.isinf(high) else f" up to {high:.4g}")
