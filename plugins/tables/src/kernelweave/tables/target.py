"""What is to be predicted: which column, and whether it is a class or a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from kernelweave.kernels_core.arrays import Labels

from .columns import is_missing
from .errors import TableError, did_you_mean
from .table import REMEDY, Table, as_numbers, hold_codes

# so many whole numbers may well be names of classes
_FEW = 10
# with so many rows of each
_EACH = 5
TASKS = ("auto", "classification", "regression")


@dataclass(frozen=True)
class Target:
    """The target as it will be learned.

    Attributes
    ----------
    column : str
        Its name.
    values : ndarray of shape (n_rows,)
        Labels (strings, integers or numbers) or finite numbers.
    task : {"classification", "regression"}
        What is learned.
    reason : str
        Why this task, for the user to read.
    hint : str
        What else the user may have meant; empty where there is no doubt.

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
        The target. Among words only cells without text are missing: NA may be a class.

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
    missing = cells.isna().to_numpy(copy=True)
    if cells.dtype == object or pd.api.types.is_string_dtype(cells):
        written = cells.astype(object).map(is_missing).to_numpy(dtype=bool)
        numbers = np.isfinite(as_numbers(cells))
        words = ~written & ~numbers
        empty = cells.map(lambda cell: isinstance(cell, str) and not cell.strip()).to_numpy(
            dtype=bool
        )
        missing |= empty if words.any() else written
    if not missing.any() or missing.all():
        return table, None
    return table.take(np.flatnonzero(~missing)), table.take(np.flatnonzero(missing))


def read_target(table: Table, column: str, task: str = "auto", *, least: int = 2) -> Target:
    """Return the values of the target and decide between classes and numbers.

    Text, codes such as 007, booleans, two distinct values, or a few whole numbers counted from 0
    or 1 are classes; anything else is a number.

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

    Returns
    -------
    Target
        Values, task and the reason for it.

    Raises
    ------
    TableError
        On missing values, too few distinct values, text where numbers are asked for, or labels that
        are nearly all different.

    Examples
    --------
    >>> from kernelweave.tables import read_table, read_target
    >>> read_target(read_table("diabetes"), "target").reason
    'as the data set says, 214 distinct values'
    """
    if task not in TASKS:
        raise TableError(f"--task must be one of {', '.join(TASKS)}, got {task!r}")
    series = table.frame[column]
    numbers = as_numbers(series)
    boolean = series.dtype.kind == "b"
    codes = hold_codes(series)
    odd = bool(np.isnan(numbers).any())
    text = odd or boolean or codes
    if not text:
        table.numbers(column)
    elif odd and not boolean:
        _check_text(table, column, numbers)
    distinct = int(series.nunique())
    if distinct < least:
        raise TableError(
            f"{table.source}: the target {column!r} is {str(series.iloc[0])!r} in every row: "
            f"at least two distinct values are needed to learn anything"
        )
    asked = task
    task, reason = _decide(table, series, text, distinct, task)
    if task == "regression":
        values = table.numbers(column)
        few = asked == "auto" and table.task is None and distinct <= _FEW
        hint = _hint(column, distinct) if few and _whole(values) else ""
        return Target(column, values, task, reason, hint)
    if task == "classification" and distinct > max(20, len(series) // 2):
        what = f"{table.source}: the target {column!r} has {distinct} distinct"
        if text and not codes:
            raise TableError(
                f"{what} texts in {len(series)} rows, such as {str(series.iloc[0])!r}: too many "
                f"for classes; choose another column, or write its cells as numbers"
            )
        raise TableError(
            f"{what} values in {len(series)} rows, too many for classes: choose another column or "
            f"--task regression"
        )
    counted = asked == "auto" and table.task is None and not text and distinct > 2
    hint = _other_hint(column) if counted else _gap_hint(column, series) if text else ""
    labels = series.astype(str).to_numpy(dtype=str) if text else _plain_labels(numbers)
    return Target(column, labels, task, reason, hint)


def _decide(
    table: Table, series: pd.Series, text: bool, distinct: int, task: str
) -> tuple[str, str]:
    """Return the task and the reason for it."""
    if task != "auto":
        return task, f"as asked, {distinct} distinct values"
    if table.task is not None:
        return table.task, f"as the data set says, {distinct} distinct values"
    if text:
        return "classification", f"the target is text, {distinct} classes"
    if distinct == 2:
        return "classification", "the target has two distinct values"
    values = as_numbers(series)
    if distinct <= _FEW and len(values) >= _EACH * distinct and _counted(values, distinct):
        span = f"{values.min():g} to {values.max():g}"
        return "classification", f"the target is one of the whole numbers {span}"
    return "regression", f"the target is numeric, {distinct} distinct values"


def _whole(values: npt.NDArray[np.float64]) -> bool:
    return bool((values == np.round(values)).all())


def _counted(values: npt.NDArray[np.float64], distinct: int) -> bool:
    """Whether whole numbers run from 0 or 1 without a gap, as names of classes do."""
    low, high = values.min(), values.max()
    return _whole(values) and low in (0, 1) and high - low == distinct - 1


def _gap_hint(column: str, series: pd.Series) -> str:
    gaps = [cell for cell in series.unique() if is_missing(cell)]
    if not gaps:
        return ""
    n_rows = int((series == gaps[0]).sum())
    return (
        f"{str(gaps[0])!r} is a class of its own in the target {column!r}: if it means a missing "
        f"value, remove its {n_rows} row{'s' if n_rows > 1 else ''}"
    )


def _other_hint(column: str) -> str:
    return (
        f"the target {column!r} is read as classes: if it is a quantity, such as a count or a "
        f"rating, add --task regression"
    )


def _hint(column: str, distinct: int) -> str:
    return (
        f"the target {column!r} has {distinct} distinct whole numbers and is learned as a number: "
        f"if they are classes, add --task classification"
    )


def _check_text(table: Table, column: str, numbers: npt.NDArray[np.float64]) -> None:
    """Refuse missing cells, and a typing error among numbers that would turn them into text."""
    series = table.frame[column]
    bad = np.flatnonzero(np.isnan(numbers))
    missing = [row for row in bad if is_missing(series.iloc[row])]
    if missing and (len(missing) == len(bad) or str(series.iloc[missing[0]]).strip() == ""):
        rest = len(missing) - 1
        others = f", and in {rest} other row{'s' if rest > 1 else ''}" if rest else ""
        raise TableError(
            f"{table.source}: the target {column!r}, {table.where(int(missing[0]))}: the value is "
            f"missing{others}: {REMEDY}"
        )
    if 2 * len(bad) < len(series):
        row = int(bad[0])
        raise TableError(
            f"{table.source}: column {column!r}, {table.where(row)}: "
            f"{str(series.iloc[row])!r} is not a number, as most cells are: correct it or remove "
            f"the row"
        )


def _plain_labels(numbers: npt.NDArray[np.float64]) -> Labels:
    """Return whole numbers as integers, others as words: classes are no quantities."""
    if np.array_equal(numbers, np.round(numbers)):
        return numbers.astype(np.int64)
    return np.array([f"{each:.15g}" for each in numbers])
