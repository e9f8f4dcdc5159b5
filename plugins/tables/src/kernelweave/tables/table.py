"""A table with named columns that knows where in its file each row stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from kernelweave.kernels_core.checks import LARGEST
from kernelweave.kernels_core.exceptions import warn

from .columns import Words, are_codes, comma_of, is_missing
from .errors import CellError, TableError, did_you_mean
from .frames import check_names, read_series
from .new_cells import check_unit
from .plans import first_reading
from .sizes import require_words
from .written import WrittenNumbers, with_clear_comma

_TOTAL = re.compile(
    r"(?i)\s*(grand |sub-?)?(totals?|sum|summe|gesamt|insgesamt|average|mean)\s*:?\s*"
)
REMEDY = "fill it in or remove the row; missing values are not guessed"


@dataclass(frozen=True, eq=False)
class Table:
    """Rows as they were read.

    Attributes
    ----------
    source : str
        Name of the table in messages.
    cells : DataFrame
        The cells as they were written; the index is the position of each row in the source, from 0.
    frame : DataFrame
        The same, with numbers in place of texts such as "71.8 kg".
    target : str or None
        The column to predict, if the source has one.
    task : {"classification", "regression"} or None
        The task of the source.
    lines : callable or None
        Returns the line of each row in a text file; ``None`` if messages count rows.
    sparse : bool
        Whether columns that are absent are zero.
    units : mapping of str to str
        The unit of each column whose numbers have one.
    refused : mapping of str to str
        Why a column cannot be used, such as one of lists.
    kinds : mapping of str to str
        The kinds that the user gave, such as "category" for numbers that are codes.
    comma : str
        What a comma in 1,234 is, if the file shows it: "decimal" or "thousands".
    written : frozenset of str
        Columns of texts that are numbers as people write them, such as "71.8 kg" and "<0,5".

    Examples
    --------
    >>> from kernelweave.tables import read_table
    >>> table = read_table("penguins")
    >>> table.target, table.task, table.frame.shape
    ('body_mass_g', 'regression', (342, 8))
    """

    source: str
    cells: pd.DataFrame
    frame: pd.DataFrame
    target: str | None = None
    task: str | None = None
    lines: Callable[[], Sequence[int]] | None = field(default=None, repr=False)
    sparse: bool = False
    units: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, Any] = field(default_factory=dict)
    comma: str = ""
    written: frozenset[str] = frozenset()

    @property
    def columns(self) -> list[str]:
        """Names of the columns in the order of the file."""
        return [str(name) for name in self.frame.columns]

    def where(self, row: int) -> str:
        """Return where a row, counted from 0, stands, e.g. ``"line 12"`` of a text, or "row 12"."""
        place = int(self.frame.index[row])
        return f"row {place + 1}" if self.lines is None else f"line {self.lines()[place]}"

    def take(self, rows: npt.NDArray[np.intp]) -> Table:
        """Return some of the rows, counted from 0; they keep their places in the file."""
        return replace(self, cells=self.cells.iloc[rows], frame=self.frame.iloc[rows])

    def inputs(self, columns: Sequence[str], unused: Container[str] = ()) -> pd.DataFrame:
        """Return columns as an estimator for tables takes them: their cells as they were written.

        Where the file shows what a comma in 1,234 is, and no other cell of the column may, the cell
        becomes 1,2340 or 1234: a row is then read alike wherever it goes. What the user said that
        columns are goes along. Raises TableError if one is absent, or holds lists or objects.

        `columns`: which, in this order; `unused`: those of them that may be absent.
        """
        self.require([name for name in columns if name not in unused])
        for name in filter(self.refused.get, columns):
            raise TableError(f"{self.source}: {self.refused[name]}; --drop {name!r} leaves it out")
        frame = self.cells.reindex(columns=list(columns), fill_value=0.0 if self.sparse else np.nan)
        for name in self.written.intersection(columns).difference(self.kinds) if self.comma else ():
            frame[name] = frame[name].map(partial(with_clear_comma, comma=self.comma))
        frame.attrs["kinds"] = {k: kind for k, kind in self.kinds.items() if k in columns}
        return frame

    def require(self, columns: Sequence[str]) -> None:
        """Raise unless every column is there, or absence means zeros."""
        absent = [name for name in columns if name not in self.frame.columns]
        if absent and not self.sparse:
            few = ", ".join(map(repr, absent[:8])) + (", ..." if len(absent) > 8 else "")
            others = [name for name in self.columns if name not in columns]
            hint = did_you_mean(absent[0], others, what="columns")
            close = f"; {hint}" if hint.startswith("did") else ""
            raise TableError(
                f"{self.source} lacks {len(absent)} of the {len(columns)} columns that the model "
                f"uses: {few}{close}"
            )

    def numbers(self, column: str) -> npt.NDArray[np.float64]:
        """Return a column as finite numbers, shape (n_rows,); raise at the first other cell."""
        values = as_numbers(self.frame[column])
        with np.errstate(invalid="ignore"):
            bad = np.flatnonzero(~(np.abs(values) <= LARGEST))
        if len(bad) == 0:
            return values
        row = int(bad[0])
        cell = self.cells[column].iloc[row]
        place = f"{self.source}: column {column!r}, {self.where(row)}"
        if is_missing(cell):
            written = f" ({str(cell)!r})" if str(cell).strip() else ""
            raise TableError(f"{place}: the value is missing{written}: {REMEDY}")
        if is_number(cell):
            what = "not a finite number" if np.isinf(values[row]) else "too large"
            raise TableError(f"{place}: the value is {cell}, {what}: give at most {LARGEST:g}")
        raise TableError(f"{place}: {str(cell)!r} is not a number: correct it")


def read_cells(cells: pd.DataFrame, source: str, comma: str = "", **more: Any) -> Table:
    """Return a table of cells as they are written, whose columns of written numbers are numbers.

    One or two words among many numbers stay as they are, and so do other columns.

    `source`: what messages call it; `comma`: as of `Table`; without, cells of all columns decide;
    `more`: of `Table`.

    Examples
    --------
    >>> import pandas as pd
    >>> written = pd.DataFrame({"a": ["1.234,5 €", "2 €"], "b": ["x,1", "y"]})
    >>> table = read_cells(written, "t.csv", "decimal")
    >>> table.frame["a"].tolist(), table.units, table.cells["a"].tolist()
    ([1234.5, 2.0], {'a': '€'}, ['1.234,5 €', '2 €'])
    """
    cells = cells.rename(columns=str).reset_index(drop=True)
    check_names(cells.columns, source)
    if cells.empty:
        raise TableError(f"{source} has no rows or no columns")
    require_words((column for _, column in cells.items() if _may_hold_texts(column)), source)
    table, words, refused = Table(source, cells, cells, comma=comma, **more), {}, {}
    with CellError.calling_rows(table.where):
        for name, column in cells.items():
            if _may_hold_texts(column):
                try:
                    raw = read_series(column, str(name))
                except TypeError as error:
                    refused[str(name)] = str(error)
                else:
                    if isinstance(raw, Words) and raw.seen == "text":
                        words[str(name)] = raw
    comma = comma or comma_of(words.values())
    numbers, units, written = {}, {}, set()
    for name, raw in words.items():
        reading, remark = first_reading(raw, comma) or (None, "")
        if isinstance(reading, WrittenNumbers):
            written.add(name)
        if not isinstance(reading, WrittenNumbers) or reading.sides:
            # cells such as <0.5 stay texts, for as numbers they would lose their sides
            continue
        if remark:
            text = f"{source}: column {name!r}: {remark}"
            warn(text)
        if reading.unit:
            units[name] = reading.unit
        values = reading.values_of(raw, comma)
        odd = np.isnan(values) & ~raw.missing
        read = pd.Series(values, cells.index, name=name)
        numbers[name] = read.astype(object).where(~odd, cells[name]) if odd.any() else read
    # columns replaced one after the other would each be a block of its own
    frame = pd.DataFrame({k: numbers.get(str(k), column) for k, column in cells.items()})
    return replace(
        table, frame=frame, units=units, refused=refused, comma=comma, written=frozenset(written)
    )


def _may_hold_texts(column: pd.Series) -> bool:
    return pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)


def hold_codes(cells: pd.Series) -> bool:
    """Whether the cells of a column are codes such as 01067, and no numbers."""
    if not _may_hold_texts(cells):
        return False
    values = [cell for cell in cells.dropna().unique() if not is_missing(cell)]
    return all(isinstance(cell, str) for cell in values) and are_codes(values)


def name_columns(first: list[str], source: str) -> list[str]:
    """Return the names of a header, each in one line; a first column without one is called index.

    Raises TableError if another one has no name, or two have the same.
    """
    first = [" ".join(filter(None, map(str.strip, name.splitlines()))) for name in first]
    unnamed = [j for j, name in enumerate(first) if not name]
    if unnamed == [0] and len(first) > 1 and "index" not in first:
        return ["index", *first[1:]]
    if unnamed:
        raise TableError(
            f"{source}: column {unnamed[0] + 1} has no name (a separator too many, or a title "
            "above the names?): name it or remove it"
        )
    check_names(first, source)
    return first


def without_row_numbers(table: Table) -> Table:
    """Return a table without its column index, which had no name, where it holds numbers.

    Tables that pandas and R write have the numbers of their rows there, which may tell an order
    that the target follows. Dates, words and what has a unit stay.
    """
    cells = table.frame["index"]
    values = as_numbers(cells[~gaps_of(cells)])
    left_out = len(values) > 0 and not (
        "index" in table.units or hold_codes(cells) or np.isnan(values).any()
    )
    warn(without_a_name(table.source, is_left_out=left_out))
    if not left_out:
        return table
    without = [each.drop(columns="index") for each in (table.cells, table.frame)]
    return replace(table, cells=without[0], frame=without[1])


def without_a_name(source: str, *, is_left_out: bool) -> str:
    """Return what to say of a first column without a name."""
    what = "is called 'index'"
    if is_left_out:
        what = (
            "holds numbers, as those of rows that pandas and R save: it is left out; name it to "
            "use it"
        )
    return f"{source}: column 1 has no name and {what}"


def check_units(table: Table, columns: Iterable[str], known: Mapping[str, str]) -> None:
    """Raise where numbers are in another unit than they were, warn where one side has none.

    `columns`: of which; `known`: the unit of each that had one.
    """
    for name in columns:
        now, then = table.units.get(name, ""), known.get(name, "")
        if now or not np.isnan(as_numbers(table.frame[name])).all():
            check_unit(name, now, then, f"{table.source}: ")


def without_total(table: Table) -> Table:
    """Return a table without a last row that is called a total and sums the others.

    It goes where every number in it is the sum, or the mean, of those above it, but for rounding,
    and no other row is called so.
    """
    frame = table.frame
    if len(frame) < 4:
        return table
    named = (each for each in frame if _is_total(frame[each].iloc[-1]))
    name = next((each for each in named if not any(map(_is_total, frame[each].iloc[:-1]))), None)
    values = [as_numbers(frame[each]) for each in frame] if name is not None else []
    are_sums = [
        _is_sum(each[:-1], each[-1])
        for each in values
        if np.isfinite(each).sum() > 1 and not np.isnan(each[-1])
    ]
    if not are_sums or not all(are_sums):
        return table
    warn(
        f"{table.source}: {table.where(len(frame) - 1)} says {frame[name].iloc[-1]!r} in column "
        f"{name!r} and is the sum or the mean of the rows above it: it is left out"
    )
    return table.take(np.arange(len(frame) - 1))


def _is_total(cell: object) -> bool:
    return isinstance(cell, str) and _TOTAL.fullmatch(cell) is not None


def _is_sum(values: npt.NDArray[np.float64], total: float) -> bool:
    """Whether a number is the sum or the mean of others."""
    values = values[np.isfinite(values)]
    places = next((k for k in range(7) if np.allclose(values, values.round(k), 1e-12, 0.0)), 7)
    # each number was rounded, and so was the total
    room = 10.0**-places * np.sqrt(len(values)) + 1e-9 * np.abs(values).sum()
    return bool(min(abs(values.sum() - total), abs(values.mean() - total)) <= room)


def warn_of_title(source: str, place: str, rows: Sequence[tuple[int, Sequence[str]]]) -> None:
    """Say that a table has a title above the names of its columns.

    `place`: what a row is called; `rows`: numbers and cells, of the title first and the names last.
    """
    title = next(cell for _, cells in rows for cell in cells if cell)
    warn(
        f"{source}: {place} {rows[0][0]} ({title!r:.60}) is taken for a title: the names of the "
        f"columns are read from {place} {rows[-1][0]}"
    )


def warn_of_note(source: str, place: str, row: int, note: str) -> None:
    """Say that a row below a table is passed over; `place`: what a row is called."""
    warn(
        f"{source}: {place} {row} ({note!r:.60}) is taken for a note below the table and passed "
        "over"
    )


def is_number(cell: object) -> bool:
    """Whether a cell, a string or a number, reads as a number, infinity included."""
    try:
        float(str(cell))
    except ValueError:
        return False
    return True


def no_formula(cell: object) -> object:
    """Return a cell with an apostrophe in front where a spreadsheet would evaluate it."""
    opens = isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{cell}" if opens and not is_number(cell) else cell


def as_numbers(series: pd.Series) -> npt.NDArray[np.float64]:
    """Return a column as float64, NaN where a cell is no number, as a date is none."""
    if pd.api.types.is_datetime64_any_dtype(series) or pd.api.types.is_complex_dtype(series):
        return np.full(len(series), np.nan)
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(object)
    numeric = pd.to_numeric(series, errors="coerce")
    return numeric.to_numpy(dtype=np.float64, na_value=np.nan)


def gaps_of(series: pd.Series) -> npt.NDArray[np.bool_]:
    """Return which cells say in some way that they are missing."""
    written = [cell for cell in series.unique() if isinstance(cell, str) and is_missing(cell)]
    return (series.isna() | series.isin(written)).to_numpy(dtype=bool)
