"""Targets known by half as the user gives them: events and times, ends, or cells such as 36+."""

from __future__ import annotations

from typing import Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Labels
from kernelweave.kernels_core.exceptions import warn
from kernelweave.tables.errors import place_of
from kernelweave.tables.sided import side_of
from kernelweave.tables.written import WrittenNumbers
from kernelweave.tables.yes_no import yes_and_no
from numpy.typing import NDArray

from ..targets import finite_numbers, refuse_missing, shown
from .concordance import pairs_lost

# names of the columns, or fields, of the two ends
_ENDS = ("low", "high")


def is_censored(y: object) -> bool:
    """Return whether targets are given in a form that says which of them are known by half.

    A structured array of an event and a time, or two columns of which one has truth values or
    words and the other numbers; a structured array or two columns named low and high, or an array
    of two columns where lower ends are −∞ or upper ends ∞; or cells, in one column, of which some
    are such as <0.5, 36+ or 3-5.
    """
    if y is None or isinstance(y, str) or hasattr(y, "dask"):
        # tables that are read in parts have numbers as targets, never ends
        return False
    named = _named_columns(y)
    if named is not None:
        kinds = {_kind_of(column) for column in named.values()}
        is_structured = not _is_frame(y)
        return is_structured or _are_ends(named) or kinds == {"event", "number"}
    array = _array(y)
    if array.ndim == 2 and array.shape[1] == 2 and array.dtype.kind == "f":
        low, high = array.T
        infinite = np.isneginf(low) | np.isposinf(high)
        return bool(infinite.any() and (low <= high).all())
    if array.ndim == 1 and array.dtype.kind in "OUT":
        return any(isinstance(cell, str) and side_of(cell.strip()) for cell in array.tolist())
    return False


def ends_of(y: object, n_rows: int, *, known: bool = False) -> tuple[FloatArray, bool]:
    """Return the least and largest value that each target may have, and whether they are times.

    `y`: as `is_censored` tells it; `n_rows`: what X has; `known`: whether numbers may be given too.
    Returns shape (2, n_rows): both are equal
    where a target is known, infinite where it has no limit.

    Raises ValueError where an event is not yes or no, a time is negative, a lower end is above the
    upper, or a cell is no number.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence.censored.ends import ends_of
    >>> ends_of(np.array(["2", "<5", "36+"]), 3)[0].tolist()
    [[2.0, -inf, 36.0], [2.0, 5.0, inf]]
    """
    named = _named_columns(y)
    times = named is not None and not _are_ends(named)
    array = _array(y)
    if known and array.ndim == 1 and array.dtype.kind in "biuf":
        values = finite_numbers(array)
        ends = np.array([values, values])
    elif named is not None and times:
        ends = _of_times(named)
    elif named is not None:
        by_name = {_folded(name): column for name, column in named.items()}
        ends = np.array([_end(by_name[name], name) for name in _ENDS])
    elif array.ndim == 2:
        ends = np.array([_end(*pair) for pair in zip(array.T, _ENDS, strict=True)])
    else:
        ends = _of_cells(array)
    if ends.shape[1] != n_rows:
        raise ValueError(
            f"X has {n_rows} rows and y has {ends.shape[1]}: inconsistent numbers of samples"
        )
    _refuse_crossed(ends)
    return ends, times


def refuse_in_parts(y: object, first: int = 0) -> None:
    """Raise where targets of a table that is read in parts are known by half.

    `first`: where the first row of a part stands in the table.
    """
    if not is_censored(y):
        return
    got = "ends, or events and times"
    array = _array(y)
    if _named_columns(y) is None and array.ndim == 1:
        row = next(k for k, cell in enumerate(array.tolist()) if side_of(str(cell).strip()))
        got = f"{array[row]!r} in {place_of(first + row)}"
    raise ValueError(
        f"y must hold numbers where a table is read in parts, got {got}: targets known by half are "
        "for tables in memory, so give a table that fits there, or a part of its rows"
    )


def warn_of_event(y: object) -> None:
    """Warn where two targets in a data frame may be an event, given as 0 and 1, and a time."""
    if not _is_frame(y) or hasattr(y, "dask") or is_censored(y):
        return
    named = _named_columns(y)
    if named is None:
        return
    flags = {name: np.logical_or(*yes_and_no(column)).all() for name, column in named.items()}
    if sum(flags.values()) != 1:
        return
    event, time = sorted(named, key=lambda name: not flags[name])
    if _kind_of(named[time]) == "number" and not (named[time].astype(np.float64) < 0.0).any():
        warn(f"y is learned as two targets: if {event!r} is an event, give it as True and False")


def _is_frame(y: object) -> bool:
    return hasattr(y, "columns") or hasattr(y, "column_names")


def _folded(name: str) -> str:
    return name.strip().lower()


def _are_ends(columns: dict[str, Labels]) -> bool:
    return {_folded(name) for name in columns} == set(_ENDS)


def _array(y: object) -> Labels:
    """Return targets as an array; those of one column as a list of them."""
    array = np.asarray(y)
    return array.ravel() if array.ndim == 2 and array.shape[1] == 1 else array


def _named_columns(y: object) -> dict[str, Labels] | None:
    """Return two columns with their names; ``None`` of anything else."""
    names: list[Any]
    table: Any = y
    if getattr(getattr(y, "dtype", None), "names", None):
        names = list(table.dtype.names)
    elif _is_frame(y):
        # of Arrow and of the others
        names = list(getattr(y, "column_names", None) or table.columns)
    else:
        return None
    if len(names) != 2 or np.ndim(table[names[0]]) != 1:
        return None
    return {str(name): np.asarray(table[name]) for name in names}


def _kind_of(column: Labels) -> str:
    """Return what a column may be beside another: an event, or a number; else an empty text.

    An event has truth values, or words that are no numbers and no limits.
    """
    if column.dtype.kind in "biuf":
        return "event" if column.dtype.kind == "b" else "number"
    from pandas import Series, to_numeric
    from pandas.api.types import infer_dtype

    cells = Series(column, dtype=object).dropna()
    inferred = infer_dtype(cells)
    if inferred == "boolean":
        return "event"
    if inferred in ("integer", "floating", "mixed-integer-float", "decimal"):
        return "number"
    if inferred != "string":
        return ""
    numbers = to_numeric(cells, errors="coerce").notna()
    if numbers.all():
        return "number"
    limits = any(side_of(cell.strip()) for cell in cells.unique())
    return "" if limits or numbers.any() else "event"


def _of_times(columns: dict[str, Labels]) -> FloatArray:
    # where it cannot be told by its cells the event is the first, as scikit-survival has it
    (event_name, event), (time_name, time) = sorted(
        columns.items(), key=lambda pair: _kind_of(pair[1]) != "event"
    )
    low = finite_numbers(time, f"the time {time_name!r} of y")
    _refuse_negative(low, time_name)
    return np.array([low, np.where(_as_event(event, event_name), low, np.inf)])


def _as_event(event: Labels, name: str) -> NDArray[np.bool_]:
    """Return whether each time ended by the event."""
    refuse_missing(event, f"the event {name!r} of y")
    yes, no = yes_and_no(event)
    if not (yes | no).all():
        row = int(np.argmin(yes | no))
        raise ValueError(
            f"the event {name!r} of y must be yes or no, true or false, 1 or 0, got "
            f"{shown(event[row])} in {place_of(row)}: give True where it happened and False "
            f"elsewhere, as y[{name!r}] == {shown(event[row])} does if that is the event"
        )
    return yes


def _refuse_negative(times: FloatArray, name: str) -> None:
    if len(times) and times.min() < 0.0:
        row = int(np.argmin(times))
        raise ValueError(
            f"the time {name!r} of y must not be negative, got {times[row]:.6g} in {place_of(row)}"
        )


def _end(column: Labels, name: str) -> FloatArray:
    """Return one end of the targets; infinite where there is none."""
    refuse_missing(column, f"the {name!r} end of y")
    infinite = -np.inf if name == "low" else np.inf
    at = np.isin(column, (infinite,))
    ends = finite_numbers(np.where(at, 0.0, column), f"the {name!r} end of y")
    return np.where(at, infinite, ends)


def _of_cells(cells: Labels) -> FloatArray:
    refuse_missing(cells)
    texts = [str(cell).strip() for cell in cells.tolist()]
    labels, codes, counts = np.unique(texts, return_inverse=True, return_counts=True)
    found = WrittenNumbers.fit(labels.tolist(), counts.tolist(), any_words=True)
    reading = WrittenNumbers() if found is None else found[0]
    ends = reading.ends(labels.tolist())[:, codes]
    if np.isnan(ends[0]).any():
        row = int(np.argmax(np.isnan(ends[0])))
        unit = f" in {reading.unit}" if reading.unit else ""
        raise ValueError(
            f"y must hold numbers{unit}, or limits such as <0.5, 36+ and 3-5, got {texts[row]!r} "
            f"in {place_of(row)}"
        )
    return ends


def _refuse_crossed(ends: FloatArray) -> None:
    low, high = ends
    if (low > high).any():
        row = int(np.argmax(low > high))
        raise ValueError(
            f"low is above high in {place_of(row)} of y: {low[row]:.6g} and {high[row]:.6g}"
        )


def refuse_unknown(ends: FloatArray, *, times: bool) -> None:
    """Raise where nothing can be learned of the rows that count.

    No target has a limit on one side, all are alike, or no two are in a known order.
    """
    low, high = ends
    for limit, side in ((high, "upper"), (low, "lower")):
        if not np.isfinite(limit).any():
            what = "no event" if times else f"no {side} limit"
            raise ValueError(
                f"y has {what} in any of its {len(low)} rows: at least one is needed to learn from"
            )
    known = np.unique(ends[np.isfinite(ends)])
    if len(known) == 1:
        raise ValueError(
            f"y is {known[0]:.6g}, or has it as its limit, in every row: there is nothing to learn"
        )
    nothing = np.zeros(len(low))
    if not pairs_lost(ends, nothing, nothing + 1.0)[1].any():
        raise ValueError(
            f"no two of the {len(low)} rows of y are in a known order: there is nothing to learn"
        )
