"""Whether targets known by half, or their logarithms, are learned: rows held out decide."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index

from ..cross_validation import cross_validate
from ..path import PathPlan
from ..rows import Rows
from ..scores import error_over_groups
from .fit import CensoredPart, begun, best_share
from .task import CensoredRegression, may_be_logarithms, values_within

if TYPE_CHECKING:
    from ..read_table import ReadTable

# errors by which the other scale must be likelier than the one that the targets alone are likelier
# on; and than logarithms, where targets are times
_CLEARLY, _CLEARLY_OF_TIMES = 1.0, 2.0
# gain of one row at most: far from its prediction the tail of the normal distribution, which the
# residuals need not have, would decide alone
_MOST = 3.0


def with_chosen_scale(
    samples: ReadTable,
    task: CensoredRegression,
    plan: PathPlan,
    random_state: np.random.RandomState,
) -> ReadTable:
    """Return a table with its targets on the scale on which rows held out are likeliest.

    Two halves of some rows predict each other with rough scales, on either scale, and the rows of
    both are compared by their likelihood in the unit of the targets. Groups of rows are in one
    half, and where there is an order one half is later than the other. Where targets are not all
    positive, or there is one group or one time only, the targets alone choose. The random state is
    left as it is.

    `task`: of the table, on the scale on which its targets are likelier without columns.
    """
    rows = samples.rows
    if not isinstance(rows, Rows) or rows.ends is None:
        return samples
    if not task.log and not may_be_logarithms(rows.ends):
        return samples
    twin = deepcopy(random_state)
    part = rows.take(np.sort(twin.permutation(len(rows))[: 2 * plan.coarse]))
    unit = _units(part)
    if not np.ptp(unit):
        return samples
    halves, seeds = _halves(unit, part, twin), twin.randint(2**31 - 1, size=3)
    other = _on_the_other_scale(part, log=task.log)
    told = [
        _log_likelihoods(each, halves, seeds, plan, log=log)
        for each, log in ((part, task.log), (other, not task.log))
    ]
    if told[0] is None or told[1] is None:
        return samples
    gains = np.clip(told[1] - told[0], -_MOST, _MOST)
    share = part.mass / part.mass.sum()
    gain = float(share @ gains)
    error = error_over_groups(share * (gains - gain), unit)
    if gain <= (_CLEARLY_OF_TIMES if task.times else _CLEARLY) * error:
        return samples
    rows = _on_the_other_scale(rows, log=task.log)
    return replace(samples, rows=rows, task=replace(task, log=not task.log, ends=rows.ends))


def _units(rows: Rows) -> Index:
    """Return a number for the rows that one half holds together, from 0, shape (n,).

    They are those of one time, in their order, or of one group, else each row.
    """
    if rows.times is not None:
        return np.asarray(np.unique(rows.times, return_inverse=True)[1], dtype=np.intp).ravel()
    return np.arange(len(rows)) if rows.groups is None else rows.kept_together


def _halves(unit: Index, rows: Rows, state: np.random.RandomState) -> tuple[Index, Index]:
    """Return the places of rows in two halves of whole units, the earlier one first."""
    sizes = np.bincount(unit)
    order = np.arange(len(sizes)) if rows.times is not None else state.permutation(len(sizes))
    # the first has at least half of the rows, and the other at least one unit
    before = np.cumsum(sizes[order])[:-1]
    n_first = before[min(int(np.searchsorted(before, 0.5 * len(unit))), len(before) - 1)]
    by = np.argsort(np.argsort(order)[unit], kind="stable")
    return by[:n_first], by[n_first:]


def _on_the_other_scale(rows: Rows, *, log: bool) -> Rows:
    """Return rows with the ends of their targets on the other scale than logarithms, or on that."""
    assert rows.ends is not None
    low, high = rows.ends
    with np.errstate(divide="ignore", over="ignore"):
        if log:
            # below the least limit lies all that is less, as it does on the other scale
            ends = np.array([np.where(np.isneginf(low), -np.inf, np.exp(low)), np.exp(high)])
        else:
            ends = np.array([np.where(np.isneginf(low), low, np.log(np.abs(low))), np.log(high)])
    return replace(rows, ends=ends, targets=values_within(ends))


def _log_likelihoods(
    rows: Rows, halves: Sequence[Index], seeds: Index, plan: PathPlan, *, log: bool
) -> FloatArray | None:
    """Return that of each row by the other half, in the unit of the targets, shape (n,).

    ``None`` where time was up before.
    """
    one, other = halves
    splits = [(one, other), (other, one)]
    found = cross_validate(begun(rows), plan.rough, splits, seeds)
    if len(found.folds) < len(splits):
        return None
    best = int(np.nanargmin(found.errors))
    parts = [
        CensoredPart.of(
            each.views, each.training, (each.fits[best].scales,), rows.take(each.held_out)
        )
        for each in found.folds
    ]
    _, solved = best_share(parts)
    if solved is None:
        return None
    assert rows.ends is not None
    out, known = np.empty(len(rows)), rows.ends[0] == rows.ends[1]
    for fold, each in zip(found.folds, solved, strict=True):
        out[fold.held_out] = each.told - np.log(each.units.spread) * known[fold.held_out]
    # of a logarithm the density is that of the target times the target
    return out - np.where(known, rows.ends[0], 0.0) if log else out
