"""The predictor of a table of some thousand rows: all pairs of rows, one factorisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .folds import Fold
from .intervals import cv_plus
from .learn import Learned
from .mixture import Mixture, blocks
from .rows import FloatArray, Rows
from .terms import Scales
from .views import Points, Views


@dataclass(frozen=True)
class ExactPredictor:
    """A posterior mean with its spread, and the folds behind its intervals.

    Attributes
    ----------
    mixture : Mixture
    folds : list of Fold
    weights : ndarray of shape (n_fits,)
        Of the path.
    rows : Rows
        The training rows.
    held_out : ndarray of shape (n_rows, n_outputs)
        Predictions by the fold that did not see the row.
    """

    mixture: Mixture
    folds: list[Fold]
    weights: FloatArray
    rows: Rows
    held_out: FloatArray

    @classmethod
    def of(cls, learned: Learned) -> ExactPredictor:
        """Keep what predicting needs of a fit."""
        return cls(learned.mixture, learned.folds, learned.weights, learned.rows, learned.held_out)

    @property
    def views(self) -> Views:
        """Views of the training rows."""
        return self.mixture.views

    @property
    def scales(self) -> Sequence[Scales]:
        """Of the kernel, a weighted sum."""
        return self.mixture.scales

    @property
    def noise(self) -> float:
        """σ², in units of the targets' variance."""
        return self.mixture.noise

    def mean(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return the posterior mean, shape (n, n_outputs)."""
        return self.mixture.predict(self.views.points(numeric, codes))

    def deviation(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return the standard deviation of a new observation, shape (n, n_outputs)."""
        points = self.views.points(numeric, codes)
        mixture = self.mixture
        return mixture.target.moments(mixture.latent(points), _width(mixture, points))[1]

    def interval(
        self, numeric: FloatArray, codes: NDArray[np.int64], confidence: float
    ) -> FloatArray:
        """Return both ends of CV+ intervals, shape (2, n, n_outputs).

        Residuals are in units of the fold's own standard deviation, so that an interval is wide
        where the rows are few.
        """
        parts = [(fold, fold.mixture(self.weights)) for fold in self.folds]
        scores = [self._scores(fold, part) for fold, part in parts]
        n_rows = sum(map(len, scores))
        ends = np.empty((2, len(numeric), len(self.rows.targets)))
        for block in blocks(len(numeric), 4 * n_rows * ends.shape[2]):
            reach = [
                _reach(part, part.views.points(numeric[block], codes[block]), each)
                for (_, part), each in zip(parts, scores, strict=True)
            ]
            low, high = np.concatenate(reach, axis=1)
            for t in range(ends.shape[2]):
                ends[:, block, t] = cv_plus(low[:, :, t].T, high[:, :, t].T, confidence)
        return ends

    def _scores(self, fold: Fold, part: Mixture) -> FloatArray:
        """Return |residual|/deviation of a fold's held-out rows, (n_held_out, n_outputs)."""
        own = self.rows.take(fold.held_out)
        points = part.views.points(own.numeric, own.codes)
        residual = part.target.standardise(own.targets.T) - part.latent(points)
        return np.asarray(np.abs(residual) / _width(part, points)[:, None])


def _width(mixture: Mixture, points: Points) -> FloatArray:
    """Return the deviation of a new observation, standardised, shape (n,)."""
    return np.sqrt(mixture.variance(points) + mixture.noise)


def _reach(part: Mixture, points: Points, scores: FloatArray) -> FloatArray:
    """Return predictions less and plus each score, shape (2, n_scores, n, n_outputs)."""
    centre, width = part.latent(points), _width(part, points)
    step = scores[:, None, :] * width[:, None]
    both = np.array([centre - step, centre + step])
    flat = both.reshape(-1, centre.shape[1])
    return part.target.restore(flat, cut=False).reshape(both.shape)
