"""The last step: least squares and the likelihood of classes or of counts, averaged.

A fit chooses strengths and shares by the rows that folds held out. `again` takes the same step on
other rows at what was chosen, by the same functions: on the fit's own rows it gives the fit's bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from numpy.typing import NDArray
from scipy.linalg import cholesky, lapack
from scipy.special import log_softmax, softmax
from sklearn.metrics import mean_poisson_deviance

from .classes import Calibration, class_codes, per_class
from .exact import ExactPredictor
from .fold_modes import FoldKernels, JudgedModes, kernel_of, last_of, least, linked_values
from .likelihood import PosteriorMode, fit_poisson, fit_softmax, landmarks_of
from .mixture import Expansion, Mixture, explained_by, path_weights
from .rows import Rows, Standardised
from .scores import squared_losses
from .terms import Stopped
from .views import Warp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .explaining.importance import FoldPredictor
    from .path import Loss

# variances of the functions of the classes
STRENGTHS = (1.0, 10.0, 100.0, 1e3, 1e4)
# The shares of the two predictors go with exp(−_SHARPNESS · log loss), summed over the rows held
# out; at 1 their shares would be those of the likelihood of these rows.
_SHARPNESS = 0.3
# variances of the logarithm of a mean, in the same way
_LOG_STRENGTHS = tuple(0.01 * 10.0 ** (0.5 * k) for k in range(13))
# least deviation of targets, in units of their mean, for which their logarithm is tried
_SKEWED = 0.7
# a row that is sure of its class still has some curvature
_FLAT = 1e-6
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class _LikelihoodPredictor(ExactPredictor):
    """What a likelihood finds on the learned kernel: from all rows, and from those of each fold.

    `strength`: of the likelihood's functions, as rows held out chose it.
    """

    all_rows: PosteriorMode
    by_fold: tuple[PosteriorMode, ...]
    strength: float

    def _fit(self, fold: int | None) -> PosteriorMode:
        return self.all_rows if fold is None else self.by_fold[fold]


@dataclass(frozen=True)
class ClassPredictor(_LikelihoodPredictor):
    """Logits of the classes on the learned kernel; of two, half their difference.

    `shares`: of least squares and of the likelihood in them.
    """

    shares: tuple[float, float]

    def mean(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return the logits, shape (n, n_outputs)."""
        return linked_values(self.mixture, self.all_rows, numeric, codes)

    def again(self, plain: ExactPredictor) -> ExactPredictor:
        """Return the logits of other rows, at the same strength and shares.

        A class without a row keeps its column, and is next to never predicted.

        Raises Stopped where time is up.
        """
        if not plain.folds:
            return plain
        step = _ClassStep.of(plain)
        strengths = [*(each for each in STRENGTHS if each < self.strength), self.strength]
        likeliest = step.judge([last_of(each) for each in step.paths(strengths)])
        return step.predictor(self.strength, likeliest, self.shares)

    def expansion(self, fold: int | None = None) -> Expansion:
        """Return the logits as sums of kernel values, with Laplace's approximation of their spread.

        Classes share its curvature, the mean of p(1 − p).
        """
        mixture, fit, mass = self._part(fold), self._fit(fold), self.learned_from(fold).mass
        gram = kernel_of(mixture)
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
            (fold.held_out, partial(linked_values, self._part(k), self.by_fold[k]))
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
    step = _ClassStep.of(predictor)
    try:
        strength, likeliest = least(STRENGTHS, step.paths(STRENGTHS), step.judge)
        shares = softmax([-_SHARPNESS * each.loss for each in (step.squares, likeliest)])
        return step.predictor(strength, likeliest, (float(shares[0]), float(shares[1])))
    except Stopped:
        return predictor


@dataclass(frozen=True)
class _ClassStep:
    """Rows with their classes and the kernels of their folds.

    `codes` of shape (n,): the class of each row; `squares`: least squares, calibrated.
    """

    folds: FoldKernels
    codes: Index
    n_classes: int
    squares: JudgedModes

    @classmethod
    def of(cls, predictor: ExactPredictor) -> _ClassStep:
        folds, targets = FoldKernels.of(predictor), predictor.rows.targets
        codes, n_classes = class_codes(targets), max(2, len(targets))
        squares = _calibrated(folds, codes, [_least_squares(part) for part in folds.parts])
        return cls(folds, codes, n_classes, squares)

    def paths(self, strengths: Sequence[float]) -> list[Iterator[PosteriorMode]]:
        """Return the modes of each fold, along ascending strengths."""
        paths, some = [], landmarks_of(len(self.codes))
        for fold, part in zip(self.folds.predictor.folds, self.folds.parts, strict=True):
            training = fold.training
            targets = class_codes(training.targets), self.n_classes, training.mass
            paths.append(fit_softmax(kernel_of(part), *targets, strengths, some))
        return paths

    def judge(self, fits: Sequence[PosteriorMode]) -> JudgedModes:
        """Return modes of the folds with their calibration and log loss."""
        return _calibrated(self.folds, self.codes, fits)

    def predictor(
        self, strength: float, likeliest: JudgedModes, shares: tuple[float, float]
    ) -> ClassPredictor:
        """Return the average, with the mode of all rows at this strength."""
        plain, both = self.folds.predictor, (self.squares, likeliest)
        mixture, rows = plain.mixture, plain.rows
        (last,) = fit_softmax(
            kernel_of(mixture), self.codes, self.n_classes, rows.mass, [strength],
            landmarks_of(len(rows)),
        )  # fmt: skip
        pairs = zip(self.squares.fits, likeliest.fits, strict=True)
        by_fold = [_averaged(both, shares, each) for each in pairs]
        all_rows = _averaged(both, shares, (_least_squares(mixture), last))
        given = (mixture, plain.folds, plain.weights, rows, self.folds.held_out(by_fold))
        return ClassPredictor(*given, all_rows, tuple(by_fold), strength, shares)


@dataclass(frozen=True)
class PoissonPredictor(_LikelihoodPredictor):
    """The average of a posterior mean and of a Poisson likelihood's, by their logarithm.

    `share`: of the second. Deviations and intervals are the first's.
    """

    share: float

    def check_targets(self, targets: FloatArray) -> None:
        """Raise ValueError where a mean of other targets, (n_outputs, n), has no logarithm."""
        if targets.min(initial=0.0) < 0.0:
            raise ValueError(
                f"y must be 0 or more, as in the fit, which learned the logarithm of its mean; got "
                f"{targets.min():.6g}: fit again for targets below 0"
            )

    def again(self, plain: ExactPredictor) -> ExactPredictor:
        """Return the average of other rows' means, at the same strength and share.

        Raises Stopped where time is up, and ValueError where a target is negative.
        """
        self.check_targets(plain.rows.targets)
        if not plain.folds:
            return plain
        parts = FoldKernels.of(plain)
        strengths = [*(each for each in _LOG_STRENGTHS if each < self.strength), self.strength]
        fits = [last_of(each) for each in _poisson_paths(parts, strengths)]
        return _poisson_predictor(plain, self.strength, self.share, fits, _means(parts, fits))

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
        fit, rows, gram = self._fit(fold), self.learned_from(fold), kernel_of(part)
        unit = max(float(np.average(rows.targets[0], weights=rows.mass)), _TINY)
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
    rows, held_out = predictor.rows, predictor.held_out
    if not _may_be_counts(predictor):
        return predictor, ""
    seen = np.flatnonzero(~np.isnan(held_out[:, 0]))
    try:
        strength, best = _least_deviance(FoldKernels.of(predictor), seen)
        subset, judge = rows.take(seen), _squares if loss is None else loss
        losses = np.array([judge(subset, each[seen]) for each in (held_out, best.held_out)])
        share = float(path_weights(losses)[1])
        if share == 0.0:
            return predictor, ""
        return _poisson_predictor(predictor, strength, share, best.fits, best.held_out), ""
    except Stopped:
        return predictor, "the likelihood of counts"


def _may_be_counts(predictor: ExactPredictor) -> bool:
    """Return whether the logarithm of the mean of these targets is tried."""
    rows, folds, y = predictor.rows, predictor.folds, predictor.rows.targets[0]
    unit = float(np.average(y, weights=rows.mass))
    if rows.transform_targets and 2 * len(np.unique(y)) > len(y):
        return False
    if len(rows.targets) > 1 or y.min() < 0.0 or not all(f.training.targets.any() for f in folds):
        return False
    return bool(folds) and np.average((y / unit - 1.0) ** 2, weights=rows.mass) >= _SKEWED**2


def _poisson_predictor(
    plain: ExactPredictor, strength: float, share: float, fits: Sequence[PosteriorMode],
    means: FloatArray,
) -> PoissonPredictor:  # fmt: skip
    """Return the average, with the mode of all rows at this strength.

    `fits`: of the folds, and `means` of shape (n, 1): of the rows that they held out.
    """
    rows = plain.rows
    (last,) = fit_poisson(
        kernel_of(plain.mixture), rows.targets[0], rows.mass, [strength], landmarks_of(len(rows))
    )
    both = plain.held_out + share * (means - plain.held_out)
    given = (plain.mixture, plain.folds, plain.weights, rows, both)
    noise, met = plain.varying_noise, plain.forecasts
    return PoissonPredictor(
        *given, last, tuple(fits), strength, share, varying_noise=noise, forecasts=met,
        closed=plain.closed,
    )  # fmt: skip


def _poisson_paths(folds: FoldKernels, strengths: Sequence[float]) -> list[Iterator[PosteriorMode]]:
    """Return the modes of each fold, along ascending strengths."""
    some, paths = landmarks_of(len(folds.predictor.rows)), []
    for fold, part in zip(folds.predictor.folds, folds.parts, strict=True):
        own = fold.training
        paths.append(fit_poisson(kernel_of(part), own.targets[0], own.mass, strengths, some))
    return paths


def _means(folds: FoldKernels, fits: Sequence[PosteriorMode]) -> FloatArray:
    """Return the means of rows held out, by the fit of their fold, shape (n, 1)."""
    values = folds.held_out(fits)
    for fold in folds.predictor.folds:
        values[fold.held_out] = _logarithm(fold.training).inverse(values[fold.held_out])
    return values


def _least_deviance(folds: FoldKernels, seen: Index) -> tuple[float, JudgedModes]:
    """Return the strength that predicts rows held out best, and its fits."""
    rows = folds.predictor.rows

    def judge(fits: Sequence[PosteriorMode]) -> JudgedModes:
        values = _means(folds, fits)
        predicted = np.maximum(values[seen, 0], _TINY)
        deviance = mean_poisson_deviance(
            rows.targets[0, seen], predicted, sample_weight=rows.mass[seen]
        )
        return JudgedModes(fits, deviance, values)

    return least(_LOG_STRENGTHS, _poisson_paths(folds, _LOG_STRENGTHS), judge)


def _logarithm(rows: Rows) -> Warp:
    """Return the way from means of counts to their logarithm, straight beyond the largest count."""
    return Warp(0.0, 0.0, 1.0, True, low=_TINY, high=max(_TINY, float(rows.targets.max())))


def _squares(rows: Rows, values: FloatArray) -> float:
    squares = squared_losses(rows.targets.T, values, rows.mass)[0]
    return float(np.average(squares[:, 0], weights=rows.mass))


def _calibrated(folds: FoldKernels, codes: Index, fits: Sequence[PosteriorMode]) -> JudgedModes:
    """Calibrate fits of the folds; their loss is the log loss of the rows held out."""
    values = folds.held_out(fits)
    seen = np.flatnonzero(~np.isnan(values[:, 0]))
    labels, mass = codes[seen], folds.predictor.rows.mass[seen]
    calibration = Calibration.of(values[seen], labels, mass)
    log_p = log_softmax(calibration.logits(values[seen]), axis=1)
    loss = -float(mass @ log_p[np.arange(len(seen)), labels])
    return JudgedModes(fits, loss, values, calibration)


def _least_squares(mixture: Mixture) -> PosteriorMode:
    """Return the posterior mean as decision values, a column for each class."""
    target = mixture.target
    dual, offset = per_class(mixture.dual * target.spread), per_class(target.centre[None])
    return PosteriorMode(dual, offset[0], 0.0)


def _averaged(
    judged: Sequence[JudgedModes], shares: Sequence[float], fits: Sequence[PosteriorMode]
) -> PosteriorMode:
    """Return the average of calibrated logits; the spread is that of the last fit.

    Of two classes, half the difference of their logits.
    """
    calibrations = [each.calibration for each in judged if each.calibration is not None]
    dual, offset = np.zeros_like(fits[0].dual), np.zeros_like(fits[0].offset)
    for share, calibration, fit in zip(shares, calibrations, fits, strict=True):
        dual += share * calibration.slope * fit.dual
        offset += share * calibration.logits(fit.offset)
    if len(offset) == 2:
        dual, offset = 0.5 * (dual[:, 1:] - dual[:, :1]), 0.5 * (offset[1:] - offset[:1])
    return PosteriorMode(dual, offset, calibrations[-1].slope ** 2 * fits[-1].variance)
