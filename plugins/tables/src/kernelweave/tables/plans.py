"""What each column is and how its cells are read: a list of readers, and a plan for each column."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from kernelweave.kernels_core.exceptions import warn

from .columns import Dates, Numbers, Raw, Words, are_codes, as_words
from .dates import (
    DateParts,
    read_dates,
    with_day_first,
)
from .errors import ColumnWarning
from .frames import read_columns
from .marks import how_marked
from .new_cells import warn_of_texts
from .remarks import remark_on_codes, remark_on_dates, remark_on_words
from .written import (
    WrittenNumbers,
)

Kind = Literal["number", "category", "text", "date", "ignore"]
# what a user may say of a column; "day first" is a date such as 5/12/2024 in December
KINDS = ("number", "category", "text", "date", "day first", "ignore")
Reading: TypeAlias = "WrittenNumbers | DateParts | None"
_NAMES_OF_IDENTIFIERS = re.compile(
    r"(?i:id|idx|index|uuid|row|row[ _]?(id|nr|no|number)|unnamed: ?\d+|.*[ _.-]id)|.*[a-z](Id|ID)"
)
# fewer rows can be so by chance
FEWEST_ROWS = 20
_WORDS_OF_TEXTS = 3


class ColumnPlan(NamedTuple):
    """The kind of a column and how its cells are read.

    Attributes
    ----------
    column : str
        Its name.
    kind : {"number", "category", "text", "date", "ignore"}
        How it is used.
    seen : str
        What it contains: "numbers", "text", "booleans", "categories", "dates", "durations" or "no
        values".
    reading : WrittenNumbers, DateParts or None
        How its cells become numbers; ``None`` for categories, and where numbers were given.
    remark : str, default=""
        Anything unusual; otherwise empty.

    Examples
    --------
    >>> from kernelweave.tables import plan_columns
    >>> import pandas as pd
    >>> table = pd.DataFrame({"weight": ["71.8 kg", "64 kg"], "town": ["Ulm", "Bonn"]})
    >>> for plan in plan_columns(table):
    ...     print(plan)
    weight: number (unit kg, decimal .). Numbers in kg.
    town: category
    """

    column: str
    kind: Kind
    seen: str
    reading: Reading = None
    remark: str = ""

    @property
    def used(self) -> bool:
        """Whether a model learns from the column."""
        return self.kind != "ignore"

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What its reading learned, such as the unit of its numbers, those that are empty left out.

        Its type is that of `dataclasses.asdict`.
        """
        if self.reading is None:
            return {}
        learned = dataclasses.asdict(self.reading)
        return {name: value for name, value in learned.items() if value}

    @property
    def unit(self) -> str:
        """The unit of its numbers; empty where there is none."""
        return self.reading.unit if isinstance(self.reading, WrittenNumbers) else ""

    def __str__(self) -> str:
        shown = ", ".join(
            f"{name} {', '.join(value) if isinstance(value, tuple) else value}"
            for name, value in self.parameters.items()
        )
        return (
            f"{self.column}: {self.kind}"
            + (f" ({shown})" if shown else "")
            + (f". {self.remark}" if self.remark else "")
        )


# Takes the training cells, and what a comma in 1,234 is ("decimal", "thousands" or empty: nobody
# knows). Returns how they are read and what to say, or None: "not mine".
Reader: TypeAlias = Callable[[Words, str], "tuple[WrittenNumbers | DateParts, str] | None"]


def read_as_numbers(words: Words, comma: str) -> tuple[WrittenNumbers, str] | None:
    """Return how a column of words is read as numbers; ``None`` where it is none.

    Codes such as 01067 are no numbers.
    """
    if not words.labels or are_codes(words.labels):
        return None
    return WrittenNumbers.fit(words.labels, words.counts.tolist(), comma=comma)


def read_as_dates(words: Words, comma: str) -> tuple[DateParts, str] | None:
    """Return how a column of words is read as dates; ``None`` where it is none."""
    del comma
    parts = read_dates(words)
    return None if parts is None else _day_or_month(parts, words)


def _day_or_month(parts: DateParts, words: Words) -> tuple[DateParts, str]:
    """Return dates with the day first where only so the rows are in order, and what to say of it.

    Where their order does not tell, and a day may be a month, the doubt is said.
    """
    moments = parts.read(words)
    # a year that leads leaves no doubt, whatever the format of the others
    leads = np.array([each[:4].isdigit() for each in words.labels], dtype=np.bool_)
    readable = moments.notna().to_numpy() & ~leads
    labels = [each for each, is_date in zip(words.labels, readable, strict=True) if is_date]
    swapped = with_day_first(parts.format, labels)
    if swapped is None:
        return parts, ""
    differ = swapped.read(words).to_numpy() != moments.to_numpy()
    if not (differ & readable).any():
        return parts, ""
    shown = words.labels[int(np.argmax(differ & readable))]
    sorted_as_read, sorted_swapped = (_is_sorted(each, words) for each in (parts, swapped))
    if sorted_swapped and not sorted_as_read:
        return swapped, (
            f"dates such as {shown} are read with the day first, since only so the rows are in "
            "order"
        )
    return parts, "" if sorted_as_read and not sorted_swapped else (
        f"dates such as {shown} are read with the month first, and might be meant with the day "
        "first: write them as year-month-day, or say that the day is first"
    )


def _is_sorted(parts: DateParts, words: Words) -> bool:
    """Whether the dates of the rows never go back, or never forth."""
    moments = parts.moments(words).dropna()
    return bool(moments.is_monotonic_increasing or moments.is_monotonic_decreasing)


# Asked in this order; a column that none takes is one of categories. Insert one of your own.
READERS: list[Reader] = [read_as_numbers, read_as_dates]


def first_reading(
    words: Words, comma: str = "", kind: str | None = None
) -> tuple[WrittenNumbers | DateParts, str] | None:
    """Return what the first reader says that takes a column, of a kind where one is asked for.

    ``None`` where none does.
    """
    if kind == "number" and words.seen == "booleans":
        return WrittenNumbers(), ""
    for reader in READERS:
        taken = reader(words, comma)
        if taken is not None and (
            kind is None or (kind == "date") == isinstance(taken[0], DateParts)
        ):
            return taken
    if kind == "date" and (parts := read_dates(words, any_words=True)) is not None:
        return _day_or_month(parts, words)
    if kind == "number":
        rows = words.counts.tolist()
        numbers = WrittenNumbers.fit(words.labels, rows, comma=comma, any_words=True)
        plain = np.isfinite(WrittenNumbers().values_of(words, comma)).any()
        return numbers or ((WrittenNumbers(), "") if plain else None)
    return None


def plan_column(
    name: str, raw: Raw, *, kind: str | None = None, comma: str = ""
) -> tuple[ColumnPlan, Raw]:
    """Return the plan of a training column, and its cells as what they are.

    `kind`: what the user says that it is. Raises ValueError if it cannot be that.
    """
    if kind == "ignore":
        return ColumnPlan(name, "ignore", raw.seen, remark="Ignored, as requested."), raw
    if kind == "category":
        return ColumnPlan(name, "category", raw.seen), as_words(raw)
    if kind == "text":
        return ColumnPlan(name, "text", raw.seen), as_words(raw)
    if kind == "day first" and not isinstance(raw, Dates):
        return _planned(name, as_words(raw), _of_days(name, as_words(raw)), "")
    if isinstance(raw, Numbers) and kind != "date":
        of_durations = WrittenNumbers(raw.unit) if raw.unit else None
        return ColumnPlan(name, "number", raw.seen, of_durations), raw
    if isinstance(raw, Dates) and kind != "number":
        return ColumnPlan(name, "date", "dates", read_dates(raw)), raw
    if kind == "date":
        # of days such as 20240531
        raw = as_words(raw)
    if isinstance(raw, Words) and (raw.seen == "text" or kind):
        reading = first_reading(raw, comma, kind)
        if reading is not None:
            return _planned(name, raw, *reading)
    if kind is not None:
        words = as_words(raw)
        why = f"it contains {next(iter(words.labels), 'missing values')!r}"
        if kind == "date" and (remark := remark_on_dates(words)):
            why = f"{remark[0].lower()}{remark[1:-1]}"
        raise ValueError(f"column {name!r} cannot be read as a {kind}: {why}")
    if isinstance(raw, Words) and are_texts(raw):
        return ColumnPlan(name, "text", raw.seen), raw
    words = as_words(raw)
    remark = remark_on_codes(words) or remark_on_words(words) or remark_on_dates(words)
    return ColumnPlan(name, "category", raw.seen, None, remark), words


def _of_days(name: str, words: Words) -> DateParts:
    """Return how dates are read with the day first; raise ValueError where they cannot be."""
    parts = read_dates(words) or read_dates(words, any_words=True)
    if parts is None:
        shown = next(iter(words.labels), "missing values")
        raise ValueError(f"column {name!r} cannot be read as a date: it contains {shown!r}")
    if not parts.format.startswith("%m"):
        return parts
    readable = parts.read(words).notna().to_numpy()
    labels = [each for each, known in zip(words.labels, readable, strict=True) if known]
    swapped = with_day_first(parts.format, labels)
    if swapped is None:
        bad = next(each for each in labels if with_day_first(parts.format, [each]) is None)
        raise ValueError(f"column {name!r} cannot be read with the day first: it contains {bad!r}")
    return swapped


def are_texts(words: Words) -> bool:
    """Whether a column holds texts: mostly different, and of three words or more in the median."""
    n_present = int(words.counts.sum())
    if n_present < FEWEST_ROWS or 2 * len(words.labels) < n_present or words.seen != "text":
        return False
    return bool(np.median([len(label.split()) for label in words.labels]) >= _WORDS_OF_TEXTS)


def _how_written(reading: WrittenNumbers, words: Words) -> str:
    """Return a sentence on numbers that Python would not read; the cells of a file are texts."""
    marked = how_marked(words.labels)
    marked = f"; {marked}" if marked else ""
    if reading.unit:
        return f"Numbers in {reading.unit}{marked}."
    if reading.decimal == ",":
        return f"Numbers with decimal commas{marked}."
    if reading.sides and not marked:
        return ""  # the remark says how they are written
    if marked:
        return f"Text read as numbers{marked}."
    try:
        np.asarray(words.labels, dtype=np.float64)
    except ValueError:
        return "Text read as numbers."
    return ""


def _planned(
    name: str, words: Words, reading: WrittenNumbers | DateParts, remark: str
) -> tuple[ColumnPlan, Raw]:
    if remark:
        warn(f"column {name!r}: {remark}", ColumnWarning)
        remark = f"{remark[0].upper()}{remark[1:]}."
    if isinstance(reading, DateParts):
        odd = np.isnan(reading.transform(words)[:, -1]) & ~words.missing
        if odd.any():
            text = f"Dates, but {warn_of_texts(name, 'dates', words, odd)}."
            remark = " ".join(filter(None, (text, remark)))
        return ColumnPlan(name, "date", "dates", reading, remark), words
    values = reading.values_of(words)
    text = _how_written(reading, words)
    if (odd := np.isnan(values) & ~words.missing).any():
        text = f"Numbers, but {warn_of_texts(name, 'numbers', words, odd)}."
    whole = not words.missing.any() and all(each.lstrip("+-").isdigit() for each in words.labels)
    plan = ColumnPlan(name, "number", "numbers", reading, " ".join(filter(None, (text, remark))))
    if reading.sides:
        # numbers would not tell the sides
        return plan, words
    return plan, Numbers(values, whole, unit=reading.unit)


def plan_columns(X: Any, kinds: Mapping[str, str] | None = None) -> list[ColumnPlan]:
    """Return what each column of a table is and how it is read.

    Parameters
    ----------
    X : pandas, polars or pyarrow table, or array-like of shape (n_rows, n_columns)
        The training rows.
    kinds : dict, default=None
        What columns are, by name, where they are not what they seem: "number", "category",
        "text", "date", "day first" (a date such as 5/12/2024 in December) or "ignore".

    Returns
    -------
    list of ColumnPlan
        In the order of the table.

    Raises
    ------
    ValueError
        If a column cannot be what ``kinds`` says.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelweave.tables import plan_columns
    >>> table = pd.DataFrame({"plz": [1067, 80331], "when": ["31.12.2024", "13.1.2025"]})
    >>> for plan in plan_columns(table, kinds={"plz": "category"}):
    ...     print(plan.column, plan.kind)
    plz category
    when date
    """
    table = read_columns(X)
    wanted = {**table.kinds, **(kinds or {})}
    pairs = zip(table.names, table.columns, strict=True)
    return [
        plan_column(name, raw, kind=wanted.get(name), comma=table.comma)[0] for name, raw in pairs
    ]


def is_identifier(name: str, raw: Raw) -> bool:
    """Whether a column of a named table only tells its rows apart.

    A column of integers, each once, that is called like an identifier or counts the rows, of which
    up to a fifth may have been left out, such as those without a target.
    """
    if not (isinstance(raw, Numbers) and raw.whole and len(raw) >= FEWEST_ROWS):
        return False
    first, last = raw.values[[0, -1]]
    rises = bool((np.diff(raw.values) > 0.0).all())
    counts = rises and first >= 0.0 and last <= 1.25 * len(raw)
    called = _NAMES_OF_IDENTIFIERS.fullmatch(name.strip()) is not None
    return counts or (called and len(np.unique(raw.values)) == len(raw))


def extent(plan: ColumnPlan, raw: Raw, comma: str = "") -> dict[str, object]:
    """Return the range of a column's cells and how many are missing, as a profile shows them.

    `raw`: its training cells. Returns ``range``: the least and the greatest number or date, or how
    many words there are and the most frequent; ``missing``: rows without a value.
    """
    if isinstance(plan.reading, DateParts):
        # days such as 20240531 may be numbers
        moments = plan.reading.moments(as_words(raw) if isinstance(raw, Numbers) else raw)
        span = f"{moments.min():%Y-%m-%d} to {moments.max():%Y-%m-%d}"
        return {"range": span, "missing": int(moments.isna().sum())}
    if isinstance(raw, Words) and plan.kind == "number":
        reading = plan.reading if isinstance(plan.reading, WrittenNumbers) else WrittenNumbers()
        raw = Numbers(reading.values_of(raw, comma))
    if isinstance(raw, Numbers) and plan.kind != "category":
        cells = raw.values[~raw.missing]
        span = f"{cells.min():g} to {cells.max():g} {plan.unit}".rstrip() if len(cells) else "0: "
        return {"range": span, "missing": int(raw.missing.sum())}
    words = as_words(raw)
    most = np.argsort(-words.counts, kind="stable")[:3]
    few = ", ".join(words.labels[code] for code in most) + (", …" if len(words.labels) > 3 else "")
    return {"range": f"{len(words.labels)}: {few}", "missing": int(words.missing.sum())}
