"""Columns of a table as they are given: numbers, words or dates, by the values that they hold."""

from __future__ import annotations

import datetime
import decimal
import fractions
import numbers
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeAlias

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Labels
from numpy.typing import NDArray

from .errors import place_of
from .written import shows_decimal_comma

if TYPE_CHECKING:
    import pandas as pd

Codes: TypeAlias = NDArray[np.int64]
_DIGITS = re.compile(r"[0-9]+")
_MISSING = {
    *("", "na", "n/a", "n.a.", "nan", "null", "none", "?", "<na>"),
    # errors of spreadsheets
    *("#n/a", "#div/0!", "#name?", "#null!", "#num!", "#ref!", "#value!"),
}
_NUMBERS = (numbers.Real, decimal.Decimal, fractions.Fraction)
_DATES = (datetime.date, np.datetime64)
_SPANS = (datetime.timedelta, np.timedelta64)


@dataclass(frozen=True, eq=False)
class ValueColumn:
    """Values of rows, NaN or NaT where they are missing."""

    values: Any

    def __len__(self) -> int:
        return len(self.values)

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Where there is no value."""
        import pandas as pd

        return np.asarray(pd.isna(self.values), dtype=np.bool_)

    def take(self, rows: NDArray[np.intp]) -> Self:
        """Return some of the rows."""
        return replace(self, values=self.values.take(rows))


@dataclass(frozen=True, eq=False)
class Numbers(ValueColumn):
    """Numbers, in an array of floats.

    `whole`: whether the table's own type was an integer; `unit`: in which they were written.
    """

    values: FloatArray
    whole: bool = False
    seen: str = "numbers"
    unit: str = ""


@dataclass(frozen=True, eq=False)
class Dates(ValueColumn):
    """Moments, in a pandas series of dtype datetime64."""

    values: pd.Series[pd.Timestamp]
    seen: str = "dates"


@dataclass(frozen=True, eq=False)
class Words:
    """Codes of labels, −1 where they are missing."""

    codes: Codes
    labels: tuple[str, ...]
    seen: str = "text"

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Where there is no value."""
        return self.codes < 0

    @property
    def counts(self) -> NDArray[np.intp]:
        """How many rows have each label."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.labels))

    def take(self, rows: NDArray[np.intp]) -> Words:
        """Return some of the rows, with the labels that they have."""
        used, codes = np.unique(self.codes[rows], return_inverse=True)
        has_missing = bool(len(used)) and used[0] < 0
        labels = tuple(self.labels[code] for code in used[int(has_missing) :])
        return replace(self, codes=codes.astype(np.int64) - has_missing, labels=labels)


Raw: TypeAlias = Numbers | Words | Dates


@dataclass(frozen=True, eq=False)
class RawTable:
    """A user's table, column by column.

    `names`: ``x0``, ``x1``, … where the table has no names; `columns`: all of the same length;
    `named`: whether the names are the user's; `comma`: what a comma in 1,234 is, where the table
    itself does not tell: ``"decimal"``, ``"thousands"`` or empty; `kinds`: what the user
    said that columns are.
    """

    names: tuple[str, ...]
    columns: tuple[Raw, ...]
    named: bool
    comma: str = ""
    kinds: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.columns[0])

    def take(self, rows: NDArray[np.intp]) -> RawTable:
        """Return some of the rows."""
        return replace(self, columns=tuple(column.take(rows) for column in self.columns))


def comma_of(columns: Iterable[Raw]) -> str:
    """Return what columns of texts say of a comma in 1,234: ``"decimal"``, or empty."""
    words = (each.labels for each in columns if isinstance(each, Words) and each.seen == "text")
    return "decimal" if any(map(shows_decimal_comma, words)) else ""


def is_missing(cell: object) -> bool:
    """Whether a cell says that a value is missing: empty, NA, n.a., #N/A, NaN, null, None, ?."""
    import pandas as pd

    return bool(pd.isna(cell)) or str(cell).strip().casefold() in _MISSING  # type: ignore[call-overload]


def are_codes(labels: Iterable[str]) -> bool:
    """Whether texts are codes such as 01067, and no numbers.

    True where all are digits, and a zero leads one that is as long as another, or the only one.
    """
    cells = list(labels)
    if not all(map(_DIGITS.fullmatch, cells)):
        return False
    lengths = Counter(map(len, cells))
    led = [len(cell) for cell in cells if cell[0] == "0" and len(cell) > 1]
    return any(len(cells) == 1 or lengths[length] > 1 for length in led)


def spellings_of_one(labels: Iterable[str]) -> list[str]:
    """Return the first labels that differ in nothing but case and blanks, empty if none do."""
    alike: dict[str, list[str]] = {}
    for each in sorted(labels):
        alike.setdefault(" ".join(each.casefold().split()), []).append(each)
    return next((same for same in alike.values() if len(same) > 1), [])


def as_words(raw: Raw) -> Words:
    """Return a column as words."""
    if isinstance(raw, Words):
        return raw
    import pandas as pd

    return read_labels(*pd.factorize(np.asarray(raw.values)), raw.seen)


def label(value: object) -> str:
    """Return how a level is called: 3 and 3.0 are the same."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def read_objects(values: Any, name: str) -> Raw:
    """Return a column of objects as numbers, words or dates; words where they are mixed.

    None, NaN, NaT and words for nothing, such as NA and ?, are missing values; times of day are
    words, and so are dates or durations beside words. Raises TypeError if a value is none of these,
    naming the column and the row.
    """
    import pandas as pd

    try:
        codes, distinct = pd.factorize(values)
    except TypeError:
        for row, each in enumerate(values):
            if getattr(type(each), "__hash__", None) is None:
                _refuse(each, name, row)
        raise
    uniques: list[Any] = list(distinct)
    kinds = set(map(type, uniques))
    if not kinds:
        return Numbers(np.full(len(codes), np.nan))
    if kinds <= {bool, np.bool_}:
        return read_labels(codes, uniques, "booleans")
    if all(issubclass(kind, _NUMBERS) and not issubclass(kind, bool) for kind in kinds):
        whole = all(issubclass(kind, numbers.Integral) for kind in kinds) and codes.min() >= 0
        return Numbers(np.array([*map(float, uniques), np.nan])[codes], whole)
    if all(issubclass(kind, _DATES) for kind in kinds):
        moments = pd.Series(pd.to_datetime(uniques))
        return Dates(moments.reindex(codes).reset_index(drop=True))
    if all(issubclass(kind, _SPANS) for kind in kinds):
        seconds = [np.timedelta64(each) / np.timedelta64(1, "s") for each in uniques]
        return Numbers(np.array([*seconds, np.nan])[codes], seen="durations", unit="s")
    texts = [isinstance(each, str) for each in uniques]
    if any(texts) and all(
        is_text or isinstance(each, (*_DATES, *_SPANS))
        for is_text, each in zip(texts, uniques, strict=True)
    ):
        # a spreadsheet keeps a word among dates as text
        return read_labels(codes, map(_written, uniques), "text")
    _refuse_dates_among_numbers(codes, uniques, name)
    allowed = (str, np.bool_, datetime.time, *_NUMBERS)
    for code, each in enumerate(uniques):
        if not isinstance(each, allowed):
            _refuse(each, name, int(np.flatnonzero(codes == code)[0]))
    return read_labels(codes, uniques, "text")


def read_labels(codes: Labels, values: Iterable[object], seen: str) -> Words:
    """Return codes of values as codes of their labels; values of one label are one.

    `codes` of shape (n_rows,): −1 where they are missing; `values`: what the codes stand for; empty
    texts become missing values, and so do words for nothing in a text: a category says what it is;
    `seen`: what the column is, for the report.
    """
    import pandas as pd

    names = [label(each) for each in values]
    nothing = _MISSING if seen == "text" else {""}
    categories = [None if each.casefold() in nothing else each for each in names]
    owner, distinct = pd.factorize(np.array(categories, dtype=object))
    owner = np.append(owner, -1)
    return Words(owner[codes].astype(np.int64), tuple(map(str, distinct)), seen)


def _written(value: Any) -> object:
    """Return a duration as a text in seconds, and any other value as it is."""
    if not isinstance(value, _SPANS):
        return value
    return f"{np.timedelta64(value) / np.timedelta64(1, 's'):.15g} s"


def _refuse_dates_among_numbers(codes: Codes, values: list[Any], name: str) -> None:
    """Raise where some values are dates and others numbers: a spreadsheet makes dates of 3-5."""
    are_dates = [isinstance(each, _DATES) for each in values]
    if any(are_dates) and any(isinstance(each, _NUMBERS) for each in values):
        date = values[are_dates.index(True)]
        row = int(np.flatnonzero(codes == are_dates.index(True))[0])
        raise TypeError(
            f"column {name!r} has the date {date!s:.10} in {place_of(row)} beside numbers: "
            "spreadsheet programs make dates of cells such as 3-5; write what it was, or leave the "
            "cell empty"
        )


def _refuse(value: object, name: str, row: int) -> NoReturn:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    raise TypeError(
        f"column {name!r} has {shown} ({type(value).__name__}) in {place_of(row)}: a value must be "
        "a number, a string, a boolean, a date or missing"
    )
