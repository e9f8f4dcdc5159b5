"""From rows to a predictor: a metric of each fold from a part of its rows, weights by all rows.

The kernel is the mean of the folds' kernels and of one of all rows, and one factorisation of all
rows predicts with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from kernelweave.kernels_core import Status, clock
from kernelweave.kernels_core.arrays import FloatArray, Index

from .candidates import MOST_SCALES, polish, screen
from .classes import class_codes, stratified
from .cross_validation import PartCount, Report, cross_validate
from .folds import CandidateFits, Fold
from .intervals import UnseenRows
from .leave_out import PairsLeaveOut
from .mixture import Mixture, fit_mixture, path_weights, weighted
from .path import Fit, PathPlan, said_of_screening
from .powers import with_powers
from .rows import Rows, Split
from .slopes import SlopesFinding, with_slopes_that_pay
from .terms import Scales, Stopped, embedded, restricted

# smallest weight of the one-scale Gaussian among fits to classes: ±1 tells little of the scales
_PLAIN = 0.25
# Of more rows than these, one metric serves all folds. It is learned on so many rows, and these are
# not held out.
SHARED_METRIC, METRIC_ROWS = 2000, 1000


def rows_of_metric(
    rows: Rows, splits: Sequence[Split], state: np.random.RandomState, classes: bool
) -> tuple[Index, list[Split]]:
    """Return rows for a metric that serves all folds, and folds that hold out none like them.

    They are rows that no fold holds out, where these are enough; else any, and the folds are
    without them, their copies and their groups.
    """
    held = np.concatenate([held_out for _, held_out in splits])
    free = np.setdiff1d(np.arange(len(rows)), held)
    by = state.permutation(len(rows))
    if len(free) >= METRIC_ROWS:
        by = by[np.isin(by, free)]
    elif rows.by_folds:
        by = by[np.isin(by, splits[0][0])]
    keys = rows.duplicate_ids if rows.groups is None else rows.groups
    if rows.groups is not None:
        # whole groups, as their levels show between rows of one
        first = np.full(len(rows), len(rows))
        first[by] = np.arange(len(by))
        numbers = np.unique(keys, return_inverse=True)[1].ravel()
        of_group = np.full(numbers.max() + 1, len(rows))
        np.minimum.at(of_group, numbers[by], first[by])
        by = by[np.argsort(of_group[numbers[by]], kind="stable")]
    chosen = np.sort(by[:METRIC_ROWS])
    if classes:
        chosen = np.sort(by[stratified(class_codes(rows.targets[:, by]), METRIC_ROWS)])
    touched = np.isin(keys, keys[chosen])
    if len(free) >= METRIC_ROWS:
        return chosen, list(splits)
    apart = []
    for training, held_out in splits:
        rest = held_out[~touched[held_out]]
        if not rows.by_folds:
            training = np.union1d(training, held_out[touched[held_out]])
        if len(rest):
            apart.append((training, rest))
    return chosen, apart


@dataclass(frozen=True)
class Learned:
    """What a fit leaves.

    - `mixture`: the predictor from all rows
    - `fits`: the path on all rows or many of them, and after it the Gaussian kernels
    - `weights`: how they are combined, (n_fits,)
    - `errors`: held-out mean squared error of each fit, in units of the targets' variance, where no
      prediction is far beyond the targets of its training rows; NaN where no fold was finished
    - `folds`: those that were finished
    - `held_out`: predictions of rows by the fold that did not see them, (n_rows, n_outputs); NaN
      where it was not finished
    - `rows`: training rows, with flags for power transforms
    - `metric_rows`: that each metric was learned on
    - `left_out`: where all folds have one metric, rows of each left out of the factorisation
    - `missing`: what the time limit or a Ctrl-C left undone, empty if nothing
    - `slopes`: what effects that differ by group did to rows held out, where any were asked for
    """

    mixture: Mixture
    fits: list[Fit]
    weights: FloatArray
    errors: FloatArray
    folds: list[Fold]
    held_out: FloatArray
    rows: Rows
    metric_rows: int
    left_out: tuple[UnseenRows, ...] = ()
    missing: str = ""
    slopes: tuple[SlopesFinding, ...] = ()

    def __str__(self) -> str:
        n = self.mixture.points.n_points
        powers = "; skewed columns under a power" if self.rows.transform_columns else ""
        n_outliers = np.count_nonzero(self.rows.outliers)
        powers += f"; {n_outliers} outliers count less than a tenth" if n_outliers else ""
        if self.rows.ends is not None:
            powers += "; scales of what the likeliest normal makes of targets known by half, found"
            powers += " before the noise"
        wide = said_of_screening(self.fits, self.rows.n_dimensions)
        metrics = f"{len(self.folds)} folds, metrics from {self.metric_rows} rows of each"
        if self.folds and n > SHARED_METRIC:
            metrics = f"{len(self.folds)} folds, one metric from {self.metric_rows} other rows"
        elif not self.folds:
            metrics = "no folds"
        slopes = "".join(f"; {each}" for each in self.slopes)
        return f"predictor from all pairs of {n} rows, {metrics}{powers}{wide}{slopes}"


def learn(
    rows: Rows,
    splits: Sequence[Split],
    plan: PathPlan,
    random_state: np.random.RandomState,
    *,
    powers: bool = False,
    n_jobs: int | None = None,
    report: Report | None = None,
    random: bool = True,
) -> Learned:
    """Fit the path in every fold, and combine it to one kernel for all rows.

    - `splits`: training and held-out indices
    - `random_state` draws the rows of the metrics and of their first, coarse pass
    - `powers`: whether skewed columns, and skewed targets of a regression, are also tried under a
      power; held-out rows decide
    - `n_jobs`: processes for the folds
    - `report` is called with the parts done and all parts
    - `random`: whether other splits than these, at random, may choose powers
    """
    seeds = random_state.randint(2**31 - 1, size=len(splits) + 1)
    if powers:
        rows = with_powers(rows, plan, random_state, () if random else splits)
    rows, slopes = with_slopes_that_pay(rows, plan, random_state)
    shared, n_folds = None, len(splits)
    if len(rows) > SHARED_METRIC and splits:
        twin = np.random.RandomState(seeds[-1])
        shared, splits = rows_of_metric(rows, splits, twin, plan.classes)
    parts = PartCount(report, n_folds + 2)
    best = cross_validate(rows, plan, splits, seeds, n_jobs, parts, shared)
    # what rows held out say is combined below
    folds = [replace(each, predictions=each.predictions[:0]) for each in best.folds]
    plain = _PLAIN if plan.classes else 0.0
    weights = _weights(best.errors, plain) if folds else np.eye(len(best.errors))[0]
    if folds:
        n_metric = min(plan.part, len(folds[0].training))
        fits, scales, polished = folds[0].fits, folds[0].scales(weights), True
        if shared is None:
            fits, scales, polished = _kernel_of_all(rows, plan, folds, weights, int(seeds[-1]))
        else:
            n_metric = len(shared)
    else:
        # without time for a fold the metric has seen all targets
        metric = CandidateFits.of(rows, plan, int(seeds[-1]), clock.seconds_left())
        n_metric = len(rows)
        metric = metric.polished(plan, range(len(metric.fits)), clock.seconds_left())
        fits, polished = metric.fits, metric.whole
        scales = weighted([fit.scales for fit in fits], weights)
    mixture = fit_mixture(rows.views(), rows, scales)
    left_out: tuple[UnseenRows, ...] = ()
    if shared is not None and folds:
        left_out, held_out = leave_folds_out(mixture, rows, folds)
    else:
        held_out = np.einsum("k,kit->it", weights, np.nan_to_num(best.held_out))
        unseen = np.setdiff1d(np.arange(len(rows)), [i for fold in folds for i in fold.held_out])
        held_out[unseen] = np.nan
    parts.end()
    missing = _missing(n_folds if shared is None else len(splits), folds, polished)
    return Learned(
        mixture, fits, weights, best.errors, folds, held_out, rows, n_metric,
        left_out, missing, slopes,
    )  # fmt: skip


def _weights(errors: FloatArray, plain: float) -> FloatArray:
    """Return path weights of the candidates that are alive; the others have none."""
    alive = np.isfinite(errors)
    weights = np.zeros(len(errors))
    weights[alive] = path_weights(errors[alive], plain if alive[-1] else 0.0)
    return weights


def leave_folds_out(
    mixture: Mixture, rows: Rows, folds: Sequence[Fold]
) -> tuple[tuple[UnseenRows, ...], FloatArray]:
    """Return rows that folds hold out, as their training rows predict them in closed form.

    And these predictions in the units of the targets, (n_rows, n_outputs), NaN of other rows.
    """
    leave_out = PairsLeaveOut(mixture.inverse, mixture.target, rows, np.arange(len(rows)))
    leave_out.ask(np.arange(len(rows)))
    values, told = mixture.target.values.T, []
    held_out = np.full((len(rows), len(rows.targets)), np.nan)
    for fold in folds:
        away = np.setdiff1d(np.arange(len(rows)), fold.places)
        at = np.searchsorted(away, fold.held_out)
        latent = values[fold.held_out] - leave_out.residuals(away)[at]
        variances = leave_out.variances(away)[at] - mixture.outlier_variance[fold.held_out]
        told.append(UnseenRows(fold.held_out, mixture.target, latent, np.sqrt(variances)))
        held_out[fold.held_out] = mixture.target.predict(latent, mixture.width)
    return tuple(told), held_out


def _kernel_of_all(
    rows: Rows, plan: PathPlan, folds: Sequence[Fold], weights: FloatArray, seed: int
) -> tuple[list[Fit], tuple[Scales, ...], bool]:
    """Return the path and the kernel for all rows, and whether its scales were finished.

    It is half the mean of the folds' kernels, as scales of few rows vary, and half that of a search
    on all rows, or many of them, which begins where those of the folds ended. It is the second
    alone where folds have components of texts, or screens, of their own, and where groups have
    levels: their variance needs all groups.
    """
    fits, finished = _mean_fits([fold.fits for fold in folds]), True
    starts = [[fold.fits[k].theta for fold in folds] for k in range(len(fits))]
    wide = rows.n_dimensions > MOST_SCALES
    if not wide:
        starts = [[np.mean(thetas, axis=0), *thetas] for thetas in starts]
    state, part = np.random.RandomState(seed), rows
    if len(folds[0].training) > 1.5 * plan.coarse:
        plan = replace(plan, tol=max(plan.tol, plan.polish_tol))
    if len(rows) > plan.part:
        part = rows.take(np.sort(state.permutation(len(rows))[: plan.part]))
    alive = np.flatnonzero(weights).tolist()
    try:
        screened = screen(rows.views(), rows, state)
        for k, kept in enumerate(screened):
            for place in range(k * len(plan.precisions), (k + 1) * len(plan.precisions)):
                own = restricted(fits[place].theta, kept, fits[place].n_weights)
                theta = embedded(own, kept, rows.n_dimensions)
                fits[place] = replace(fits[place], theta=theta)
        for k, fit in polish(part.views(), part, plan, starts, alive, screened):
            fits[k] = fit
    except Stopped:
        finished = False
    share = 1.0 if rows.of_folds or wide or rows.group_terms else 0.5
    scales = list(weighted([fit.scales for fit in fits], share * weights))
    for fold in folds if share < 1.0 else ():
        scales += fold.scales((1.0 - share) / len(folds) * weights)
    return fits, tuple(scales), finished


def _mean_fits(fits: Sequence[Sequence[Fit]]) -> list[Fit]:
    """Return for each candidate the mean of the folds' scales, and how the searches ended."""
    out = []
    for of_candidate in zip(*fits, strict=True):
        with np.errstate(divide="ignore"):
            theta = np.log(np.mean([np.exp(each.theta) for each in of_candidate], axis=0))
        worst = max(of_candidate, key=lambda each: each.status is not Status.STATIONARY)
        out.append(
            Fit(
                worst.precision,
                theta,
                float(np.mean([each.value for each in of_candidate])),
                float(np.max([each.slope for each in of_candidate])),
                sum(each.n_evaluations for each in of_candidate),
                worst.status,
                worst.n_weights,
            )
        )
    return out


def _missing(n_folds: int, folds: Sequence[Fold], polished: bool) -> str:
    n_missing, n_cut = n_folds - len(folds), sum(not fold.whole for fold in folds)
    parts = [f"{n_missing} of {n_folds} folds not reached"] if n_missing else []
    parts += [f"{n_cut} of {n_folds} folds cut short"] if n_cut else []
    parts += [] if polished else ["the search on all rows cut short"]
    return ", ".join(parts)
