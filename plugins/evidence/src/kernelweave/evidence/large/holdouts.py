"""Which rows are held out: at random, whole groups, the latest, or as a splitter says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.estimators.copies import Line, copy_groups
from numpy.typing import NDArray

from ..copies import KnownRows
from ..rows import block_starts

if TYPE_CHECKING:
    from ..rows import Rows, Split
    from .plan import LargePlan
    from .survey import Survey

# groups to choose by, to judge by and to learn from
_FEWEST_GROUPS = 3


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
                f"groups must be at least {_FEWEST_GROUPS} of more than 5,000 rows: one chooses, "
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
        masks = np.zeros((2, n_rows), dtype=np.bool_)
        for k, (training, held_out) in enumerate(splits):
            masks[0, held_out] = fold[held_out] < 0
            lacking = np.ones(n_rows, dtype=np.bool_)
            lacking[training] = False
            masks[1] |= lacking
            if masks[0].sum() < sizes[len(out)] and k < len(splits) - 1:
                continue
            if n_rows - np.count_nonzero(out.any(axis=0) | masks[1]) < least:
                break
            if masks[0].any():
                fold[masks[0]], out = len(out), np.vstack([out, masks[1]])
            masks = np.zeros((2, n_rows), dtype=np.bool_)
            if len(out) == len(sizes):
                break
        if len(out) < 2:
            raise ValueError(
                f"cv must leave a quarter of {n_rows} rows, or {n_metric} of them, to learn from "
                "in two folds: one chooses and one judges above 5,000 rows; 4 folds or more do"
            )
        return cls(fold, out)

    def __call__(self, rows: Rows, places: Index) -> tuple[Index, NDArray[np.bool_]]:
        """Return the fold of each place, and which rows each fold does not learn from."""
        return self.fold[places], self.out[:, places]


@dataclass(frozen=True)
class WithoutCopies:
    """A way to hold rows out, with their copies left out beside their folds, wherever these are.

    `known_rows`: rows that are held out; `of_folds` of shape (n_folds, n_known): in which folds.
    """

    rule: ByGroups | InOrder
    known_rows: KnownRows
    of_folds: NDArray[np.bool_]

    @classmethod
    def of(
        cls, rule: ByGroups | InOrder, held_out: Rows, sample: Rows, places: Index, least: int
    ) -> Holdout:
        """Return the rule itself where the sample has no such copies, or nearly all are copies.

        `held_out`: all rows that the rule holds out; `sample`, `places`: rows drawn from all;
        `least`: rows, or a quarter of them, that all folds must still learn from. Where fewer
        are left, rows recur from group to group, so that those of new groups will be copies too.
        """
        held_out, bare = held_out.without_names(), sample.without_names()
        if bare.recurring:
            return rule
        copies = copy_groups(held_out.numeric, held_out.codes)
        first = np.unique(copies, return_index=True)[1]
        fold, without = rule(held_out, np.arange(len(held_out)))
        of_folds = np.zeros((len(without), len(first)), dtype=np.bool_)
        of_folds[fold, copies] = True
        line = Line.of(bare.numeric, bare.codes)
        one_each = held_out.numeric[first], held_out.codes[first]
        holdout = cls(rule, KnownRows.of(line, *one_each), of_folds)
        before, after = (each(sample, places)[1] for each in (rule, holdout))
        n_before, n_after = (int(np.sum(~each.any(axis=0))) for each in (before, after))
        none = np.array_equal(before, after)
        return rule if none or n_after < min(least, n_before // 4) else holdout

    def __call__(self, rows: Rows, places: Index) -> tuple[Index, NDArray[np.bool_]]:
        """Return the fold of each row, and each fold's own rows with all their copies."""
        fold, without = self.rule(rows, places)
        bare = rows.without_names()
        copy_of = self.known_rows.find(bare.numeric, bare.codes)
        return fold, without | ((copy_of >= 0) & self.of_folds[:, copy_of])


Holdout: TypeAlias = AtRandom | ByGroups | InOrder | BySplits | WithoutCopies


def _each(fold: Index, n_folds: int) -> NDArray[np.bool_]:
    return np.asarray(fold == np.arange(n_folds)[:, None])


def holdout_of(
    seen: Survey, plan: LargePlan, classes: Index, splits: Sequence[Split] | None
) -> AtRandom | ByGroups | InOrder | BySplits:
    """Return how rows are held out: as the user says, or at random."""
    sample, sizes = seen.sample, plan.fold_sizes(seen.n_rows, len(seen.sample))
    if splits is not None:
        return BySplits.of(splits, seen.n_rows, sizes, plan.metric_rows)
    if sample.times is not None:
        return InOrder.of(sample.times, plan.block_share(seen.n_rows), plan.n_folds)
    if sample.groups is not None:
        # so many rows of the whole table, of which the sample has a share
        drawn = [max(1, size * len(sample) // seen.n_rows) for size in sizes]
        return ByGroups.of(sample.groups, drawn)
    fold = _folds(sample.duplicate_ids, classes, sizes)
    return AtRandom(fold, len(sizes))


def _folds(groups: Index, classes: Index, sizes: list[int]) -> Index:
    """Return the fold of each row, -1 of none, shape (n,).

    Groups of copies are not divided. Each fold gets its share of each class, by first rows of
    groups; a group that is more than a fold stays outside, unless almost all are.

    `sizes`: rows of each fold, about.
    """
    first, numbers, counts = np.unique(groups, return_index=True, return_inverse=True,
                                   return_counts=True)[1:]  # fmt: skip
    order = np.argsort(first)
    out = np.full(len(counts), -1, dtype=np.intp)
    small = order[counts[order] <= min(sizes)]
    if len(small) < 3 * len(sizes):
        # of hardly any group each fold gets one or two, and the largest is in none
        few = np.argsort(counts, kind="stable")[:-1][: 2 * len(sizes)]
        out[few] = np.arange(len(few)) % len(sizes)
        return out[numbers.ravel()]
    for label in np.unique(classes[first[small]]):
        same = small[classes[first[small]] == label]
        out[same] = _dealt(counts[same], sizes, counts[small].sum())
    return out[numbers.ravel()]


def _dealt(counts: Index, sizes: list[int], whole: int | None = None) -> Index:
    """Return the fold of each group, one after the other, −1 where all folds are full.

    `counts`: their rows; `sizes`: rows of each fold of ``whole``, of which these have a share.
    """
    ends, n = np.cumsum(sizes), counts.sum()
    place = np.searchsorted(
        ends / (n if whole is None else whole), (np.cumsum(counts) - counts) / n, side="right"
    )
    return np.where(place < len(sizes), place, -1)
