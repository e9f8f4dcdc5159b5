"""Fits of the path on parts of the rows, judged on the rows left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .mixture import Mixture, fit_mixture, weighted
from .path import Fit, Plan, coarse_starts, fit_path
from .plain import held_out_grid, plain_fit
from .rows import FloatArray, Rows, Standardised, spread_of
from .terms import Scales
from .views import Views


@dataclass(frozen=True)
class Fold:
    """A fit of the path on some rows, and its predictions of the others.

    Attributes
    ----------
    held_out : ndarray of int
    training : Rows
    views : Views
        Of the training rows.
    fits : list of Fit
    predictions : ndarray of shape (n_fits, n_held_out, n_outputs)
        One per fit, in the units of the targets.
    grid : ndarray of shape (n_settings, n_held_out, n_outputs)
        Those of a plain Gaussian kernel, for each width and ridge; empty once one is chosen.
    choice : int
        Which of them is the last of the fits, -1 before.
    """

    held_out: NDArray[np.intp]
    training: Rows
    views: Views
    fits: list[Fit]
    predictions: FloatArray
    grid: FloatArray
    choice: int = -1

    def mixture(self, weights: FloatArray) -> Mixture:
        """Return this fold's predictor, the path combined."""
        return fit_mixture(self.views, self.training, self._scales(weights))

    def among(self, rows: Rows, weights: FloatArray) -> Mixture:
        """Return the predictor from other rows, their targets in the units of this fold's.

        The metric, the views, the warp and the units have seen the fold's training rows alone.
        """
        units = Standardised.of(self.training)
        return fit_mixture(self.views, rows, self._scales(weights), units)

    def _scales(self, weights: FloatArray) -> tuple[Scales, ...]:
        return weighted([fit.scales for fit in self.fits[: len(weights)]], weights)


def fit_fold(
    rows: Rows,
    training: NDArray[np.intp],
    held_out: NDArray[np.intp],
    plan: Plan,
    random_state: np.random.RandomState,
) -> Fold:
    """Fit the path on the training rows alone and predict the rows held out."""
    own, other = rows.take(training), rows.take(held_out)
    views = Views.of(own.numeric, own.codes, own.weight)
    fits = fit_path(views, own, plan, coarse_starts(own, plan, random_state))
    points = views.points(other.numeric, other.codes)
    predictions = [fit_mixture(views, own, (fit.scales,)).predict(points) for fit in fits]
    grid = held_out_grid(views, own, other)
    return Fold(held_out, own, views, fits, np.array(predictions), grid)


def with_plain(rows: Rows, folds: Sequence[Fold]) -> list[Fold]:
    """Return the folds with the plain Gaussian that predicts the held-out rows best."""
    choice = int(held_out_errors(rows, folds, [fold.grid for fold in folds]).argmin())
    return [
        replace(
            fold,
            fits=[*fold.fits, plain_fit(fold.views, fold.training, choice)],
            predictions=np.concatenate([fold.predictions, fold.grid[choice : choice + 1]]),
            grid=fold.grid[:0],
            choice=choice,
        )
        for fold in folds
    ]


def held_out_errors(
    rows: Rows, folds: Sequence[Fold], predictions: Sequence[FloatArray]
) -> FloatArray:
    """Return mean squared errors in units of the targets' variance, one per row of predictions."""
    seen = np.concatenate([fold.held_out for fold in folds])
    share = rows.mass[seen] / rows.mass[seen].sum()
    spread = spread_of(rows.targets - rows.targets.mean(axis=1, keepdims=True), rows.mass)
    residual = (np.concatenate(predictions, axis=1) - rows.targets.T[seen]) / spread
    return np.asarray(np.einsum("i,kit->k", share, residual**2) / len(spread))
