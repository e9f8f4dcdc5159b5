"""The predictor of a table of some thousand rows: all pairs of rows, one factorisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from .explaining.expansion import Expansion
from .explaining.importance import Judge
from .folds import Fold
from .intervals import LeftOut, conformal, jackknife_plus
from .learn import Learned
from .mixture import Mixture, blocks
from .rows import Rows
from .terms import Scales
from .views import Points, Views


@dataclass(frozen=True)
class ExactPredictor:
    """A posterior mean with its spread, and the folds behind its intervals.

    `weights` of shape (n_fits,): of the path; `rows`: the training rows; `held_out` of shape
    (n_rows, n_outputs): predictions by the fold that did not see the row.
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
    def fold(self) -> NDArray[np.intp]:
        """The fold that held a training row out, -1 where none did."""
        which = np.full(len(self.rows), -1, dtype=np.intp)
        for k, fold in enumerate(self.folds):
            which[fold.held_out] = k
        return which

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
        return _mean(self.mixture, numeric, codes)

    def deviation(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return the standard deviation of a new observation, shape (n, n_outputs)."""
        points = self.views.points(numeric, codes)
        mixture = self.mixture
        return mixture.target.moments(mixture.latent(points), _width(mixture, points))[1]

    def judges(self) -> list[Judge]:
        """Return the rows that each fold left out, and its predictions of any row."""
        parts = [(fold.held_out, fold.mixture(self.weights)) for fold in self.folds]
        return [(held_out, partial(_mean, part)) for held_out, part in parts]

    def expansion(self) -> Expansion:
        """Return the posterior mean as a sum of kernel values."""
        mixture = self.mixture

        def explained(functionals: FloatArray) -> FloatArray:
            half = solve_triangular(mixture.factor, functionals.T, lower=True, check_finite=False)
            return np.asarray(np.einsum("ij,ij->j", half, half))

        one = np.ones(mixture.dual.shape[1])
        return Expansion(
            mixture.views, mixture.points, mixture.scales, mixture.dual, mixture.target,
            mixture.width, explained, one,
        )  # fmt: skip

    def interval(
        self, numeric: FloatArray, codes: NDArray[np.int64], confidence: float
    ) -> FloatArray:
        """Return both ends of jackknife+ intervals, shape (2, n, n_outputs).

        A row is left out of the coefficients in closed form, under the metric of the fold that
        did not see it. Residuals are in units of their own standard deviation, so that an interval
        is wide where the rows are few. For rows of new groups whole groups are left out. Where
        folds alone tell how new rows differ, such as later ones, their residuals are what rows held
        out had.
        """
        if self.rows.by_folds and self.folds:
            return self._fold_interval(numeric, codes, confidence)
        if self.rows.groups is None:
            return self._left_out(numeric, codes, confidence, None)
        known = self.rows.is_known(numeric, codes)
        ends = np.empty((2, len(numeric), len(self.rows.targets)))
        for which, groups in ((known, None), (~known, self.rows.groups)):
            if which.any():
                ends[:, which] = self._left_out(numeric[which], codes[which], confidence, groups)
        return ends

    def _left_out(
        self,
        numeric: FloatArray,
        codes: NDArray[np.int64],
        confidence: float,
        groups: Index | None,
    ) -> FloatArray:
        """Return ends by leaving out each row, or each group, of those that a fold held out."""
        views = None if self.rows.groups is None else self.views
        parts = [
            LeftOut(
                fold.among(self.rows, self.weights, views),
                fold.held_out,
                None if groups is None else groups[fold.held_out],
            )
            for fold in self.folds
        ]
        # without time for a fold the metric has seen no target
        parts = parts or [LeftOut(self.mixture, np.arange(len(self.rows)), groups)]
        ends = np.empty((2, len(numeric), len(self.rows.targets)))
        for block in blocks(len(numeric), 4 * len(self.rows) * ends.shape[2]):
            reach = [part.reach(numeric[block], codes[block]) for part in parts]
            low, high = np.concatenate(reach, axis=1)
            for t in range(ends.shape[2]):
                ends[:, block, t] = jackknife_plus(low[:, :, t].T, high[:, :, t].T, confidence)
        return ends

    def _fold_residuals(self, fold: Fold) -> tuple[FloatArray, FloatArray]:
        """Return |residuals| of the rows held out in their deviations, and in the target's unit."""
        own, part = self.rows.take(fold.held_out), fold.mixture(self.weights)
        points, truth = part.views.points(own.numeric, own.codes), own.targets.T
        latent = part.latent(points)
        scores = np.abs(part.target.standardise(truth) - latent) / _width(part, points)[:, None]
        return scores, np.abs(truth - part.target.restore(latent))

    def held_by_the_last(self, confidence: float) -> tuple[float, int]:
        """Return which share of the last block intervals from the earlier ones hold, and its size.

        NaN where they are too few.
        """
        *earlier, last = [self._fold_residuals(fold)[0] for fold in self.folds]
        if not earlier:
            return np.nan, len(last)
        step = conformal(np.concatenate(earlier), confidence)
        held = float(np.mean(last <= step)) if np.isfinite(step).all() else np.nan
        return held, len(last)

    def _fold_interval(
        self, numeric: FloatArray, codes: NDArray[np.int64], confidence: float
    ) -> FloatArray:
        """Return ends by residuals of rows held out, in units of their own deviations."""
        points, target = self.views.points(numeric, codes), self.mixture.target
        centre, width = self.mixture.latent(points), _width(self.mixture, points)[:, None]
        scores, reach = zip(*map(self._fold_residuals, self.folds), strict=True)
        step = conformal(np.concatenate(scores), confidence) * width
        if not np.isfinite(step).all():
            return np.array([-step, step])
        both = (centre - step, centre + step)
        ends = np.array([target.restore(each, cut=False) for each in both])
        if not target.warps:
            return ends
        most, truth = np.concatenate(reach).max(axis=0), self.rows.targets.T
        return np.asarray(np.clip(ends, truth.min(axis=0) - most, truth.max(axis=0) + most))


def _mean(mixture: Mixture, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
    """Return predictions in the units of the targets."""
    return mixture.predict(mixture.views.points(numeric, codes))


def _width(mixture: Mixture, points: Points) -> FloatArray:
    """Return the deviation of a new observation, standardised, shape (n,)."""
    return np.sqrt(mixture.variance(points) + mixture.noise)
