"""The last step: least squares and the likelihood of classes or of counts, averaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from numpy.typing import NDArray
from scipy.linalg import cholesky, lapack
from scipy.special import log_softmax, softmax
from sklearn.metrics import mean_poisson_deviance

from .classes import Calibration, class_codes, per_class
from .cross import gram_of
from .exact import ExactPredictor
from .likelihood import PosteriorMode, fit_poisson, fit_softmax, landmarks_of
from .mixture import Expansion, Mixture, explained_by, path_weights
from .rows import Rows, Standardised
from .scores import squared_losses
from .terms import Stopped, blocks
from .views import Warp

if TYPE_CHECKING:
    from .explaining.importance import FoldPredictor
    from .path import Loss

# variances of the functions of the classes
STRENGTHS = (1.0, 10.0, 100.0, 1e3, 1e4)
# larger ones are not tried where the log loss has risen by so much
_RISEN = 1.02
# what a unit of log loss on the rows held out, summed over them, says of the shares of the two;
# as much as the likelihood of these rows would be 1
_SHARPNESS = 0.3
# variances of the logarithm of a mean, in the same way
_LOG_STRENGTHS = tuple(0.01 * 10.0 ** (0.5 * k) for k in range(13))
# least deviation of targets, in units of their mean, for which their logarithm is tried
_SKEWED = 0.7
# a row that is sure of its class still has some curvature
_FLAT = 1e-6


@dataclass(frozen=True)
class _LikelihoodPredictor(ExactPredictor):
    """What a likelihood finds on the learned kernel: from all rows, and from those of each fold."""

    all_rows: PosteriorMode
    by_fold: tuple[PosteriorMode, ...]

    def _fit(self, fold: int | None) -> PosteriorMode:
        return self.all_rows if fold is None else self.by_fold[fold]


@dataclass(frozen=True)
class ClassPredictor(_LikelihoodPredictor):
    """Logits of the classes on the learned kernel; of two, half their difference."""

    def mean(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return the logits, shape (n, n_outputs)."""
        return _logits(self.mixture, self.all_rows, numeric, codes)

    def expansion(self, fold: int | None = None) -> Expansion:
        """Return the logits as sums of kernel values, with Laplace's approximation of their spread.

        Classes share its curvature, the mean of p(1 − p).
        """
        mixture, fit, mass = self._part(fold), self._fit(fold), self.learned_from(fold).mass
        gram = _gram(mixture)
        p = softmax(per_class(fit.values(gram)), axis=1)
        # half a difference varies half as much and tells twice as much, squared
        n_outputs, double = len(fit.offset), len(fit.offset) == 1
        variance = fit.variance * (0.5 if double else 1.0)
        sharpness = (4.0 if double else 1.0) * np.maximum((p * (1.0 - p)).mean(axis=1), _FLAT)
        gram[np.diag_indices_from(gram)] += 1.0 / (variance * sharpness * mass)
        factor = cholesky(gram, lower=True, overwrite_a=True, check_finite=False)
        free, ones = np.full(n_outputs, np.inf), np.ones(n_outputs)
        logits = Standardised(np.empty((n_outputs, 0)), fit.offset, ones, -free, free)
        return Expansion(
            mixture.views, mixture.points, mixture.scales, fit.dual, logits, 0.0,
            partial(explained_by, factor), variance * ones,
        )  # fmt: skip

    def fold_predictors(self) -> list[FoldPredictor]:
        """Return the rows that each fold left out, and its logits of any row."""
        return [
            (fold.held_out, partial(_logits, self._part(k), self.by_fold[k]))
            for k, fold in enumerate(self.folds)
        ]


def with_likelihood(predictor: ExactPredictor) -> ExactPredictor:
    """Return an average of the predictor's logits and those of the likelihood of classes.

    Rows held out calibrate both, choose the variance of the likelihood's functions, and say how
    much each counts, ∝ exp(−0.3 log loss). The predictor is returned as it is where no row was held
    out or time is up.

    `predictor`: least squares, one output for each of three classes or more, one of two.
    """
    if not predictor.folds:
        return predictor
    folds, rows = _Folds.of(predictor), predictor.rows
    codes, n_classes = class_codes(rows.targets), max(2, len(rows.targets))
    squares = _calibrated(folds, codes, [_least_squares(part) for part in folds.parts])
    try:
        strength, likeliest = _likeliest(folds, codes, n_classes)
        (last,) = fit_softmax(
            _gram(predictor.mixture), codes, n_classes, rows.mass, [strength],
            landmarks_of(len(rows)),
        )  # fmt: skip
    except Stopped:
        return predictor
    both = (squares, likeliest)
    by_fold = [_averaged(both, each) for each in zip(squares.fits, likeliest.fits, strict=True)]
    all_rows = _averaged(both, (_least_squares(predictor.mixture), last))
    given = (predictor.mixture, predictor.folds, predictor.weights, rows)
    return ClassPredictor(*given, folds.held_out(by_fold), all_rows, tuple(by_fold))


@dataclass(frozen=True)
class PoissonPredictor(_LikelihoodPredictor):
    """The average of a posterior mean and of a Poisson likelihood's, by their logarithm.

    `share`: of the second. Deviations and intervals are the first's.
    """

    share: float

    def _part(self, fold: int | None = None) -> Mixture:
        """Return what predicts: two outputs on one kernel, averaged in the units of the target."""
        mixture, fit = super()._part(fold), self._fit(fold)
        old, warp = mixture.target, _logarithm(self.learned_from(fold))
        unit, low, high = float(old.spread[0]), np.repeat(old.low, 2), np.repeat(old.high, 2)
        # the straight line through 0, unless there is a power
        first = old.warps or (Warp(1.0, -unit, unit, True),)
        centre, spread = (old.centre, old.spread) if old.warps else (old.centre / unit, np.ones(1))
        target = Standardised(
            np.empty((2, 0)), np.append(centre, fit.offset), np.append(spread, 1.0), low, high,
            (*first, warp), np.array([1.0 - self.share, self.share]),
        )  # fmt: skip
        dual, width = np.hstack([mixture.dual, fit.dual]), np.array([[mixture.width, 0.0]])
        part = replace(mixture, dual=dual, target=target, width=width)
        vars(part).update({k: v for k, v in vars(mixture).items() if k == "factor"})
        return part

    def _inflation(self, part: Mixture, fold: int | None) -> FloatArray:
        """Return 1, and how much more the logarithm varies by Laplace's approximation, on average.

        Its noise is that of a quasi-likelihood, whose factor rows held out tell.
        """
        fit, rows, gram = self._fit(fold), self.learned_from(fold), _gram(part)
        unit = float(np.average(rows.targets[0], weights=rows.mass))
        mean = np.exp(fit.values(gram)[:, 0])
        diagonal = unit / (fit.variance * mean * rows.mass)
        gram[np.diag_indices_from(gram)] += diagonal
        factor = cholesky(gram, lower=True, overwrite_a=True, check_finite=False)
        seen = np.flatnonzero(~np.isnan(self.held_out[:, 0]))
        predicted = self.held_out[seen, 0]
        squares = (self.rows.targets[0, seen] - predicted) ** 2 / (predicted * unit)
        noise = fit.variance * float(np.average(squares, weights=self.rows.mass[seen]))
        variance = _mean_variance(part.factor, part.diagonal)
        return np.array([1.0, noise * _mean_variance(factor, diagonal) / variance])


def _mean_variance(factor: FloatArray, diagonal: FloatArray) -> float:
    """Return the mean of the diagonal of D − DS⁻¹D, the posterior variance at the rows of S."""
    inverse = lapack.dpotri(factor.copy(order="F"), lower=1, overwrite_c=1)[0].diagonal()
    return float(np.mean(diagonal - diagonal**2 * inverse))


def with_poisson(predictor: ExactPredictor, loss: Loss | None) -> tuple[ExactPredictor, str]:
    """Return an average with the mean whose logarithm a Poisson likelihood finds, where it may pay.

    That is where no target is negative, they vary by more than 0.7 of their mean, and no power made
    them normal, unless most recur, as counts do. Rows held out choose the variance of the logarithm
    by their deviance, and the shares as those of a path.

    `loss`: of rows and their predictions, in place of squared errors. Also returns what the time
    limit left undone.
    """
    rows, folds = predictor.rows, predictor.folds
    y, mass, held_out = rows.targets[0], rows.mass, predictor.held_out
    seen = np.flatnonzero(~np.isnan(held_out[:, 0]))
    unit = float(np.average(y, weights=mass))
    if rows.transform_targets and 2 * len(np.unique(y)) > len(y):
        return predictor, ""
    if len(rows.targets) > 1 or y.min() < 0.0 or not all(f.training.targets.any() for f in folds):
        return predictor, ""
    if not folds or np.average((y / unit - 1.0) ** 2, weights=mass) < _SKEWED**2:
        return predictor, ""
    parts = _Folds.of(predictor)
    try:
        strength, best = _least_deviance(parts, seen)
        (last,) = fit_poisson(
            _gram(predictor.mixture), y, mass, [strength], landmarks_of(len(rows))
        )
    except Stopped:
        return predictor, "the likelihood of counts"
    subset, judge, poisson = rows.take(seen), _squares if loss is None else loss, best.held_out
    losses = np.array([judge(subset, each[seen]) for each in (held_out, poisson)])
    share = float(path_weights(losses)[1])
    if share == 0.0:
        return predictor, ""
    both = held_out + share * (poisson - held_out)
    given = (predictor.mixture, folds, predictor.weights, rows, both)
    noise, met = predictor.varying_noise, predictor.forecasts
    return PoissonPredictor(
        *given, last, tuple(best.fits), share, varying_noise=noise, forecasts=met,
        closed=predictor.closed,
    ), ""  # fmt: skip


def _least_deviance(folds: _Folds, seen: Index) -> tuple[float, _Judged]:
    """Return the strength that predicts rows held out best, and its fits."""
    rows = folds.predictor.rows
    logarithms = [_logarithm(fold.training) for fold in folds.predictor.folds]
    some = landmarks_of(len(rows))
    paths = []
    for fold, part in zip(folds.predictor.folds, folds.parts, strict=True):
        own = fold.training
        targets = own.targets[0], own.mass, _LOG_STRENGTHS
        paths.append(fit_poisson(_gram(part), *targets, some))

    def judge(fits: Sequence[PosteriorMode]) -> _Judged:
        values = folds.held_out(fits)
        for fold, logarithm in zip(folds.predictor.folds, logarithms, strict=True):
            values[fold.held_out] = logarithm.inverse(values[fold.held_out])
        predicted = np.maximum(values[seen, 0], np.finfo(np.float64).tiny)
        deviance = mean_poisson_deviance(
            rows.targets[0, seen], predicted, sample_weight=rows.mass[seen]
        )
        return _Judged(fits, deviance, values)

    return _least(_LOG_STRENGTHS, paths, judge)


def _logarithm(rows: Rows) -> Warp:
    """Return the way from means of counts to their logarithm, straight beyond the largest count."""
    tiny = float(np.finfo(np.float64).tiny)
    return Warp(0.0, 0.0, 1.0, True, low=tiny, high=float(rows.targets.max()))


def _squares(rows: Rows, values: FloatArray) -> float:
    squares = squared_losses(rows.targets.T, values, rows.mass)[0]
    return float(np.average(squares[:, 0], weights=rows.mass))


class _Judged(NamedTuple):
    """Fits, one a fold, what they lose on the rows held out and say of them, and a calibration."""

    fits: Sequence[PosteriorMode]
    loss: float
    held_out: FloatArray
    calibration: Calibration | None = None


@dataclass(frozen=True)
class _Folds:
    """The folds of a predictor, with the kernel between rows held out and training rows."""

    predictor: ExactPredictor
    parts: list[Mixture]
    crosses: list[FloatArray]

    @classmethod
    def of(cls, predictor: ExactPredictor) -> _Folds:
        parts, crosses = [], []
        for fold in predictor.folds:
            part, held_out = fold.mixture(predictor.weights), predictor.rows.take(fold.held_out)
            if landmarks_of(len(predictor.rows)) is not None:
                # of many rows it is large, and nothing asks for it again
                part.release(factor=True)
            parts.append(part)
            crosses.append(part.kernel(part.views.points(held_out.numeric, held_out.codes)))
        return cls(predictor, parts, crosses)

    def held_out(self, fits: Sequence[PosteriorMode]) -> FloatArray:
        """Return the values of rows by the fit of the fold that held them out."""
        values = np.full((len(self.predictor.rows), len(fits[0].offset)), np.nan)
        for fold, cross, fit in zip(self.predictor.folds, self.crosses, fits, strict=True):
            values[fold.held_out] = fit.values(cross)
        return values


def _least(
    strengths: Sequence[float],
    paths: Sequence[Iterator[PosteriorMode]],
    judge: Callable[[Sequence[PosteriorMode]], _Judged],
) -> tuple[float, _Judged]:
    """Return the strength whose fits of the folds lose least, as far as losses do not rise.

    With few rows a small rise may be chance, with many the first one ends the search.
    """
    best: tuple[float, _Judged] | None = None
    for strength, *fits in zip(strengths, *paths, strict=True):
        judged = judge(fits)
        if best is None or judged.loss < best[1].loss:
            best = strength, judged
        elif judged.loss > best[1].loss * (1.0 if landmarks_of(len(judged.held_out)) else _RISEN):
            break
    assert best is not None
    return best


def _calibrated(folds: _Folds, codes: Index, fits: Sequence[PosteriorMode]) -> _Judged:
    """Calibrate fits of the folds; their loss is the log loss of the rows held out."""
    values = folds.held_out(fits)
    seen = np.flatnonzero(~np.isnan(values[:, 0]))
    labels, mass = codes[seen], folds.predictor.rows.mass[seen]
    calibration = Calibration.of(values[seen], labels, mass)
    log_p = log_softmax(calibration.logits(values[seen]), axis=1)
    loss = -float(mass @ log_p[np.arange(len(seen)), labels])
    return _Judged(fits, loss, values, calibration)


def _likeliest(folds: _Folds, codes: Index, n_classes: int) -> tuple[float, _Judged]:
    """Return the strength that has the least log loss on the rows held out, and its fits."""
    paths = []
    for fold, part in zip(folds.predictor.folds, folds.parts, strict=True):
        training = fold.training
        targets = (class_codes(training.targets), n_classes, training.mass)
        some = landmarks_of(len(folds.predictor.rows))
        paths.append(fit_softmax(_gram(part), *targets, STRENGTHS, some))
    return _least(STRENGTHS, paths, partial(_calibrated, folds, codes))


def _least_squares(mixture: Mixture) -> PosteriorMode:
    """Return the posterior mean as decision values, a column for each class."""
    target = mixture.target
    dual, offset = per_class(mixture.dual * target.spread), per_class(target.centre[None])
    return PosteriorMode(dual, offset[0], 0.0)


def _averaged(judged: Sequence[_Judged], fits: Sequence[PosteriorMode]) -> PosteriorMode:
    """Return the average of calibrated logits; the spread is that of the last fit.

    Of two classes, half the difference of their logits.
    """
    shares = softmax([-_SHARPNESS * each.loss for each in judged])
    calibrations = [each.calibration for each in judged if each.calibration is not None]
    dual, offset = np.zeros_like(fits[0].dual), np.zeros_like(fits[0].offset)
    for share, calibration, fit in zip(shares, calibrations, fits, strict=True):
        dual += share * calibration.slope * fit.dual
        offset += share * calibration.logits(fit.offset)
    if len(offset) == 2:
        dual, offset = 0.5 * (dual[:, 1:] - dual[:, :1]), 0.5 * (offset[1:] - offset[:1])
    return PosteriorMode(dual, offset, calibrations[-1].slope ** 2 * fits[-1].variance)


def _gram(mixture: Mixture) -> FloatArray:
    points = mixture.points
    return gram_of(points, mixture.scales, mixture.views.match_weight)


def _logits(
    mixture: Mixture, fit: PosteriorMode, numeric: FloatArray, codes: NDArray[np.int64]
) -> FloatArray:
    points = mixture.views.points(numeric, codes)
    out = np.empty((points.n_points, len(fit.offset)))
    for rows in blocks(points.n_points, mixture.points.n_points):
        out[rows] = fit.values(mixture.kernel(points, rows))
    return out
