"""Noise that varies: how far targets lie from their predictions, learned from rows left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from numpy.typing import NDArray
from scipy.stats import chi2

from .candidates import KEPT, MOST_SCALES, fit_candidates
from .cross import gram_of
from .intervals import LeftOut
from .mixture import Mixture, fit_mixture, path_weights, weighted
from .path import PathPlan
from .terms import Scales, Stopped

if TYPE_CHECKING:
    from .exact import ExactPredictor
    from .folds import Fold
    from .large.landmarks import LandmarkPredictor
    from .rows import Rows
    from .views import Points, Views

# one λ, roughly, on few rows: the others judge it
_PLAN = PathPlan((5.0,), tol=1e-3)
# rows that tell how noise varies at most, and those of them that scales are learned on: no more
# than a share of all
_ROWS, _SCALES, _SHARE = 1000, 300, 0.5
# steps of the ridge, up or down, as long as each gains
_STEP, _STEPS = float(np.sqrt(10.0)), 4
# added to squares in units of their median: logarithms of scores that are 0 by chance say little
_FLOOR = 0.3
# The slope that needs not be sure. It and the floor were chosen on 15 tables of 300 rows, two draws
# each.
_UNSURE = 0.4
# a slope that is none, for which the doubt of it has no size
_NO_SLOPE = 1e-12
# of the slope, where held-out rows judge it
_SHARES = (1.0, 0.5, 0.25, 0.0)
# of a word, whose noise may be learned: rows left out in turn tell each other's residuals
_FEWEST_ROWS = 6
# of groups that are left out together
_FEWEST_GROUPS = 12
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
    - `told` of shape (n_told,): which of these rows it was learned from
    """

    mixture: Mixture
    slope: FloatArray
    unit: FloatArray
    held_out: FloatArray
    told: Index | None = None

    def __call__(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return the factors of new rows, shape (n, n_outputs)."""
        mixture = self.mixture.slim
        v = mixture.predict(mixture.views.points(numeric, codes))
        return np.asarray(self.unit * np.exp(0.5 * self.slope * _log_variance(v)))


def learn_noise(
    rows: Rows,
    scores: FloatArray,
    random_state: np.random.RandomState,
    judge: Callable[[FloatArray], FloatArray] | None = None,
    screened: Sequence[Index] = (),
) -> tuple[VaryingNoise | None, str]:
    """Return noise that varies with the columns, learned from logarithms of squared scores.

    The target is log(s² + 0.3), squares in units of their median: a bare logarithm has its variance
    from scores that are 0 by chance. Scales are learned on some rows. The others choose the ridge,
    as each is left out of one factorisation with its copies or group, and tell the slope of targets
    on what is predicted of them. Intervals follow by b − 2e²/b, with the slope b and its standard
    error e, so that they stay nearly as they are where noise is even.

    - `scores` of shape (n_rows, n_outputs): residuals of rows left out, in their deviations
    - `judge`: of factors of the rows, to the loss of each output; the slope is then the share of
      it, between none and all, that loses least
    - `screened`: as in `fit_candidates`

    Returns ``None`` where noise does not vary, or not so that held-out rows show it; and what the
    time limit left undone, empty if nothing.
    """
    squares, keys = scores**2, rows.kept_together
    logs_of = _with_logarithms(rows, squares)
    if logs_of is None:
        return None, ""
    rows, targets = logs_of, logs_of.targets.T
    first, judging = _parts(keys, random_state)
    try:
        part = rows.take(first)
        fits = list(fit_candidates(part.views(), part, _PLAN, screened))
    except Stopped:
        return None, "noise that varies"
    known = _Known.of(rows, keys, judging)
    tried = [known.with_best_ridge(fit.scales) for fit in fits]
    weights = path_weights(np.array([error for error, _ in tried]))
    mixture = known.mixture(weighted([scales for _, scales in tried], weights))
    v = known.predicted(mixture)
    told = rows.take(judging)
    share = told.mass[:, None] / told.mass.sum()
    slope, error = _slope(v[judging], targets[judging], share, keys[judging])
    if not (slope > 0.0).any():
        return None, ""
    doubt = np.divide(2.0 * error**2, slope, out=np.zeros_like(slope), where=slope > _NO_SLOPE)
    slope = np.clip(slope - doubt, np.clip(slope, 0.0, _UNSURE), 1.0)
    if judge is not None:
        logs = 0.5 * slope * _log_variance(v)
        losses = np.array([judge(np.exp(each * logs)) for each in _SHARES])
        slope *= np.take(_SHARES, losses.argmin(axis=0))
        if not slope.any():
            return None, ""
    return _noise_of(rows, squares, mixture, slope, v), ""


def relearned_noise(old: VaryingNoise, rows: Rows, scores: FloatArray) -> VaryingNoise | None:
    """Return noise that varies by the kernel and the slope of another, as other rows tell it.

    `rows`, `scores`: as in `learn_noise`, whose noise it is for the rows that it was learned from.
    ``None`` where most rows are predicted exactly, or few tell.
    """
    squares, keys = scores**2, rows.kept_together
    logs_of = _with_logarithms(rows, squares)
    if logs_of is None:
        return None
    known = _Known.of(logs_of, keys, np.arange(len(rows)))
    mixture = known.mixture(old.mixture.scales)
    return _noise_of(logs_of, squares, mixture, old.slope, known.predicted(mixture))


def _with_logarithms(rows: Rows, squares: FloatArray) -> Rows | None:
    """Return the rows with logarithms of squared scores as targets.

    ``None`` where most rows are predicted exactly, or few tell.
    """
    middle = np.median(squares, axis=0)
    if not (middle > 0.0).all() or len(np.unique(rows.kept_together)) < _FEWEST_GROUPS:
        return None
    targets = np.log(squares / middle + _FLOOR)
    return replace(
        rows, codes=_frequent(rows.codes), targets=np.ascontiguousarray(targets.T),
        transform_targets=False, group=None, trust=None,
    ).without_folds()  # fmt: skip


def _noise_of(
    rows: Rows, squares: FloatArray, mixture: Mixture, slope: FloatArray, v: FloatArray
) -> VaryingNoise:
    """Return noise in the unit in which the scores of its rows have mean square 1."""
    factors = np.exp(0.5 * slope * _log_variance(v))
    share = rows.mass[:, None] / rows.mass.sum()
    unit = np.sqrt(np.sum(share * squares / factors**2, axis=0))
    return VaryingNoise(mixture, slope, unit, unit * factors)


class _Known(NamedTuple):
    """Rows with the logarithms of their scores, and which of them judge.

    `views`, `points`: of all; `alone`: whether each row is left out by itself.
    """

    rows: Rows
    keys: Index
    judging: Index
    views: Views
    points: Points
    alone: bool

    @classmethod
    def of(cls, rows: Rows, keys: Index, judging: Index) -> _Known:
        views = rows.views()
        alone = len(np.unique(keys)) == len(keys)
        return cls(rows, keys, judging, views, views.points(rows.numeric, rows.codes), alone)

    def mixture(self, scales: tuple[Scales, ...], gram: FloatArray | None = None) -> Mixture:
        return fit_mixture(self.views, self.rows, scales, points=self.points, gram=gram)

    def residuals(self, mixture: Mixture, which: Index) -> FloatArray:
        return LeftOut(mixture, which, None if self.alone else self.keys[which]).residuals

    def predicted(self, mixture: Mixture) -> FloatArray:
        """Return the logarithms of all rows as each is predicted by the others."""
        rest = self.residuals(mixture, np.arange(len(self.rows)))
        out = mixture.target.predict(mixture.target.values.T - rest, mixture.width)
        mixture.release()
        return out

    def with_best_ridge(self, scales: Scales) -> tuple[float, Scales]:
        """Return the error of rows that judge and the scales, with the noise that serves them."""
        share = self.rows.mass[self.judging]
        gram = gram_of(self.points, (scales,), self.views.match_weight, whole=False)

        def trial(noise: float) -> tuple[float, Scales]:
            changed = replace(scales, noise=noise)
            left = self.residuals(self.mixture((changed,), gram), self.judging)
            return float(np.average(np.mean(left**2, axis=1), weights=share)), changed

        first = best = trial(scales.noise)
        for step in (_STEP, 1.0 / _STEP):
            for _ in range(_STEPS):
                other = trial(best[1].noise * step)
                if not other[0] < best[0] * (1.0 - 1e-3):
                    break
                best = other
            if best is not first:
                break
        return best


def _parts(keys: Index, random_state: np.random.RandomState) -> tuple[Index, Index]:
    """Return rows to learn scales on, and the others, none of a group in both."""
    numbers = np.unique(keys, return_inverse=True)[1].ravel()
    by = np.argsort(random_state.permutation(numbers.max() + 1)[numbers], kind="stable")
    size = min(_SCALES, int(_SHARE * len(keys)))
    last = numbers[by[size - 1]]
    is_first = np.isin(numbers, numbers[by[:size]])
    is_first[numbers == last] = size > 1
    if is_first.all():
        is_first[numbers == last] = False
    return np.flatnonzero(is_first), np.flatnonzero(~is_first)


def some_rows(keys: Index, random_state: np.random.RandomState) -> Index:
    """Return rows of whole groups, about as many as tell how noise varies."""
    if len(keys) <= _ROWS:
        return np.arange(len(keys))
    numbers = np.unique(keys, return_inverse=True)[1].ravel()
    by = np.argsort(random_state.permutation(numbers.max() + 1)[numbers], kind="stable")
    return np.flatnonzero(np.isin(numbers, numbers[by[:_ROWS]]))


def with_varying_noise(
    predictor: ExactPredictor, random_state: np.random.RandomState
) -> tuple[ExactPredictor, str]:
    """Return a predictor of all pairs with noise that varies, where rows were held out at random.

    And what the time limit left undone.
    """
    rows, seen = predictor.rows, np.flatnonzero(predictor.fold >= 0)
    if not len(seen) or (len(seen) < len(rows) and not predictor.closed):
        return predictor, ""
    keys = rows.kept_together
    chosen = seen[some_rows(keys[seen], random_state)]
    unseen = [each for part in predictor.left_out(rows.groups, chosen) for each in part.unseen]
    scores = np.empty((len(rows), len(rows.targets)))
    for each in unseen:
        scores[each.rows] = each.scores
    scores, judge = scores[chosen], None
    if predictor.mixture.target.warps:
        judge = predictor.judge_factors(unseen, scores, chosen)
    screened = _with_scales(predictor.folds, rows.n_dimensions)
    noise, missing = learn_noise(rows.take(chosen), scores, random_state, judge, screened)
    return replace(predictor, varying_noise=_of_all(noise, rows, chosen)), missing


def _with_scales(folds: Sequence[Fold], n_dimensions: int) -> tuple[Index, ...]:
    """Return the dimensions of a wide table that fits of the folds had scales for most often.

    A few hundred rows cannot tell on which of thousands others noise depends.
    """
    if n_dimensions <= MOST_SCALES:
        return ()
    path = [
        fit.scales.ell > 0.0 for fold in folds for fit in fold.fits if np.isfinite(fit.precision)
    ]
    times = np.sum(path, axis=0)
    most = np.argsort(-times, kind="stable")[: KEPT[-1]]
    return (np.sort(most[times[most] > 0]),)


def of_landmarks_with_varying_noise(
    predictor: LandmarkPredictor, random_state: np.random.RandomState
) -> tuple[LandmarkPredictor, str]:
    """Return a predictor of landmarks with noise that varies, told by some of the rows that judge.

    `rows` are those that judge alone. And what the time limit left undone.
    """
    rows = predictor.rows
    keys = rows.kept_together
    if not len(rows):
        return predictor, ""
    chosen = some_rows(keys, random_state)
    noise, missing = learn_noise(rows.take(chosen), predictor.scores[chosen], random_state)
    return replace(predictor, varying_noise=_of_all(noise, rows, chosen)), missing


def noise_of_same_landmarks(
    predictor: LandmarkPredictor, old: VaryingNoise, told: Index
) -> LandmarkPredictor:
    """Return a predictor of landmarks with noise that varies as another says, for its own rows.

    `predictor`: its `rows` are those that judge alone; `told`: which of them tell how noise varies.
    """
    if not len(told):
        return predictor
    rows = predictor.rows
    noise = relearned_noise(old, rows.take(told), predictor.scores[told])
    return replace(predictor, varying_noise=_of_all(noise, rows, told))


def _of_all(noise: VaryingNoise | None, rows: Rows, chosen: Index) -> VaryingNoise | None:
    """Return noise with the factors of all rows: it has not seen those that were not chosen."""
    if noise is None:
        return None
    factors = noise(rows.numeric, rows.codes)
    factors[chosen] = noise.held_out
    return replace(noise, held_out=factors, told=chosen)


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
    v: FloatArray, targets: FloatArray, share: FloatArray, keys: Index
) -> tuple[FloatArray, FloatArray]:
    """Return the slopes of targets on v, and their standard errors over draws of groups."""
    rest, other = (each - np.sum(share * each, axis=0) for each in (v, targets))
    size = np.sum(share * rest**2, axis=0)
    size[size == 0.0] = np.inf
    slope = np.sum(share * rest * other, axis=0) / size
    influence = share * rest * (other - slope * rest) / size
    # groups of a table in parts are keys, not counted from 0
    groups = np.unique(keys, return_inverse=True)[1]
    sums = np.array([np.bincount(groups, weights=each) for each in influence.T])
    return slope, np.sqrt(np.sum(sums**2, axis=1))
