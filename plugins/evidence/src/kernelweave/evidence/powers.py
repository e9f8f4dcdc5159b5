"""Whether numbers and targets are taken under powers: held-out rows decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray

from .candidates import candidate_precisions
from .folds import Fold, Split, fit_folds, judge, target_spread
from .path import PathPlan
from .rows import Rows
from .views import is_skewed
from .warp import Warp

# a power nearer to 1 changes too little to pay for a second fit
_BENT = 0.15
# and whether it pays is seen before the scales have converged
_ROUGH = 1e-4


class Tried(NamedTuple):
    """Folds of some rows; `held_out`, `errors`: as in `Learned`, for each fit."""

    rows: Rows
    folds: list[Fold]
    held_out: FloatArray
    errors: FloatArray

    @property
    def loss(self) -> float:
        """The least error among the fits."""
        return float(np.nan_to_num(self.errors, nan=np.inf).min())

    def surely_gains_on(self, other: Tried) -> bool:
        """Return whether held-out errors are lower than another's by twice the standard error."""
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
) -> Tried:
    """Return the rows with numbers and targets as they are or under powers, by held-out errors.

    Numbers are, unless a rough fit is surely better: small gains were as often losses elsewhere.
    """
    n_fits = len(candidate_precisions(plan, rows))

    def attempt(each: Rows, plan: PathPlan) -> Tried:
        folds = fit(each, plan)
        return Tried(each, folds, *judge(each, folds, n_fits, plan.loss))

    best = attempt(rows, plan)
    if powers and has_long_tails(rows):
        rough = replace(plan, tol=max(plan.tol, _ROUGH))
        other = attempt(replace(rows, bent=True), rough)
        if other.surely_gains_on(best):
            full = attempt(other.rows, plan) if rough != plan else other
            # time may have run out meanwhile
            best = full if len(full.folds) == len(other.folds) else other
    if powers and is_bent(rows, plan):
        other = attempt(replace(best.rows, warped=True), plan)
        # a power whose folds were cut short says nothing
        if len(other.folds) == len(best.folds) and other.loss < best.loss:
            best = other
    return best


def attempts(rows: Rows, plan: PathPlan) -> int:
    """Return how often `choose` fits the folds at most."""
    return 1 + 2 * has_long_tails(rows) + is_bent(rows, plan)


def powers_of_a_part(
    rows: Rows, plan: PathPlan, random_state: np.random.RandomState, given: Sequence[Split] = ()
) -> Rows:
    """Return rows under the powers that rough fits of two halves of a part prefer.

    Each is judged by the other half, or as the part has its share of splits that are given. A
    second fit of all would cost many times as much. The random state is left as it is: where no
    power is taken, the fit is the one that was offered none.
    """
    if not (has_long_tails(rows) or is_bent(rows, plan)):
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
    return replace(rows, warped=best.rows.warped, bent=best.rows.bent)


def has_long_tails(rows: Rows) -> bool:
    """Return whether some column of numbers is skewed."""
    return bool(is_skewed(rows.numeric, rows.mass / rows.mass.sum()).any())


def is_bent(rows: Rows, plan: PathPlan) -> bool:
    """Return whether a power far from none makes a target of a regression nearly normal."""
    powers = [] if plan.classes else [Warp.of(each, rows.mass).power for each in rows.targets]
    return any(abs(power - 1.0) > _BENT for power in powers)
