"""Cross-validated fits: which candidates are worth more rows, and how two ways compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray, Index

from .candidates import candidate_precisions
from .folds import CandidateFits, Fold, fit_metric, fold_of
from .path import PathPlan
from .rows import Rows, Split, spread_of
from .scores import error_over_groups, margin_of_error, mean_with_error
from .views import Warp

# standard deviations beyond the targets of its training rows at which a prediction is judged
_ROOM = 0.3
# share of the best candidate's weight below which rough scales are not learned on more rows
_HOPELESS = 0.02
# training rows that predict those held out by rough scales, and by those that are weighed where one
# metric serves all folds, at most
_ROUGH_ROWS, _WEIGHING_ROWS = 800, 1200

Report = Callable[[int, int], None]


@dataclass
class PartCount:
    """Counts the parts of a fit, none twice, for whoever watches.

    `report`: called with the parts done and all parts; `total`: all, of which the last comes after
    the folds.
    """

    report: Report | None
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
        if self.report is not None:
            self.report(done, self.total)


class CrossValidatedFits(NamedTuple):
    """Cross-validated fits of rows, with or without transforms of columns and targets.

    `held_out`, `errors`: as in `Learned`, for each fit; `judged`: those held out, none far beyond
    the targets of its training rows.
    """

    rows: Rows
    folds: list[Fold]
    held_out: FloatArray
    judged: FloatArray
    errors: FloatArray

    @property
    def loss(self) -> float:
        """The least error among the fits."""
        return float(np.nan_to_num(self.errors, nan=np.inf).min())

    def is_significantly_better_than(
        self, other: CrossValidatedFits, n_errors: float = 2.0
    ) -> bool:
        """Return whether the squared error is lower by more than so many standard errors.

        Of rows in an order by more than chance has over their blocks: one that goes its own way is
        one case, however many rows it has.
        """
        if not self.folds or len(self.folds) < len(other.folds):
            return False
        gains = other.squares - self.squares
        mass = self.rows.precision * np.isfinite(gains)
        gain, error = mean_with_error(np.nan_to_num(gains), mass)
        if self.rows.times is None:
            return gain > n_errors * error
        share, rest = mass / mass.sum(), np.nan_to_num(gains) - gain
        blocks = np.zeros(len(self.rows), dtype=np.intp)
        for k, fold in enumerate(self.folds):
            blocks[fold.held_out] = k
        error = error_over_groups(share * rest, blocks)
        return gain > margin_of_error((error, len(self.folds)))

    def is_likelier_than(self, other: CrossValidatedFits) -> bool:
        """Return whether held-out targets are, significantly, and squared errors little worse.

        Few large targets decide squared errors, however many rows there are.
        """
        if not self.folds or len(self.folds) < len(other.folds):
            return False
        if other.is_significantly_better_than(self, 1.0):
            return False
        with np.errstate(divide="ignore", invalid="ignore"):
            gains = self._log_densities() - other._log_densities()
        mass = self.rows.precision * np.isfinite(gains)
        gain, error = mean_with_error(np.nan_to_num(gains, posinf=0.0, neginf=0.0), mass)
        return gain > 2.0 * error

    def _log_densities(self) -> FloatArray:
        """Return those of each row's targets, by Laplace's around what rows held out are predicted.

        With transformed targets the distribution is of these. Few rows do not decide its width.
        """
        predictions, mass = self.judged[int(np.nanargmin(self.errors))], self.rows.mass
        found = np.zeros(len(mass))
        for y, told in zip(self.rows.targets, predictions.T, strict=True):
            warp = Warp(1.0, 0.0, 1.0, False)
            if self.rows.transform_targets:
                warp = Warp.of_target(y, mass)
            rest = warp.forward(y) - warp.forward(told)
            size = np.nansum(mass * np.abs(rest)) / mass[np.isfinite(rest)].sum()
            found -= np.log(warp.slope(y)) + np.log(size) + np.abs(rest) / size
        return found

    @property
    def squares(self) -> FloatArray:
        """The best fit's squared residual of each row, in units of the targets' variance."""
        rest = self.judged[int(np.nanargmin(self.errors))] - self.rows.targets.T
        return np.asarray(np.mean((rest / target_spread(self.rows)) ** 2, axis=1))


def cross_validate(
    rows: Rows,
    plan: PathPlan,
    splits: Sequence[Split],
    seeds: Index,
    n_jobs: int | None = None,
    parts: PartCount | None = None,
    shared: Index | None = None,
) -> CrossValidatedFits:
    """Fit and judge the folds that there is time for; the arguments are those of `learn`.

    Rough scales of a few rows say which candidates are worth learning on more.

    `seeds` of shape (n_folds,): of the parts of each; `parts`: counts them; `shared`: rows of a
    metric for all folds, none of which holds out one of these.
    """
    n_folds, workers = len(splits), effective_n_jobs(n_jobs)
    n_metrics = n_folds if shared is None else 1
    # rounds of metrics that are still to come: each is learned in two steps
    rounds = [2 * ((n_metrics - 1 - k) // workers + 1) for k in range(n_metrics)]
    seconds = clock.seconds_left()
    given = [rows.in_fold(k) for k in range(n_folds)]
    if shared is None:
        learned_from = [each.take(split[0]) for each, split in zip(given, splits, strict=True)]
        n_rows = None
    else:
        learned_from, n_rows = [rows.take(shared)], len(shared)
    metrics: list[CandidateFits | None] = []
    jobs = (
        delayed(fit_metric)(each, plan, int(seed), seconds / left, n_rows)
        for each, seed, left in zip(learned_from, seeds, rounds, strict=False)
    )
    for metric in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
        metrics.append(metric)
        if parts is not None:
            parts.fold()
    found = [each for each in metrics if each is not None]
    alive: Sequence[int] = range(len(candidate_precisions(plan, rows)))
    folds: list[Fold] = []
    if found:
        of_folds = metrics if shared is None else metrics * n_folds
        known = [
            (each, *split, metric)
            for each, split, metric in zip(given, splits, of_folds, strict=True)
            if metric is not None
        ]
        if any(metric.is_rough for metric in found):
            rough = [fold_of(*each, _ROUGH_ROWS) for each in known]
            alive = _alive(_judged(rows, plan, rough, alive)[2])
        seconds = clock.seconds_left()
        polished = Parallel(n_jobs=n_jobs)(
            delayed(CandidateFits.polished)(metric, plan, alive, seconds / (k // workers + 1))
            for metric, k in zip(found, reversed(range(len(found))), strict=True)
        )
        if parts is not None:
            parts.fold()
        best = polished if shared is None else polished * len(known)
        # with metrics of their own these are the predictions that are told of rows held out
        most = None if shared is None else _WEIGHING_ROWS
        folds = [
            fold_of(*each[:-1], metric, most, alive)
            for each, metric in zip(known, best, strict=True)
        ]
    return CrossValidatedFits(rows, folds, *_judged(rows, plan, folds, alive))


def _alive(errors: FloatArray) -> list[int]:
    """Return the places of candidates that rough scales do not rule out."""
    shares = np.exp(-20.0 * (errors / max(float(errors.min()), np.finfo(np.float64).tiny) - 1.0))
    return np.flatnonzero(shares >= _HOPELESS).tolist()


def _judged(
    rows: Rows, plan: PathPlan, folds: Sequence[Fold], alive: Sequence[int]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return predictions of rows held out, those that are judged, and each candidate's error.

    The error is NaN where a candidate is not alive.
    """
    n_fits = len(candidate_precisions(plan, rows))
    held_out = np.full((n_fits, len(rows), len(rows.targets)), np.nan)
    judged, errors = held_out.copy(), np.full(n_fits, np.nan)
    if not folds:
        return held_out, judged, errors
    for fold in folds:
        held_out[:, fold.held_out] = fold.predictions
        judged[:, fold.held_out] = _near(fold.predictions, fold.training)
    seen = np.concatenate([fold.held_out for fold in folds])
    share, spread = rows.precision[seen] / rows.precision[seen].sum(), target_spread(rows)
    subset, loss = rows.take(seen), plan.loss
    for k in alive:
        if loss is not None:
            errors[k] = loss(subset, held_out[k, seen])
        else:
            residual = (judged[k, seen] - rows.targets.T[seen]) / spread
            errors[k] = np.einsum("i,it->", share, residual**2) / len(spread)
    return held_out, judged, errors


def _near(predictions: FloatArray, rows: Rows) -> FloatArray:
    """Return predictions, none far beyond the targets of the rows that predict.

    One row that lies far outside would decide between fits, and not by what either has learned. In
    an order rows lie there by intention.
    """
    if rows.times is not None:
        return predictions
    room = _ROOM * target_spread(rows)
    return np.clip(predictions, rows.targets.min(axis=1) - room, rows.targets.max(axis=1) + room)


def target_spread(rows: Rows) -> FloatArray:
    """Return the standard deviation of each output's targets."""
    return spread_of(rows.targets - rows.targets.mean(axis=1, keepdims=True), rows.mass)
