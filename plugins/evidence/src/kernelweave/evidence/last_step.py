"""The last step for several classes: least squares or the likelihood of classes, by the folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.special import log_softmax, softmax

from .calibration import Calibration
from .classes import class_codes
from .exact import ExactPredictor
from .explaining.expansion import Expansion
from .explaining.importance import Judge
from .mixture import Mixture, blocks, mixed_kernel
from .rows import Standardised
from .softmax import Softmax, fit_softmax
from .steps import Stopped

# variances of the functions of the classes
STRENGTHS = (3.0, 10.0, 30.0, 100.0)
# a row that is sure of its class still has some curvature
_FLAT = 1e-6


@dataclass(frozen=True)
class SoftmaxPredictor(ExactPredictor):
    """Logits of the classes on the learned kernel.

    `all_rows`: from all rows; `by_fold`: from the rows of each fold.
    """

    all_rows: Softmax
    by_fold: tuple[Softmax, ...]

    def mean(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return the logits, shape (n, n_classes)."""
        return _logits(self.mixture, self.all_rows, numeric, codes)

    def expansion(self) -> Expansion:
        """Return the logits as sums of kernel values, with Laplace's approximation of their spread.

        Classes share its curvature, the mean of p(1 − p).
        """
        mixture, fit = self.mixture, self.all_rows
        gram = _gram(mixture)
        p = softmax(fit.values(gram), axis=1)
        curvature = np.maximum((p * (1.0 - p)).mean(axis=1), _FLAT) * self.rows.mass
        gram[np.diag_indices_from(gram)] += 1.0 / (fit.variance * curvature)
        factor = cholesky(gram, lower=True, overwrite_a=True, check_finite=False)

        def explained(functionals: FloatArray) -> FloatArray:
            half = solve_triangular(factor, functionals.T, lower=True, check_finite=False)
            return np.asarray(np.einsum("ij,ij->j", half, half))

        free, ones = np.full(len(fit.offset), np.inf), np.ones(len(fit.offset))
        logits = Standardised(np.empty((len(ones), 0)), fit.offset, ones, -free, free)
        return Expansion(
            mixture.views, mixture.points, mixture.scales, fit.dual, logits, 0.0, explained,
            fit.variance * ones,
        )  # fmt: skip

    def judges(self) -> list[Judge]:
        """Return the rows that each fold left out, and its logits of any row."""
        parts = [fold.mixture(self.weights) for fold in self.folds]
        return [
            (fold.held_out, partial(_logits, part, each))
            for fold, part, each in zip(self.folds, parts, self.by_fold, strict=True)
        ]


def choose_last_step(predictor: ExactPredictor) -> ExactPredictor:
    """Return the predictor, or that by the likelihood of classes where held-out rows ask for it.

    Its calibrated log loss on the rows held out must be lower by more than one standard error of
    the paired difference.

    `predictor`: least squares, one output for each of three classes or more.
    """
    if np.isnan(predictor.held_out).any() or not predictor.folds:
        return predictor
    rows = predictor.rows
    codes, n_classes, mass = class_codes(rows.targets), len(rows.targets), rows.mass
    try:
        fits = [_fit_fold(predictor, k, codes, n_classes) for k in range(len(predictor.folds))]
        tried = np.empty((len(STRENGTHS), *predictor.held_out.shape))
        for fold, (_, values) in zip(predictor.folds, fits, strict=True):
            tried[:, fold.held_out] = values
        losses = [_losses(values, codes, mass) for values in tried]
        best = int(np.argmin([mass @ each for each in losses]))
        if not _surely_lower(losses[best], _losses(predictor.held_out, codes, mass), mass):
            return predictor
        strengths = STRENGTHS[: best + 1]
        all_rows = fit_softmax(_gram(predictor.mixture), codes, n_classes, mass, strengths)[-1]
    except Stopped:
        return predictor
    by_fold = tuple(each[best] for each, _ in fits)
    parts = (predictor.mixture, predictor.folds, predictor.weights, rows)
    return SoftmaxPredictor(*parts, tried[best], all_rows, by_fold)


def _fit_fold(
    predictor: ExactPredictor, k: int, codes: NDArray[np.intp], n_classes: int
) -> tuple[Sequence[Softmax], FloatArray]:
    """Return the fits of a fold, one for each strength, and their logits of its held-out rows."""
    fold = predictor.folds[k]
    part, own = fold.mixture(predictor.weights), predictor.rows.take(fold.held_out)
    targets, mass = fold.training.targets, fold.training.mass
    fits = fit_softmax(_gram(part), class_codes(targets), n_classes, mass, STRENGTHS)
    points = part.views.points(own.numeric, own.codes)
    cross = part.kernel(points)
    return fits, np.array([each.values(cross) for each in fits])


def _gram(mixture: Mixture) -> FloatArray:
    points = mixture.points
    return mixed_kernel(points, points, mixture.scales, mixture.views.jump)


def _losses(values: FloatArray, codes: NDArray[np.intp], mass: FloatArray) -> FloatArray:
    """Return the log loss of each row, calibrated."""
    logits = Calibration.of(values, codes, mass).logits(values)
    return -np.asarray(log_softmax(logits, axis=1)[np.arange(len(codes)), codes])


def _surely_lower(new: FloatArray, old: FloatArray, mass: FloatArray) -> bool:
    """Whether losses are lower by more than one standard error of the paired difference."""
    share, gain = mass / mass.sum(), old - new
    mean = float(share @ gain)
    return mean > float(np.sqrt(np.sum((share * (gain - mean)) ** 2)))


def _logits(
    mixture: Mixture, fit: Softmax, numeric: FloatArray, codes: NDArray[np.int64]
) -> FloatArray:
    points = mixture.views.points(numeric, codes)
    out = np.empty((points.n_points, len(fit.offset)))
    for rows in blocks(points.n_points, mixture.points.n_points):
        out[rows] = fit.values(mixture.kernel(points, rows))
    return out
