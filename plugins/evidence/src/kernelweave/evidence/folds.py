"""Fits of the path on parts of the rows, judged on the rows left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray

from .candidates import Starts, coarse_starts, fit_candidates, pad_fits
from .mixture import Mixture, fit_mixture, weighted
from .path import Fit, Loss, PathPlan
from .rows import Rows, Split, Standardised, spread_of
from .screening import screen
from .terms import Scales, Stopped
from .views import Views

Tell = Callable[[int, int], None]


@dataclass
class PartCount:
    """Counts the parts of a fit, none twice, for whoever watches.

    `tell`: called with the parts done and all parts; `total`: all, of which the last is not a fold.
    """

    tell: Tell | None
    total: int
    done: int = 0

    def fold(self) -> None:
        """Count a fold."""
        self._count(min(self.done + 1, self.total - 1))

    def end(self) -> None:
        """Count the last part, and what turned out not to be needed."""
        self._count(self.total)

    def _count(self, done: int) -> None:
        self.done = done
        if self.tell is not None:
            self.tell(done, self.total)


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

    def among(self, rows: Rows, weights: FloatArray, views: Views | None = None) -> Mixture:
        """Return the predictor from other rows, their targets in the units of this fold's.

        `views`: of rows whose groups this fold has not seen, and would take for one.
        The metric, the views, the warp and the units have seen the fold's training rows alone.
        """
        units = Standardised.of(self.training)
        return fit_mixture(
            self.views if views is None else views, rows, self._scales(weights), units
        )

    def _scales(self, weights: FloatArray) -> tuple[Scales, ...]:
        return weighted([fit.scales for fit in self.fits[: len(weights)]], weights)


def fit_fold(
    rows: Rows,
    training: NDArray[np.intp],
    held_out: NDArray[np.intp],
    plan: PathPlan,
    random_state: np.random.RandomState,
) -> Fold:
    """Fit the path on the training rows alone and predict the rows held out.

    Where time is up, what is left of the path is filled up: a rough fit has an honest score too.
    """
    own, other = rows.take(training), rows.take(held_out)
    views = own.views(apart=True)
    starts: Starts = []
    fits: list[Fit] = []
    whole = True
    try:
        screened = screen(views, own, random_state)
        starts = coarse_starts(own, plan, random_state, screened)
        fit_candidates(views, own, plan, starts, fits, screened)
    except Stopped:
        pad_fits(views, own, plan, starts, fits)
        whole = False
    seen, points = (views.points(each.numeric, each.codes) for each in (own, other))
    # what time left undone has scales of another fit, which need not be worked out again
    known = {fit.theta.tobytes(): fit.scales for fit in fits}
    found = {
        key: fit_mixture(views, own, (each,), points=seen).predict(points)
        for key, each in known.items()
    }
    predictions = np.array([found[fit.theta.tobytes()] for fit in fits])
    return Fold(held_out, own, views, fits, predictions, whole)


def fit_folds(
    rows: Rows,
    plan: PathPlan,
    splits: Sequence[Split],
    seeds: NDArray[np.intp],
    n_jobs: int | None = None,
    parts: PartCount | None = None,
) -> list[Fold]:
    """Return the folds that there is time for; the arguments are those of `learn`.

    `seeds` of shape (n_folds,): of the coarse pass of each; `parts`: counts them.
    """
    seconds, workers = clock.seconds_left(), effective_n_jobs(n_jobs)
    # the fit of all rows comes last
    rounds = [(len(splits) - 1 - k) // workers + 2 for k in range(len(splits))]
    jobs = [
        delayed(_timed_fold)(rows, *split, plan, int(seed), seconds, left)
        for split, seed, left in zip(splits, seeds, rounds, strict=False)
    ]
    folds = []
    for fold in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
        if fold is not None:
            folds.append(fold)
        if parts is not None:
            parts.fold()
    return folds


def _timed_fold(
    rows: Rows,
    training: NDArray[np.intp],
    held_out: NDArray[np.intp],
    plan: PathPlan,
    seed: int,
    seconds: float,
    rounds: int,
) -> Fold | None:
    """Fit a fold; ``None`` where time is up.

    `seconds`: what was left when the folds began, which another process cannot know; `rounds`: fits
    that are still to come one after the other, this one among them, of which each has its share.
    """
    if clock.expired():
        return None
    share = min(seconds, clock.seconds_left()) / rounds
    with clock.time_limit(None if np.isinf(share) else share):
        return fit_fold(rows, training, held_out, plan, np.random.RandomState(seed))


def judge(
    rows: Rows, folds: Sequence[Fold], n_fits: int, loss: Loss | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return held-out predictions of each λ and their errors in units of the variance.

    `loss`: gives other errors, from rows and their predictions.
    """
    held_out = np.full((n_fits, len(rows), len(rows.targets)), np.nan)
    if not folds:
        return held_out, np.full(n_fits, np.nan)
    seen = np.concatenate([fold.held_out for fold in folds])
    for fold in folds:
        held_out[:, fold.held_out] = fold.predictions
    if loss is not None:
        own = rows.take(seen)
        return held_out, np.array([loss(own, each[seen]) for each in held_out])
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    share = weight[seen] / weight[seen].sum()
    spread = target_spread(rows)
    residual = (held_out[:, seen] - rows.targets.T[seen]) / spread
    errors: FloatArray = np.einsum("i,kit->k", share, residual**2) / len(spread)
    return held_out, errors


def target_spread(rows: Rows) -> FloatArray:
    """Return the standard deviation of each output's targets."""
    return spread_of(rows.targets - rows.targets.mean(axis=1, keepdims=True), rows.mass)
