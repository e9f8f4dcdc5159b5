"""Rows left out with others: their group, all that come later, or both.

One factorisation of all rows tells of each, by what `PairsLeaveOut` and `LandmarksLeaveOut` do.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index

from .leave_out import PairsLeaveOut
from .rows import block_starts

if TYPE_CHECKING:
    from .large.leave_out import LandmarksLeaveOut

# blocks of the rows in their order, of which the later half is predicted
_BLOCKS = 12
# rows that make such blocks
FEWEST = 2 * _BLOCKS
# groups of the same sizes are drawn so often, to compare with, and blocks cut into so many parts
_DRAWS, _PARTS = 3, 6
# at most about so many rows are left out, of groups and of blocks
SOME = 4000
# at least so many groups are drawn; where these have more than SOME rows, none are
_FEW_GROUPS = 4

LeavesOut: TypeAlias = "PairsLeaveOut | LandmarksLeaveOut"


class LeftTogether(NamedTuple):
    """Rows left out with others: `residuals`, and `usual`, those with others drawn anywhere.

    `rows` of shape (n,); `parts` of shape (n,): the group or block of each; `residuals` of shape
    (n, n_outputs); `usual` of shape (n_draws, n, n_outputs); `groups` of shape (n,): where rows
    have groups and blocks both.
    """

    rows: Index
    parts: Index
    residuals: FloatArray
    usual: FloatArray
    groups: Index | None = None


def leave_groups_out(
    closed: LeavesOut, groups: Index, random_state: np.random.RandomState
) -> LeftTogether:
    """Leave out each group, and each row with as many others drawn from anywhere."""
    rows = np.flatnonzero(groups >= 0)
    parts = np.unique(groups[rows], return_inverse=True)[1].ravel()
    if len(np.unique(parts)) == len(rows):
        # whichever are drawn, each is left out alone
        residuals = closed.residuals_of_one(rows)
        return LeftTogether(rows, parts, residuals, residuals[None])
    closed.ask(rows)
    residuals = np.empty((1 + _DRAWS, len(rows), len(closed.targets.centre)))
    for k in range(1 + _DRAWS):
        drawn = parts if k == 0 else random_state.permutation(parts)
        for members in _members(drawn):
            residuals[k, members] = closed.residuals(rows[members])
    return LeftTogether(rows, parts, residuals[0], residuals[1:])


def leave_later_out(
    closed: LeavesOut,
    order: FloatArray,
    random_state: np.random.RandomState,
    most: int | None = None,
) -> LeftTogether:
    """Predict each block of the later half from the rows before it, and from as many of all.

    `most`: rows at most, the last, and as many of all to draw from.
    """
    by = np.argsort(order, kind="stable")
    n, few = len(by), most is not None and len(by) > 2 * most
    cuts = _cuts(order[by], n - most if few and most is not None else 0)
    pool = random_state.permutation(by)[:most] if few else by
    closed.ask(np.union1d(by[cuts[0] :], pool))
    blocks: list[tuple[Index, FloatArray, FloatArray]] = []
    for low, high in pairwise(cuts):
        block, usual = by[low:high], np.empty((1, high - low, len(closed.targets.centre)))
        residuals = closed.residuals(by[low:])[: len(block)]
        # neighbours of a block in time are what helps: parts of it are left out, with any others
        for part in np.array_split(random_state.permutation(len(block)), min(_PARTS, len(block))):
            others = random_state.permutation(np.setdiff1d(pool, block[part]))
            together = np.concatenate([block[part], others[: len(by) - low - len(part)]])
            usual[0, part] = closed.residuals(together)[: len(part)]
        blocks.append((block, residuals, usual))
    rows, later, usuals = zip(*blocks, strict=True)
    parts = np.repeat(np.arange(len(rows)), [len(each) for each in rows])
    both = np.concatenate(later), np.concatenate(usuals, axis=1)
    return LeftTogether(np.concatenate(rows), parts, *both)


def _cuts(ordered: FloatArray, begin: int = 0) -> list[int]:
    """Return where blocks of the later half begin and end; none parts rows of one moment.

    `begin`: or of what is behind it, all of it.
    """
    n = len(ordered)
    wanted = np.linspace(0, n, _BLOCKS + 1).astype(int)[_BLOCKS // 2 : -1]
    if begin:
        wanted = np.linspace(begin, n, _BLOCKS // 2 + 1).astype(int)[:-1]
    return [*block_starts(ordered, wanted).tolist(), n]


def some_groups(groups: Index, most: int, random_state: np.random.RandomState) -> Index:
    """Return some groups of about so many rows, others as −1; all if they are too large."""
    counts = np.bincount(groups[groups >= 0])
    drawn = random_state.permutation(np.flatnonzero(counts))
    n_drawn = max(_FEW_GROUPS, int(np.searchsorted(np.cumsum(counts[drawn]), most)))
    if counts[drawn[:n_drawn]].sum() > SOME:
        n_drawn = 0
    return np.where(np.isin(groups, drawn[:n_drawn]), groups, -1)


def _members(parts: Index) -> Iterator[Index]:
    by = np.argsort(parts, kind="stable")
    yield from np.split(by, np.flatnonzero(np.diff(parts[by])) + 1)


def leave_one_out(
    closed: PairsLeaveOut, groups: Index, counts: Index | None = None
) -> LeftTogether:
    """Leave out each row alone; `groups` of shape (n,): what errors are over, −1 of rows to skip.

    `counts` of shape (n,): how many rows each stands for, of which one is left out.
    """
    rows = np.flatnonzero(groups >= 0)
    residuals = closed.residuals_of_one(rows, counts)
    parts = np.unique(groups[rows], return_inverse=True)[1].ravel()
    return LeftTogether(rows, parts, residuals, residuals[None])


def leave_kind_out(closed: LandmarksLeaveOut, kind: int) -> LeftTogether | None:
    """Predict some rows of one of the four kinds of a panel; ``None`` where no row is such.

    Their usual residuals are the same.
    """
    groups, parts = closed.rows.groups, closed.panel[kind]
    assert groups is not None
    if not parts:
        return None
    at = np.concatenate([each.at for each in parts])
    residuals = closed.values[at] - np.vstack([each.latent for each in parts])
    number = np.repeat(np.arange(len(parts)), [len(each.at) for each in parts])
    names = np.unique(groups[at], return_inverse=True)[1].ravel()
    if len(parts) == 1:
        number = names
    return LeftTogether(at, number, residuals, residuals[None], names)


def leave_later_groups_out(
    closed: PairsLeaveOut, order: FloatArray, groups: Index, *, known: bool, most: int | None = None
) -> LeftTogether | None:
    """Predict each block of the later half from rows before it, of all groups or of others.

    - `order`, `groups` of shape (n,)
    - `known`: whether rows whose group was there before are predicted, with these rows; else all
      rows are, without their groups
    - `most`: rows at most, the last

    Returns ``None`` where no row is such. Their usual residuals are those of rows left out alone.
    """
    by = np.argsort(order, kind="stable")
    n = len(by)
    begin = 0 if most is None or n <= 2 * most else n - most
    cuts, rows, left, parts = _cuts(order[by], begin), list[Index](), list[FloatArray](), []
    closed.ask(np.arange(n))
    for k, (low, high) in enumerate(pairwise(cuts)):
        block = by[low:high]
        if known:
            is_kept = np.isin(groups[block], groups[by[:low]])
            residuals = closed.residuals(by[low:])[: len(block)][is_kept]
            block = block[is_kept]
        else:
            residuals = closed.residuals_of_new(by[low:], block, groups)
        rows.append(block)
        left.append(residuals)
        parts.append(np.full(len(block), k))
    where = np.concatenate(rows)
    if not len(where):
        return None
    alone = closed.residuals_of_one(where)
    numbers = np.unique(groups[where], return_inverse=True)[1].ravel()
    return LeftTogether(where, np.concatenate(parts), np.concatenate(left), alone[None], numbers)
