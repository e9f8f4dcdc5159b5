"""From rows to a predictor: powers that held-out rows choose, folds, path, weights, one factor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from kernelweave.kernels_core import Status, clock
from kernelweave.kernels_core.arrays import FloatArray, Index

from .candidates import (
    MOST_SCALES,
    Starts,
    candidate_precisions,
    coarse_starts,
    fit_candidates,
    pad_fits,
    screen,
)
from .mixture import Mixture, fit_mixture, path_weights, weighted
from .objective import start
from .path import ROUGH, Fit, PathPlan, without_scales
from .rows import Rows, Split, Standardised, spread_of
from .scores import error_over_groups, margin_of_error, mean_with_error
from .terms import Scales, Stopped
from .views import Views, Warp, is_skewed

# a power nearer to 1 changes the targets too little to pay for a second fit
_MIN_POWER_CHANGE = 0.15
# smallest weight of the one-scale Gaussian among fits to classes: ±1 tells little of the scales
_PLAIN = 0.25


Report = Callable[[int, int], None]


@dataclass
class PartCount:
    """Counts the parts of a fit, none twice, for whoever watches.

    `report`: called with the parts done and all parts; `total`: all, of which the last is not a
    fold.
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

    - `views`: of the training rows
    - `predictions`: one per fit, in the units of the targets, (n_fits, n_held_out, n_outputs)
    - `whole`: whether there was time for the whole path
    """

    held_out: Index
    training: Rows
    views: Views
    fits: list[Fit]
    predictions: FloatArray
    whole: bool = True

    def mixture(self, weights: FloatArray) -> Mixture:
        """Return this fold's predictor, the path combined."""
        return fit_mixture(self.views, self.training, self._scales(weights))

    def among(self, rows: Rows, weights: FloatArray) -> Mixture:
        """Return the predictor from all rows, their targets in the units of this fold's.

        The metric, the views, the warp and the units have seen the fold's training rows alone; but
        groups that it has not seen it would take for one, so that views of groups are of all rows.
        """
        views, units = self.views, Standardised.of(self.training)
        if rows.groups is not None:
            views = replace(rows, columns=self.training.columns).views()
        return fit_mixture(views, rows, self._scales(weights), units)

    def _scales(self, weights: FloatArray) -> tuple[Scales, ...]:
        return weighted([fit.scales for fit in self.fits[: len(weights)]], weights)


def fit_fold(
    rows: Rows,
    training: Index,
    held_out: Index,
    plan: PathPlan,
    seed: int,
    seconds: float = np.inf,
    rounds: int = 1,
) -> Fold | None:
    """Fit the path on the training rows alone and predict the rows held out.

    Where time is up, what is left of the path is filled up: a rough fit has an honest score too;
    ``None`` where it was up before.

    `seed`: of the coarse pass; `seconds`: what was left when the folds began, which another process
    cannot know; `rounds`: fits that are still to come one after the other, this one among them, of
    which each has its share.
    """
    if clock.expired():
        return None
    train, test, state = rows.take(training), rows.take(held_out), np.random.RandomState(seed)
    views = train.views(apart=True)
    starts: Starts = []
    fits: list[Fit] = []
    whole, share = True, min(seconds, clock.seconds_left()) / rounds
    with clock.time_limit(None if np.isinf(share) else share):
        try:
            screened = screen(views, train, state)
            starts = coarse_starts(train, plan, state, screened)
            fits.extend(fit_candidates(views, train, plan, starts, screened))
        except Stopped:
            pad_fits(views, train, plan, starts, fits)
            whole = False
    seen, points = (views.points(each.numeric, each.codes) for each in (train, test))
    # what time left undone has scales of another fit, which need not be worked out again
    scales = {fit.theta.tobytes(): fit.scales for fit in fits}
    values = {
        key: fit_mixture(views, train, (each,), points=seen).predict(points)
        for key, each in scales.items()
    }
    predictions = np.array([values[fit.theta.tobytes()] for fit in fits])
    return Fold(held_out, train, views, fits, predictions, whole)


# by whether columns and targets are transformed
RoughFolds: TypeAlias = dict[tuple[bool, bool], list[Fold]]


class CrossValidatedFits(NamedTuple):
    """Cross-validated fits of rows, with or without transforms of columns and targets.

    `held_out`, `errors`: as in `Learned`, for each fit.
    """

    rows: Rows
    folds: list[Fold]
    held_out: FloatArray
    errors: FloatArray

    @property
    def loss(self) -> float:
        """The least error among the fits."""
        return float(np.nan_to_num(self.errors, nan=np.inf).min())

    def is_significantly_better_than(self, other: CrossValidatedFits) -> bool:
        """Return whether the squared error is lower by more than two standard errors.

        Of rows in an order by more than chance has over their blocks: one that goes its own way is
        one case, however many rows it has.
        """
        if not self.folds or len(self.folds) < len(other.folds):
            return False
        gains = other._squares() - self._squares()
        mass = self.rows.precision * np.isfinite(gains)
        gain, error = mean_with_error(np.nan_to_num(gains), mass)
        if self.rows.times is None:
            return gain > 2.0 * error
        share, rest = mass / mass.sum(), np.nan_to_num(gains) - gain
        blocks = np.zeros(len(self.rows), dtype=np.intp)
        for k, fold in enumerate(self.folds):
            blocks[fold.held_out] = k
        error = error_over_groups(share * rest, blocks)
        return gain > margin_of_error((error, len(self.folds)))

    def _squares(self) -> FloatArray:
        rest = self.held_out[int(np.nanargmin(self.errors))] - self.rows.targets.T
        return np.asarray(np.mean((rest / target_spread(self.rows)) ** 2, axis=1))


def cross_validate(
    rows: Rows,
    plan: PathPlan,
    splits: Sequence[Split],
    seeds: Index,
    n_jobs: int | None = None,
    parts: PartCount | None = None,
    known: RoughFolds | None = None,
) -> CrossValidatedFits:
    """Fit and judge the folds that there is time for; the arguments are those of `learn`.

    `seeds` of shape (n_folds,): of the coarse pass of each; `parts`: counts them; `known`: folds
    that need not be fitted again; those that are fitted are added.
    """
    key = (rows.transform_columns, rows.transform_targets)
    seconds, workers = clock.seconds_left(), effective_n_jobs(n_jobs)
    # the fit of all rows comes last
    rounds = [(len(splits) - 1 - k) // workers + 2 for k in range(len(splits))]
    jobs = [
        delayed(fit_fold)(rows.in_fold(k), *split, plan, int(seed), seconds, left)
        for k, (split, seed, left) in enumerate(zip(splits, seeds, rounds, strict=False))
    ]
    folds = [] if known is None else known.get(key, [])
    for fold in Parallel(n_jobs=n_jobs, return_as="generator")([] if folds else jobs):
        if fold is not None:
            folds.append(fold)
        if parts is not None:
            parts.fold()
    if known is not None:
        known[key] = folds
    n_fits = len(candidate_precisions(plan, rows))
    held_out = np.full((n_fits, len(rows), len(rows.targets)), np.nan)
    if not folds:
        return CrossValidatedFits(rows, folds, held_out, np.full(n_fits, np.nan))
    for fold in folds:
        held_out[:, fold.held_out] = fold.predictions
    seen = np.concatenate([fold.held_out for fold in folds])
    if plan.loss is not None:
        subset, loss = rows.take(seen), plan.loss
        errors = np.array([loss(subset, each[seen]) for each in held_out])
    else:
        share, spread = rows.precision[seen] / rows.precision[seen].sum(), target_spread(rows)
        residual = (held_out[:, seen] - rows.targets.T[seen]) / spread
        errors = np.asarray(np.einsum("i,kit->k", share, residual**2) / len(spread))
    return CrossValidatedFits(rows, folds, held_out, errors)


def target_spread(rows: Rows) -> FloatArray:
    """Return the standard deviation of each output's targets."""
    return spread_of(rows.targets - rows.targets.mean(axis=1, keepdims=True), rows.mass)


def try_powers(
    best: CrossValidatedFits,
    cross_validate: Callable[[Rows, PathPlan], CrossValidatedFits],
    plan: PathPlan,
) -> CrossValidatedFits:
    """Choose by cross-validation whether to transform skewed columns and targets.

    `best`: the fits without, which are returned where no transform is better.

    Columns only if that is significantly better in a rough fit: on real tables, smaller gains were
    as often losses on other rows.
    """
    rows = best.rows
    if has_skewed_columns(rows):
        rough = replace(plan, tol=max(plan.tol, ROUGH))
        other = cross_validate(replace(rows, transform_columns=True), rough)
        if other.is_significantly_better_than(best):
            full = cross_validate(other.rows, plan) if rough != plan else other
            # time may have run out meanwhile
            best = full if len(full.folds) == len(other.folds) else other
    if has_skewed_targets(rows, plan):
        other = cross_validate(replace(best.rows, transform_targets=True), plan)
        # what bends the targets bends a trend too, beyond the rows that chose it
        is_better = other.loss < best.loss
        if rows.times is not None:
            is_better = other.is_significantly_better_than(best)
        # a power whose folds were cut short says nothing
        if len(other.folds) == len(best.folds) and is_better:
            best = other
    return best


def attempts(rows: Rows, plan: PathPlan) -> int:
    """Return how often the folds are fitted at most, with `try_powers`."""
    return 1 + 2 * has_skewed_columns(rows) + has_skewed_targets(rows, plan)


def powers_of_a_part(
    rows: Rows,
    plan: PathPlan,
    random_state: np.random.RandomState,
    given: Sequence[Split] = (),
    known: RoughFolds | None = None,
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
    fit = partial(cross_validate, splits=splits, seeds=seeds, known=known)
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


@dataclass(frozen=True)
class Learned:
    """What a fit leaves.

    - `mixture`: the predictor from all rows
    - `fits`: the path on all rows, and after it the Gaussian kernels
    - `weights`: how they are combined, (n_fits,)
    - `errors`: held-out mean squared error of each fit, in units of the targets' variance; NaN
      where no fold was finished
    - `folds`: those that were finished
    - `held_out`: predictions of rows by the fold that did not see them, (n_rows, n_outputs); NaN
      where it was not finished
    - `rows`: the training rows, with the words whether numbers and targets are under powers
    - `missing`: what the time limit or a Ctrl-C left undone, empty if nothing
    """

    mixture: Mixture
    fits: list[Fit]
    weights: FloatArray
    errors: FloatArray
    folds: list[Fold]
    held_out: FloatArray
    rows: Rows
    missing: str = ""

    def __str__(self) -> str:
        n = self.mixture.points.n_points
        powers = "; skewed columns under a power" if self.rows.transform_columns else ""
        n_outliers = np.count_nonzero(self.rows.outliers)
        powers += f"; {n_outliers} outliers count less than a tenth" if n_outliers else ""
        away, p = len(without_scales(self.fits)), self.rows.n_dimensions
        wide = f"; {away} of {p} dimensions screened away by trees" if away else ""
        folds = f"{len(self.folds)} folds"
        return f"metric and predictor from all pairs of {n} rows, {folds}{powers}{wide}"


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
    known: RoughFolds | None = None,
) -> Learned:
    """Fit the path in every fold and on all rows, and combine it.

    - `splits`: training and held-out indices
    - `random_state` draws the rows of the first, coarse pass
    - `powers`: whether skewed columns, and skewed targets of a regression, are also tried under a
      power; held-out rows decide
    - `n_jobs`: processes for the folds
    - `report` is called with the parts done and all parts
    - `random`: whether other splits than these, at random, may choose powers
    - `known`: the rough fits behind the powers of many rows, if the same rows were learned from
      with other trust in the targets, which these fits do not see; what is fitted is added
    """
    seeds = random_state.randint(2**31 - 1, size=len(splits) + 1)
    if powers and len(rows) > 2 * plan.coarse:
        given = () if random else splits
        rows = powers_of_a_part(rows, plan, random_state, given, known)
        powers = False
    parts = PartCount(report, len(splits) * (attempts(rows, plan) if powers else 1) + 1)
    fit = partial(cross_validate, splits=splits, seeds=seeds, n_jobs=n_jobs, parts=parts)
    best = fit(rows, plan)
    rows, folds, held_out, errors = try_powers(best, fit, plan) if powers else best
    plain = _PLAIN if plan.classes else 0.0
    weights = path_weights(errors, plain) if folds else _strongest(len(errors))
    views = rows.views()
    fits, polished = _fit_all(views, rows, plan, folds, seeds[-1])
    weights = weights[: len(fits)] if weights[: len(fits)].any() else _strongest(len(fits))
    weights = weights / weights.sum()
    mixture = fit_mixture(views, rows, weighted([fit.scales for fit in fits], weights))
    parts.end()
    missing = _missing(len(splits), folds, polished)
    padded = np.pad(weights, (0, len(held_out) - len(weights)))
    combined = np.einsum("k,kit->it", padded, held_out)
    return Learned(mixture, fits, weights, errors, folds, combined, rows, missing)


def _strongest(n_fits: int) -> FloatArray:
    return np.asarray(np.eye(n_fits)[0])


def _missing(n_folds: int, folds: Sequence[Fold], polished: bool) -> str:
    n_missing, n_cut = n_folds - len(folds), sum(not fold.whole for fold in folds)
    parts = [f"{n_missing} of {n_folds} folds not reached"] if n_missing else []
    parts += [f"{n_cut} of {n_folds} folds cut short"] if n_cut else []
    parts += [] if polished else ["the search on all rows cut short"]
    return ", ".join(parts)


def _fit_all(
    views: Views, rows: Rows, plan: PathPlan, folds: Sequence[Fold], seed: int
) -> tuple[list[Fit], bool]:
    """Return the candidates on all rows, started at those of the folds; whether it was finished."""
    precisions, wide = candidate_precisions(plan, rows), rows.n_dimensions > MOST_SCALES
    starts: Starts = [
        thetas if wide else [np.mean(thetas, axis=0), *thetas]
        for k in range(len(precisions) if folds else 0)
        for thetas in [[fold.fits[k].theta for fold in folds]]
    ]
    done: list[Fit] = []
    try:
        state = np.random.RandomState(seed)
        screened = screen(views, rows, state)
        starts = starts or coarse_starts(rows, plan, state, screened)
        done.extend(fit_candidates(views, rows, plan, starts, screened))
    except Stopped:
        guesses = starts or [[start(views.n_dimensions, views.group is not None)]]
        done += [
            Fit(precisions[k], guesses[k][0], np.nan, np.inf, 0, Status.MAX_TIME)
            for k in range(len(done), len(guesses))
        ]
        return done, False
    return done, True
