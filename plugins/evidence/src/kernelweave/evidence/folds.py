"""Fits of the path on parts of the rows, judged on the rows left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray

from .candidates import coarse_starts, fill_up, fit_candidates
from .mixture import Mixture, fit_mixture, weighted
from .path import Fit, Plan
from .rows import Rows, Standardised
from .steps import Stopped
from .terms import Scales
from .views import Views


@dataclass(frozen=True)
class Fold:
    """A fit of the path on some rows, and its predictions of the others.

    - `views`: of the training rows
    - `predictions`: one per fit, in the units of the targets, (n_fits, n_held_out, n_outputs)
    - `whole`: whether there was time for the whole path
    """

    held_out: NDArray[np.intp]
    training: Rows
    views: Views
    fits: list[Fit]
    predictions: FloatArray
    whole: bool = True

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
    """Fit the path on the training rows alone and predict the rows held out.

    Where time is up, what is left of the path is filled up: a rough fit has an honest score too.
    """
    own, other = rows.take(training), rows.take(held_out)
    views = Views.of(own.numeric, own.codes, own.weight)
    starts = coarse_starts(own, plan, random_state)
    fits: list[Fit] = []
    whole = True
    try:
        fit_candidates(views, own, plan, starts, fits)
    except Stopped:
        fill_up(views, own, plan, starts, fits)
        whole = False
    points = views.points(other.numeric, other.codes)
    predictions = [fit_mixture(views, own, (fit.scales,)).predict(points) for fit in fits]
    return Fold(held_out, own, views, fits, np.array(predictions), whole)
