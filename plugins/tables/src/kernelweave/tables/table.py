"""A table with named columns that knows where in its file each row stands."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pandas as pd
from kernelweave.kernels_core import KernelWeaveWarning

from .columns import Words, are_codes, is_missing, read_objects
from .errors import TableError, did_you_mean
from .plans import read_as_numbers
from .written import shows_decimal_comma

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
    kinds : mapping of str to str
        What the user says that columns are, such as "category" of numbers that are codes.
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
    kinds: Mapping[str, str] = field(default_factory=dict)
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

    def as_given(self, columns: Sequence[str], unused: Container[str] = ()) -> pd.DataFrame:
        """Return columns with their cells as they were written, for an estimator that reads them.

        `columns`, `unused`: as for `inputs`. What a comma in 1,234 is goes along, and what
        the user said that columns are.
        """
        frame = self.inputs(columns, unused)
        texts = {name: self.texts[name] for name in columns if name in self.texts}
        if texts:
            frame[list(texts)] = pd.DataFrame(texts, index=frame.index)
        if self.kinds:
            frame.attrs["kinds"] = {k: kind for k, kind in self.kinds.items() if k in columns}
        if self.separator is not None:
            frame.attrs["comma"] = "thousands" if self.separator == "," else "decimal"
        return frame

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

    def numbers(self, column: str) -> npt.NDArray[np.float64]:
        """Return one column as finite numbers.

        `column`: its name. Returns shape (n_rows,): the values.
        """
        values = as_numbers(self.frame[column])
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad) == 0:
            return values
        row = int(bad[0])
        cell = self.texts.get(column, self.frame[column]).iloc[row]
        place = f"{self.source}: column {column!r}, {self.where(row)}"
        if is_missing(cell):
            written = f" ({str(cell)!r})" if str(cell).strip() else ""
            raise TableError(f"{place}: the value is missing{written}: {REMEDY}")
        if is_number(cell):
            raise TableError(f"{place}: the value is {cell}, not a finite number: correct it")
        raise TableError(f"{place}: {str(cell)!r} is not a number: correct it")


def _blanked(series: pd.Series) -> pd.Series:
    """Return a column without the words that say that a cell is missing, numbers as such."""
    if not (pd.api.types.is_object_dtype(series) or pd.api.types.is_string_dtype(series)):
        return series
    known = {cell: None for cell in series.unique() if isinstance(cell, str) and is_missing(cell)}
    if not known:
        return series
    rest = series.astype(object).where(~series.isin(list(known)), None)
    if hold_codes(rest):
        return rest
    numbers = as_numbers(rest)
    return (
        pd.Series(numbers, rest.index) if np.array_equal(np.isnan(numbers), rest.isna()) else rest
    )


def read_written(
    frame: pd.DataFrame, source: str, separator: str | None = None
) -> tuple[pd.DataFrame, dict[str, str], dict[str, pd.Series]]:
    """Return a frame whose columns of written numbers are numbers, the units and texts they had.

    One or two words among many numbers stay as they are, and so do other columns.

    `frame`: cells as they are written; `source`: what warnings call it; `separator`: between the
    columns: where it is a comma, 1,234 has a thousand. Where cells have no separator, those of all
    columns decide.

    Examples
    --------
    >>> import pandas as pd
    >>> written = pd.DataFrame({"a": ["1.234,5 €", "2 €"], "b": ["x,1", "y"]})
    >>> found, units, texts = read_written(written, "t.csv", ";")
    >>> found["a"].tolist(), units, texts["a"].tolist()
    ([1234.5, 2.0], {'a': '€'}, ['1.234,5 €', '2 €'])
    """
    from skrub.core import RejectColumn

    words = dict(_words_of(frame))
    comma = "thousands" if separator == "," else "decimal" if separator else ""
    if separator is None and any(shows_decimal_comma(each.labels) for each in words.values()):
        comma = "decimal"
    found, units = frame.copy(deep=False), {}
    texts: dict[str, pd.Series] = {}
    for name, column in words.items():
        try:
            reading, remark = read_as_numbers(column, comma)
        except RejectColumn:
            continue
        if remark:
            said = f"{source}: column {name!r}: {remark}"
            warnings.warn(said, KernelWeaveWarning, stacklevel=3)
        texts[name] = frame[name]
        if reading.unit:
            units[name] = reading.unit
        values = np.append(reading.read(column.labels, comma=comma), np.nan)[column.codes]
        odd = np.isnan(values) & (column.codes >= 0)
        read = pd.Series(values, frame.index, name=name)
        found[name] = read.astype(object).where(~odd, frame[name]) if odd.any() else read
    return found, units, texts


def _words_of(frame: pd.DataFrame) -> Iterator[tuple[str, Words]]:
    """Yield the name and the cells of columns that hold texts."""
    for name, column in frame.items():
        if not (pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)):
            continue
        try:
            raw = read_objects(column.astype(object).to_numpy(), str(name))
        except TypeError:
            # cells with several values in them, which are refused where they are used
            continue
        if isinstance(raw, Words) and raw.seen == "text":
            yield str(name), raw


def hold_codes(cells: pd.Series) -> bool:
    """Whether the cells of a column are codes such as 01067, and no numbers."""
    if not (pd.api.types.is_object_dtype(cells) or pd.api.types.is_string_dtype(cells)):
        return False
    known = [cell for cell in cells.dropna().unique() if not is_missing(cell)]
    return all(isinstance(cell, str) for cell in known) and are_codes(known)


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
        and not hold_codes(cells)
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


def check_units(table: Table, columns: Sequence[str], known: Mapping[str, str]) -> None:
    """Raise where numbers are in another unit than they were, warn where one side has none.

    `columns`: of which; `known`: the unit of each that had one.
    """
    for name in columns:
        now, then = table.units.get(name, ""), known.get(name, "")
        if now and then and now != then:
            raise TableError(
                f"{table.source}: column {name!r} is in {now}, and was in {then} where the model "
                f"learned: convert it to {then}"
            )
        if now != then and not np.isnan(as_numbers(table.frame[name])).all():
            said = (
                f"has no unit, and was in {then} where the model learned: its numbers are taken as "
                f"{then}"
                if then
                else f"is in {now}, and had no unit where the model learned: check that it is in "
                "the same"
            )
            warnings.warn(
                f"{table.source}: column {name!r} {said}", KernelWeaveWarning, stacklevel=3
            )


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
