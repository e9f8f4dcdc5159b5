"""A fold: scales from some rows, and what they say of the rows held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray, Index

from .candidates import fit_candidates, pad_fits, polish, screen
from .mixture import Mixture, fit_mixture, weighted
from .path import Fit, PathPlan
from .rows import Rows, Standardised
from .terms import Scales, Stopped
from .views import Views


@dataclass(frozen=True)
class Fold:
    """A fit of the path on some rows, and its predictions of the others.

    - `places`, `held_out`: which rows it was fitted on, and which not
    - `views`: of the training rows
    - `predictions`: one per fit, in the units of the targets, (n_fits, n_held_out, n_outputs)
    - `whole`: whether there was time for the whole path
    - `units`: of the targets, where they are not those of the training rows
    - `metric_units`: of the targets that the scales were learned of, where a last step moved them
    """

    places: Index
    held_out: Index
    training: Rows
    views: Views
    fits: list[Fit]
    predictions: FloatArray
    whole: bool = True
    units: Standardised | None = None
    metric_units: Standardised | None = None

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_kept"}

    def mixture(self, weights: FloatArray) -> Mixture:
        """Return this fold's predictor, the path combined; that of the last weights is kept."""
        kept = vars(self).get("_kept")
        if kept is None or not np.array_equal(kept[0], weights):
            kept = weights, fit_mixture(self.views, self.training, self.scales(weights), self.units)
            vars(self)["_kept"] = kept
        mixture: Mixture = kept[1]
        return mixture

    def among(self, rows: Rows, weights: FloatArray) -> Mixture:
        """Return the predictor from all rows, their targets in the units of this fold's.

        The metric, the views, the warp and the units have seen the fold's training rows alone; but
        groups that it has not seen it would take for one, so that views of groups are of all rows.
        """
        views, units = self.views, self.units or Standardised.of(self.training)
        if rows.groups is not None:
            views = replace(rows, columns=self.training.columns).views()
        return fit_mixture(views, rows, self.scales(weights), units)

    def scales(self, weights: FloatArray) -> tuple[Scales, ...]:
        """Return those of this fold's kernel, a weighted sum."""
        return weighted([fit.scales for fit in self.fits[: len(weights)]], weights)


class CandidateFits(NamedTuple):
    """Scales of each candidate, from some rows.

    `rows`: those that scales are learned on; `views`: of these; `fits`: of a part of the rows where
    they are rough, else of all; `screened`: as in `fit_candidates`; `whole`: whether there was time
    for all of them.
    """

    rows: Rows
    views: Views
    fits: list[Fit]
    is_rough: bool
    screened: Sequence[Index] = ()
    whole: bool = True

    @classmethod
    def of(cls, rows: Rows, plan: PathPlan, seed: int, seconds: float = np.inf) -> CandidateFits:
        """Learn scales from scratch, roughly where rows are many.

        Where time is up, what is left of the path is filled up: a rough fit has an honest score
        too. `seed`: of the parts; `seconds`: until then.
        """
        state = np.random.RandomState(seed)
        limit = None if np.isinf(seconds) else seconds
        views = rows.views(apart=True)
        fits: list[Fit] = []
        whole, is_rough = True, len(rows) > 1.5 * plan.coarse
        screened: Sequence[Index] = ()
        part, own = rows, views
        if is_rough:
            part = rows.take(np.sort(state.permutation(len(rows))[: plan.coarse]))
            own, plan = part.views(), replace(plan, tol=max(plan.tol, plan.coarse_tol))
        with clock.time_limit(limit):
            try:
                screened = screen(views, rows, state)
                fits.extend(fit_candidates(own, part, plan, screened))
            except Stopped:
                pad_fits(own, part, plan, fits)
                whole = False
        return cls(rows, views, fits, is_rough, screened, whole)

    def polished(
        self, plan: PathPlan, alive: Sequence[int], seconds: float = np.inf
    ) -> CandidateFits:
        """Return scales of the living candidates from all of the rows."""
        if not self.is_rough:
            return self
        plan = replace(plan, tol=max(plan.tol, plan.polish_tol))
        starts, fits, whole = [[each.theta] for each in self.fits], list(self.fits), self.whole
        with clock.time_limit(None if np.isinf(seconds) else seconds):
            try:
                for k, fit in polish(self.views, self.rows, plan, starts, alive, self.screened):
                    fits[k] = fit
            except Stopped:
                whole = False
        return self._replace(fits=fits, whole=whole)


def fit_metric(
    rows: Rows, plan: PathPlan, seed: int, seconds: float = np.inf, n_rows: int | None = None
) -> CandidateFits | None:
    """Return a metric of at most so many of the rows; ``None`` where time was up before.

    `seconds`: what was left when the folds began, which another process cannot know.
    """
    if clock.expired():
        return None
    most = plan.part if n_rows is None else n_rows
    if len(rows) > most:
        chosen = np.random.RandomState(seed).permutation(len(rows))[:most]
        rows = rows.take(np.sort(chosen))
    return CandidateFits.of(rows, plan, seed, min(seconds, clock.seconds_left()))


def fold_of(
    rows: Rows,
    training: Index,
    held_out: Index,
    metric: CandidateFits,
    most: int | None = None,
    alive: Sequence[int] | None = None,
) -> Fold:
    """Return a fold: training rows predict those held out by each candidate of a metric.

    `most`: training rows that predict, at most; `alive`: places of the candidates that do, all by
    default; predictions of others are missing.
    """
    train, test = rows.take(training), rows.take(held_out)
    same = len(train) == len(metric.rows) and np.array_equal(train.numeric, metric.rows.numeric)
    views = metric.views if same else train.views(apart=True)
    given = train
    if most is not None and len(train) > most:
        given = train.take(np.linspace(0, len(train) - 1, most).astype(np.intp))
    seen, points = (views.points(each.numeric, each.codes) for each in (given, test))
    predictions = np.full((len(metric.fits), len(test), len(rows.targets)), np.nan)
    # what time left undone has scales of another fit, which need not be worked out again
    done: dict[bytes, FloatArray] = {}
    for k in range(len(metric.fits)) if alive is None else alive:
        fit = metric.fits[k]
        key = fit.theta.tobytes()
        if key not in done:
            done[key] = fit_mixture(views, given, (fit.scales,), points=seen).predict(points)
        predictions[k] = done[key]
    return Fold(training, held_out, train, views, metric.fits, predictions, metric.whole)
