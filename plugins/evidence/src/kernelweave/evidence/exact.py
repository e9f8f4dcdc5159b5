"""The predictor of a table of some thousand rows: all pairs of rows, one factorisation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from numpy.typing import NDArray

from .forecasts import Forecasts
from .intervals import (
    FoldResiduals,
    LeftOut,
    UnseenRows,
    conformal,
    jackknife_endpoints,
    jackknife_plus,
)
from .leave_out import PairsLeaveOut
from .mixture import Expansion, Mixture, explained_by
from .panels import KNOWN_LATER, PanelResiduals, kinds_of_rows, known_since
from .terms import blocks

if TYPE_CHECKING:
    from .explaining.importance import FoldPredictor
    from .folds import Fold
    from .learn import Learned
    from .noise import VaryingNoise
    from .rows import Rows
    from .terms import Scales
    from .views import Points, Views

# the confidence of the intervals that judge noise that varies after a power
_LEVEL = 0.9
# rows that are left out at most where one factorisation leaves out any
_MEMBERS = 2000


@dataclass(frozen=True)
class ExactPredictor:
    """A posterior mean with its spread, and the folds behind its intervals.

    `weights` of shape (n_fits,): of the path; `rows`: the training rows; `held_out` of shape
    (n_rows, n_outputs): predictions by the fold that did not see the row; `varying_noise`: where
    noise varies; `closed`: where all folds have one metric, what is left out of its factorisation;
    `forecasts`: what these met, where later rows were held out.
    """

    mixture: Mixture
    folds: list[Fold]
    weights: FloatArray
    rows: Rows
    held_out: FloatArray
    varying_noise: VaryingNoise | None = field(default=None, kw_only=True)
    closed: tuple[UnseenRows, ...] = field(default=(), kw_only=True)
    forecasts: Forecasts | None = field(default=None, kw_only=True)

    @classmethod
    def of(cls, learned: Learned) -> ExactPredictor:
        """Keep what predicting needs of a fit."""
        return cls(
            learned.mixture, learned.folds, learned.weights, learned.rows, learned.held_out,
            closed=learned.left_out,
        )  # fmt: skip

    def check_targets(self, targets: FloatArray) -> None:
        """Raise ValueError where the likelihood has no such targets, shape (n_outputs, n)."""

    def again(self, plain: ExactPredictor) -> ExactPredictor:
        """Return what comes after least squares on the kernel, on the rows of another predictor.

        It is taken at the strengths and shares that this fit chose. Nothing comes here.

        `plain`: least squares by the same kernel and folds, with its noise and its forecasts.
        """
        return plain

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
        return _mean(self._part(), numeric, codes)

    def deviation(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return the standard deviation of a new observation, shape (n, n_outputs)."""
        mixture = self.mixture.slim
        points = mixture.views.points(numeric, codes)
        width = _width(mixture, points)
        if self.varying_noise is not None:
            width = width[:, None] * self.varying_noise(numeric, codes)
        if self.forecasts is not None:
            factors = self.forecasts(numeric)
            if self.rows.is_panel:
                later = self.kinds_of(numeric, codes) >= KNOWN_LATER
                factors = np.where(later[:, None], factors, 1.0)
            width = width[:, None] * factors
        return mixture.target.moments(mixture.latent(points), width)[1]

    def kinds_of(self, numeric: FloatArray, codes: NDArray[np.int64]) -> Index:
        """Return which of the four kinds of a panel new rows are, shape (n,)."""
        return kinds_of_rows(self.rows, numeric, codes, self.rows.is_known(numeric, codes))

    def fold_predictors(self) -> list[FoldPredictor]:
        """Return the rows that each fold left out, and its predictions of any row."""
        return [(f.held_out, partial(_mean, self._part(k))) for k, f in enumerate(self.folds)]

    def _part(self, fold: int | None = None) -> Mixture:
        """Return what predicts, from all rows or without a fold."""
        return self.mixture if fold is None else self.folds[fold].mixture(self.weights)

    def _inflation(self, part: Mixture, fold: int | None) -> FloatArray:
        """Return what the posterior variance of each output is multiplied by."""
        return np.ones(part.dual.shape[1])

    def expansion(self, fold: int | None = None) -> Expansion:
        """Return the posterior mean, of all rows or without a fold, as a sum of kernel values."""
        mixture = self._part(fold)
        return Expansion(
            mixture.views, mixture.points, mixture.scales, mixture.dual, mixture.target,
            mixture.width, partial(explained_by, mixture.factor), self._inflation(mixture, fold),
        )  # fmt: skip

    def learned_from(self, fold: int | None) -> Rows:
        """Return the rows that the predictor without a fold has seen, all where that is None."""
        return self.rows if fold is None else self.folds[fold].training

    def interval(
        self, numeric: FloatArray, codes: NDArray[np.int64], confidence: float
    ) -> FloatArray:
        """Return both ends of jackknife+ intervals, shape (2, n, n_outputs).

        A row is left out of the coefficients in closed form, under the metric of the fold that
        did not see it. Residuals are in units of their own standard deviation, so that an interval
        is wide where the rows are few, and where noise is strong. Its copies are left out with it,
        and for rows of new groups whole groups are. Where folds alone tell how new rows differ,
        their residuals are what rows held out had; of later rows, what forecasts had.
        """
        ends = np.empty((2, len(numeric), len(self.rows.targets)))
        for rows, (low, high) in self._endpoints(numeric, codes, signed=False):
            for t in range(ends.shape[2]):
                ends[:, rows, t] = jackknife_plus(low[:, :, t].T, high[:, :, t].T, confidence)
        return ends

    def members(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return what targets would be with the score of each row left out.

        Ascending, shape (n_left_out, n, n_outputs).
        """
        ends = [(rows, values) for rows, (values,) in self._endpoints(numeric, codes, signed=True)]
        n = min(len(values) for _, values in ends)
        out = np.empty((n, len(numeric), len(self.rows.targets)))
        for rows, values in ends:
            # where more rows tell of some kind, as many of their ranks
            ranks = np.rint(np.arange(1, n + 1) * (len(values) + 1) / (n + 1)).astype(np.intp)
            out[:, rows] = np.sort(values, axis=0)[ranks - 1]
        return out

    def _endpoints(
        self, numeric: FloatArray, codes: NDArray[np.int64], *, signed: bool
    ) -> Iterator[tuple[Index, FloatArray]]:
        """Yield positions of new rows and their `jackknife_endpoints`, block by block."""
        for places, parts, forecasts in self._told(numeric, codes):
            for block in blocks(len(places), 4 * len(self.rows) * len(self.rows.targets)):
                rows = places[block]
                inputs = numeric[rows], codes[rows]
                noise = self.varying_noise
                factors = None if noise is None else (noise.held_out, noise(*inputs))
                if forecasts is not None:
                    factors = np.ones(self.rows.targets.T.shape), forecasts(inputs[0])
                endpoints = [
                    jackknife_endpoints(part, *inputs, factors, signed=signed) for part in parts
                ]
                yield rows, np.concatenate(endpoints, axis=1)

    def _told(
        self, numeric: FloatArray, codes: NDArray[np.int64]
    ) -> Iterator[tuple[Index, Sequence[LeftOut | FoldResiduals], Forecasts | None]]:
        """Yield positions of new rows of one kind, what tells of them, and forecasts of later ones.

        Known groups are told of by single rows, new ones by whole groups, later rows by those that
        folds held out.
        """
        if self.rows.is_panel:
            kinds, panel = self.kinds_of(numeric, codes), PanelResiduals(self)
            for kind in np.unique(kinds):
                told = panel.told(int(kind))
                yield np.flatnonzero(kinds == kind), told.parts, told.forecasts
            return
        known = self.rows.is_known(numeric, codes)
        for which, groups in ((known, None), (~known, self.rows.groups)):
            places = np.flatnonzero(which)
            if len(places):
                yield places, self.left_out(groups), self.forecasts

    def left_out(
        self, groups: Index | None, among: Index | None = None
    ) -> Sequence[LeftOut | FoldResiduals]:
        """Return rows with the predictors that have not seen them or their copies, or groups.

        `among`: of which rows, whole groups of them; by default all that were held out, or many of
        them where one factorisation leaves out any.
        """
        if self.rows.by_folds and self.folds:
            return [FoldResiduals(self.mixture, self.unseen_rows(among), self.forecasts)]
        copies, n_groups = self.rows.duplicate_ids, None
        if groups is not None:
            n_groups = len(np.unique(groups))
        elif len(np.unique(copies)) < len(copies):
            groups = copies
        if not self.folds:
            # without time for a fold the metric has seen all targets
            return [LeftOut(self.mixture, np.arange(len(self.rows)), groups, n_groups)]
        if self.closed:
            rows = np.flatnonzero(self.fold >= 0) if among is None else among
            if groups is None:
                rows = rows[:: -(-len(rows) // _MEMBERS)]
            own = None if groups is None else groups[rows]
            return [LeftOut(self.mixture, rows, own, n_groups)]
        parts = []
        for fold in self.folds:
            rows = fold.held_out if among is None else np.intersect1d(fold.held_out, among)
            if len(rows):
                part = fold.among(self.rows, self.weights)
                own = None if groups is None else groups[rows]
                parts.append(LeftOut(part, rows, own, n_groups))
        return parts

    def unseen_rows(self, among: Index | None = None) -> list[UnseenRows]:
        """Return predictions of the rows that each fold held out; `among`: which, all by default.

        They are by the fold's training rows alone.
        """
        if self.closed:
            return [each.among(among) for each in self.closed]
        unseen = []
        for fold in self.folds:
            rows = fold.held_out if among is None else np.intersect1d(fold.held_out, among)
            held_out, part = self.rows.take(rows), fold.mixture(self.weights)
            points = part.views.points(held_out.numeric, held_out.codes)
            target = part.target.of_rows(self.rows)
            _, latent, variance = part.posterior(points)
            unseen.append(UnseenRows(rows, target, latent, np.sqrt(variance + part.nugget)))
        return unseen

    def with_forecasts(self) -> ExactPredictor:
        """Return the predictor with what forecasts met, where later rows were held out."""
        times, folds = self.rows.times, self.folds
        if times is None or not folds:
            return self
        starts = [times[fold.held_out].min() for fold in folds]
        known = [fold.training.times for fold in folds]
        if any(own is None or own.max() >= start for own, start in zip(known, starts, strict=True)):
            # a splitter parts moments in another way
            return self
        by = np.argsort(times, kind="stable")
        later = by[np.searchsorted(times[by], min(starts)) :]
        left_out = PairsLeaveOut(self.mixture.inverse, self.mixture.target, self.rows, by)
        rows = left_out.later(later)
        if self.rows.is_panel:
            rows = replace(rows, since=known_since(self.rows))
        told = Forecasts.of(self.rows, rows, self._widths)
        return replace(self, forecasts=told)

    def _widths(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return deviations of new observations in the spread of the targets, (n, n_outputs)."""
        mixture = self.mixture.slim
        width = _width(mixture, mixture.views.points(numeric, codes))
        return width[:, None] * mixture.target.spread

    def fold_scores(self) -> list[FloatArray]:
        """Return residuals of the rows that each fold held out, in their deviations."""
        return [each.scores for each in self.unseen_rows()]

    def judge_factors(
        self, unseen: Sequence[UnseenRows], scores: FloatArray, chosen: Index
    ) -> Callable[[FloatArray], FloatArray]:
        """Return a function from factors of deviations to the mean interval score of each output.

        In units of the targets: after a power, above all one below 0, deviations that vary as they
        should may end where hardly a target is. The factors have shape (n_chosen, n_outputs), as
        have `scores`; `chosen`: which rows they are of, all the unseen ones.
        """
        mass, at = self.rows.mass[chosen], np.full(len(self.rows), -1)
        at[chosen] = np.arange(len(chosen))

        def judge(factors: FloatArray) -> FloatArray:
            steps = conformal(np.abs(scores) / factors, _LEVEL) * factors
            losses = np.empty_like(scores)
            for each in unseen:
                losses[at[each.rows]] = each.interval_scores(steps[at[each.rows]], _LEVEL)
            return np.average(losses, axis=0, weights=mass)

        return judge


def _mean(mixture: Mixture, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
    """Return predictions in the units of the targets."""
    slim = mixture.slim
    return slim.predict(slim.views.points(numeric, codes))


def _width(mixture: Mixture, points: Points) -> FloatArray:
    """Return the deviation of a new observation, standardised, shape (n,)."""
    return np.sqrt(mixture.variance(points) + mixture.nugget)
