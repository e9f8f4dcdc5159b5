"""A table as a fit learns from it: which rows count, what their cells become, who held them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.arrays import Rows as Table
from kernelweave.kernels_core.estimators.samples import merge_samples
from kernelweave.kernels_core.exceptions import Message
from kernelweave.kernels_core.memory import require
from sklearn.utils.validation import _num_samples

from .columns import ColumnEncoder
from .columns.encoded import GroupColumn, places_of
from .division import Division, division_of
from .groupings import Groupings, terms_beside
from .large.batches import Batches
from .large.dask_parts import DaskParts, is_dask, levels_of_parts
from .large.drawing import first_reading
from .large.reading import Reader, batches_alone, targets_of
from .large.source import Source
from .new_rows import ALIKE
from .rows import Rows, Split, normalise_weights
from .targets import check_weight
from .tasks import Classification, Task

# more rows than these are learned by landmarks: all pairs would take minutes
FACTOR_ROWS = 5000
# the same of targets known by half, each of whose modes takes several factors
_CENSORED_ROWS = 2000
# of a table in batches, what tells the encoder its categories and medians
DRAWN_ROWS = 20_000
# of a table: read, encoded, without the rows of no weight, and those of a part
_COPIES = 4


@dataclass(frozen=True)
class ReadTable:
    """What a fit is given, read and checked.

    - `rows`: those that count, equal ones merged; or what reads them where they are many
    - `owner` of shape (n_rows,): the place of each of the user's rows among these, −1 where its
      weight is zero; empty where rows are read in parts
    - `task`: what is known of the targets; `encoder`: fitted
    - `division`: how the user holds rows out; `table`: as it is given
    - `targets` of shape (n_outputs, n_rows) and `weight` of shape (n_rows,): of the user's rows,
      with the weights of their classes; ``None`` of none
    """

    rows: Rows | Source
    owner: Index
    task: Task
    encoder: ColumnEncoder
    division: Division
    table: Any = None
    targets: FloatArray | None = None
    weight: FloatArray | None = None

    @property
    def are_many(self) -> bool:
        """Whether they are learned by landmarks, which have no effects of groups."""
        if not isinstance(self.rows, Rows):
            return True
        is_slow = self.rows.ends is not None and self.rows.group is None
        return len(self.rows) > (_CENSORED_ROWS if is_slow else FACTOR_ROWS)

    def splits(self, n_folds: int, state: np.random.RandomState) -> list[Split]:
        """Return the folds of rows in memory, as the user says or at random."""
        if not isinstance(self.rows, Rows):
            raise ValueError("a splitter as cv is for tables in memory: give a number of folds")
        return self.division.folds(self.rows, self.owner, self.task, n_folds, state)


def read_table(
    X: Any, y: object, weight: object, task: Task, encoder: ColumnEncoder,
    *, groups: object, order: object, cv: Any, n_jobs: int | None, seed: Callable[[], int],
    estimator: object, beside: Groupings | None = None,
) -> ReadTable:  # fmt: skip
    """Read a table of any kind, its targets and weights.

    `task`, `encoder`: as the user sets them, without data; `cv`: as in `division_of`; `seed`: gives
    that of the rows drawn of a table in parts; `estimator`: in whose name the encoder speaks;
    `beside`: effects of groups beside the levels of those held out.
    """
    if isinstance(X, Batches) or is_dask(X):
        if not isinstance(groups, str | None) or not isinstance(order, str | None):
            raise ValueError("groups and order must name columns of a table that is read in parts")
        if beside is not None and not beside.are_plain:
            raise ValueError(
                "slopes and several groups are for tables in memory, not for tables in parts: name "
                "one column as groups"
            )
        if groups == ALIKE:
            raise ValueError(f"groups={ALIKE!r} compares all rows: give a table in memory")
        table: Source = (DaskParts.of if is_dask(X) else batches_alone)(X, y, weight)
        seen, targets = first_reading(table, task.summary, DRAWN_ROWS, seed())
        if isinstance(task, Classification) and task.levels is None:
            task = replace(task, levels=levels_of_parts(y) if is_dask(X) else X.levels)
        task = task.of_summary(targets)
        with seen.place_errors():
            encoder.fit(seen.batch.X, normalise_weights(seen.batch.weight), estimator=estimator)
        division = division_of(seen.batch.X, seen.batch.y, groups, order, cv)
        if seen.n_rows > FACTOR_ROWS or not seen.complete:
            reader = Reader(encoder, targets, groups or "", order or "")
            rows = table.encoded(reader, n_jobs)
            return ReadTable(rows, np.empty(0, dtype=np.intp), task, encoder, division)
        given = (seen.batch.X, *targets_of(seen.batch, targets))
    else:
        n_rows = _num_samples(X)
        checked = check_weight(weight, n_rows)
        encoder.fit(X, normalise_weights(checked), estimator=estimator)
        task, values, checked = task.read(y, n_rows, checked)
        division = division_of(X, y, groups, order, cv)
        given = (X, values, checked)
    counted = _counted(*given, encoder, division, estimator, task.ends, beside)
    return ReadTable(*counted, task, encoder, division, *given)


def _group_column(rows: Rows, division: Division, encoder: ColumnEncoder) -> GroupColumn | None:
    """Return the dimension that names the groups of the rows, ``None`` if none does."""
    if len(rows) > FACTOR_ROWS and (division.cv is not None or rows.ends is not None):
        # folds of a splitter may part groups, which sums of rows must not; the mode of targets
        # known by half has no levels
        return None
    columns = [
        (each.name != division.column, GroupColumn.of(place, encoder.coding))
        for place, each in enumerate(encoder.dimensions_)
        if each.kind in ("number", "category")
    ]
    if rows.groups is not None and len(np.unique(rows.groups)) == len(rows):
        # each row on its own: any column of distinct numbers would do, and name nothing
        columns = [(other, each) for other, each in columns if not other]
    by_name = sorted(columns, key=lambda pair: pair[0])
    return next((each for _, each in by_name if rows.divided_by(each)), None)


def _counted(
    X: Table, targets: FloatArray, weight: FloatArray | None, encoder: ColumnEncoder,
    division: Division, estimator: object, ends: FloatArray | None, beside: Groupings | None,
) -> tuple[Rows, Index]:  # fmt: skip
    """Return the encoded rows that count, and whose they are; equal ones merged.

    But not where rows recur: folds are to divide them, of a table given several times those of one.
    """
    n_rows, n_dimensions = targets.shape[1], len(encoder.dimensions_)
    require(
        8 * _COPIES * n_rows * n_dimensions,
        f"{n_rows} rows of {n_dimensions} dimensions",
        alternative=Message(
            "raise {memory_limit} or give {or_batches}fewer rows or columns",
            or_batches="Batches, or ",
        ),
    )
    numeric, codes = encoder.transform(X, estimator=estimator)
    given = Rows(
        numeric, codes, targets, weight, coding=encoder.coding, groups=division.groups,
        times=division.order, ends=ends,
    )  # fmt: skip
    if beside is not None and not beside.are_plain:
        given = replace(given, further=terms_beside(beside, encoder, given, FACTOR_ROWS))
    rows, owner = merged_rows(given, encoder, division)
    return replace(rows, weight=normalise_weights(rows.weight)), owner


def merged_rows(given: Rows, encoder: ColumnEncoder, division: Division) -> tuple[Rows, Index]:
    """Return rows that count, weights as given, and whose they are; equal ones merged and sorted.

    `given`: those of the user, encoded.
    """
    n_rows, mass, targets = len(given), given.mass, given.targets
    numeric, codes = given.numeric, given.codes
    kept = np.flatnonzero(mass > 0)
    rows = given.take(kept)
    group, names = _group_column(rows, division, encoder), {division.column} - {""}
    if group is not None:
        names.add(encoder.dimensions_[group.place].source)
    places = places_of(encoder.dimensions_, *names)
    rows = replace(rows, group=group, names=places)
    if n_rows > FACTOR_ROWS or rows.recurring:
        owner, place = np.full(n_rows, -1), np.arange(len(kept), dtype=np.intp)
        if n_rows <= FACTOR_ROWS and division.cv is None and rows.given_once.max() + 1 < len(rows):
            place = rows.given_once
            first = np.unique(place, return_index=True)[1]
            rows = replace(rows.take(first), weight=np.bincount(place, rows.mass).astype(float))
        owner[kept] = place
        return rows, owner
    equal = Rows(numeric, codes, targets).with_equal_copies()
    # rows that are held out apart are not one, nor are those known in another way
    keys = [division.keys] if given.ends is None else [division.keys, given.known_by]
    merged = merge_samples(np.hstack([equal.numeric, codes, *keys]), equal.targets, mass)
    first = np.unique(merged.owner[kept], return_index=True)[1]
    n_numbers, n_encoded = numeric.shape[1], numeric.shape[1] + codes.shape[1]
    rows = replace(
        rows.take(first),
        numeric=np.ascontiguousarray(merged.X[:, :n_numbers]),
        codes=np.ascontiguousarray(merged.X[:, n_numbers:n_encoded].astype(np.int64)),
        targets=merged.targets,
        weight=merged.weight,
    )
    return rows, merged.owner
