"""Targets known by half: cells such as <0.5, 36+ and 3-5, and times up to an event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from .columns import is_missing
from .errors import TableError, did_you_mean
from .sided import side_of
from .table import REMEDY, Table, as_numbers, gaps_of, hold_codes
from .written import WrittenNumbers
from .yes_no import yes_and_no

# values of an event that an error lists
_MOST_VALUES = 6


@dataclass(frozen=True)
class Event:
    """What says which times ended by an event; the others had not ended then.

    Attributes
    ----------
    column : str
        A column of yes and no, true and false, or 1 and 0; of anything else with `value`.
    value : str or None
        The cells that say that the event happened, in upper or lower case; ``None`` where they are
        yes, true or 1.

    Examples
    --------
    >>> from kernelweave.tables import Event
    >>> str(Event("status", "dead"))
    'status=dead'
    """

    column: str
    value: str | None = None

    def __str__(self) -> str:
        return self.column if self.value is None else f"{self.column}={self.value}"


class Ends(NamedTuple):
    """What is known of a target, with its unit and a remark on how its numbers are read.

    `values` of shape (2, n_rows): the least and the largest value that each row may have. They are
    equal where the target is known, infinite on a side without a limit, and NaN where a cell is no
    number. `example`: a cell that is a limit or a range.
    """

    values: npt.NDArray[np.float64]
    unit: str
    remark: str
    example: str


def choose_event(table: Table, wanted: str, target: str) -> Event:
    """Return the event that a user names.

    Parameters
    ----------
    table : Table
        The data.
    wanted : str
        A column, or COLUMN=VALUE, such as ``"status=dead"``.
    target : str
        The column of times.

    Returns
    -------
    Event
        Its column is one of the table.

    Raises
    ------
    TableError
        If there is no such column, close matches are named; or it is the target, or has no such
        value.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelweave.tables import choose_event, read_table
    >>> table = read_table(pd.DataFrame({"time": [2, 3], "status": ["dead", "alive"]}))
    >>> choose_event(table, "status=dead", "time")
    Event(column='status', value='dead')
    """
    column, value = wanted, None
    if wanted not in table.columns and "=" in wanted:
        column, _, value = wanted.partition("=")
    if column not in table.columns:
        hint = did_you_mean(column, table.columns, what="columns")
        raise TableError(f"--event: {table.source} has no column {column!r}; {hint}")
    if column == target:
        raise TableError(
            f"--event {column!r} is the target: name the column that says which times ended by the "
            "event"
        )
    event = Event(column, value)
    if value is not None and not _has_value(table, event).any():
        values = [str(each) for each in table.frame[column].dropna().unique()[:100]]
        hint = did_you_mean(value, values, what="values")
        raise TableError(
            f"--event {str(event)!r}: no cell of column {column!r} of {table.source} is {value!r}; "
            f"{hint}"
        )
    return event


def happened(table: Table, event: Event) -> npt.NDArray[np.bool_]:
    """Return for which rows an event happened, shape (n_rows,).

    Raises TableError at a cell that is missing, or neither yes nor no.
    """
    cells = table.frame[event.column]
    missing = np.flatnonzero(gaps_of(cells))
    if len(missing):
        raise TableError(
            f"{table.source}: the event {event.column!r}, {table.where(int(missing[0]))}: the "
            "value is missing, and the time is known: write whether it ended by the event, or "
            "remove the row"
        )
    if event.value is not None:
        return _has_value(table, event)
    yes, no = yes_and_no(cells)
    odd = np.flatnonzero(~(yes | no))
    if len(odd):
        row = int(odd[0])
        distinct = list(dict.fromkeys(str(each).strip() for each in cells))
        shown = ", ".join(map(repr, distinct[:_MOST_VALUES]))
        more = ", ..." if len(distinct) > _MOST_VALUES else ""
        raise TableError(
            f"{table.source}: the event {event.column!r}, {table.where(row)}: "
            f"{str(cells.iloc[row]).strip()!r} is not yes or no, true or false, 1 or 0: say which "
            f"value is the event, as in --event {event.column}=VALUE (the values are {shown}{more})"
        )
    return yes


def _has_value(table: Table, event: Event) -> npt.NDArray[np.bool_]:
    """Return which cells are the value of an event, in upper or lower case."""
    cells, value = table.frame[event.column], str(event.value).strip()
    (yes, no), (is_yes, is_no) = yes_and_no(cells), yes_and_no([value])
    if (is_yes | is_no).all() and (yes | no | gaps_of(cells)).all():
        # of a column of true and false, yes is the cell True
        return yes if is_yes.all() else no
    found = (cells.astype(str).str.strip().str.casefold() == value.casefold()).to_numpy()
    try:
        number = float(value)
    except ValueError:
        return np.asarray(found)
    # 2 is the cell 2.0 too
    return np.asarray(found | (as_numbers(cells) == number))


def ends_of_times(table: Table, column: str, event: Event) -> npt.NDArray[np.float64]:
    """Return the least and largest value of times up to an event, shape (2, n_rows).

    Raises TableError at a time that is missing, negative or no number, and at an event that is
    missing, or neither yes nor no.
    """
    cells = table.frame[column]
    for place in np.flatnonzero(np.isnan(as_numbers(cells))).tolist():
        cell = str(cells.iloc[place]).strip()
        if side_of(cell) is not None:
            raise TableError(
                f"{table.source}: column {column!r}, {table.where(place)}: {cell!r} is a limit, "
                f"and --event says already which times have ended: write a number, or leave out "
                "--event"
            )
    times = table.numbers(column)
    if times.min() < 0.0:
        row = int(np.argmin(times))
        raise TableError(
            f"{table.source}: column {column!r}, {table.where(row)}: the time {times[row]:g} is "
            "below 0: correct it or remove the row"
        )
    return np.array([times, np.where(happened(table, event), times, np.inf)])


def ends_of_cells(table: Table, column: str, *, asked: bool = False) -> Ends | None:
    """Return what is known of a column of numbers, some of which are limits or ranges.

    ``None`` where none is, or where it is rather text: most cells are no numbers, or none is a
    plain one, as of the ages 18-24 and 65+. `asked`: whether the user says that they are numbers.
    """
    series = table.frame[column]
    if series.dtype.kind in "biufcmM" or hold_codes(series):
        return None
    present = ~gaps_of(series)
    texts = series.astype(str).str.strip().to_numpy(object)
    labels, codes, counts = np.unique(
        texts[present].astype(str), return_inverse=True, return_counts=True
    )
    cells = labels.tolist()
    example = next((each for each in cells if side_of(each)), None)
    found = None
    if example is not None:
        found = WrittenNumbers.fit(cells, counts.tolist(), comma=table.comma, any_words=True)
    if found is None or example is None:
        return None
    reading, remark = found
    values = np.full((2, len(series)), np.nan)
    values[:, present] = reading.ends(cells)[:, codes]
    odd = np.isnan(values[0, present])
    plain = values[0, present] == values[1, present]
    if not (~odd & ~plain).any():
        return None
    if not asked and (not plain.any() or 2 * odd.sum() >= len(odd)):
        return None
    # the last remark is on the sides of a column that is a feature
    remark = remark.rpartition("; ")[0] if reading.sides else remark
    row = int(np.flatnonzero(present)[np.argmax(~odd & ~plain)])
    return Ends(values, reading.unit, remark, str(texts[row]))


def refuse_cell(table: Table, column: str, row: int, unit: str = "") -> NoReturn:
    """Raise TableError for a cell of a target of numbers that is missing, or none of them."""
    cell = str(table.frame[column].iloc[row]).strip()
    place = f"{table.source}: column {column!r}, {table.where(row)}"
    if is_missing(cell):
        raise TableError(f"{place}: the value is missing: {REMEDY}")
    known = side_of(cell)
    if known is not None and known.upper:
        what = "no range from a lower number to a higher one"
    else:
        what = f"not a number{f' in {unit}' if unit else ''}, as most cells are"
    raise TableError(f"{place}: {cell!r} is {what}: correct it or remove the row")


def refuse_one_side(table: Table, column: str, ends: npt.NDArray[np.float64], event: str) -> None:
    """Raise TableError where no row has a limit on one of the two sides: nothing can be learned."""
    low, high = ends
    n_rows = len(low)
    if event and not (low == high).any():
        raise TableError(
            f"{table.source}: no time has ended by the event {event!r} in any of its {n_rows} "
            "rows: at least one is needed to learn from"
        )
    for limit, side in ((high, "upper"), (low, "lower")):
        if not np.isfinite(limit).any():
            raise TableError(
                f"{table.source}: the target {column!r} has no {side} limit in any of its {n_rows} "
                "rows: at least one is needed to learn from"
            )
