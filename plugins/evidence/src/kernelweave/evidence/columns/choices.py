"""What a column is: decided by its training rows, kept for every table that follows."""

from __future__ import annotations

import re
import warnings
from typing import NoReturn

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray

from .dates import DateParts, date_as_written, read_dates
from .errors import ColumnWarning, place_of
from .raw import MOST_ODD, WORDS_AN_ODD, Dates, Numbers, Raw, Words, label

_LEADING_ZERO = re.compile(r"[+-]?0\d")
_NAMES_OF_IDENTIFIERS = re.compile(
    r"(?i:id|idx|index|uuid|row|row[ _]?(id|nr|no|number)|unnamed: ?\d+|.*[ _.-]id)|.*[a-z](Id|ID)"
)
# $1,200.50 and EUR 12 and 1,5: the currency before and the unit behind the number
_AMOUNT = re.compile(
    r"[-+(]?([€$£¥₹%]?|[A-Z]{1,3}\$|AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HUF|INR|JPY|KRW|MXN|NOK|PLN|SEK|TRY|USD"
    r"|ZAR)\s*[-+]?"
    r"(?:[1-9]\d{0,2}(?:[.,' ]\d{3})+|\d+)(?:,\d+|\.\d+)?"
    r"\s*((?:[€$£¥%]|[^\d\s.,;:()+€$£¥%-][^\d\s)]{0,5})?)\)?"
)
# fewer rows can be so by chance
_FEWEST_ROWS = 20


def settle(name: str, raw: Raw) -> tuple[Raw, DateParts | None, str]:
    """Return a training column as what it is, its date parts, and what to say.

    Words that are numbers but for one or two are numbers, unless a zero leads one; words that are
    all dates of one format are dates.
    """
    if isinstance(raw, Numbers):
        return raw, None, ""
    if isinstance(raw, Words) and raw.seen == "words":
        numbers = numbers_in(raw)
        if numbers is not None and not numbers.gaps[raw.codes >= 0].any():
            return numbers, None, "Its words are all numbers and are read as such."
        if numbers is not None:
            return numbers, None, f"It holds numbers, but {_warn_of_words(name, raw)}."
    if isinstance(raw, Dates) or raw.seen == "words":
        parts = read_dates(raw)
        if parts is not None:
            return raw, parts, ""
    if isinstance(raw, Dates):
        return as_words(raw), None, ""
    return raw, None, _told_codes(raw) or _told_dates(raw)


def _told_codes(raw: Raw) -> str:
    """Return what to say of words that would be numbers, if no zero led one of them."""
    if not isinstance(raw, Words) or raw.seen != "words" or not all(map(str.isdigit, raw.labels)):
        return ""
    shown = next((each for each in raw.labels if _LEADING_ZERO.match(each)), "")
    return (
        f"It has codes that begin with 0, such as {shown!r}, and is read as words; if it is a "
        "quantity, write it without such zeros."
        if shown
        else ""
    )


def _told_dates(raw: Raw) -> str:
    """Return what to say of words that are dates, but in no format that all of them have."""
    if not isinstance(raw, Words) or raw.seen != "words":
        return ""
    shown = date_as_written(raw.labels)
    return (
        f"Its words look like dates, such as {shown!r}, but not in one format that can be read, "
        "and stay words; write them all like 2024-05-31."
        if shown
        else ""
    )


def amount_in(words: Words) -> str:
    """Return one of the cells of a column of amounts in one unit, or with commas; empty for others.

    Many different ones, for few levels such as 10 % are classes as well.
    """
    found = [(each, _AMOUNT.fullmatch(each)) for each in words.labels]
    amounts = [(each, match[1] + match[2]) for each, match in found if match is not None]
    units = {unit for _, unit in amounts}
    if len(found) < _FEWEST_ROWS or len(found) - len(amounts) > MOST_ODD or len(units) != 1:
        return ""
    shown = next((each for each, unit in amounts if unit or "," in each), "")
    return shown if words.seen == "words" else ""


def numbers_in(words: Words) -> Numbers | None:
    """Return a column of words as numbers, ``None`` where it has other words.

    One or two words among many different numbers, as most rows have, stand for gaps or are
    typing errors: they become gaps.
    """
    if not words.labels or any(_LEADING_ZERO.match(each) for each in words.labels):
        return None
    values = _parsed(words)
    odd = int(np.isnan(values[:-1]).sum())
    rows = np.isfinite(values[words.codes[words.codes >= 0]])
    if odd and (odd > MOST_ODD or len(words.labels) < WORDS_AN_ODD * odd or rows.mean() < 0.5):
        return None
    whole = all(each.lstrip("+-").isdigit() for each in words.labels)
    return Numbers(values[words.codes], whole and bool((words.codes >= 0).all()))


def as_numbers(raw: Raw, name: str, first: int = 0) -> FloatArray:
    """Return a column as the numbers that it was in training; other words become gaps, warned of.

    The first row stands at ``first`` in the user's table.

    Raises ValueError if it holds dates, or words of which none is a number.
    """
    if isinstance(raw, Numbers):
        return raw.values
    if isinstance(raw, Dates):
        _not_as_in_training(name, "numbers", f"{raw.seen} now")
    values = _parsed(raw)
    odd = np.isnan(values[:-1])
    if len(odd) and odd.all():
        _not_as_in_training(name, "numbers", f"words now, such as {raw.labels[0]!r}")
    if odd.any():
        _warn_of_words(name, raw, first)
    found: FloatArray = values[raw.codes]
    return found


def as_words(raw: Raw) -> Words:
    """Return a column as words."""
    if isinstance(raw, Words):
        return raw
    import pandas as pd

    values = raw.values if isinstance(raw, Numbers) else raw.values.to_numpy()
    codes, uniques = pd.factorize(values)
    return Words(codes.astype(np.int64), tuple(label(each) for each in uniques), raw.seen)


def as_dates(raw: Raw, name: str) -> Dates | Words:
    """Return a column as the dates, or the words for them, that it was in training.

    Raises ValueError if it holds numbers.
    """
    if not isinstance(raw, Numbers):
        return raw
    if not raw.gaps.all():
        _not_as_in_training(name, "dates", f"{raw.seen} now")
    return Words(np.full(len(raw), -1, dtype=np.int64), ())


def check_dates(
    read: Dates | Words, missed: NDArray[np.bool_], name: str, first: int, form: str
) -> None:
    """Warn of words that are no dates of the format of training.

    `missed` of shape (n_rows,): where no date was read; `first`: where the first row stands in the
    user's table; `form`: the format. Raises ValueError if all words are so.
    """
    if not isinstance(read, Words):
        return
    known = read.codes >= 0
    rows = np.flatnonzero(missed & known)
    if not len(rows):
        return
    shown = read.labels[read.codes[rows[0]]]
    if len(rows) == known.sum():
        then = f"dates of the format {form}" if form else "dates"
        _not_as_in_training(name, then, f"none now, but words such as {shown!r}")
    hold = "holds" if len(rows) == 1 else "hold"
    warnings.warn(
        f"column {name!r} holds dates, but {len(rows)} of {len(read)} rows {hold} other words, "
        f"such as {shown!r} in {place_of(first + int(rows[0]))}, which count as gaps",
        ColumnWarning,
        stacklevel=4,
    )


def is_identifier(name: str, raw: Raw) -> bool:
    """Whether a column of a named table only tells its rows apart.

    A column of integers, each once, that is called like an identifier or counts the rows.
    """
    if not (isinstance(raw, Numbers) and raw.whole and len(raw) >= _FEWEST_ROWS):
        return False
    counts = bool((np.diff(raw.values) == 1.0).all()) and raw.values[0] in (0.0, 1.0)
    called = _NAMES_OF_IDENTIFIERS.fullmatch(name.strip()) is not None
    return counts or (called and len(np.unique(raw.values)) == len(raw))


def _warn_of_words(name: str, words: Words, first: int = 0) -> str:
    """Warn of words among numbers, and return what was said."""
    odd = np.flatnonzero(np.isnan(_parsed(words)[:-1]))
    rows = np.flatnonzero(np.isin(words.codes, odd))
    shown = words.labels[words.codes[rows[0]]]
    hold = "holds" if len(rows) == 1 else "hold"
    said = (
        f"{len(rows)} of {len(words)} rows {hold} words, such as {shown!r} in "
        f"{place_of(first + int(rows[0]))}, which count as gaps"
    )
    warnings.warn(f"column {name!r} holds numbers, but {said}", ColumnWarning, stacklevel=3)
    return said


def _parsed(words: Words) -> FloatArray:
    """Return the number of each label, NaN where it is none, and a NaN behind them for gaps."""
    import pandas as pd

    labels: list[object] = [*words.labels, None]
    if words.seen == "booleans":
        labels = [None if each is None else each == "True" for each in labels]
    values = pd.to_numeric(pd.Series(labels, dtype=object), errors="coerce")
    return np.asarray(values, dtype=np.float64)


def _not_as_in_training(name: str, then: str, now: str) -> NoReturn:
    raise ValueError(
        f"column {name!r} held {then} in training and holds {now}: pass the same column, or fit "
        "again"
    )
