"""What each drawn row is for: the metric, landmarks, choosing, or judging."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index

from ..classes import class_codes
from ..copies import Known, Line
from ..rows import Rows, Standardised
from .plan import LargePlan
from .survey import Survey

# rows of a class that the metric is learned on, at least, where there are so many
_FEW = 10


class Share(NamedTuple):
    """What some rows, all their copies with them, have added to sums.

    `rows` of length n; `mass` of shape (n,): their weights and those of their copies; `cross` of
    shape (n, n_outputs): the same times standardised targets, summed.
    """

    rows: Rows
    mass: FloatArray
    cross: FloatArray


@dataclass(frozen=True)
class HeldFolds:
    """Rows held out in folds, no copy of one in another fold or in no fold.

    - `places` of shape (n,): where they stand among all rows
    - `fold` of shape (n,): 0 chooses the weights of the path, the powers, the ridge and the number
      of landmarks; the others judge what was chosen
    - `known`: finds their copies among all rows; ``None`` where rows recur, so that new ones will
      have copies among the training rows too
    - `copy_of` of shape (n,): which of the known each row is
    """

    rows: Rows
    places: Index
    fold: Index
    known: Known | None
    copy_of: Index

    @property
    def choosing(self) -> Rows:
        """The rows that choose."""
        return self.rows.take(np.flatnonzero(self.fold == 0))

    @property
    def judging(self) -> Index:
        """Which rows judge."""
        return np.flatnonzero(self.fold > 0)

    def judges(self) -> Iterator[Index]:
        """Yield the rows of each fold that judges."""
        for k in range(1, int(self.fold.max(initial=0)) + 1):
            own = np.flatnonzero(self.fold == k)
            if len(own):
                yield own

    def share(
        self,
        which: Index,
        targets: Standardised,
        copies: tuple[FloatArray, FloatArray] | None = None,
    ) -> Share:
        """Return what some of the rows have added to sums.

        `targets`: units of the sums; `copies`: mass and cross of the known rows, where more of
        their copies were summed over than are held out here.
        """
        if copies is not None and self.known is not None:
            own, first = np.unique(self.copy_of[which], return_index=True)
            return Share(self.rows.take(which[first]), copies[0][own], copies[1][own])
        rows = self.rows.take(which)
        return Share(rows, rows.mass, rows.mass[:, None] * targets.of_rows(rows).values.T)


@dataclass(frozen=True)
class RowRoles:
    """The sample's rows by their use.

    - `held_out`: have no other
    - `metric`: the scales are learned on them
    - `landmarks`: may become such, no row a copy of another
    - `order` of shape (n_sample,): the sample's rows, those held out behind the others, as that
      makes them cheap to leave out, and those that choose last
    - `n_others`: all but these
    - `held_at`: where in this order those held out stand
    """

    held_out: HeldFolds
    metric: Rows
    landmarks: Rows
    order: Index
    n_others: int
    held_at: Index

    @classmethod
    def of(cls, seen: Survey, plan: LargePlan, stratify: bool) -> RowRoles:
        """Deal the rows of a sample, in random order as they are.

        `stratify`: whether the targets are ±1 of classes, each of which gets its share everywhere.
        """
        sample = seen.sample
        classes = class_codes(sample.targets) if stratify else np.zeros(len(sample), dtype=np.intp)
        groups = sample.twins
        fold = _folds(groups, classes, plan.fold_sizes(seen.n_rows, len(sample)))
        held, rest = np.flatnonzero(fold >= 0), np.flatnonzero(fold < 0)
        chosen = rest[_stratified(classes[rest], plan.metric_rows)]
        distinct = rest[np.sort(np.unique(groups[rest], return_index=True)[1])]
        _, first, copy_of = np.unique(groups[held], return_index=True, return_inverse=True)
        known = None
        if not sample.recurring:
            one_each = held[first]
            line = Line.of(sample.numeric, sample.codes)
            known = Known.of(line, sample.numeric[one_each], sample.codes[one_each])
        held_out = HeldFolds(
            sample.take(held), seen.index[held], fold[held], known, copy_of.ravel()
        )
        order = np.argsort(np.where(fold == 0, len(fold), fold), kind="stable")
        held_at = np.argsort(order, kind="stable")[held]
        n_others = int(np.sum(fold != 0))
        return cls(held_out, sample.take(chosen), sample.take(distinct), order, n_others, held_at)


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
    ends = np.cumsum(sizes) / counts[small].sum()
    for label in np.unique(classes[first[small]]):
        same = small[classes[first[small]] == label]
        before = np.cumsum(counts[same]) - counts[same]
        place = np.searchsorted(ends, before / counts[same].sum(), side="right")
        out[same] = np.where(place < len(sizes), place, -1)
    return out[own.ravel()]


def _stratified(classes: Index, size: int) -> Index:
    """Return rows, of each class its share and at least a few, the first of them."""
    counts = np.bincount(classes)
    sizes = np.maximum(np.minimum(counts, _FEW), counts * size // len(classes))
    chosen = [np.flatnonzero(classes == k)[: sizes[k]] for k in range(len(counts))]
    return np.sort(np.concatenate(chosen))
