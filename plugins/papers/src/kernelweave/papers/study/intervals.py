"""Intervals for the mean of paired differences."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Interval(NamedTuple):
    """A mean and both ends of its interval."""

    mean: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 or −1 where zero lies outside, else 0."""
        return int(self.low > 0.0) - int(self.high < 0.0)


def corrected_resampled(differences: ArrayLike, test_share: float, level: float = 0.95) -> Interval:
    """Return d̄ ± t·s·√(1/k + ρ): the mean of k differences on overlapping training parts.

    The folds of a cross-validation share training samples, so that the variance of the mean is
    more than s²/k; ρ = n_test / n_train accounts for it.

    Parameters
    ----------
    differences : array-like of shape (k,)
        One a split, k ≥ 2, float64.
    test_share : float
        ρ > 0, such as 1/4 for five folds.
    level : float
        Of the interval.

    Returns
    -------
    Interval

    Raises
    ------
    ValueError
        If there are fewer than two differences, or ρ is not positive.

    References
    ----------
    Nadeau and Bengio, *Inference for the generalization error*, Machine Learning 52, 2003,
    Section 3.

    Examples
    --------
    >>> found = corrected_resampled([1.0, 2.0, 3.0, 2.0, 2.0], 0.25)
    >>> round(found.mean, 3), round(found.low, 3), round(found.high, 3)
    (2.0, 0.683, 3.317)
    """
    if not test_share > 0.0:
        raise ValueError(f"test_share must be n_test / n_train > 0, got {test_share!r}")
    d = np.asarray(differences, dtype=np.float64)
    if d.ndim != 1 or len(d) < 2:
        raise ValueError(f"differences must be two or more numbers, got shape {d.shape}")
    return _around(d, 1.0 / len(d) + test_share, level)


def of_independent(values: ArrayLike, level: float = 0.95) -> Interval:
    """Return Student's interval for the mean of independent values, one a data set.

    Parameters
    ----------
    values : array-like of shape (k,)
        Two or more, float64.
    level : float
        Of the interval.

    Returns
    -------
    Interval

    Examples
    --------
    >>> round(of_independent([1.0, 2.0, 3.0]).high, 3)
    4.484
    """
    d = np.asarray(values, dtype=np.float64)
    if d.ndim != 1 or len(d) < 2:
        raise ValueError(f"values must be two or more numbers, got shape {d.shape}")
    return _around(d, 1.0 / len(d), level)


def _around(
    d: np.ndarray[tuple[int, ...], np.dtype[np.float64]], share: float, level: float
) -> Interval:
    from scipy.stats import t

    mean = float(d.mean())
    half = float(t.ppf(0.5 + level / 2.0, len(d) - 1)) * math.sqrt(share * float(d.var(ddof=1)))
    return Interval(mean, mean - half, mean + half)
