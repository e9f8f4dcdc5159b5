"""From rows to a predictor: powers that held-out rows choose, folds, path, weights, one factor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from kernelweave.kernels_core import Status
from kernelweave.kernels_core.arrays import FloatArray

from .candidates import Starts, candidate_precisions, coarse_starts, fit_candidates
from .folds import Fold, PartCount, Tell, fit_folds, judge, target_spread
from .mixture import Mixture, fit_mixture, path_weights, weighted
from .objective import start
from .path import Fit, PathPlan, without_scales
from .rows import Rows, Split
from .screening import MOST_SCALES, screen
from .terms import Stopped
from .views import Views, Warp, is_skewed

# a power nearer to 1 changes the targets too little to pay for a second fit
_MIN_POWER_CHANGE = 0.15
# tolerance of the rough fits that decide on transforms: the scales need not have converged
_ROUGH = 1e-4
# smallest weight of the one-scale Gaussian among fits to classes: ±1 tells little of the scales
_PLAIN = 0.25


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
        """Return whether the squared error is lower by more than two standard errors."""
        if not self.folds or len(self.folds) < len(other.folds):
            return False
        gains = other._squares() - self._squares()
        share = self.rows.mass * np.isfinite(gains)
        share, gains = share / share.sum(), np.nan_to_num(gains)
        gain = share @ gains
        return bool(gain > 2.0 * np.sqrt(np.sum((share * (gains - gain)) ** 2)))

    def _squares(self) -> FloatArray:
        rest = self.held_out[int(np.nanargmin(self.errors))] - self.rows.targets.T
        return np.asarray(np.mean((rest / target_spread(self.rows)) ** 2, axis=1))


def choose(
    rows: Rows, powers: bool, fit: Callable[[Rows, PathPlan], list[Fold]], plan: PathPlan
) -> CrossValidatedFits:
    """Choose by cross-validation whether to transform skewed columns and targets.

    Columns only if that is significantly better in a rough fit: on real tables, smaller gains were
    as often losses on other rows.
    """
    n_fits = len(candidate_precisions(plan, rows))

    def cross_validate(each: Rows, plan: PathPlan) -> CrossValidatedFits:
        folds = fit(each, plan)
        return CrossValidatedFits(each, folds, *judge(each, folds, n_fits, plan.loss))

    best = cross_validate(rows, plan)
    if powers and has_skewed_columns(rows):
        rough = replace(plan, tol=max(plan.tol, _ROUGH))
        other = cross_validate(replace(rows, transform_columns=True), rough)
        if other.is_significantly_better_than(best):
            full = cross_validate(other.rows, plan) if rough != plan else other
            # time may have run out meanwhile
            best = full if len(full.folds) == len(other.folds) else other
    if powers and has_skewed_targets(rows, plan):
        other = cross_validate(replace(best.rows, transform_targets=True), plan)
        # a power whose folds were cut short says nothing
        if len(other.folds) == len(best.folds) and other.loss < best.loss:
            best = other
    return best


def attempts(rows: Rows, plan: PathPlan) -> int:
    """Return how often `choose` fits the folds at most."""
    return 1 + 2 * has_skewed_columns(rows) + has_skewed_targets(rows, plan)


def powers_of_a_part(
    rows: Rows, plan: PathPlan, random_state: np.random.RandomState, given: Sequence[Split] = ()
) -> Rows:
    """Return rows under the powers that rough fits of two halves of a part prefer.

    Each is judged by the other half, or as the part has its share of splits that are given. A
    second fit of all would cost many times as much. The random state is left as it is: where no
    power is taken, the fit is the one that was offered none.
    """
    if not (has_skewed_columns(rows) or has_skewed_targets(rows, plan)):
        return rows
    twin = np.random.RandomState()
    twin.set_state(random_state.get_state())
    chosen = np.sort(twin.permutation(len(rows))[: 2 * plan.coarse])
    part = rows.take(chosen)
    one, other = np.array_split(twin.permutation(len(part)), 2)
    splits, seeds = [(one, other), (other, one)], twin.randint(2**31 - 1, size=2 + len(given))
    if given:
        both = [[np.flatnonzero(np.isin(chosen, each)) for each in split] for split in given]
        splits = [(own, held) for own, held in both if len(own) and len(held)]
    middle = plan.precisions[(len(plan.precisions) - 1) // 2 : len(plan.precisions) // 2 + 1]
    rough = replace(plan, tol=_ROUGH, precisions=middle)
    best = choose(part, True, lambda each, own: fit_folds(each, own, splits, seeds), rough)
    return replace(
        rows,
        transform_targets=best.rows.transform_targets,
        transform_columns=best.rows.transform_columns,
    )


def has_skewed_columns(rows: Rows) -> bool:
    """Return whether any numeric column is skewed."""
    return bool(is_skewed(rows.numeric, rows.mass / rows.mass.sum()).any())


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
    tell: Tell | None = None,
    random: bool = True,
) -> Learned:
    """Fit the path in every fold and on all rows, and combine it.

    - `splits`: training and held-out indices
    - `random_state` draws the rows of the first, coarse pass
    - `powers`: whether skewed columns, and skewed targets of a regression, are also tried under a
      power; held-out rows decide
    - `n_jobs`: processes for the folds
    - `tell` is called with the parts done and all parts
    - `random`: whether other splits than these, at random, may choose powers
    """
    seeds = random_state.randint(2**31 - 1, size=len(splits) + 1)
    if powers and len(rows) > 2 * plan.coarse:
        rows = powers_of_a_part(rows, plan, random_state, () if random else splits)
        powers = False
    parts = PartCount(tell, len(splits) * (attempts(rows, plan) if powers else 1) + 1)
    rows, folds, held_out, errors = choose(
        rows, powers, lambda each, own: fit_folds(each, own, splits, seeds, n_jobs, parts), plan
    )
    plain = _PLAIN if plan.classes else 0.0
    weights = path_weights(errors, plain) if folds else _strongest(len(errors))
    views = rows.views()
    fits, polished = _fit_all(views, rows, plan, folds, seeds[-1])
    weights = weights[: len(fits)] if weights[: len(fits)].any() else _strongest(len(fits))
    weights = weights / weights.sum()
    mixture = fit_mixture(views, rows, weighted([fit.scales for fit in fits], weights))
    parts.end()
    missing = _missing(len(splits), folds, polished)
    combined = np.einsum("k,kit->it", _padded(weights, held_out), held_out)
    return Learned(mixture, fits, weights, errors, folds, combined, rows, missing)


def _padded(weights: FloatArray, held_out: FloatArray) -> FloatArray:
    return np.asarray(np.append(weights, np.zeros(len(held_out) - len(weights))))


def _strongest(n_fits: int) -> FloatArray:
    return np.asarray(np.eye(n_fits)[0])


def _missing(n_folds: int, folds: Sequence[Fold], polished: bool) -> str:
    undone, cut = n_folds - len(folds), sum(not fold.whole for fold in folds)
    parts = [f"{undone} of {n_folds} folds not reached"] if undone else []
    parts += [f"{cut} of {n_folds} folds cut short"] if cut else []
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
        fit_candidates(views, rows, plan, starts, done, screened)
    except Stopped:
        guesses = starts or [[start(views.n_dimensions, views.group is not None)]]
        done += [
            Fit(precisions[k], guesses[k][0], np.nan, np.inf, 0, Status.MAX_TIME)
            for k in range(len(done), len(guesses))
        ]
        return done, False
    return done, True
