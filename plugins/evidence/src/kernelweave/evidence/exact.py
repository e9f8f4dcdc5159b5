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
    def of(cls, learned: Learned, rows: Rows) -> ExactPredictor:
        """Keep what predicting needs of a fit."""
        return cls(learned.mixture, learned.folds, learned.weights, rows, learned.held_out)

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
        return _deviation(self.mixture, self.views.points(numeric, codes))

    def interval(
        self, numeric: FloatArray, codes: NDArray[np.int64], confidence: float
    ) -> FloatArray:
        """Return both ends of CV+ intervals, shape (2, n, n_outputs).

        Residuals are in units of the fold's own standard deviation, so that an interval is wide
        where the rows are few.
        """
        parts = [fold.mixture(self.weights) for fold in self.folds]
        scores, owner = self._scores(parts)
        ends = np.empty((2, len(numeric), scores.shape[1]))
        for block in blocks(len(numeric), 4 * len(owner)):
            points = [part.views.points(numeric[block], codes[block]) for part in parts]
            centres = np.array([a.predict(b) for a, b in zip(parts, points, strict=True)])
            widths = np.array([_deviation(a, b) for a, b in zip(parts, points, strict=True)])
            for t in range(scores.shape[1]):
                ends[:, block, t] = cv_plus(
                    centres[owner, :, t].T, widths[owner, :, t].T, scores[:, t], confidence
                )
        return ends

    def _scores(self, parts: Sequence[Mixture]) -> tuple[FloatArray, NDArray[np.intp]]:
        """Return |residual|/deviation of every held-out row, and the fold that held it out."""
        scores, owner = [], []
        for k, (fold, part) in enumerate(zip(self.folds, parts, strict=True)):
            own = self.rows.take(fold.held_out)
            points = part.views.points(own.numeric, own.codes)
            residual = own.targets.T - part.predict(points)
            scores.append(np.abs(residual) / _deviation(part, points))
            owner.append(np.full(len(own), k))
        return np.concatenate(scores), np.concatenate(owner)


def _deviation(mixture: Mixture, points: Points) -> FloatArray:
    width = np.sqrt(mixture.variance(points) + mixture.noise)
    return np.asarray(width[:, None] * mixture.spread)
