"""Training rows: numbers, codes of categories, targets, weights."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.estimators.copies import FEW_VALUES, copy_groups
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from .columns.encoded import Coding, GroupColumn, GroupTerm, terms_of_groups
from .views import MASS, NODES, Views, Warp

# of the trust in most targets, that in those that are called outliers
_OUTLIER = 0.1
# training and held-out places
Split: TypeAlias = tuple[Index, Index]
# of the spread of classes' codes: what predictions of them may leave −1 to 1 by
_MARGIN = 0.3
# of all targets, and times what other values have in the mean: more at one end are cut there
_PILED, _TIMES = 0.02, 5.0
# of so many different rows, counts are not all multiples of a number by chance
_FEWEST = 10


@dataclass(frozen=True)
class Rows:
    """Training rows as numbers and codes.

    - `numeric` of shape (n, p), or more, see `columns`
    - `codes` of shape (n, q)
    - `targets` of shape (n_outputs, n)
    - `weight` of shape (n,): ``None`` where all are one
    - `trust` of shape (1, n): what the targets' weights are multiplied by, little for outliers;
      ``None`` where all are one
    - `information` of shape (n,): what a target that is known by half tells, as a share of what a
      known one does; ``None`` where all are known
    - `transform_targets`: whether a power makes the targets nearly normal
    - `transform_columns`: whether a power makes skewed columns nearly normal
    - `coding`: how a part of them codes the others
    - `groups` of shape (n,): rows of one number are held out together; ``None`` where each is alone
    - `times` of shape (n,): later rows are predicted from earlier ones; ``None`` without an order
    - `group`: the column that names the groups, ``None`` where none does
    - `further`: terms of the kernel for other groups, and for effects that differ by group
    - `names`: which dimensions name the groups, by the user's word or as `group` does
    - `by_folds`: whether the folds alone say how new rows differ from these
    - `columns`: which of ``numeric`` the kernel sees; empty where it sees all
    - `ends` of shape (2, n): the least and largest value of targets that are known by half, where
      `targets` and `information` are what a likelihood makes of them; ``None`` where all are known
    - `of_folds`: for each fold, which of ``numeric`` its kernel sees, as a fold knows the
      components of its own training texts alone; empty where no column holds texts
    """

    numeric: FloatArray
    codes: NDArray[np.int64]
    targets: FloatArray
    weight: FloatArray | None = None
    transform_targets: bool = False
    transform_columns: bool = False
    coding: Coding | None = None
    groups: Index | None = None
    times: FloatArray | None = None
    group: GroupColumn | None = None
    names: tuple[int, ...] = ()
    by_folds: bool = False
    columns: tuple[int, ...] = ()
    of_folds: tuple[tuple[int, ...], ...] = ()
    trust: FloatArray | None = None
    ends: FloatArray | None = None
    information: FloatArray | None = None
    further: tuple[GroupTerm, ...] = ()

    def __len__(self) -> int:
        return len(self.numeric)

    def __getstate__(self) -> dict[str, object]:
        # without what follows from the rows and was worked out in one model, but not in another
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def group_terms(self) -> tuple[GroupTerm, ...]:
        """The terms of the kernel that groups have, in the order of their weights."""
        return terms_of_groups(self.group, self.further)

    @property
    def mass(self) -> FloatArray:
        """The weights, ones where there are none."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @property
    def precision(self) -> FloatArray:
        """The weights of the targets where a fit learns from them.

        Those of outliers are less, and of targets that are known by half.
        """
        mass = self.mass if self.trust is None else self.mass * self.trust[0]
        return mass if self.information is None else mass * self.information

    @property
    def outliers(self) -> NDArray[np.bool_]:
        """Which targets count less than a tenth of what most do, shape (n,)."""
        if self.trust is None:
            return np.zeros(len(self), dtype=np.bool_)
        return np.asarray(self.trust[0] < _OUTLIER * np.median(self.trust[0]))

    @property
    def is_panel(self) -> bool:
        """Whether rows have groups and an order both."""
        return self.groups is not None and self.times is not None

    @property
    def n_dimensions(self) -> int:
        """Columns of numbers and of codes."""
        return self.n_numbers + int(self.codes.shape[1])

    @property
    def n_numbers(self) -> int:
        """Columns of numbers."""
        return len(self.columns) or int(self.numeric.shape[1])

    @property
    def numbers(self) -> FloatArray:
        """The numbers that the kernel sees, shape (n, n_numbers)."""
        return self.numeric[:, self.columns] if self.columns else self.numeric

    def with_texts_of_folds(self, components: FloatArray, n_folds: int) -> Rows:
        """Return the rows with components of their texts as each fold knows them.

        `components` of shape (n, (1 + n_folds) · n_texts): of all texts, then of each fold, in
        place of the last n_texts numbers.
        """
        n_texts = components.shape[1] // (1 + n_folds)
        p = self.numeric.shape[1] - n_texts
        starts = range(p, p + components.shape[1], n_texts) if n_texts else ()
        every = [(*range(p), *range(start, start + n_texts)) for start in starts]
        if not every:
            return self
        numeric = np.hstack([self.numeric[:, :p], components])
        return replace(self, numeric=numeric, columns=every[0], of_folds=tuple(every[1:]))

    def in_fold(self, k: int) -> Rows:
        """Return the rows as a fold sees them."""
        columns = self.of_folds[k] if self.of_folds else self.columns
        # the trust was told by all rows
        return replace(self, columns=columns, trust=None)

    def without_folds(self) -> Rows:
        """Return the rows for other folds than those that saw them in their own way."""
        return replace(self, of_folds=(), trust=None if self.trust is None else self.trust[:1])

    @property
    def known_by(self) -> FloatArray:
        """What is known of the targets, equal where that is equal, shape (n, n_numbers)."""
        if self.ends is None:
            return self.targets.T
        numbers = np.unique(self.ends, axis=1, return_inverse=True)[1]
        return numbers.reshape(-1, 1).astype(np.float64)

    @cached_property
    def recurring(self) -> bool:
        """Whether new rows will mostly be equal to training rows, so that held-out ones should.

        They will where the values of the columns allow at most half as many combinations as there
        are rows, none of numbers that take more than a few values: those may be copies. Distinct
        rows of few targets, with weights, are counts: no row of them comes twice.
        """
        combinations = 1
        for columns, most in ((self.numbers.T, FEW_VALUES), (self.codes.T, len(self))):
            for column in columns:
                n_values = len(np.unique(column))
                combinations *= n_values
                if n_values > most or 2 * combinations > len(self):
                    return False
        if 2 * combinations > self.given_once.max(initial=-1) + 1:
            return False
        if np.ptp(self.mass) == 0 or 2 * len(np.unique(self.known_by, axis=0)) > len(self):
            return True
        table = np.hstack([self.numbers, self.codes, self.known_by])
        return len(np.unique(table, axis=0)) < len(table)

    @cached_property
    def duplicate_ids(self) -> NDArray[np.intp]:
        """Number of each row's group of duplicates, which folds keep together, shape (n,).

        Duplicates are equal but for their targets and for rounding. Where rows recur, only copies
        of the whole table are: otherwise a fold would hold combinations that training has never
        seen.
        """
        return self.given_once if self.recurring else copy_groups(self.numbers, self.codes)

    @cached_property
    def kept_together(self) -> Index:
        """Number of the rows that are left out with each: its copies and its group, shape (n,)."""
        if self.groups is None:
            return self.duplicate_ids
        groups = np.unique(self.groups, return_inverse=True)[1].ravel()
        if len(np.unique(self.duplicate_ids)) == len(self):
            return np.asarray(groups)
        n = groups.max() + 1
        pairs = groups, n + self.duplicate_ids
        size = n + self.duplicate_ids.max() + 1
        graph = coo_array((np.ones(len(self)), pairs), shape=(size, size))
        return np.asarray(connected_components(graph, directed=False)[1][groups])

    @cached_property
    def given_once(self) -> Index:
        """The place of each row in the table as it is without copies of the whole, shape (n,).

        Where every row with its targets comes k times, or a multiple of it, the table was given k
        times. Of fewer rows than `_FEWEST` counts have a common factor by chance.
        """
        keys = [each[:, None] for each in (self.groups, self.times) if each is not None]
        groups = copy_groups(np.hstack([self.numeric, self.known_by, *keys]), self.codes)
        counts = np.bincount(groups)
        times = int(np.gcd.reduce(counts)) if len(counts) >= _FEWEST else 1
        by, out = np.argsort(groups, kind="stable"), np.empty(len(self), dtype=np.intp)
        # in the order of the first copies
        out[by] = np.repeat(np.argsort(np.argsort(by[::times])), times)
        return out

    def with_equal_copies(self) -> Rows:
        """Return the rows, those that differ by rounding alone, targets included, made equal."""
        both = np.hstack([self.numeric, self.targets.T])
        groups = copy_groups(both, self.codes)
        first = np.unique(groups, return_index=True)[1][groups]
        return replace(self, numeric=self.numeric[first], targets=self.targets[:, first])

    @property
    def has_equal_copies(self) -> bool:
        """Whether rows are equal but for rounding, their targets included."""
        groups = copy_groups(np.hstack([self.numeric, self.targets.T]), self.codes)
        return len(np.unique(groups)) < len(self)

    def without_names(self) -> Rows:
        """Return the rows without what names their groups: copies may be called otherwise."""
        if not self.names:
            return self
        places, p = np.array(self.names), self.n_numbers
        numeric = np.delete(self.numbers, places[places < p], axis=1)
        codes = np.delete(self.codes, places[places >= p] - p, axis=1)
        return replace(
            self, numeric=numeric, codes=codes, columns=(), names=(), group=None, further=()
        )

    def take(self, rows: NDArray[np.intp]) -> Rows:
        """Return some of the rows."""
        taken: dict[str, Any] = {
            name: None if (each := getattr(self, name)) is None else each[..., rows]
            for name in ("targets", "weight", "groups", "times", "trust", "ends", "information")
        }
        return replace(self, numeric=self.numeric[rows], codes=self.codes[rows], **taken)

    def and_others(self, other: Rows) -> Rows:
        """Return these rows and, behind them, others that are read alike."""
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("numeric", "codes")
        }
        for name in ("targets", "groups", "times", "ends", "information"):
            one, two = getattr(self, name), getattr(other, name)
            lacks = one is None or two is None
            joined[name] = None if lacks else np.concatenate([one, two], axis=-1)
        if self.weight is not None or other.weight is not None:
            joined["weight"] = np.concatenate([self.mass, other.mass])
        return replace(self, **joined)

    def divided_by(self, column: GroupColumn) -> bool:
        """Return whether a column has one value for each group, where it has any."""
        names = column.names(self.numeric, self.codes)
        named = np.flatnonzero(~np.isnan(names))
        if self.groups is None or not len(named):
            return False
        pairs = np.column_stack([self.groups[named], names[named]])
        n_pairs = len(np.unique(pairs, axis=0))
        return n_pairs == len(np.unique(pairs[:, 0])) == len(np.unique(pairs[:, 1]))

    def is_known(self, numeric: FloatArray, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which new rows are of a group that these rows have, shape (n,)."""
        if self.group is None:
            return np.zeros(len(numeric), dtype=np.bool_)
        return np.isin(self.group.names(numeric, codes), self.group.names(self.numeric, self.codes))

    def views(self, *, apart: bool = False) -> Views:
        """Return what the kernel needs to know of these rows.

        `apart`: whether they are a part of those that were encoded, and medians and categories are
        to be their own.
        """
        coding = self.coding if apart else None
        views = Views.of(
            self.numbers, self.codes, self.weight, transform_columns=self.transform_columns,
            coding=coding, group=self.group, further=self.further,
        )  # fmt: skip
        return replace(views, columns=self.columns)


@dataclass(frozen=True)
class Standardised:
    """Targets in units of their own spread, one row an output.

    - `values` of shape (n_outputs, n)
    - `centre`, `spread` of shape (n_outputs,): mean and standard deviation of the targets, after
      their transform if there is one
    - `low`, `high` of shape (n_outputs,): the `natural_range`
    - `warps`: the transform of each output; empty if there is none
    - `shares` of shape (n_outputs,): factor of each output where outputs are averaged to one
      prediction, else ``None``
    """

    values: FloatArray
    centre: FloatArray
    spread: FloatArray
    low: FloatArray
    high: FloatArray
    warps: tuple[Warp, ...] = ()
    shares: FloatArray | None = None

    @classmethod
    def of(cls, rows: Rows) -> Standardised:
        """Warp, centre and scale the targets of training rows, as far as these are trusted."""
        targets, share = rows.targets, rows.precision / rows.precision.sum()
        low, high = _range_of(rows, share)
        warps: tuple[Warp, ...] = ()
        if rows.transform_targets:
            warps = tuple(Warp.of_target(each, share).within(each) for each in targets)
        if warps:
            targets = np.array([w.forward(each) for w, each in zip(warps, targets, strict=True)])
        centre = targets @ share
        rest = targets - centre[:, None]
        spread = spread_of(rest, share)
        return cls(rest / spread[:, None], centre, spread, low, high, warps)

    def of_rows(self, rows: Rows) -> Standardised:
        """Return other rows' targets in the same units."""
        return replace(self, values=np.ascontiguousarray(self.standardise(rows.targets.T).T))

    def of_others(self, rows: Rows) -> Standardised:
        """Return the targets of rows that take the place of these, in the same units.

        What targets never leave is judged by them.
        """
        low, high = _range_of(rows, rows.precision / rows.precision.sum())
        return replace(self.of_rows(rows), low=low, high=high)

    def moved(self, offset: float) -> Standardised:
        """Return the units of targets that are larger by `offset`."""
        return replace(self, centre=self.centre + offset)

    def standardise(self, targets: FloatArray) -> FloatArray:
        """Return other targets (n, n_outputs) as those of the training rows are."""
        if self.warps:
            columns = [w.forward(each) for w, each in zip(self.warps, targets.T, strict=True)]
            targets = np.column_stack(columns)
        return np.asarray((targets - self.centre) / self.spread)

    def restore(self, values: FloatArray) -> FloatArray:
        """Return standardised values (n, n_outputs) in the units of the targets."""
        out = values * self.spread + self.centre
        if self.warps:
            out = np.column_stack([w.inverse(z) for w, z in zip(self.warps, out.T, strict=True)])
        return np.asarray(out)

    def moments(
        self, values: FloatArray, width: FloatArray | float
    ) -> tuple[FloatArray, FloatArray]:
        """Return mean and deviation of the targets around standardised values.

        The mean stays within the `natural_range`; the deviation is that of targets that need not.

        `values` of shape (n, n_outputs); `width` of shape (n,) or (n, n_outputs): standard
        deviation of the standardised target.
        """
        deviation = np.asarray(width, dtype=np.float64)
        if deviation.ndim < 2:
            deviation = np.broadcast_to(deviation, len(values))[:, None]
        if not self.warps:
            mean, deviation = self.restore(values), deviation * self.spread
        else:
            nodes = np.array([self.restore(values + deviation * node) for node in NODES])
            mean = np.einsum("k,kit->it", MASS, nodes)
            deviation = np.sqrt(np.einsum("k,kit->it", MASS, (nodes - mean) ** 2))
        return np.clip(mean, self.low, self.high), deviation

    def predict(self, values: FloatArray, width: FloatArray | float) -> FloatArray:
        """Return the means of targets around standardised values, of one output or averaged."""
        parts = self.parts(values, width)
        return parts if self.shares is None else parts.sum(axis=1, keepdims=True)

    def parts(self, values: FloatArray, width: FloatArray | float) -> FloatArray:
        """Return what each output adds to predictions, shape (n, n_outputs)."""
        mean = self.moments(values, width)[0]
        return mean if self.shares is None else mean * self.shares


def _range_of(rows: Rows, share: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the `natural_range` of the targets of rows; `share` of shape (n,): of the weights."""
    targets = rows.targets
    spread = spread_of(targets - (targets @ share)[:, None], share)
    if rows.ends is not None:
        # these targets are a likelihood's, and say nothing of what others never leave
        return np.full(len(spread), -np.inf), np.full(len(spread), np.inf)
    return natural_range(targets, targets.min(axis=1), targets.max(axis=1), spread)


def natural_range(
    targets: FloatArray, least: FloatArray, most: FloatArray, spread: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return what targets never leave, judged by those of training: infinite ends where none.

    Where none of n exchangeable targets is negative, the next is with probability 1/(n + 1) at
    most, so that cutting at 0 costs no more than that. So it is with numbers above 1, and with
    fractions. But a target that comes nowhere near 0, by its spread, may well go on below where
    rows lie beyond those of training. From −1 to 1 go the codes of classes, and a little beyond.
    At an end that far more rows share than any other value has, targets were cut already.

    `targets` of shape (n_outputs, n): some of them; `least`, `most`, `spread` of shape
    (n_outputs,): range and standard deviation of all.
    """
    positive = (least >= 0.0) & (least <= spread)
    share = (least >= 0.0) & (most <= 1.0) & (most >= 1.0 - spread)
    codes = (least == -1.0) & (most == 1.0)
    end = np.where(codes, 1.0 + _MARGIN * spread, np.inf)
    low, high = np.where(positive, 0.0, -end), np.where(share, 1.0, end)
    return (
        np.where(_pile_up(targets, least) & ~codes, np.maximum(low, least), low),
        np.where(_pile_up(targets, most) & ~codes, np.minimum(high, most), high),
    )


def _pile_up(targets: FloatArray, end: FloatArray) -> NDArray[np.bool_]:
    """Return at which outputs' ends far more targets are than at other values, shape (n_outputs,).

    They are where a fiftieth of all, and five times as many as another value has in the mean, are
    equal to it: house prices of 500,001, or a measure at the limit of its scale.
    """
    out = np.zeros(len(end), dtype=np.bool_)
    for k, (values, at) in enumerate(zip(targets, end, strict=True)):
        n_equal, n_values = np.count_nonzero(values == at), len(np.unique(values))
        others = (len(values) - n_equal) / max(1, n_values - 1)
        out[k] = n_equal >= _PILED * len(values) and n_equal > _TIMES * others
    return out


def centred_by_others(
    residuals: FloatArray, values: FloatArray, mass: FloatArray, rows: Index
) -> FloatArray:
    """Return residuals of rows left out of targets that are centred by the mean of the others.

    `residuals` of shape (n_rows, n_outputs + 1): of targets as they are, and of targets all one;
    `values` of shape (n, n_outputs): the former; `mass` of shape (n,): weights.
    """
    moved = mass[rows] @ values[rows] / (mass.sum() - mass[rows].sum())
    return np.asarray(residuals[:, :-1] + moved * residuals[:, -1:])


def normalise_weights(weight: FloatArray | None) -> FloatArray | None:
    """Return weights with mean one over rows of positive weight, ``None`` if these are equal.

    A common factor of all weights has no effect.
    """
    if weight is None:
        return None
    share = weight / weight.max()
    counted = share > 0.0
    return None if (share == 1.0).all() else np.asarray(share / share[counted].mean())


def spread_of(rest: FloatArray, mass: FloatArray) -> FloatArray:
    """Return the standard deviation of centred targets, 1 where they are constant."""
    share = mass / mass.sum()
    size = np.abs(rest).max(axis=1)
    size[size == 0] = 1.0
    spread: FloatArray = size * np.sqrt((rest / size[:, None]) ** 2 @ share)
    # a fold may hold one value only
    spread[spread == 0] = 1.0
    return spread


def block_starts(ordered: FloatArray, wanted: Index) -> Index:
    """Return where blocks begin that are to begin at some places; none parts rows of one moment.

    `ordered` of shape (n,): ascending. Every block has rows before it.
    """
    at = np.unique(np.searchsorted(ordered, ordered[wanted]))
    return at[at > 0]


def to_original_rows(values: FloatArray, owner: Index) -> FloatArray:
    """Return values of merged rows, (n, n_outputs), as those of the user's rows.

    `owner` of shape (n_rows,): the place of each, −1 where its weight is zero: NaN there.
    """
    out = np.full((len(owner), values.shape[1]), np.nan)
    kept = owner >= 0
    out[kept] = values[owner[kept]]
    return out
