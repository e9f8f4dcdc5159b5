"""What is to be predicted: which column, and whether it is a class or a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .class_hints import case_hint, date_hint, gap_hint
from .columns import is_missing
from .errors import TableError, did_you_mean
from .frames import levels_of
from .half_known import (
    Event,
    ends_of_cells,
    ends_of_times,
    refuse_cell,
    refuse_one_side,
)
from .sided import side_of
from .table import REMEDY, Table, as_numbers, gaps_of, hold_codes

# so many whole numbers may well be names of classes
_FEW = 10
# with so many rows of each
_EACH = 5
TASKS = ("auto", "classification", "regression")


@dataclass(frozen=True)
class Target:
    """The target, as it is used for fitting.

    Attributes
    ----------
    column : str
        Its name.
    values : ndarray of shape (n_rows,)
        Labels (strings, integers or numbers) or finite numbers; of a target that is known by half
        its limit, or the middle of its range.
    task : {"classification", "regression"}
        What is learned.
    reason : str
        Why this task was chosen, for messages.
    hint : str
        What else the user may have meant; otherwise empty.
    levels : list or None
        The classes of an ordered categorical column, lowest first.
    ends : ndarray of shape (2, n_rows) or None
        The least and the largest value that each row may have, where some are known by half:
        equal where a target is known, infinite on a side without a limit.
    event : Event or None
        What says which times ended, of times up to an event.
    unit : str
        Of limits and ranges; empty without one. That of other columns is the table's.

    Examples
    --------
    >>> from kernelweave.tables import read_table, read_target
    >>> read_target(read_table("iris"), "target").task
    'classification'
    """

    column: str
    values: npt.NDArray[Any]
    task: str
    reason: str
    hint: str = ""
    levels: list[Any] | None = None
    ends: npt.NDArray[np.float64] | None = None
    event: Event | None = None
    unit: str = ""

    @property
    def learned(self) -> npt.NDArray[Any]:
        """What ``fit`` takes, shape (n_rows,).

        `values`; of targets known by half a structured array of two fields: ``event`` and ``time``,
        as of scikit-survival, or ``low`` and ``high``.
        """
        if self.ends is None:
            return self.values
        low, high = self.ends
        if self.event is not None:
            kinds: list[tuple[str, type]] = [("event", bool), ("time", float)]
            return np.array(list(zip(low == high, low, strict=True)), dtype=kinds)
        return np.array(list(zip(low, high, strict=True)), dtype=[("low", float), ("high", float)])


def choose_target(table: Table, wanted: str | None) -> str:
    """Return the name of the target column.

    Parameters
    ----------
    table : Table
        The data.
    wanted : str or None
        A name, or a 0-based index where no column has that name; ``None`` for the column that the
        source itself marks.

    Returns
    -------
    str
        A column of the table.

    Raises
    ------
    TableError
        If there is no such column; close matches are named.

    Examples
    --------
    >>> from kernelweave.tables import choose_target, read_table
    >>> choose_target(read_table("iris"), None)
    'target'
    """
    columns = table.columns
    if wanted is None:
        if table.target is not None:
            return table.target
        last = columns[-1]
        raise TableError(
            f"--target is missing: say which column of {table.source} to predict, by name or "
            f"0-based index, e.g. --target {last!r}"
        )
    if wanted in columns:
        return wanted
    if wanted.isdigit() and int(wanted) < len(columns):
        return columns[int(wanted)]
    hint = did_you_mean(wanted, columns, what="columns")
    raise TableError(f"{table.source} has no column {wanted!r}; {hint}")


def split_by_target(table: Table, column: str) -> tuple[Table, Table | None]:
    """Return the rows whose target is known, and those whose target is missing.

    Parameters
    ----------
    table : Table
        The data.
    column : str
        The target. Among words only cells without text are missing: NA may be a class. Among
        numbers, limits and ranges it is missing.

    Returns
    -------
    known : Table
        To learn from.
    unknown : Table or None
        To predict; ``None`` where every target is known, or none is.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelweave.tables import read_table, split_by_target
    >>> known, unknown = split_by_target(read_table(pd.DataFrame({"y": [1.0, None, 3.0]})), "y")
    >>> known.frame["y"].tolist(), unknown.where(0)
    ([1.0, 3.0], 'row 2')
    """
    cells = table.frame[column]
    missing = gaps_of(cells)
    is_text = not np.isfinite(as_numbers(cells[~missing])).all()
    if is_text and ends_of_cells(table, column) is None:
        missing = cells.isna().to_numpy() | [not str(cell).strip() for cell in cells]
    if not missing.any() or missing.all():
        return table, None
    return table.take(np.flatnonzero(~missing)), table.take(np.flatnonzero(missing))


def read_target(
    table: Table, column: str, task: str = "auto", *, least: int = 2, event: Event | None = None
) -> Target:
    """Return the values of the target and decide between classes and numbers.

    Text, codes such as 007, booleans, two distinct values, or a few whole numbers counted from 0
    or 1 are classes; anything else is a number. Numbers of which some are limits or ranges, such as
    <0.5, 36+ and 3-5, and times up to an event are known by half.

    Parameters
    ----------
    table : Table
        The data.
    column : str
        The target.
    task : {"auto", "classification", "regression"}, default="auto"
        ``"auto"`` decides, unless the source names its task.
    least : int, default=2
        Distinct values that are needed: 2 to learn, 1 to score predictions.
    event : Event, optional
        What says which of the target's times ended by an event; the others had not ended then.

    Returns
    -------
    Target
        Values, task and the reason for it.

    Raises
    ------
    TableError
        On missing values, too few distinct values, text where numbers are asked for, labels that
        are nearly all different, an event that is neither yes nor no, a time below 0, or targets
        without a limit on one side.

    Examples
    --------
    >>> from kernelweave.tables import read_table, read_target
    >>> read_target(read_table("diabetes"), "target").reason
    'as the data set says, 214 distinct values'
    """
    if task not in TASKS:
        raise TableError(f"--task must be one of {', '.join(TASKS)}, got {task!r}")
    if column in table.refused:
        raise TableError(f"{table.source}: {table.refused[column]}")
    half_known = _read_half_known(table, column, task, least, event)
    if half_known is not None:
        return half_known
    series = table.frame[column]
    numbers, codes = as_numbers(series), hold_codes(series)
    text = codes or series.dtype.kind == "b" or bool(np.isnan(numbers).any())
    levels = levels_of(series)
    if not text:
        table.numbers(column)
    elif series.dtype.kind != "b":
        is_label = levels is not None or "classification" in (task, table.task)
        _check_texts(table, column, numbers, is_label=is_label)
    n_distinct = _n_distinct(table, column, least)
    is_open = task == "auto" and table.task is None
    if is_open:
        kind = "true or false" if series.dtype.kind == "b" else "text" if text else ""
        task, reason = _decide(numbers, kind or ("ordered" if levels else ""), n_distinct)
    else:
        says = "as the data set says" if task == "auto" else "as asked"
        reason = f"{says}, {n_distinct} distinct values"
        task = str(table.task) if task == "auto" else task
    if task == "regression":
        values, hint = table.numbers(column), ""
        if is_open and n_distinct <= _FEW and _are_whole(values):
            hint = (
                f"the target {column!r} has {n_distinct} distinct whole numbers and is learned as "
                "a number: if they are classes, add --task classification, and "
                f"{_levels(values)} if these have an order"
            )
        return Target(column, values, task, reason, hint)
    if n_distinct > max(20, len(series) // 2):
        rows = f"{len(series)} rows"
        what, remedy = f"values in {rows}", "choose another column or --task regression"
        if text and not codes:
            is_date = bool(date_hint(series))
            what = f"{'dates' if is_date else 'texts'} in {rows}, such as {str(series.iloc[0])!r}"
            remedy = "choose another column, or write its cells as numbers"
            remedy += ", such as days since a fixed day" if is_date else ""
            if ends_of_cells(table, column) is not None:
                what = f"numbers, limits and ranges in {rows}"
                remedy = "leave out --task classification to learn them as numbers"
        raise TableError(
            f"{table.source}: the target {column!r} has {n_distinct} distinct {what}: too many for "
            f"classes; {remedy}"
        )
    if text:
        hints = [gap_hint(series), case_hint(series), date_hint(series)]
        hint = "; ".join(filter(None, hints))
        labels = series.astype(str).to_numpy(str)
    else:
        # classes are no quantities
        whole, hint = _are_whole(numbers), ""
        labels = numbers.astype(np.int64) if whole else np.array([f"{x:.15g}" for x in numbers])
        if is_open and whole and n_distinct > 2 and levels is None:
            hint = (
                f"the target {column!r} is read as classes: if it is a quantity, such as a count, "
                "add --task regression; if it is a rating, whose classes have an order, add "
                f"{_levels(numbers)}"
            )
    if levels is None or n_distinct <= 2:
        return Target(column, labels, task, reason, hint)
    places = pd.Index(levels).get_indexer(np.asarray(series))
    levels = pd.unique(labels[np.argsort(places, kind="stable")]).tolist()
    return Target(column, labels, task, f"{reason}: {' < '.join(map(str, levels))}", hint, levels)


def _n_distinct(table: Table, column: str, least: int) -> int:
    """Return how many distinct cells a target has; raise where they are fewer than ``least``."""
    series = table.frame[column]
    n_distinct = int(series.nunique())
    if n_distinct < least:
        raise TableError(
            f"{table.source}: the target {column!r} is {str(series.iloc[0])!r} in every row: "
            f"at least two distinct values are needed to learn anything"
        )
    return n_distinct


def _read_half_known(
    table: Table, column: str, task: str, least: int, event: Event | None
) -> Target | None:
    """Return a target that is known by half; ``None`` of others."""
    task = str(table.task) if task == "auto" and table.task is not None else task
    if event is not None and task == "classification":
        raise TableError(
            f"--event {str(event)!r} is for times, which are numbers, and this is a "
            "classification: leave out --event or --task"
        )
    if event is not None:
        ends = ends_of_times(table, column, event)
        n_known = int((ends[0] == ends[1]).sum())
        reason = (
            f"the target is the time up to the event {str(event)!r}, which {n_known} of "
            f"{ends.shape[1]} rows had"
        )
        target = Target(column, ends[0], "regression", reason, ends=ends, event=event)
    else:
        asked = task == "regression"
        found = None if task == "classification" else ends_of_cells(table, column, asked=asked)
        if found is None or not (asked or levels_of(table.frame[column]) is None):
            return None
        ends = found.values
        odd = np.flatnonzero(np.isnan(ends[0]))
        if len(odd):
            refuse_cell(table, column, int(odd[0]), found.unit)
        with np.errstate(invalid="ignore"):
            middle = 0.5 * (ends[0] + ends[1])
        values = np.where(np.isinf(ends[0]), ends[1], np.where(np.isinf(ends[1]), ends[0], middle))
        n_known = int((ends[0] == ends[1]).sum())
        reason = (
            f"the target is numeric, {len(values) - n_known} of {len(values)} rows are limits or "
            f"ranges, such as {found.example!r}"
        )
        hint = f"column {column!r}: {found.remark}" if found.remark else ""
        n_distinct = table.frame[column].nunique()
        if not (asked or hint) and n_distinct <= _FEW:
            hint = (
                f"the target {column!r} has {n_distinct} distinct values and is learned as a "
                "number that is known by half: if they are classes, add --task classification"
            )
        target = Target(column, values, "regression", reason, hint, ends=ends, unit=found.unit)
    if least > 1:
        _n_distinct(table, column, least)
        refuse_one_side(table, column, ends, "" if event is None else str(event))
    return target


def _levels(numbers: npt.NDArray[np.float64]) -> str:
    """Return the option that says that classes, a few whole numbers, have an order."""
    return f'--set levels="{np.unique(numbers).astype(np.int64).tolist()}"'


def _decide(values: npt.NDArray[np.float64], told: str, n_distinct: int) -> tuple[str, str]:
    """Return the task of a target that nobody names, and the reason for it.

    `told`: what it is, if that is no number.
    """
    if told:
        return "classification", f"the target is {told}, {n_distinct} classes"
    if n_distinct == 2:
        return "classification", "the target has two distinct values"
    low, high = values.min(), values.max()
    # names of classes run from 0 or 1 without a gap
    counted = _are_whole(values) and low in (0, 1) and high - low == n_distinct - 1
    if n_distinct <= _FEW and len(values) >= _EACH * n_distinct and counted:
        return "classification", f"the target is one of the whole numbers {low:g} to {high:g}"
    return "regression", f"the target is numeric, {n_distinct} distinct values"


def _are_whole(values: npt.NDArray[np.float64]) -> bool:
    return bool((values == np.round(values)).all())


def _check_texts(
    table: Table, column: str, numbers: npt.NDArray[np.float64], *, is_label: bool
) -> None:
    """Refuse missing cells, and a typing error among numbers that would turn them into text.

    `is_label`: whether the user says that the cells are classes.
    """
    series = table.frame[column]
    bad = np.flatnonzero(np.isnan(numbers))
    missing = [int(row) for row in bad if is_missing(series.iloc[row])]
    if missing and (len(missing) == len(bad) or not str(series.iloc[missing[0]]).strip()):
        rest = len(missing) - 1
        others = f", and in {rest} other row{'s' if rest > 1 else ''}" if rest else ""
        raise TableError(
            f"{table.source}: the target {column!r}, {table.where(missing[0])}: the value is "
            f"missing{others}: {REMEDY}"
        )
    if 0 < 2 * len(bad) < len(series):
        row = int(bad[0])
        cell = str(series.iloc[row]).strip()
        if side_of(cell) is None or not is_label:
            refuse_cell(table, column, row)
