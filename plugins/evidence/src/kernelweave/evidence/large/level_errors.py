"""Levels of groups beside landmarks, with how sure they are and how many rows each group has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index

from ..group_effects import LevelFunctionals, counted
from .levels import GroupLevels, group_features

if TYPE_CHECKING:
    from ..rows import Rows
    from .landmarks import LandmarkPredictor

# groups whose sums of features are held at once
_AT_ONCE = 1024


def with_levels_told(
    predictor: LandmarkPredictor, rows: Rows, ratio: float | None, *, sure: bool = True
) -> LandmarkPredictor:
    """Return a predictor without levels with those that rows tell.

    `rows`: all that it has learned from; `ratio`: of the noise to the levels, ``None`` where groups
    have none; `sure`: whether anybody will ask how sure these are, which takes as long again.
    """
    counts = tuple(counted(each, rows) for each in rows.group_terms)
    predictor = replace(predictor, group_counts=counts)
    if ratio is None:
        return predictor
    levels = GroupLevels.of(rows, predictor.residuals, ratio, predictor.ridge)
    if sure:
        levels = replace(levels, variances=level_variances(levels, rows, predictor))
    return replace(predictor, levels=levels)


def level_variances(levels: GroupLevels, rows: Rows, predictor: LandmarkPredictor) -> FloatArray:
    """Return the variances of the levels of groups beside landmarks, standardised, (n_groups,).

    With u = (t − sᵀβ)/(n + κ) and h of `LevelFunctionals`, u + hᵀβ varies by ρ/(n + κ) and by what
    the rows leave open of (h − s/(n + κ))ᵀβ. What landmarks cannot tell of h, u tells.

    `rows`: all, which have told the levels; `predictor`: without them.
    """
    expansion = predictor.expansion()
    term, *_ = expansion.views.group_terms
    out = np.empty(len(levels.names))
    found = LevelFunctionals(expansion, rows, term, *counted(term, rows))
    for some, members, numbers in _parts_of(levels, rows):
        names = levels.names[some]
        functional = found(names)
        sums = group_features(predictor.landmarks, rows, members, numbers, len(names))
        open_ = levels.open(names)
        halves = predictor.posterior.halves(functional - open_[:, None] * sums)
        out[some] = predictor.ridge * (open_ + np.einsum("ij,ij->j", halves, halves))
    return out


def _parts_of(levels: GroupLevels, rows: Rows) -> Iterator[tuple[slice, Index, Index]]:
    """Yield some of the groups, their rows, and the number of each row's group among these."""
    names = levels.column.names(rows.numeric, rows.codes)
    named = np.flatnonzero(~np.isnan(names))
    at = np.searchsorted(levels.names, names[named])
    by = np.argsort(at, kind="stable")
    for first in range(0, len(levels.names), _AT_ONCE):
        last = min(first + _AT_ONCE, len(levels.names))
        low, high = np.searchsorted(at[by], [first, last])
        some = by[low:high]
        yield slice(first, last), named[some], at[some] - first
