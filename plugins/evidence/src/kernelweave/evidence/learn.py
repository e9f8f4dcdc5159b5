"""From rows to a predictor: a metric of each fold from a part of its rows, weights by all rows.

The kernel is the mean of the folds' kernels and of one of all rows, and one factorisation of all
rows predicts with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from kernelweave.kernels_core import Status, clock
from kernelweave.kernels_core.arrays import FloatArray, Index

from .candidates import MOST_SCALES, candidate_precisions, fit_candidates, pad_fits, polish, screen
from .classes import class_codes, stratified
from .intervals import UnseenRows
from .leave_out import PairsLeaveOut
from .mixture import Mixture, fit_mixture, path_weights, weighted
from .path import Fit, PathPlan, without_scales
from .rows import Rows, Split, Standardised, spread_of
from .scores import error_over_groups, margin_of_error, mean_with_error
from .terms import Scales, Stopped, embedded, restricted
from .views import Views, Warp, is_skewed

# a power nearer to 1 changes the targets too little to pay for a second fit
_MIN_POWER_CHANGE = 0.15
# smallest weight of the one-scale Gaussian among fits to classes: ±1 tells little of the scales
_PLAIN = 0.25
# standard deviations beyond the targets of its training rows at which a prediction is judged
_ROOM = 0.3
# share of the best candidate's weight below which rough scales are not learned on more rows
_HOPELESS = 0.02
# training rows that predict those held out by rough scales, and by those that are weighed where one
# metric serves all folds, at most
_ROUGH_ROWS, _WEIGHING_ROWS = 800, 1200
# Of more rows than these, one metric serves all folds. It is learned on so many rows, and these are
# not held out.
SHARED_METRIC, METRIC_ROWS = 2000, 1000

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


@dataclass(frozen=True)
class Fold:
    """A fit of the path on some rows, and its predictions of the others.

    - `places`, `held_out`: which rows it was fitted on, and which not
    - `views`: of the training rows
    - `predictions`: one per fit, in the units of the targets, (n_fits, n_held_out, n_outputs)
    - `whole`: whether there was time for the whole path
    """

    places: Index
    held_out: Index
    training: Rows
    views: Views
    fits: list[Fit]
    predictions: FloatArray
    whole: bool = True

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_kept"}

    def mixture(self, weights: FloatArray) -> Mixture:
        """Return this fold's predictor, the path combined; that of the last weights is kept."""
        kept = vars(self).get("_kept")
        if kept is None or not np.array_equal(kept[0], weights):
            kept = weights, fit_mixture(self.views, self.training, self.scales(weights))
            vars(self)["_kept"] = kept
        mixture: Mixture = kept[1]
        return mixture

    def among(self, rows: Rows, weights: FloatArray) -> Mixture:
        """Return the predictor from all rows, their targets in the units of this fold's.

        The metric, the views, the warp and the units have seen the fold's training rows alone; but
        groups that it has not seen it would take for one, so that views of groups are of all rows.
        """
        views, units = self.views, Standardised.of(self.training)
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


def fit_fold(
    rows: Rows, training: Index, held_out: Index, plan: PathPlan, seed: int
) -> Fold | None:
    """Fit every candidate on the training rows alone and predict the rows held out."""
    metric = fit_metric(rows.take(training), plan, seed)
    if metric is None:
        return None
    return fold_of(rows, training, held_out, metric.polished(plan, range(len(metric.fits))))


class CrossValidatedFits(NamedTuple):
    """Cross-validated fits of rows, with or without transforms of columns and targets.

    `held_out`, `errors`: as in `Learned`, for each fit; `judged`: those held out, none far beyond
    the targets of its training rows; `alive`: places of the fits that were not given up.
    """

    rows: Rows
    folds: list[Fold]
    held_out: FloatArray
    judged: FloatArray
    errors: FloatArray
    alive: Sequence[int]

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
        gains = other._squares() - self._squares()
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
            warp = Warp.of(y, mass) if self.rows.transform_targets else Warp(1.0, 0.0, 1.0, False)
            rest = warp.forward(y) - warp.forward(told)
            size = np.nansum(mass * np.abs(rest)) / mass[np.isfinite(rest)].sum()
            found -= np.log(warp.slope(y)) + np.log(size) + np.abs(rest) / size
        return found

    def _squares(self) -> FloatArray:
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
    return CrossValidatedFits(rows, folds, *_judged(rows, plan, folds, alive), alive)


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


def try_powers(
    best: CrossValidatedFits,
    cross_validate: Callable[[Rows, PathPlan], CrossValidatedFits],
    plan: PathPlan,
) -> CrossValidatedFits:
    """Choose by cross-validation whether to transform skewed targets and columns.

    `best`: the fits without, which are returned where no transform is better.

    Columns only if that is significantly better: on real tables, smaller gains were as often losses
    on other rows.
    """
    skewed = has_skewed_columns(best.rows)
    if skewed:
        other = cross_validate(replace(best.rows, transform_columns=True), plan)
        if other.is_significantly_better_than(best):
            best = other
    if has_skewed_targets(best.rows, plan):
        other = cross_validate(replace(best.rows, transform_targets=True), plan)
        is_better = other.loss < best.loss or other.is_likelier_than(best)
        # what bends the targets bends a trend too, beyond the rows that chose it
        if best.rows.times is not None:
            is_better = other.is_significantly_better_than(best)
        # a power whose folds were cut short says nothing
        if len(other.folds) == len(best.folds) and is_better:
            best = other
    if skewed and best.rows.transform_targets and not best.rows.transform_columns:
        other = cross_validate(replace(best.rows, transform_columns=True), plan)
        if other.is_significantly_better_than(best) or other.is_likelier_than(best):
            best = other
    return best


def with_powers(
    rows: Rows,
    plan: PathPlan,
    random_state: np.random.RandomState,
    given: Sequence[Split] = (),
) -> Rows:
    """Return rows under the powers that rough fits of two halves of a part prefer.

    Each is judged by the other half, or as the part has its share of splits that are given. A
    second fit of all would cost many times as much. The random state is left as it is: where no
    power is taken, the fit is the one that was offered none.
    """
    if not (has_skewed_columns(rows) or has_skewed_targets(rows, plan)):
        return rows
    twin = deepcopy(random_state)
    chosen = np.sort(twin.permutation(len(rows))[: 2 * plan.coarse])
    # these halves are no folds, and no score is told of them
    part = rows.take(chosen).without_folds()
    one, other = np.array_split(twin.permutation(len(part)), 2)
    splits, seeds = [(one, other), (other, one)], twin.randint(2**31 - 1, size=2 + len(given))
    if given:
        both = [[np.flatnonzero(np.isin(chosen, each)) for each in split] for split in given]
        splits = [(training, held) for training, held in both if len(training) and len(held)]
    fit = partial(cross_validate, splits=splits, seeds=seeds)
    best = try_powers(fit(part, plan.rough), fit, plan.rough)
    return replace(
        rows,
        transform_targets=best.rows.transform_targets,
        transform_columns=best.rows.transform_columns,
    )


def has_skewed_columns(rows: Rows) -> bool:
    """Return whether any numeric column is skewed."""
    return bool(is_skewed(rows.numbers, rows.mass / rows.mass.sum()).any())


def has_skewed_targets(rows: Rows, plan: PathPlan) -> bool:
    """Return whether the power that makes a regression target nearly normal is far from 1."""
    powers = [] if plan.classes else [Warp.of(each, rows.mass).power for each in rows.targets]
    return any(abs(power - 1.0) > _MIN_POWER_CHANGE for power in powers)


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

    def __str__(self) -> str:
        n = self.mixture.points.n_points
        powers = "; skewed columns under a power" if self.rows.transform_columns else ""
        n_outliers = np.count_nonzero(self.rows.outliers)
        powers += f"; {n_outliers} outliers count less than a tenth" if n_outliers else ""
        away, p = len(without_scales(self.fits)), self.rows.n_dimensions
        wide = f"; {away} of {p} dimensions screened away by trees" if away else ""
        metrics = f"{len(self.folds)} folds, metrics from {self.metric_rows} rows of each"
        if self.left_out:
            metrics = f"{len(self.folds)} folds, one metric from {self.metric_rows} other rows"
        elif not self.folds:
            metrics = "no folds"
        return f"predictor from all pairs of {n} rows, {metrics}{powers}{wide}"


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
    shared, n_folds = None, len(splits)
    if len(rows) > SHARED_METRIC and splits:
        twin = np.random.RandomState(seeds[-1])
        shared, splits = rows_of_metric(rows, splits, twin, plan.classes)
    parts = PartCount(report, n_folds + 2)
    best = cross_validate(rows, plan, splits, seeds, n_jobs, parts, shared)
    # what rows held out say is combined below
    folds = [replace(each, predictions=each.predictions[:0]) for each in best.folds]
    plain = _PLAIN if plan.classes else 0.0
    weights = _weights(best.errors, plain) if folds else _strongest(len(best.errors))
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
        left_out, missing,
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
                theta = embedded(restricted(fits[place].theta, kept), kept, rows.n_dimensions)
                fits[place] = replace(fits[place], theta=theta)
        for k, fit in polish(part.views(), part, plan, starts, alive, screened):
            fits[k] = fit
    except Stopped:
        finished = False
    share = 1.0 if rows.of_folds or wide or rows.group is not None else 0.5
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
            )
        )
    return out


def _strongest(n_fits: int) -> FloatArray:
    return np.asarray(np.eye(n_fits)[0])


def _missing(n_folds: int, folds: Sequence[Fold], polished: bool) -> str:
    n_missing, n_cut = n_folds - len(folds), sum(not fold.whole for fold in folds)
    parts = [f"{n_missing} of {n_folds} folds not reached"] if n_missing else []
    parts += [f"{n_cut} of {n_folds} folds cut short"] if n_cut else []
    parts += [] if polished else ["the search on all rows cut short"]
    return ", ".join(parts)
