"""Which rows are held out and how, and what the others are for: the metric and landmarks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.estimators.copies import Line
from numpy.typing import NDArray

from ..classes import class_codes
from ..copies import KnownRows
from ..rows import block_starts

if TYPE_CHECKING:
    from ..rows import Rows, Split, Standardised
    from .plan import LargePlan
    from .source import Source
    from .survey import Survey

# rows of a class that the metric is learned on, at least, where there are so many
_FEW = 10
# rows of a group that the metric is learned on, at least, where it has so many
_OF_GROUP = 8
# groups to choose by, to judge by and to learn from
_FEWEST_GROUPS = 3


class RowBlock(NamedTuple):
    """Distinct rows with the weights and targets that they and their copies add to `Sums`.

    `rows` of length n; `mass` of shape (n,): the total weight of each row and its copies; `cross`
    of shape (n, n_outputs): the sum of weight times standardised target; `ratio`: of the noise to
    the levels of their groups, all of whose rows they are; ``None`` where groups have no levels.
    """

    rows: Rows
    mass: FloatArray
    cross: FloatArray
    ratio: float | None = None


@dataclass(frozen=True)
class HeldFolds:
    """Rows held out in folds: at random no copy of one in another fold or in no fold.

    - `places` of shape (n,): where they stand among all rows
    - `fold` of shape (n,): 0 chooses the weights of the path, the powers, the ridge and the number
      of landmarks; the others judge what was chosen; −1 is left out beside a fold
    - `without` of shape (n_folds, n): which rows are left out where a fold is predicted
    - `known`: finds their copies among all rows; ``None`` where rows recur, so that new ones will
      have copies among the training rows too, and where the user says how rows are held out
    - `copy_of` of shape (n,): which of the known each row is
    """

    rows: Rows
    places: Index
    fold: Index
    without: NDArray[np.bool_]
    known: KnownRows | None
    copy_of: Index

    @property
    def choosing(self) -> Rows:
        """The rows that choose."""
        return self.rows.take(np.flatnonzero(self.fold == 0))

    def judging_folds(self) -> Iterator[tuple[Index, Index]]:
        """Yield the rows of each fold that judges, and all that are left out there."""
        for k in range(1, len(self.without)):
            own = np.flatnonzero(self.fold == k)
            if len(own):
                yield own, np.flatnonzero(self.without[k])

    def share(
        self,
        which: Index,
        targets: Standardised,
        copies: tuple[FloatArray, FloatArray] | None = None,
    ) -> RowBlock:
        """Return what some of the rows have added to sums.

        `targets`: units of the sums; `copies`: mass and cross of the known rows, where more of
        their copies were summed over than are held out here.
        """
        if copies is not None and self.known is not None:
            own, first = np.unique(self.copy_of[which], return_index=True)
            return RowBlock(self.rows.take(which[first]), copies[0][own], copies[1][own])
        rows = self.rows.take(which)
        return RowBlock(rows, rows.mass, rows.mass[:, None] * targets.of_rows(rows).values.T)


@dataclass(frozen=True)
class AtRandom:
    """`fold` of shape (n_sample,): of each row of the sample; no other is held out.

    Like all ways to hold rows out it is called with rows and their places among all, and returns
    their folds, −1 of none, shape (n,), and which are left out where a fold is predicted, shape
    (n_folds, n).
    """

    fold: Index
    n_folds: int

    def __call__(self, rows: Rows, places: Index) -> tuple[Index, NDArray[np.bool_]]:
        """Return the fold of each row of the sample, and each fold's own rows."""
        return self.fold, _each(self.fold, self.n_folds)


@dataclass(frozen=True)
class ByGroups:
    """Whole groups: `groups` of shape (n_held_out,), sorted, and the `fold` of each."""

    groups: Index
    fold: Index

    @classmethod
    def of(cls, groups: Index, sizes: list[int]) -> ByGroups:
        """Deal groups to folds of about so many rows; raise where there are fewer than three.

        `groups` of shape (n_sample,): of rows in random order.
        """
        names, first, counts = np.unique(groups, return_index=True, return_counts=True)
        if len(names) < _FEWEST_GROUPS:
            raise ValueError(
                f"groups must be at least {_FEWEST_GROUPS} of more than 2,000 rows: one chooses, "
                f"one judges, and the others are learned from; got {len(names)}"
            )
        by = np.argsort(first)
        small = by[counts[by] <= min(sizes)]
        fold = np.full(len(names), -1, dtype=np.intp)
        if len(small) < 3 * len(sizes):
            # of few groups, or large ones, one is a fold, and at least a third is learned from
            few = by[np.argsort(counts[by], kind="stable")][: min(len(sizes), 2 * len(names) // 3)]
            fold[few] = np.arange(len(few))
        else:
            fold[small] = _dealt(counts[small], sizes)
        held = np.flatnonzero(fold >= 0)
        return cls(names[held], fold[held])

    def __call__(self, rows: Rows, places: Index) -> tuple[Index, NDArray[np.bool_]]:
        """Return the fold of each row's group, and each fold's own rows."""
        assert rows.groups is not None
        at = np.minimum(np.searchsorted(self.groups, rows.groups), len(self.groups) - 1)
        fold = np.where(self.groups[at] == rows.groups, self.fold[at], -1)
        return fold, _each(fold, int(self.fold.max()) + 1)


@dataclass(frozen=True)
class InOrder:
    """Blocks of the latest rows, each predicted from what is before it.

    `cuts` of shape (n_folds,): times at which blocks begin.
    """

    cuts: FloatArray

    @classmethod
    def of(cls, times: FloatArray, share: float, n_folds: int) -> InOrder:
        """Cut blocks of some share of the rows each; rows of one moment stay together."""
        ordered = np.sort(times)
        n = len(ordered)
        wanted = np.linspace(n * (1.0 - share * n_folds), n, n_folds + 1).round().astype(int)[:-1]
        cuts = ordered[block_starts(ordered, wanted)]
        if len(cuts) < 2:
            raise ValueError(
                "order is the same in nearly every row: later rows must make two blocks"
            )
        return cls(cuts)

    def __call__(self, rows: Rows, places: Index) -> tuple[Index, NDArray[np.bool_]]:
        """Return the block of each row, and each block with what is after it."""
        assert rows.times is not None
        fold = np.searchsorted(self.cuts, rows.times, side="right") - 1
        return fold, fold >= np.arange(len(self.cuts))[:, None]


@dataclass(frozen=True)
class BySplits:
    """Folds of a splitter: `fold` of shape (n_rows,) and `out` of shape (n_folds, n_rows)."""

    fold: Index
    out: NDArray[np.bool_]

    @classmethod
    def of(cls, splits: Sequence[Split], n_rows: int, sizes: list[int], n_metric: int) -> BySplits:
        """Join neighbouring splits to folds of about so many rows.

        Rows that all folds learn from must remain, for the scales; where a further fold would leave
        too few, it is left out. Raises ValueError where that leaves no fold to judge.
        """
        fold, out = np.full(n_rows, -1, dtype=np.intp), np.zeros((0, n_rows), dtype=np.bool_)
        least = min(n_metric, n_rows // 4)
        own = np.zeros((2, n_rows), dtype=np.bool_)
        for k, (training, held_out) in enumerate(splits):
            own[0, held_out] = fold[held_out] < 0
            lacking = np.ones(n_rows, dtype=np.bool_)
            lacking[training] = False
            own[1] |= lacking
            if own[0].sum() < sizes[len(out)] and k < len(splits) - 1:
                continue
            if n_rows - np.count_nonzero(out.any(axis=0) | own[1]) < least:
                break
            if own[0].any():
                fold[own[0]], out = len(out), np.vstack([out, own[1]])
            own = np.zeros((2, n_rows), dtype=np.bool_)
            if len(out) == len(sizes):
                break
        if len(out) < 2:
            raise ValueError(
                f"cv must leave a quarter of {n_rows} rows, or {n_metric} of them, to learn from "
                "in two folds: one chooses and one judges above 2,000 rows; 4 folds or more do"
            )
        return cls(fold, out)

    def __call__(self, rows: Rows, places: Index) -> tuple[Index, NDArray[np.bool_]]:
        """Return the fold of each place, and what no training part of a fold has."""
        return self.fold[places], self.out[:, places]


Holdout: TypeAlias = AtRandom | ByGroups | InOrder | BySplits


def _each(fold: Index, n_folds: int) -> NDArray[np.bool_]:
    return np.asarray(fold == np.arange(n_folds)[:, None])


@dataclass(frozen=True)
class RowRoles:
    """The sample's rows by their use.

    - `held_out`: have no other
    - `metric`: the scales are learned on them
    - `landmarks` of shape (n_landmarks,): rows of the sample that may become such, no row a copy of
      another; none is held out, as new rows are no landmarks
    - `late_landmarks`: those held out, where the user says how: the last sums, of all rows, need
      landmarks in every group and block
    - `order` of shape (n_sample,): the sample's rows, those held out behind the others, as that
      makes them cheap to leave out, and those that choose last
    - `n_others`: all that the rows that choose are predicted from
    - `held_at`: where in this order those held out stand, if they are of the sample
    """

    held_out: HeldFolds
    metric: Rows
    landmarks: Index
    late_landmarks: Index
    order: Index
    n_others: int
    held_at: Index

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
        rule = _rule(seen, plan, classes, splits)
        fold, without = rule(sample, seen.index)
        apart = without.any(axis=0)
        held, rest = np.flatnonzero(apart), np.flatnonzero(~apart)
        chosen = rest[_stratified(classes[rest], plan.metric_rows)]
        if sample.group is not None and sample.groups is not None:
            of_groups = _of_some_groups(sample.groups[rest], plan.metric_rows)
            chosen = rest[np.union1d(of_groups, _stratified(classes[rest], 0))]
        distinct = _distinct(sample.duplicate_ids, rest)
        late = np.empty(0, dtype=np.intp)
        if not isinstance(rule, AtRandom):
            late = _distinct(sample.duplicate_ids, held)
            late = late[~np.isin(sample.duplicate_ids[late], sample.duplicate_ids[distinct])]
        if isinstance(rule, AtRandom) or len(sample) == seen.n_rows:
            rows, places, own = sample.take(held), seen.index[held], (fold[held], without[:, held])
        else:
            found, _ = source.fold(partial(_read_held, rule))
            assert found is not None
            rows, places = found.rows, found.places
            own = rule(rows, places)
        held_out = HeldFolds(rows, places, *own, *_copies(sample, held, rule))
        last = np.where(fold == 0, 2 + len(without), np.where(without[0], 1 + len(without), fold))
        order = np.argsort(last, kind="stable")
        held_at = np.argsort(order, kind="stable")[held]
        n_others = int(np.sum(~without[0]))
        metric = sample.take(chosen)
        return cls(held_out, metric, distinct, late, order, n_others, held_at)


@dataclass
class _Held:
    """Rows that are held out, and their places among all."""

    rows: Rows
    places: Index

    def add(self, other: _Held) -> None:
        """Add later rows."""
        self.rows = self.rows.and_others(other.rows)
        self.places = np.concatenate([self.places, other.places])


def _read_held(rule: Holdout, rows: Rows, first: int, _: Callable[[], bool]) -> _Held:
    places = first + np.arange(len(rows))
    own = np.flatnonzero(rule(rows, places)[1].any(axis=0))
    return _Held(rows.take(own), places[own])


def _distinct(duplicate_ids: Index, rows: Index) -> Index:
    """Return rows without their copies, in their order."""
    return rows[np.sort(np.unique(duplicate_ids[rows], return_index=True)[1])]


def _copies(sample: Rows, held: Index, rule: Holdout) -> tuple[KnownRows | None, Index]:
    """Return what finds the copies of rows held out, and which of the known each of them is."""
    _, first, copy_of = np.unique(
        sample.duplicate_ids[held], return_index=True, return_inverse=True
    )
    if sample.recurring or not isinstance(rule, AtRandom):
        return None, copy_of.ravel()
    one_each = held[first]
    line = Line.of(sample.numeric, sample.codes)
    return KnownRows.of(line, sample.numeric[one_each], sample.codes[one_each]), copy_of.ravel()


def _rule(seen: Survey, plan: LargePlan, classes: Index, splits: Sequence[Split] | None) -> Holdout:
    """Return how rows are held out: as the user says, or at random."""
    sample, sizes = seen.sample, plan.fold_sizes(seen.n_rows, len(seen.sample))
    if splits is not None:
        return BySplits.of(splits, seen.n_rows, sizes, plan.metric_rows)
    if sample.groups is not None:
        # so many rows of the whole table, of which the sample has a share
        drawn = [max(1, size * len(sample) // seen.n_rows) for size in sizes]
        return ByGroups.of(sample.groups, drawn)
    if sample.times is not None:
        return InOrder.of(sample.times, plan.block_share(seen.n_rows), plan.n_folds)
    fold = _folds(sample.duplicate_ids, classes, sizes)
    return AtRandom(fold, len(sizes))


def _folds(groups: Index, classes: Index, sizes: list[int]) -> Index:
    """Return the fold of each row, -1 of none, shape (n,).

    Groups of copies are not divided. Each fold gets its share of each class, by first rows of
    groups; a group that is more than a fold stays outside, unless almost all are.

    `sizes`: rows of each fold, about.
    """
    first, own, counts = np.unique(groups, return_index=True, return_inverse=True,
                                   return_counts=True)[1:]  # fmt: skip
    order = np.argsort(first)
    out = np.full(len(counts), -1, dtype=np.intp)
    small = order[counts[order] <= min(sizes)]
    if len(small) < 3 * len(sizes):
        # of hardly any group each fold gets one or two, and the largest is in none
        few = np.argsort(counts, kind="stable")[:-1][: 2 * len(sizes)]
        out[few] = np.arange(len(few)) % len(sizes)
        return out[own.ravel()]
    for label in np.unique(classes[first[small]]):
        same = small[classes[first[small]] == label]
        out[same] = _dealt(counts[same], sizes, counts[small].sum())
    return out[own.ravel()]


def _dealt(counts: Index, sizes: list[int], whole: int | None = None) -> Index:
    """Return the fold of each group, one after the other, −1 where all folds are full.

    `counts`: their rows; `sizes`: rows of each fold of ``whole``, of which these have a share.
    """
    ends, n = np.cumsum(sizes), counts.sum()
    place = np.searchsorted(
        ends / (n if whole is None else whole), (np.cumsum(counts) - counts) / n, side="right"
    )
    return np.where(place < len(sizes), place, -1)


def _of_some_groups(groups: Index, size: int) -> Index:
    """Return about so many rows of whole groups, of large ones the first: levels need several.

    `groups` of shape (n,): of rows in random order.
    """
    _, first, own, counts = np.unique(
        groups, return_index=True, return_inverse=True, return_counts=True
    )
    by = np.argsort(own, kind="stable")
    nth = np.empty(len(groups), dtype=np.intp)
    nth[by] = np.arange(len(groups)) - np.repeat(np.cumsum(counts) - counts, counts)
    most = max(_OF_GROUP, -(-size // len(counts)))
    order = np.argsort(first, kind="stable")
    before = np.empty(len(counts), dtype=np.intp)
    before[order] = np.cumsum(np.minimum(counts, most)[order]) - np.minimum(counts, most)[order]
    return np.flatnonzero((nth < most) & (before[own.ravel()] < size))


def _stratified(classes: Index, size: int) -> Index:
    """Return rows, of each class its share and at least a few, the first of them."""
    counts = np.bincount(classes)
    sizes = np.maximum(np.minimum(counts, _FEW), counts * size // len(classes))
    chosen = [np.flatnonzero(classes == k)[: sizes[k]] for k in range(len(counts))]
    return np.sort(np.concatenate(chosen))
