"""The last step for classes: least squares and the likelihood of classes, averaged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from .classes import Calibration, class_codes, per_class
from .exact import ExactPredictor
from .explaining.importance import Judge
from .mixture import Expansion, Mixture, blocks, mixed_kernel
from .rows import Standardised
from .terms import Stopped

# Added to a Gram matrix of unit spread, so that rows that repeat leave a Cholesky factor.
_JITTER = 1e-6
# A Gram matrix varies by this share of its diagonal at least: equal rows, or a single one, leave it
# constant.
_LEVEL = 1e-6
# Precision of the prior on offsets: they are free but for a class without rows, whose own would go
# to −∞.
_FREE = 0.01
# variances of the functions of the classes
STRENGTHS = (1.0, 10.0, 100.0, 1e3, 1e4)
# larger ones are not tried where the log loss has risen by so much
_RISEN = 1.02
# what a unit of log loss on the rows held out, summed over them, says of the shares of the two;
# as much as the likelihood of these rows would be 1
_SHARPNESS = 0.3
# a row that is sure of its class still has some curvature
_FLAT = 1e-6


@dataclass(frozen=True)
class Softmax:
    """Class k has the logit Σᵢ k(x, xᵢ) dual[i, k] + offset[k].

    `dual` of shape (n, n_classes); `offset` of shape (n_classes,); `variance`: what the kernel is
    multiplied by in the prior of the logits.
    """

    dual: FloatArray
    offset: FloatArray
    variance: float

    def values(self, cross: FloatArray) -> FloatArray:
        """Return logits from the kernel between points and the training rows."""
        return np.asarray(cross @ self.dual + self.offset)


def fit_softmax(
    gram: FloatArray,
    codes: NDArray[np.intp],
    n_classes: int,
    mass: FloatArray,
    strengths: Sequence[float],
) -> Iterator[Softmax]:
    """Yield the posterior mode for functions of several variances, the smallest first.

    −Σᵢ mᵢ log softmax(fᵢ)[codeᵢ] + ½ Σₖ ‖fₖ‖²/strength + 0.005 ‖offset‖², ‖·‖ the norm of the
    kernel scaled so that its functions vary by 1; convex, by L-BFGS in coordinates where the norm
    is that of a vector.

    - `gram` of shape (n, n)
    - `codes` of shape (n,): the class of each row
    - `n_classes`: a class may have no row
    - `mass` of shape (n,): weights

    Raises Stopped where time is up.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence.last_step import fit_softmax
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> (fit,) = fit_softmax(np.outer(x, x), np.array([0, 0, 1, 1]), 2, np.ones(4), [10.0])
    >>> fit.values(np.outer([3.0], x)).argmax()
    np.int64(1)
    """
    n = len(gram)
    largest = float(np.diagonal(gram).mean())
    size = max(largest - float(gram.mean()), _LEVEL * largest) or 1.0
    root = cholesky(gram / size + _JITTER * np.eye(n), lower=True, check_finite=False)
    hit = np.zeros((n, n_classes))
    hit[np.arange(n), codes] = 1.0
    at = np.zeros((n + 1) * n_classes)
    for strength in strengths:
        scaled = np.sqrt(strength) * root
        at = _minimise(scaled, hit, mass[:, None], at)
        own, offset = np.split(at.reshape(n + 1, n_classes), [n])
        dual = solve_triangular(scaled, own, lower=True, trans="T", check_finite=False)
        yield Softmax(dual * (strength / size), offset[0], strength / size)


def _minimise(root: FloatArray, hit: FloatArray, mass: FloatArray, start: FloatArray) -> FloatArray:
    """Return B and the offsets, stacked, of f = root B + offset."""
    n, n_classes = hit.shape

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        if clock.expired():
            raise Stopped
        both = theta.reshape(n + 1, n_classes)
        own, offset = both[:n], both[n]
        logits = root @ own + offset
        excess = mass * (softmax(logits, axis=1) - hit)
        value = -float(np.sum(mass * hit * log_softmax(logits, axis=1)))
        value += 0.5 * float(np.sum(own**2) + _FREE * offset @ offset)
        slopes = np.vstack([root.T @ excess + own, excess.sum(axis=0) + _FREE * offset])
        return value, slopes.ravel()

    options: Any = {"maxiter": 300, "ftol": 1e-7, "gtol": 1e-5}
    done = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(done.x)


@dataclass(frozen=True)
class ClassPredictor(ExactPredictor):
    """Logits of the classes on the learned kernel; of two, half their difference.

    `all_rows`: from all rows; `by_fold`: from the rows of each fold.
    """

    all_rows: Softmax
    by_fold: tuple[Softmax, ...]

    def mean(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return the logits, shape (n, n_outputs)."""
        return _logits(self.mixture, self.all_rows, numeric, codes)

    def expansion(self, fold: int | None = None) -> Expansion:
        """Return the logits as sums of kernel values, with Laplace's approximation of their spread.

        Classes share its curvature, the mean of p(1 − p).
        """
        mixture, fit, mass = self.mixture, self.all_rows, self.learned_from(fold).mass
        if fold is not None:
            mixture, fit = self.folds[fold].mixture(self.weights), self.by_fold[fold]
        gram = _gram(mixture)
        p = softmax(per_class(fit.values(gram)), axis=1)
        # half a difference varies half as much and tells twice as much, squared
        n_outputs, double = len(fit.offset), len(fit.offset) == 1
        variance = fit.variance * (0.5 if double else 1.0)
        sharpness = (4.0 if double else 1.0) * np.maximum((p * (1.0 - p)).mean(axis=1), _FLAT)
        gram[np.diag_indices_from(gram)] += 1.0 / (variance * sharpness * mass)
        factor = cholesky(gram, lower=True, overwrite_a=True, check_finite=False)

        def explained(functionals: FloatArray) -> FloatArray:
            half = solve_triangular(factor, functionals.T, lower=True, check_finite=False)
            return np.asarray(np.einsum("ij,ij->j", half, half))

        free, ones = np.full(n_outputs, np.inf), np.ones(n_outputs)
        logits = Standardised(np.empty((n_outputs, 0)), fit.offset, ones, -free, free)
        return Expansion(
            mixture.views, mixture.points, mixture.scales, fit.dual, logits, 0.0, explained,
            variance * ones,
        )  # fmt: skip

    def judges(self) -> list[Judge]:
        """Return the rows that each fold left out, and its logits of any row."""
        parts = [fold.mixture(self.weights) for fold in self.folds]
        return [
            (fold.held_out, partial(_logits, part, each))
            for fold, part, each in zip(self.folds, parts, self.by_fold, strict=True)
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
    squares = folds.judge([_least_squares(part) for part in folds.parts])
    try:
        strength, likeliest = _likeliest(folds)
        gram, targets = _gram(predictor.mixture), (folds.codes, folds.n_classes, rows.mass)
        (last,) = fit_softmax(gram, *targets, [strength])
    except Stopped:
        return predictor
    both = (squares, likeliest)
    by_fold = [_averaged(both, each) for each in zip(squares.fits, likeliest.fits, strict=True)]
    all_rows = _averaged(both, (_least_squares(predictor.mixture), last))
    given = (predictor.mixture, predictor.folds, predictor.weights, rows)
    return ClassPredictor(*given, folds.held_out(by_fold), all_rows, tuple(by_fold))


class _Judged(NamedTuple):
    """Fits, one a fold, their calibration on the rows held out, and the log loss of these."""

    fits: Sequence[Softmax]
    calibration: Calibration
    loss: float


@dataclass(frozen=True)
class _Folds:
    """The folds of a predictor, with the kernel between rows held out and training rows.

    `codes` of shape (n,): the classes of all rows.
    """

    predictor: ExactPredictor
    codes: NDArray[np.intp]
    n_classes: int
    parts: list[Mixture]
    crosses: list[FloatArray]

    @classmethod
    def of(cls, predictor: ExactPredictor) -> _Folds:
        rows = predictor.rows
        parts = [fold.mixture(predictor.weights) for fold in predictor.folds]
        crosses = []
        for fold, part in zip(predictor.folds, parts, strict=True):
            own = rows.take(fold.held_out)
            crosses.append(part.kernel(part.views.points(own.numeric, own.codes)))
        codes, n_classes = class_codes(rows.targets), max(2, len(rows.targets))
        return cls(predictor, codes, n_classes, parts, crosses)

    def held_out(self, fits: Sequence[Softmax]) -> FloatArray:
        """Return the values of rows by the fit of the fold that held them out."""
        values = np.full((len(self.codes), len(fits[0].offset)), np.nan)
        for fold, cross, fit in zip(self.predictor.folds, self.crosses, fits, strict=True):
            values[fold.held_out] = fit.values(cross)
        return values

    def judge(self, fits: Sequence[Softmax]) -> _Judged:
        """Calibrate fits of the folds."""
        values = self.held_out(fits)
        seen = np.flatnonzero(~np.isnan(values[:, 0]))
        values, codes, mass = values[seen], self.codes[seen], self.predictor.rows.mass[seen]
        calibration = Calibration.of(values, codes, mass)
        told = log_softmax(calibration.logits(values), axis=1)
        loss = -float(mass @ told[np.arange(len(values)), codes])
        return _Judged(fits, calibration, loss)


def _likeliest(folds: _Folds) -> tuple[float, _Judged]:
    """Return the strength that has the least log loss on the rows held out, and its fits."""
    paths = []
    for fold, part in zip(folds.predictor.folds, folds.parts, strict=True):
        own = fold.training
        targets = (class_codes(own.targets), folds.n_classes, own.mass)
        paths.append(fit_softmax(_gram(part), *targets, STRENGTHS))
    tried: list[_Judged] = []
    for fits in zip(*paths, strict=True):
        tried.append(folds.judge(fits))
        if tried[-1].loss > _RISEN * min(each.loss for each in tried):
            break
    best = int(np.argmin([each.loss for each in tried]))
    return STRENGTHS[best], tried[best]


def _least_squares(mixture: Mixture) -> Softmax:
    """Return the posterior mean as decision values, a column for each class."""
    target = mixture.target
    dual, offset = per_class(mixture.dual * target.spread), per_class(target.centre[None])
    return Softmax(dual, offset[0], 0.0)


def _averaged(judged: Sequence[_Judged], fits: Sequence[Softmax]) -> Softmax:
    """Return the average of calibrated logits; the spread is that of the last fit.

    Of two classes, half the difference of their logits.
    """
    shares = softmax([-_SHARPNESS * each.loss for each in judged])
    calibrations = [each.calibration for each in judged]
    dual, offset = np.zeros_like(fits[0].dual), np.zeros_like(fits[0].offset)
    for share, own, fit in zip(shares, calibrations, fits, strict=True):
        dual += share * own.slope * fit.dual
        offset += share * own.logits(fit.offset)
    if len(offset) == 2:
        dual, offset = 0.5 * (dual[:, 1:] - dual[:, :1]), 0.5 * (offset[1:] - offset[:1])
    return Softmax(dual, offset, calibrations[-1].slope ** 2 * fits[-1].variance)


def _gram(mixture: Mixture) -> FloatArray:
    points = mixture.points
    return mixed_kernel(points, points, mixture.scales, mixture.views.jump)


def _logits(
    mixture: Mixture, fit: Softmax, numeric: FloatArray, codes: NDArray[np.int64]
) -> FloatArray:
    points = mixture.views.points(numeric, codes)
    out = np.empty((points.n_points, len(fit.offset)))
    for rows in blocks(points.n_points, mixture.points.n_points):
        out[rows] = fit.values(mixture.kernel(points, rows))
    return out
