"""Intervals for the mean of paired differences, over data sets and over folds."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


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
