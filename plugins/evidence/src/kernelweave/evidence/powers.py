"""Whether powers make skewed columns and targets nearly normal: rows held out decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial

import numpy as np

from .cross_validation import CrossValidatedFits, cross_validate
from .path import PathPlan
from .rows import Rows, Split
from .views import Warp, is_skewed

# a power nearer to 1 changes the targets too little to pay for a second fit
_MIN_POWER_CHANGE = 0.15


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
    known = not plan.classes and rows.ends is None
    powers = [] if not known else [Warp.of_target(each, rows.mass).power for each in rows.targets]
    return any(abs(power - 1.0) > _MIN_POWER_CHANGE for power in powers)
