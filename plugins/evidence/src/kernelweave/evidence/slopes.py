"""Whether effects of numbers that differ by group pay: rows of known groups, held out, decide."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray, Index

from .cross_validation import CrossValidatedFits, cross_validate
from .path import PathPlan
from .rows import Rows, Split
from .scores import mean_with_error

# rows that decide at most, of whole groups, and the folds that they are dealt to
_ROWS, _N_FOLDS = 450, 3


class SlopesFinding(NamedTuple):
    """What an effect that differs by group did to rows held out.

    - `name`: of the number and of the groups
    - `gain`, `error`: how much less the mean squared error was, in units of the targets' variance,
      and its standard error; NaN where time was up
    - `kept`: whether the effect is part of the model
    """

    name: str
    gain: float
    error: float
    kept: bool

    def __str__(self) -> str:
        done = "kept" if self.kept else "left out"
        if np.isnan(self.gain):
            return f"slopes of {self.name} {done}: no time was left to judge them"
        saved = f"rows of known groups, held out, gain {self.gain:.3f} ± {self.error:.3f} of R²"
        return f"slopes of {self.name} {done}: {saved}"


def with_slopes_that_pay(
    rows: Rows, plan: PathPlan, random_state: np.random.RandomState
) -> tuple[Rows, tuple[SlopesFinding, ...]]:
    """Return rows without the slopes that do not pay, and what was found of each.

    Folds that hold out whole groups say nothing of slopes, for a new group has none. So rough fits
    with and without them predict rows of groups whose other rows they have seen. A slope stays
    where the squared error is lower by more than its standard error. The random state is left as it
    is.

    `rows`: those of training, slopes among their terms of groups.
    """
    sloped = [each for each in rows.further if each.slope >= 0]
    if not sloped:
        return rows, ()
    rows = replace(rows, further=tuple(each for each in rows.further if each.slope < 0))
    twin, found = deepcopy(random_state), []
    names = sloped[0].column.names(rows.numeric, rows.codes)
    # whole groups; neither groups nor times say how these rows are held out
    chosen = _some_groups(names, twin)
    part = replace(rows.take(chosen).without_folds(), groups=None, times=None)
    splits = _within_groups(names[chosen], twin)
    seeds = twin.randint(2**31 - 1, size=_N_FOLDS)
    best = _judged(part, plan, splits, seeds)
    for term in sloped:
        other = _judged(replace(part, further=(*part.further, term)), plan, splits, seeds)
        gain, error = np.nan, np.nan
        if best is not None and other is not None:
            gain, error = mean_with_error(best.squares - other.squares, part.precision)
        kept = bool(gain > error)
        found.append(SlopesFinding(str(term), float(gain), float(error), kept))
        if kept and other is not None:
            rows = replace(rows, further=(*rows.further, term))
            part, best = other.rows, other
    return rows, tuple(found)


def _judged(
    rows: Rows, plan: PathPlan, splits: Sequence[Split], seeds: Index
) -> CrossValidatedFits | None:
    """Return rough fits of all folds, ``None`` where there was no time for them."""
    if clock.expired():
        return None
    fits = cross_validate(rows, plan.rough, splits, seeds)
    return fits if len(fits.folds) == len(splits) else None


def _some_groups(names: FloatArray, random: np.random.RandomState) -> Index:
    """Return rows of whole groups, as many as decide; those without a name come last."""
    _, numbers, counts = np.unique(names, return_inverse=True, return_counts=True)
    by = random.permutation(len(counts))
    # a group of one row has no slope to show
    by = by[np.argsort(counts[by] < 2, kind="stable")]
    rank = np.empty(len(counts), dtype=np.intp)
    rank[by] = np.arange(len(by))
    order = np.argsort(rank[numbers.ravel()], kind="stable")
    return np.sort(order[:_ROWS])


def _within_groups(names: FloatArray, random: np.random.RandomState) -> list[Split]:
    """Return folds each of which holds out a part of every group."""
    order = random.permutation(len(names))
    order = order[np.argsort(names[order], kind="stable")]
    fold = np.empty(len(names), dtype=np.intp)
    fold[order] = np.arange(len(names)) % _N_FOLDS
    every = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(_N_FOLDS)]
    return [(training, held_out) for training, held_out in every if len(held_out)]
