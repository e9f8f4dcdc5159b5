"""A table with named columns that knows where in its file each row stands."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pandas as pd
from kernelweave.kernels_core import KernelWeaveWarning

from .errors import TableError, did_you_mean

_DIGITS = re.compile(r"[0-9]+")
MISSING = {"", "na", "n/a", "n.a.", "#n/a", "nan", "null", "none", "?", "<na>"}
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
        What messages call it.
    frame : DataFrame
        The columns by name, as strings; its index says where in the source a row stands, from 0.
    target : str or None
        The column that the source itself marks as target.
    task : str or None
        The task that the source itself names.
    lines : callable or None
        Returns the line of the file on which each row ends; ``None`` where there are no lines.
    sparse : bool
        Whether an absent column means zeros.
    units : mapping of str to str
        The unit of a column that was written with one and is numbers now.
    texts : mapping of str to Series
        How the cells of such columns were written.
    separator : str or None
        What stood between the columns, as it tells what a comma in a number means.
    """

    source: str
    frame: pd.DataFrame
    target: str | None = None
    task: str | None = None
    lines: Callable[[], Sequence[int]] | None = field(default=None, repr=False)
    sparse: bool = False
    units: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, pd.Series] = field(default_factory=dict, repr=False)
    separator: str | None = field(default=None, repr=False)

    @property
    def columns(self) -> list[str]:
        """Names of the columns in the order of the file."""
        return [str(name) for name in self.frame.columns]

    def where(self, row: int) -> str:
        """Return where a row stands, e.g. ``"line 12"``.

        `row`: counted from 0. Counted from 1, the header included for files of lines.
        """
        place = int(self.frame.index[row])
        return f"row {place + 1}" if self.lines is None else f"line {self.lines()[place]}"

    def take(self, rows: npt.NDArray[np.intp]) -> Table:
        """Return some of the rows, which keep their places in the file.

        `rows`: counted from 0.
        """
        texts = {name: cells.iloc[rows] for name, cells in self.texts.items()}
        return replace(self, frame=self.frame.iloc[rows], texts=texts)

    def inputs(self, columns: Sequence[str], unused: Container[str] = ()) -> pd.DataFrame:
        """Return columns as an estimator for tables takes them.

        `columns`: which, in this order; `unused`: those of them that may be absent. Returns shape
        (n_rows, n_columns): cells as they were read; every way to write that one is missing is
        ``None``.
        """
        self.require([name for name in columns if name not in unused])
        absent = 0.0 if self.sparse else float("nan")
        return pd.DataFrame(
            {name: self._cells(name) if name in self.frame.columns else absent for name in columns},
            index=self.frame.index,
        )

    def _cells(self, name: str) -> pd.Series:
        """Return a column without the words that say that a cell is missing."""
        series = self.frame[name]
        try:
            return _blanked(series)
        except TypeError as error:
            row = next(i for i, cell in enumerate(series) if not isinstance(cell, Hashable))
            raise TableError(
                f"{self.source}: column {name!r}, {self.where(row)}: {str(series.iloc[row])!r:.40} "
                f"is a list or an object, and not one value: leave the column out with --drop "
                f"{name!r}, or write one value in each cell"
            ) from error

    def extent(self, column: str, seen: str = "") -> dict[str, object]:
        """Return the range of a column's cells and how many are missing.

        `column`: its name; `seen`: as what it is used, as words among numbers are gaps. Returns
        ``range``: the least and the greatest number or date, or how many words there are and the
        most frequent; ``gaps``: cells without a value.
        """
        if column not in self.frame.columns:
            return {"range": "0", "gaps": 0}
        cells = self._cells(column)
        if seen == "numbers":
            cells = pd.Series(as_numbers(cells))
        rest = cells.dropna()
        numbers = as_numbers(rest)
        if len(rest) and np.isfinite(numbers).all() and not are_codes(rest):
            span = f"{numbers.min():g} to {numbers.max():g} {self.units.get(column, '')}".rstrip()
        elif seen == "dates":
            moments = _moments(rest)
            span = f"{moments.min():%Y-%m-%d} to {moments.max():%Y-%m-%d}"
        else:
            counts = rest.astype(str).value_counts()
            few = ", ".join(map(str, counts.index[:3])) + (", …" if len(counts) > 3 else "")
            span = f"{len(counts)}: {few}"
        return {"range": span, "gaps": int(cells.isna().sum())}

    def as_written(self, columns: Iterable[str]) -> Table:
        """Return the table with the texts of columns that were read as numbers.

        `columns`: of which; others of them stay.
        """
        texts = {name: self.texts[name] for name in columns if name in self.texts}
        if not texts:
            return self
        frame = self.frame.copy(deep=False)
        frame[list(texts)] = pd.DataFrame(texts)
        units = {name: unit for name, unit in self.units.items() if name not in texts}
        rest = {name: column for name, column in self.texts.items() if name not in texts}
        return replace(self, frame=frame, units=units, texts=rest)

    def require(self, columns: Sequence[str]) -> None:
        """Raise unless every column is there, or absence means zeros.

        `columns`: their names.
        """
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

    def has_numbers(self, column: str) -> bool:
        """Whether a column is here and was read as numbers.

        `column`: its name. Returns: False where it has gaps only.
        """
        if column in self.texts:
            return True
        known = column in self.frame.columns and pd.api.types.is_numeric_dtype(self.frame[column])
        return known and bool(self.frame[column].notna().any())

    def numbers(self, column: str) -> npt.NDArray[np.float64]:
        """Return one column as finite numbers.

        `column`: its name. Returns shape (n_rows,): the values.
        """
        values = as_numbers(self.frame[column])
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad) == 0:
            return values
        row = int(bad[0])
        cell = self.frame[column].iloc[row]
        place = f"{self.source}: column {column!r}, {self.where(row)}"
        if is_missing(cell):
            written = f" ({str(cell)!r})" if str(cell).strip() else ""
            raise TableError(f"{place}: the value is missing{written}: {REMEDY}")
        if is_number(cell):
            raise TableError(f"{place}: the value is {cell}, not a finite number: correct it")
        raise TableError(f"{place}: {str(cell)!r} is not a number: correct it")


def _moments(cells: pd.Series) -> pd.Series:
    """Return dates, or words that are dates, as the evidence kernel reads them; no gaps."""
    from skrub import ToDatetime

    if pd.api.types.is_datetime64_any_dtype(cells):
        return cells
    moments: pd.Series = ToDatetime().fit_transform(
        pd.Series(cells.astype(str).str.strip().unique(), dtype="str")
    )
    return moments


def _blanked(series: pd.Series) -> pd.Series:
    """Return a column without the words that say that a cell is missing, numbers as such."""
    if not (pd.api.types.is_object_dtype(series) or pd.api.types.is_string_dtype(series)):
        return series
    known = {cell: None for cell in series.unique() if isinstance(cell, str) and is_missing(cell)}
    if not known:
        return series
    rest = series.astype(object).where(~series.isin(list(known)), None)
    if are_codes(rest):
        return rest
    numbers = as_numbers(rest)
    return (
        pd.Series(numbers, rest.index) if np.array_equal(np.isnan(numbers), rest.isna()) else rest
    )


def are_codes(cells: pd.Series) -> bool:
    """Whether texts are codes such as 01067, and no numbers.

    `cells`: a column. Returns: True where all are digits, and a zero leads one that is as long as
    another, or the only one.
    """
    if not (pd.api.types.is_object_dtype(cells) or pd.api.types.is_string_dtype(cells)):
        return False
    known = [cell for cell in cells.dropna().unique() if not is_missing(cell)]
    if not all(isinstance(cell, str) and _DIGITS.fullmatch(cell) for cell in known):
        return False
    lengths = Counter(map(len, known))
    led = [len(cell) for cell in known if cell[0] == "0" and len(cell) > 1]
    return any(len(known) == 1 or lengths[length] > 1 for length in led)


def check_names(names: Iterable[str], source: str) -> None:
    """Raise where two columns share a name."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(f"{source} has two columns named {twice[0]!r}: rename one")


def with_index(names: list[str]) -> list[str]:
    """Return names in which a first column without one is called index.

    `names`: of columns, empty where there is none. Returns: as they are where another one lacks its
    name too.
    """
    if names[0] or len(names) == 1 or not all(names[1:]) or "index" in names:
        return names
    return ["index", *names[1:]]


def without_row_numbers(table: Table) -> Table:
    """Return a table without its column index, which had no name, where it holds numbers.

    `table`: as it was read. Tables that pandas and R write have the numbers of their rows there,
    which may tell an order that the target follows. Dates, words and what has a unit stay.
    """
    cells = table.inputs(["index"])["index"].dropna()
    left_out = (
        len(cells) > 0
        and "index" not in table.units
        and not are_codes(cells)
        and not np.isnan(as_numbers(cells)).any()
    )
    said = (
        "holds numbers, as those of rows that pandas and R save: it is left out; name it to use it"
        if left_out
        else "is called 'index'"
    )
    warnings.warn(
        f"{table.source}: column 1 has no name and {said}", KernelWeaveWarning, stacklevel=3
    )
    if not left_out:
        return table
    texts = {name: cells for name, cells in table.texts.items() if name != "index"}
    return replace(table, frame=table.frame.drop(columns="index"), texts=texts)


def without_total(table: Table) -> Table:
    """Return a table without a last row that is called a total and sums the others.

    `table`: as it was read. It goes where every number in it is the sum, or the mean, of those
    above it, but for rounding, and no other row is called so.
    """
    frame = table.frame
    if len(frame) < 4:
        return table
    last, rest = frame.iloc[-1], frame.iloc[:-1]
    named = [
        name
        for name in table.columns
        if is_total(last[name]) and not rest[name].map(is_total).any()
    ]
    sums = [_is_sum(as_numbers(rest[name]), float(as_numbers(frame[name])[-1])) for name in frame]
    known = [each for each in sums if each is not None]
    if not named or not known or not all(known):
        return table
    warnings.warn(
        f"{table.source}: {table.where(len(frame) - 1)} says {last[named[0]]!r} in column "
        f"{named[0]!r} and sums the rows above it: it is left out",
        KernelWeaveWarning,
        stacklevel=3,
    )
    return table.take(np.arange(len(frame) - 1))


def is_total(cell: object) -> bool:
    """Whether a cell is what people call a row that sums others."""
    return isinstance(cell, str) and _TOTAL.fullmatch(cell) is not None


def _is_sum(values: npt.NDArray[np.float64], total: float) -> bool | None:
    """Whether a number is the sum or the mean of others; ``None`` where it is a gap."""
    values = values[np.isfinite(values)]
    if np.isnan(total) or len(values) == 0:
        return None
    places = next((k for k in range(7) if np.allclose(values, values.round(k), 1e-12, 0.0)), 7)
    # each number was rounded, and so was the total
    room = 10.0**-places * np.sqrt(len(values)) + 1e-9 * np.abs(values).sum()
    return bool(min(abs(values.sum() - total), abs(values.mean() - total)) <= room)


def warn_of_title(source: str, place: str, row: int, title: str, names: int) -> None:
    """Say that a table has a title above the names of its columns.

    `place`: what a row is called; `row`: where the title stands; `names`: where the names stand.
    """
    warnings.warn(
        f"{source}: {place} {row} ({title!r:.60}) is taken for a title: the names of the columns "
        f"are read from {place} {names}",
        KernelWeaveWarning,
        stacklevel=4,
    )


def is_missing(cell: object) -> bool:
    """Whether a cell is one of the ways to write that a value is missing.

    `cell`: a string, a number or a pandas missing value. Returns: True for empty cells, NA, N/A,
    n.a., Excel's #N/A, NaN, null, None and a question mark.
    """
    return bool(pd.isna(cell)) or str(cell).strip().casefold() in MISSING  # type: ignore[call-overload]


def is_number(cell: object) -> bool:
    """Whether a cell reads as a number, infinity included.

    `cell`: a string or a number.
    """
    try:
        float(str(cell))
    except ValueError:
        return False
    return True


def as_numbers(series: pd.Series) -> npt.NDArray[np.float64]:
    """Return a column as float64, NaN where a cell is no number.

    `series`: numbers, booleans, or strings. Returns shape (n_rows,): dates are no numbers.
    """
    if pd.api.types.is_datetime64_any_dtype(series) or pd.api.types.is_complex_dtype(series):
        return np.full(len(series), np.nan)
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(object)
    numeric = pd.to_numeric(series, errors="coerce")
    return numeric.to_numpy(dtype=np.float64, na_value=np.nan)
