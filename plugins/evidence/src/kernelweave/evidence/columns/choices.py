"""What a column is: decided by its training rows, kept for every table that follows."""

from __future__ import annotations

import re
import warnings
from typing import NoReturn

import numpy as np
from kernelweave.kernels_core import KernelWeaveWarning

from .dates import DateParts, read_dates
from .raw import Dates, FloatArray, Numbers, Raw, Words, label

_LEADING_ZERO = re.compile(r"[+-]?0\d")
_NAMES_OF_IDENTIFIERS = re.compile(
    r"(?i:id|idx|index|uuid|row|row[ _]?(id|nr|no|number)|unnamed: ?\d+|.*[ _.-]id)|.*[a-z](Id|ID)"
)
_FEWEST_ROWS = 20


def settle(raw: Raw) -> tuple[Raw, DateParts | None, str]:
    """Return a training column as what it is, its date parts, and what to say.

    Words that are all numbers are numbers, unless a zero leads one; words that are all dates of
    one format are dates.
    """
    if isinstance(raw, Numbers):
        return raw, None, ""
    if isinstance(raw, Words) and raw.seen == "words":
        numbers = numbers_in(raw)
        if numbers is not None:
            return numbers, None, "Its words are all numbers and are read as such."
    if isinstance(raw, Dates) or raw.seen == "words":
        parts = read_dates(raw)
        if parts is not None:
            return raw, parts, ""
    if isinstance(raw, Dates):
        return as_words(raw), None, ""
    return raw, None, ""


def numbers_in(words: Words) -> Numbers | None:
    """Return a column of words as numbers, ``None`` where one of them is none."""
    if not words.labels or any(_LEADING_ZERO.match(each) for each in words.labels):
        return None
    values = _parsed(words)
    if np.isnan(values[:-1]).any():
        return None
    whole = all(each.lstrip("+-").isdigit() for each in words.labels)
    return Numbers(values[words.codes], whole and bool((words.codes >= 0).all()))


def as_numbers(raw: Raw, name: str) -> FloatArray:
    """Return a column as the numbers that it was in training; other words become gaps, warned of.

    Raises
    ------
    ValueError
        If it holds dates, or words of which none is a number.
    """
    if isinstance(raw, Numbers):
        return raw.values
    if isinstance(raw, Dates):
        _not_as_in_training(name, "numbers", f"{raw.seen} now")
    values = _parsed(raw)
    odd = np.flatnonzero(np.isnan(values[:-1]))
    if len(odd):
        rows = np.flatnonzero(np.isin(raw.codes, odd))
        example = f"such as {raw.labels[odd[0]]!r} in row {np.flatnonzero(raw.codes == odd[0])[0]}"
        if len(odd) == len(raw.labels):
            _not_as_in_training(name, "numbers", f"words now, {example}")
        warnings.warn(
            f"column {name!r} held numbers in training and has words in {len(rows)} rows, "
            f"{example}: they count as gaps",
            KernelWeaveWarning,
            stacklevel=2,
        )
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

    Raises
    ------
    ValueError
        If it holds numbers.
    """
    if not isinstance(raw, Numbers):
        return raw
    if not raw.gaps.all():
        _not_as_in_training(name, "dates", f"{raw.seen} now")
    return Words(np.full(len(raw), -1, dtype=np.int64), ())


def is_identifier(name: str, raw: Raw) -> bool:
    """Whether a column of a named table only tells its rows apart.

    A column of integers, each once, that is called like an identifier or counts the rows.
    """
    if not (isinstance(raw, Numbers) and raw.whole and len(raw) >= _FEWEST_ROWS):
        return False
    counts = bool((np.diff(raw.values) == 1.0).all()) and raw.values[0] in (0.0, 1.0)
    called = _NAMES_OF_IDENTIFIERS.fullmatch(name.strip()) is not None
    return counts or (called and len(np.unique(raw.values)) == len(raw))


def _parsed(words: Words) -> FloatArray:
    """Return the number of each label, NaN where it is none, and a NaN behind them for gaps."""
    import pandas as pd

    values = pd.to_numeric(pd.Series([*words.labels, None], dtype=object), errors="coerce")
    return np.asarray(values, dtype=np.float64)


def _not_as_in_training(name: str, then: str, now: str) -> NoReturn:
    raise ValueError(
        f"column {name!r} held {then} in training and holds {now}: pass the same column, or fit "
        "again"
    )
