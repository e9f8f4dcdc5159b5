"""Rows that are held out, and what the others are for: the metric and landmarks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.estimators.copies import Line
from numpy.typing import NDArray

from ..classes import class_codes, stratified
from ..copies import KnownRows
from .holdouts import AtRandom, ByGroups, Holdout, InOrder, WithoutCopies, holdout_of

if TYPE_CHECKING:
    from ..rows import Rows, Split, Standardised
    from .plan import LargePlan
    from .source import Source
    from .survey import Survey

# rows of a group that the metric is learned on, at least, where it has so many
_OF_GROUP = 8
# groups whose sums of features are held at once
_GROUPS = 1024


class RowBlock(NamedTuple):
    """Distinct rows with the weights and targets that they and their copies add to `Sums`.

    `rows` of length n; `mass` of shape (n,): the total weight of each row and its copies; `cross`
    of shape (n, n_outputs): the sum of weight times standardised target; `ratio`: of the noise to
    the levels of their groups; ``None`` where groups have no levels. `rest`: the other rows of
    these groups, ``None`` where there are none.
    """

    rows: Rows
    mass: FloatArray
    cross: FloatArray
    ratio: float | None = None
    rest: RowBlock | None = None

    @classmethod
    def of(cls, rows: Rows, targets: Standardised) -> RowBlock:
        """Return what rows have added; `targets`: units of the sums."""
        mass = rows.precision
        return cls(rows, mass, mass[:, None] * targets.of_rows(rows).values.T)

    def parts(self) -> Iterator[RowBlock]:
        """Yield blocks of some whole groups each, where groups have levels and are many."""
        groups = self.rows.groups
        if self.ratio is None or self.rest is None or groups is None:
            yield self
            return
        names = np.unique(groups)
        for some in np.split(names, np.arange(_GROUPS, len(names), _GROUPS)):
            yield self._of_groups(some)._replace(rest=self.rest._of_groups(some))

    def _of_groups(self, groups: Index) -> RowBlock:
        assert self.rows.groups is not None
        own = np.flatnonzero(np.isin(self.rows.groups, groups))
        return self._replace(rows=self.rows.take(own), mass=self.mass[own], cross=self.cross[own])


@dataclass(frozen=True)
class HeldFolds:
    """Rows held out in folds: at random no copy of one in another fold or in no fold.

    - `places` of shape (n,): where they stand among all rows
    - `fold` of shape (n,): 0 chooses the weights of the path, the powers, the ridge and the number
      of landmarks; the others judge what was chosen; −1 is left out beside a fold, or of a group
      of such rows
    - `without` of shape (n_folds, n): which rows are left out where a fold is predicted
    - `known_rows`: finds their copies among all rows; ``None`` where rows recur, so that new ones
      will have copies among the training rows too, and where the user says how rows are held out
    - `copy_of` of shape (n,): which of the known rows each row is
    """

    rows: Rows
    places: Index
    fold: Index
    without: NDArray[np.bool_]
    known_rows: KnownRows | None
    copy_of: Index

    @property
    def choosing(self) -> Rows:
        """The rows that choose."""
        return self.rows.take(np.flatnonzero(self.fold == 0))

    def judging_folds(self) -> Iterator[tuple[Index, Index]]:
        """Yield the rows of each fold that judges, and all that are left out there."""
        for k in range(1, len(self.without)):
            rows = np.flatnonzero(self.fold == k)
            if len(rows):
                yield rows, np.flatnonzero(self.without[k])

    def block_of(
        self,
        which: Index,
        targets: Standardised,
        copies: tuple[FloatArray, FloatArray] | None = None,
    ) -> RowBlock:
        """Return what some of the rows have added to sums.

        `targets`: units of the sums; `copies`: mass and cross of the known rows, where more of
        their copies were summed over than are held out here.
        """
        if copies is not None and self.known_rows is not None:
            places, first = np.unique(self.copy_of[which], return_index=True)
            return RowBlock(self.rows.take(which[first]), copies[0][places], copies[1][places])
        block = RowBlock.of(self.rows.take(which), targets)
        if self.rows.groups is None or not _has_mates(self.rows):
            return block
        mates = np.isin(self.rows.groups, self.rows.groups[which])
        mates[which] = False
        others = self.rows.take(np.flatnonzero(mates))
        rest = RowBlock.of(others, targets) if len(others) else None
        return block._replace(rest=rest)


@dataclass(frozen=True)
class RowRoles:
    """The sample's rows by their use.

    - `held_out`: have no other
    - `metric`: the scales are learned on them
    - `landmarks` of shape (n_landmarks,): rows of the sample that may become such, no row a copy of
      another; none is held out, as new rows are no landmarks
    - `late_landmarks`: those held out, where the user says how: the last sums, of all rows, need
      landmarks in every group and block
    - `order` of shape (n_sample,): the sample's rows: those never held out, those of the folds that
      judge, and last those that choose, so that the first can be summed without the others
    - `n_others`: all that the rows that choose are predicted from
    - `rule`: how rows are held out
    """

    held_out: HeldFolds
    metric: Rows
    landmarks: Index
    late_landmarks: Index
    order: Index
    n_others: int
    rule: Holdout

    @classmethod
    def of(
        cls,
        seen: Survey,
        plan: LargePlan,
        stratify: bool,
        source: Source,
        splits: Sequence[Split] | None = None,
    ) -> RowRoles:
        """Deal the rows of a sample, in random order as they are.

        `stratify`: whether the targets are ±1 of classes, each of which gets its share everywhere;
        `source`: all rows; `splits`: pairs of training and held-out places of a table in memory.
        """
        sample = seen.sample
        classes = class_codes(sample.targets) if stratify else np.zeros(len(sample), dtype=np.intp)
        rule: Holdout = holdout_of(seen, plan, classes, splits)
        held = _held_rows(rule, seen, source)
        if isinstance(rule, ByGroups | InOrder):
            rule = WithoutCopies.of(rule, held.rows, sample, seen.index, plan.metric_rows)
            held = _held_rows(rule, seen, source) if isinstance(rule, WithoutCopies) else held
        fold, without = rule(sample, seen.index)
        apart = without.any(axis=0)
        out, rest = np.flatnonzero(apart), np.flatnonzero(~apart)
        chosen = rest[stratified(classes[rest], plan.metric_rows)]
        if sample.group is not None and sample.groups is not None:
            of_groups = _of_some_groups(sample.groups[rest], plan.metric_rows)
            chosen = rest[np.union1d(of_groups, stratified(classes[rest], 0))]
        distinct = _distinct(sample.duplicate_ids, rest)
        late = np.empty(0, dtype=np.intp)
        if not isinstance(rule, AtRandom):
            late = _distinct(sample.duplicate_ids, out)
            late = late[~np.isin(sample.duplicate_ids[late], sample.duplicate_ids[distinct])]
        if isinstance(rule, AtRandom):
            held_folds, copies = (fold[out], without[:, out]), _copies(sample, out)
        else:
            held_folds, copies = rule(held.rows, held.places), (None, out)
        held_out = HeldFolds(held.rows, held.places, *held_folds, *copies)
        last = np.where(fold == 0, 2 + len(without), np.where(without[0], 1 + len(without), fold))
        order = np.argsort(last, kind="stable")
        n_others = int(np.sum(~without[0]))
        metric = sample.take(chosen)
        return cls(held_out, metric, distinct, late, order, n_others, rule)


def _has_mates(rows: Rows) -> bool:
    """Return whether levels or a panel need the other rows of the groups held out."""
    return rows.groups is not None and (rows.group is not None or rows.times is not None)


@dataclass
class _Held:
    """Rows that are held out, and their places among all."""

    rows: Rows
    places: Index

    def add(self, other: _Held) -> None:
        """Add later rows."""
        self.rows = self.rows.and_others(other.rows)
        self.places = np.concatenate([self.places, other.places])


def _held_rows(rule: Holdout, seen: Survey, source: Source) -> _Held:
    """Return rows that are left out of a fold, and others of their groups where these have levels.

    `source`: all rows.
    """
    sample = seen.sample
    if isinstance(rule, AtRandom) or len(sample) == seen.n_rows:
        apart = rule(sample, seen.index)[1].any(axis=0)
        if _has_mates(sample) and sample.groups is not None:
            apart = np.isin(sample.groups, sample.groups[apart])
        return _Held(sample.take(np.flatnonzero(apart)), seen.index[apart])
    held, _ = source.fold(partial(_read_held, rule, None))
    assert held is not None
    if _has_mates(sample) and not isinstance(rule, ByGroups):
        held, _ = source.fold(partial(_read_held, rule, held.rows.groups))
        assert held is not None
    return held


def _read_held(
    rule: Holdout, groups: Index | None, rows: Rows, first: int, _: Callable[[], bool]
) -> _Held:
    """Return the rows of a block that are left out of a fold, or of some groups."""
    places = first + np.arange(len(rows))
    apart = rule(rows, places)[1].any(axis=0)
    if groups is not None and rows.groups is not None:
        apart = np.isin(rows.groups, groups)
    return _Held(rows.take(np.flatnonzero(apart)), places[apart])


def _distinct(duplicate_ids: Index, rows: Index) -> Index:
    """Return rows without their copies, in their order."""
    return rows[np.sort(np.unique(duplicate_ids[rows], return_index=True)[1])]


def _copies(sample: Rows, held: Index) -> tuple[KnownRows | None, Index]:
    """Return what finds the copies of rows held out, and which of the known each of them is."""
    _, first, copy_of = np.unique(
        sample.duplicate_ids[held], return_index=True, return_inverse=True
    )
    if sample.recurring:
        return None, copy_of.ravel()
    one_each = held[first]
    line = Line.of(sample.numeric, sample.codes)
    return KnownRows.of(line, sample.numeric[one_each], sample.codes[one_each]), copy_of.ravel()


def _of_some_groups(groups: Index, size: int) -> Index:
    """Return about so many rows of whole groups, of large ones the first: levels need several.

    `groups` of shape (n,): of rows in random order.
    """
    _, first, numbers, counts = np.unique(
        groups, return_index=True, return_inverse=True, return_counts=True
    )
    by = np.argsort(numbers, kind="stable")
    nth = np.empty(len(groups), dtype=np.intp)
    nth[by] = np.arange(len(groups)) - np.repeat(np.cumsum(counts) - counts, counts)
    most = max(_OF_GROUP, -(-size // len(counts)))
    order = np.argsort(first, kind="stable")
    before = np.empty(len(counts), dtype=np.intp)
    before[order] = np.cumsum(np.minimum(counts, most)[order]) - np.minimum(counts, most)[order]
    return np.flatnonzero((nth < most) & (before[numbers.ravel()] < size))
