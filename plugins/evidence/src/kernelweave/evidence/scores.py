"""Held-out scores with their standard errors."""

from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

# The deviation of R² by the fits of the folds, times the rows, where the columns tell nothing.
# Chosen on 200 draws of two-point noise (60 rows, 3 columns; 7 % beyond two errors), 80 of normal
# noise (200 rows, 6 columns; 4 %) and 150 (40 rows, 8 columns; 3 %).
_OF_THE_FIT = 4.5


def margin_of_error(*errors: tuple[float, int], chance: float = 0.05) -> float:
    """Return how far an estimate, or a difference of independent ones, is from the truth by chance.

    The standard error times Student's quantile: the only place where standard errors of scores
    become an interval or a comparison. Of several estimates the degrees of freedom are those of
    Welch (1947), *The generalization of "Student's" problem*, Biometrika 34. Infinite where an
    error is over one part, as that tells nothing.

    Parameters
    ----------
    *errors : (float, int)
        The standard error of each estimate, and over how many rows, groups or blocks it is.
    chance : float, default=0.05
        Of being farther away, in either direction.

    Examples
    --------
    >>> from kernelweave.evidence.scores import margin_of_error
    >>> round(margin_of_error((0.1, 6)), 3), round(margin_of_error((0.03, 300), (0.04, 9)), 3)
    (0.257, 0.105)
    """
    squares, parts = np.array(errors, dtype=np.float64).T
    squares **= 2
    if parts.min() < 2.0:
        return np.inf
    if not (total := squares.sum()):
        return 0.0
    freedom = total**2 / np.sum(squares**2 / (parts - 1.0))
    return float(stdtrit(freedom, 1.0 - chance / 2.0) * np.sqrt(total))


def r2_with_error(y: FloatArray, predicted: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Return R², averaged over outputs, and its standard error.

    The error is that of a ratio of two means: of squared residuals and of squared deviations, over
    draws of the rows. That fits without other rows would differ is not in it, and no jackknife over
    the rows shows it (Bengio and Grandvalet 2004).

    `y`, `predicted` of shape (n, n_outputs); `weight` of shape (n,).
    """
    lost, error = ratio_with_error(*squared_losses(y, predicted, weight), weight)
    return 1.0 - lost, error


def mean_with_error(values: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Return the weighted mean of values of shape (n,) and its standard error over the rows."""
    share = weight / weight.sum()
    mean = float(share @ values)
    return mean, float(np.sqrt(np.sum((share * (values - mean)) ** 2)))


def judge_numbers(
    held_out: FloatArray, targets: FloatArray, mass: FloatArray
) -> tuple[float, float]:
    """Return R² of rows held out and its standard error; NaN where none were, or all are alike.

    Rows of a fold share what is wrong with the fit that predicts them, if only its mean: where the
    columns tell nothing, that is all the error, and of the order 1/n. It is added to the error over
    draws of the rows.

    `held_out` of shape (n, n_outputs): NaN where a row was not held out; `targets` of shape
    (n_outputs, n).
    """
    seen = ~np.isnan(held_out[:, 0])
    if not seen.any() or not np.ptp(targets[:, seen], axis=1).all():
        return np.nan, np.nan
    score, error = r2_with_error(targets.T[seen], held_out[seen], mass[seen])
    share = mass[seen] / mass[seen].sum()
    return score, float(np.hypot(error, _OF_THE_FIT * (1.0 - score) * np.sum(share**2)))


def squared_losses(
    y: FloatArray, predicted: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return squared residuals and squared deviations from the mean, in one unit."""
    share = (weight / weight.sum())[:, None]
    # squares of small targets would underflow
    size = np.abs(y).max(axis=0)
    size = np.where(size > 0.0, size, 1.0)
    y, predicted = y / size, predicted / size
    return (y - predicted) ** 2, (y - (share * y).sum(axis=0)) ** 2


def ratio_with_error(
    losses: FloatArray, units: FloatArray, weight: FloatArray
) -> tuple[float, float]:
    """Return the ratio of two means, averaged over outputs, and its standard error."""
    share = (weight / weight.sum())[:, None]
    total = (share * units).sum(axis=0)
    ratio = (share * losses).sum(axis=0) / total
    influence = ((losses - ratio * units) / total).mean(axis=1)
    return float(ratio.mean()), float(np.sqrt(np.sum((share[:, 0] * influence) ** 2)))


def share_with_error(
    losses: FloatArray, units: FloatArray, weight: FloatArray
) -> tuple[float, float]:
    """Return a share, as the ratio of two means, and its standard error over the rows.

    Where it is the same of every row, the error is half the bound of the rule of three.

    `losses`, `units` of shape (n, 1).
    """
    share, error = ratio_with_error(losses, units, weight)
    if is_alike(losses, units, share):
        error = error_of_alike(weight * units[:, 0])
    return share, error


def is_alike(losses: FloatArray, units: FloatArray, ratio: float) -> bool:
    """Whether the losses of all rows are the same share of their units, rounding aside."""
    return not (np.abs(losses - ratio * units) > 1e-12 * units.max()).any()


def error_of_alike(masses: ArrayLike) -> float:
    """Return half the bound of the rule of three, of a share that is the same of all rows.

    What n rows never show is rarer than 3 / n, in 95 of 100 samples: two errors.

    `masses` of shape (n,): what each row, or group, counts for in the share.
    """
    mass = np.asarray(masses, dtype=np.float64)
    return float(1.5 * np.sum((mass / mass.sum()) ** 2))


def grouped_ratio(
    losses: FloatArray,
    units: FloatArray,
    weight: FloatArray,
    groups: Index,
    *,
    is_share: bool = False,
) -> tuple[float, float]:
    """Return 1 less the ratio of two means, and its standard error over draws of whole groups.

    `losses`, `units` of shape (n, n_outputs); `groups` of shape (n,): from 0; `is_share`: whether
    the ratio is a share of right answers, or of pairs in the right order. Where a share is the same
    of all rows, the error is half the bound of the rule of three. NaN where all units are zero.
    """
    share = (weight / weight.sum())[:, None]
    if not units.any():
        return np.nan, np.nan
    total = (share * units).sum(axis=0)
    total = np.where(total > 0.0, total, 1.0)
    ratio = (share * losses).sum(axis=0) / total
    if is_share and is_alike(losses, units, float(ratio[0])):
        masses = np.bincount(groups, weights=(share * units)[:, 0])
        error = error_of_alike(masses) if len(masses) > 1 else np.nan
        return float(1.0 - ratio[0]), error
    influence = (share * (losses - ratio * units) / total).mean(axis=1)
    return float(1.0 - ratio.mean()), error_over_groups(influence, groups)


def error_over_groups(influence: FloatArray, groups: Index) -> float:
    """Return the standard error over draws of whole groups; NaN of one group, which tells none.

    `influence` of shape (n,): what each row adds to the deviation, its share included; `groups` of
    shape (n,): from 0.
    """
    sums = np.bincount(groups, weights=influence)
    n = len(np.unique(groups))
    spread = n / (n - 1) if n > 1 else np.nan
    return float(np.sqrt(spread * np.sum(sums**2)))


def accuracy_with_error(right: NDArray[np.bool_], weight: FloatArray) -> tuple[float, float]:
    """Return the share of right answers and its standard error.

    Where all are right, or wrong, the error is half the bound of the rule of three.
    """
    share = weight / weight.sum()
    if right.all() or not right.any():
        return float(right[0]), error_of_alike(share)
    # shares sum to one but for rounding
    rate = min(float(share @ right), 1.0)
    return rate, float(np.sqrt(rate * (1.0 - rate) * np.sum(share**2)))
