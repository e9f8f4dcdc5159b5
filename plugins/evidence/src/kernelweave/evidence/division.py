"""How rows are held out: at random, by groups, in their order, or by a splitter of scikit-learn."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core import KernelWeaveWarning
from kernelweave.kernels_core.arrays import FloatArray, Index, Labels
from kernelweave.kernels_core.checks import integer
from kernelweave.kernels_core.estimators.classes import column_of
from kernelweave.kernels_core.exceptions import Message
from kernelweave.tables.columns import Dates, Numbers, Words
from kernelweave.tables.dates import DateParts, date_as_written, read_dates
from kernelweave.tables.errors import place_of
from kernelweave.tables.frames import read_values
from kernelweave.tables.plans import first_reading
from sklearn.model_selection import check_cv
from sklearn.utils.validation import _num_samples

from .classes import random_folds
from .columns import ColumnEncoder
from .copies import alike_groups
from .new_rows import ALIKE, IN_THE_FILE, USUAL, WITHOUT_ALIKE, Kind
from .panels import RowKinds, names_of_kinds
from .rows import Rows, Split, block_starts

if TYPE_CHECKING:
    from .tasks import Task

_ONE_GROUP = "groups are one and the same in every row: at least 2 are needed"
BY_CV = Kind("rows as held out", "rows as cv holds them out", "")


@dataclass(frozen=True)
class Division:
    """What the user says of how new rows differ from those of training.

    `groups` of shape (n_rows,): rows of one number are held out together; `order` of shape
    (n_rows,): rows are held out after those before them, with both of known groups and new ones as
    they come; `cv`: a splitter; `kind`: the rows that are held out then; `y`: targets as the user
    gives them; `column`, `moments`: of X, that names the groups, and has the order.
    """

    groups: Index | None
    order: FloatArray | None
    cv: Any
    kind: Kind
    y: Labels
    column: str = ""
    moments: str = ""

    @property
    def is_panel(self) -> bool:
        """Whether rows have groups and an order both."""
        return self.groups is not None and self.order is not None

    @property
    def row_kinds(self) -> RowKinds:
        """What rows of known and new groups, now and later, are called."""
        groups = None if self.groups is None else self.column
        order = None if self.order is None else self.moments
        return names_of_kinds(groups, order, self.kind.name)

    @property
    def random(self) -> bool:
        """Whether nothing but a splitter says how rows are held out."""
        return self.groups is None and self.order is None

    @property
    def is_given(self) -> bool:
        """Whether the user says anything but a number of folds."""
        return not self.random or self.cv is not None

    @property
    def in_order(self) -> bool:
        """Whether rows held out come after those learned from, in the table or by an order."""
        pairs = [] if self.cv is None else self.pairs
        after = (one.max(initial=-1) < other.min(initial=len(self.y)) for one, other in pairs)
        return self.order is not None or (bool(pairs) and all(after))

    @property
    def keys(self) -> FloatArray:
        """What rows have in common that are held out together, shape (n_rows, n_keys)."""
        given = [each for each in (self.groups, self.order) if each is not None]
        keys = [np.asarray(each, dtype=np.float64) for each in given]
        if self.cv is not None:
            for pair in self.pairs:
                for places in pair:
                    keys.append(np.zeros(len(self.y)))
                    keys[-1][places] = 1.0
        return np.column_stack([np.empty((len(self.y), 0)), *keys])

    @cached_property
    def pairs(self) -> list[Split]:
        """Training and held-out places of each fold, as the splitter gives them."""
        with warnings.catch_warnings():
            # folds may part groups, which have levels all the same
            warnings.filterwarnings("ignore", "The groups parameter is ignored by", UserWarning)
            splits = self.cv.split(np.zeros((len(self.y), 1)), self.y, self.groups)
            pairs = [(np.asarray(one), np.asarray(other)) for one, other in splits]
        last = max((each.max(initial=0) for pair in pairs for each in pair), default=0)
        if last >= len(self.y):
            raise ValueError(f"cv must give places of {len(self.y)} rows, from 0 on, got {last}")
        return pairs

    def splits(
        self, n_folds: int, codes: Index | None, state: np.random.RandomState
    ) -> list[Split]:
        """Return training and held-out places of the user's rows.

        `codes` of shape (n_rows,): their classes, if they have any.
        """
        if self.cv is not None:
            return self.pairs
        if self.order is not None:
            return later_blocks(self.order, n_folds)
        n_rows = len(self.y)
        groups = np.zeros(n_rows, dtype=np.intp) if self.groups is None else self.groups
        n_groups = len(np.unique(groups))
        if n_groups < 2:
            raise ValueError(_ONE_GROUP)
        return random_folds(n_rows, min(n_folds, n_groups), state, codes, groups)

    def folds(
        self, rows: Rows, owner: Index, task: Task, n_folds: int, state: np.random.RandomState
    ) -> list[Split]:
        """Return the folds of rows that count, as the user says or at random, none held out twice.

        `owner` of shape (n_rows,): the place of each of the user's rows, −1 where its weight is
        zero; `task`: of the targets.
        """
        if not self.is_given:
            return task.splits(rows, n_folds, state) if len(rows) > 1 else []
        folds, seen = [], np.zeros(len(rows), dtype=np.bool_)
        for one, other in self.splits(n_folds, task.codes(self.y), state):
            training, held_out = (owner[each][owner[each] >= 0] for each in (one, other))
            if len(np.intersect1d(training, held_out)):
                raise ValueError("cv must not hold out rows that it learns from in the same fold")
            held_out = np.unique(held_out[~seen[held_out]])
            seen[held_out] = True
            if len(held_out):
                folds.append((np.unique(training), held_out))
        if not folds or min(len(one) for one, _ in folds) < 1:
            raise ValueError("every fold of cv must have training rows and validation rows")
        return without_copies(folds, rows.without_names().duplicate_ids)


def without_copies(folds: list[Split], copies: Index) -> list[Split]:
    """Return folds whose training parts have no copy of a row that they hold out.

    But where fewer than a quarter of their rows are left, rows recur from group to group: those of
    new groups will be copies too.

    `copies` of shape (n_rows,): rows of one number are copies.
    """
    without = [(one[~np.isin(copies[one], copies[other])], other) for one, other in folds]
    pairs = zip(without, folds, strict=True)
    return folds if any(4 * len(few[0]) < len(all_[0]) for few, all_ in pairs) else without


def later_blocks(order: FloatArray, n_folds: int) -> list[Split]:
    """Return the blocks of the later half, each after all rows before it.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence.division import later_blocks
    >>> [(len(a), b.tolist()) for a, b in later_blocks(np.arange(8.0), 2)]
    [(4, [4, 5]), (6, [6, 7])]
    """
    by = np.argsort(order, kind="stable")
    wanted = np.linspace(len(by) / 2, len(by), n_folds + 1).round().astype(int)[:-1]
    cuts = [*block_starts(order[by], wanted).tolist(), len(by)]
    if len(cuts) < 2:
        raise ValueError("order is the same in nearly every row: no row is later than others")
    return [(np.sort(by[:low]), np.sort(by[low:high])) for low, high in pairwise(cuts)]


def division_of(X: Any, y: object, groups: object, order: object, cv: Any) -> Division:
    """Return how rows are to be held out.

    `groups`, `order`: the name of a column of X, or a value a row; groups of near copies where
    `groups` is "rows alike"; `cv`: a splitter, or pairs of places; a number says nothing here.
    Where both are given, folds hold out later blocks, whose rows may be of known groups or new
    ones. Raises ValueError if there is no such column, rows that are alike are to be in an order,
    or `cv` is none of these.
    """
    n_rows, targets = _num_samples(X), np.asarray(y)
    if isinstance(cv, int | np.integer):
        integer(2).check("cv", cv)
    custom = None if cv is None or isinstance(cv, int | np.integer) else check_cv(cv)
    if isinstance(groups, str) and groups == ALIKE and ALIKE not in getattr(X, "columns", ()):
        if order is not None:
            raise ValueError(
                Message(
                    "{groups}={alike!r} takes no {order}: name the column of the groups, or give "
                    "one of the two",
                    alike=ALIKE,
                )
            )
        encoder = ColumnEncoder()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KernelWeaveWarning)
            alike = alike_groups(*encoder.fit_transform(X))
        return _as_cut(Division(alike, None, custom, WITHOUT_ALIKE, targets))
    division = Division(None, None, custom, USUAL if custom is None else BY_CV, targets)
    if groups is not None:
        name, values = _name_of(groups), column_of(X, groups, "groups", n_rows)
        new = f"new {name}" if name else "new groups"
        phrase = f"rows of a new {name!r}" if name else "rows of new groups"
        kind = Kind(new, phrase, Message("{groups}={column!r}", column=name))
        division = replace(division, groups=codes_of_groups(values), kind=kind, column=name)
    if order is not None:
        name, values = _name_of(order), column_of(X, order, "order", n_rows)
        new = f"later by {name}" if name else "later rows"
        phrase = f"rows that are later by {name!r}" if name else "later rows"
        argument = Message("{order}={column!r}", column=name) if name else IN_THE_FILE
        kind = Kind(new, phrase, argument)
        division = replace(division, order=moments_of(values, name), kind=kind, moments=name)
    if division.is_panel and len(np.unique(np.asarray(division.groups))) < 2:
        raise ValueError(_ONE_GROUP)
    return division if division.random else _as_cut(division)


def _as_cut(division: Division) -> Division:
    """Return the division, of kind `BY_CV` if its splitter cuts through groups or the order."""
    keys = division.groups if division.order is None else division.order
    for one, other in [] if division.cv is None else division.pairs:
        learned, met = np.asarray(keys)[one], np.asarray(keys)[other]
        is_kept = not np.isin(met, learned).any()
        if division.order is not None:
            is_kept = bool(learned.max(initial=-np.inf) < met.min(initial=np.inf))
        if not is_kept:
            return replace(division, kind=BY_CV)
    return division


def n_folds_of(model: Any) -> int:
    """Return how many folds an estimator asks for, by its ``cv`` or its ``n_folds``."""
    return int(model.cv if isinstance(model.cv, int | np.integer) else model.n_folds)


def _name_of(given: object) -> str:
    return given if isinstance(given, str) else ""


def codes_of_groups(values: Labels) -> Index:
    """Return a number for each group; a missing value is a group of its own."""
    import pandas as pd

    codes = pd.factorize(values)[0]
    missing = codes < 0
    codes[missing] = codes.max(initial=-1) + 1 + np.arange(missing.sum())
    return np.asarray(codes, dtype=np.intp)


def moments_of(values: Labels, name: str) -> FloatArray:
    """Return numbers or dates as numbers that grow with time; `name`: of their column."""
    raw = read_values(values.astype(np.int8) if values.dtype.kind == "b" else values, name)
    column = f" of column {name!r}" if name else ""
    if raw.missing.any():
        text = "a value of {order} is missing in {place}: say when it was, or leave the row out"
        raise ValueError(Message(text, place=place_of(int(raw.missing.argmax())) + column))
    if isinstance(raw, Numbers):
        return raw.values
    reading = read_dates(raw) if isinstance(raw, Dates) else (first_reading(raw) or (None, ""))[0]
    read = np.full(len(raw), np.nan)
    if isinstance(reading, DateParts):
        read = reading.transform(raw)[:, -1]
    elif reading is not None and isinstance(raw, Words):
        read = reading.values_of(raw)
    if (odd := np.isnan(read)).any():
        text = "{order} must hold numbers or dates, got {cell!r} in {place}"
        if reading is None and isinstance(raw, Words) and date_as_written(raw.labels):
            text += ": write all dates in one format, like 2024-05-31"
        at = int(odd.argmax())
        raise ValueError(Message(text, cell=values[at], place=place_of(at) + column))
    return read
