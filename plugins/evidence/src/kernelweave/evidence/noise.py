"""Noise that varies: how far targets lie from their predictions, learned from rows left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray
from scipy.stats import chi2

from .classes import random_folds
from .learn import Report, learn
from .path import PathPlan

if TYPE_CHECKING:
    from .exact import ExactPredictor
    from .large.landmarks import LandmarkPredictor
    from .mixture import Mixture
    from .rows import Rows, Split

# one λ, roughly: a third of the time of a path, and held-out errors no larger than by four
_PLAN = PathPlan((5.0,), tol=1e-4)
# added to squares in units of their median: logarithms of scores that are 0 by chance say little
_FLOOR = 0.3
# The slope that needs not be sure. It and the floor were chosen on 15 tables of 300 rows, two draws
# each.
_UNSURE = 0.4
# of the slope, where held-out rows judge it
_SHARES = (1.0, 0.5, 0.25, 0.0)
# of a word, whose noise may be learned: rows left out in turn tell each other's residuals
_FEWEST_ROWS = 6
# of a table of landmarks, rows that tell how noise varies at most, and their folds
_JUDGING, _FOLDS = 600, 3
# where the curve of `_log_variance` is flatter, noise would choose
_FLAT = 0.25


@dataclass(frozen=True)
class VaryingNoise:
    """Factors of the deviation of a new observation, a function of the columns.

    - `mixture`: predicts logarithms of squared scores, as `learn_noise` takes them
    - `slope`, `unit` of shape (n_outputs,): the factor is unit · σ^slope, where σ² is the variance
      that the prediction stands for; a slope is 0 where held-out scores do not follow it
    - `held_out` of shape (n_rows, n_outputs): factors of training rows, by the fold that did not
      see them; their scores divided by these have mean square 1
    """

    mixture: Mixture
    slope: FloatArray
    unit: FloatArray
    held_out: FloatArray

    def __call__(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return the factors of new rows, shape (n, n_outputs)."""
        v = self.mixture.predict(self.mixture.views.points(numeric, codes))
        return np.asarray(self.unit * np.exp(0.5 * self.slope * _log_variance(v)))


def learn_noise(
    rows: Rows,
    splits: Sequence[Split],
    scores: FloatArray,
    random_state: np.random.RandomState,
    n_jobs: int | None = None,
    judge: Callable[[FloatArray], FloatArray] | None = None,
    report: Report | None = None,
) -> tuple[VaryingNoise | None, str]:
    """Return noise that varies with the columns, by `learn` from logarithms of squared scores.

    The target is log(s² + 0.3), squares in units of their median: a bare logarithm has its variance
    from scores that are 0 by chance. Intervals follow by the slope of held-out targets on what was
    predicted of them, b − 2e²/b with the standard error e, so that they stay nearly as they are
    where noise is even.

    - `splits`: training and held-out indices, each row held out once
    - `scores` of shape (n_rows, n_outputs): residuals of rows left out, in their deviations
    - `report`: as `learn` has it
    - `judge`: of factors of rows left out, to the loss of each output; the slope is then the share
      of it, between none and all, that loses least

    Returns ``None`` where noise does not vary, or not so that held-out rows show it; and what the
    time limit left undone, empty if nothing.
    """
    squares = scores**2
    middle = np.median(squares, axis=0)
    if not len(splits) or not (middle > 0.0).all():
        # most rows are predicted exactly
        return None, ""
    targets = np.log(squares / middle + _FLOOR)
    codes = _frequent(rows.codes)
    noise_rows = replace(
        rows, codes=codes, targets=np.ascontiguousarray(targets.T), transform_targets=False,
        group=None, trust=None,
    )  # fmt: skip
    learned = learn(noise_rows, splits, _PLAN, random_state, n_jobs=n_jobs, report=report)
    v, share = learned.held_out, rows.mass[:, None] / rows.mass.sum()
    if learned.missing:
        return None, f"noise that varies: {learned.missing}"
    slope, error = _slope(v, targets, share, rows)
    if not (slope > 0.0).any():
        return None, ""
    least = np.finfo(np.float64).tiny
    shrunk = slope - 2.0 * error**2 / np.maximum(slope, least)
    slope = np.clip(shrunk, np.clip(slope, 0.0, _UNSURE), 1.0)
    if judge is not None:
        logs = 0.5 * slope * _log_variance(v)
        losses = np.array([judge(np.exp(each * logs)) for each in _SHARES])
        slope *= np.take(_SHARES, losses.argmin(axis=0))
        if not slope.any():
            return None, ""
    factors = np.exp(0.5 * slope * _log_variance(v))
    unit = np.sqrt(np.sum(share * squares / factors**2, axis=0))
    return VaryingNoise(learned.mixture, slope, unit, unit * factors), ""


def with_varying_noise(
    predictor: ExactPredictor,
    random_state: np.random.RandomState,
    n_jobs: int | None = None,
    report: Report | None = None,
) -> tuple[ExactPredictor, str]:
    """Return a predictor of all pairs with noise that varies, where each row was held out once.

    And what the time limit left undone. `report`: as `learn` has it.
    """
    held_out, rows = [fold.held_out for fold in predictor.folds], predictor.rows
    n, seen = len(rows), np.concatenate([[], *held_out]).astype(np.intp)
    if not np.array_equal(np.sort(seen), np.arange(n)):
        return predictor, ""
    scores, parts = np.empty((n, len(rows.targets))), predictor.left_out(rows.groups)
    for part in parts:
        scores[part.rows] = part.scores
    splits = [(np.setdiff1d(np.arange(n), held), held) for held in held_out]
    warps = predictor.mixture.target.warps
    judge = predictor.judge_factors(parts, scores) if warps else None
    noise, missing = learn_noise(rows, splits, scores, random_state, n_jobs, judge, report)
    return replace(predictor, varying_noise=noise), missing


def of_landmarks_with_varying_noise(
    predictor: LandmarkPredictor, random_state: np.random.RandomState
) -> tuple[LandmarkPredictor, str]:
    """Return a predictor of landmarks with noise that varies, told by some of the rows that judge.

    `rows` are those that judge alone. The factors of the others are predicted. And what the time
    limit left undone.
    """
    rows = predictor.rows
    chosen = np.sort(random_state.permutation(len(rows))[:_JUDGING])
    subset = rows.take(chosen)
    keys = subset.duplicate_ids if subset.groups is None else subset.groups
    if len(np.unique(keys)) < _FOLDS:
        return predictor, ""
    splits = random_folds(len(subset), _FOLDS, random_state, groups=keys)
    noise, missing = learn_noise(subset, splits, predictor.scores[chosen], random_state)
    if noise is None:
        return predictor, missing
    factors = noise(rows.numeric, rows.codes)
    factors[chosen] = noise.held_out
    return replace(predictor, varying_noise=replace(noise, held_out=factors)), missing


def _frequent(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return codes of categories, those of few rows one: residuals of a pair are of one size."""
    out = codes.copy()
    for column in out.T:
        rare = np.bincount(column)[column] < _FEWEST_ROWS
        column[rare] = codes.max() + 1
    return out


def _log_variance(v: FloatArray) -> FloatArray:
    """Return log σ² of normal scores whose log(s² + 0.3) has the mean v."""
    at, means = _curve()
    return np.interp(v, means, at)


@cache
def _curve() -> tuple[FloatArray, FloatArray]:
    """Return logarithms of variances, and means of log(s² + 0.3) there."""
    squares, at = chi2.ppf((np.arange(1000) + 0.5) / 1000, 1), np.linspace(-8.0, 8.0, 401)
    means = np.log(np.exp(at)[:, None] * squares + _FLOOR).mean(axis=1)
    steep = np.gradient(means, at) >= _FLAT
    return at[steep], means[steep]


def _slope(
    v: FloatArray, targets: FloatArray, share: FloatArray, rows: Rows
) -> tuple[FloatArray, FloatArray]:
    """Return the slopes of targets on v, and their standard errors over draws of groups."""
    rest, other = (each - np.sum(share * each, axis=0) for each in (v, targets))
    size = np.sum(share * rest**2, axis=0)
    size[size == 0.0] = np.inf
    slope = np.sum(share * rest * other, axis=0) / size
    influence = share * rest * (other - slope * rest) / size
    # groups of a table in parts are keys, not counted from 0
    keys = np.arange(len(rows)) if rows.groups is None else rows.groups
    groups = np.unique(keys, return_inverse=True)[1]
    sums = np.array([np.bincount(groups, weights=each) for each in influence.T])
    return slope, np.sqrt(np.sum(sums**2, axis=1))
