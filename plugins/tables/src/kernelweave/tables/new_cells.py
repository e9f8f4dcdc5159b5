"""New rows read as the training rows were: the same units, sides and formats of dates, or told."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.exceptions import warn
from numpy.typing import NDArray

from .columns import Dates, Numbers, Raw, Words, as_words
from .dates import DateParts, with_order_swapped
from .errors import ColumnWarning, TableError, place_of
from .marks import says_nothing
from .written import WrittenNumbers, have_no_unit, sides_behind, unit_of_most, units_behind


def numbers_of(
    raw: Raw, reading: WrittenNumbers | None, name: str, first: int = 0, comma: str = ""
) -> FloatArray:
    """Return a column as the numbers that it was in training; other words are missing, warned of.

    `first`: where the first row stands in the user's table. Raises ValueError if it holds dates,
    words of which none is a number, or numbers in another unit.
    """
    reading = reading or WrittenNumbers()
    if isinstance(raw, Dates):
        _not_as_in_training(name, "numbers", f"{raw.seen} now")
    if isinstance(raw, Numbers):
        if not raw.missing.all() and (raw.unit or not reading.unitless):
            check_unit(name, raw.unit, reading.unit)
        return raw.values
    now = unit_of_most(raw.labels, raw.counts.tolist())
    if now and not reading.unit:
        check_unit(name, now, "")
        reading = replace(reading, unit=now)
    values = reading.values_of(raw, comma)
    odd = np.isnan(values) & ~raw.missing
    if odd.any() and np.isnan(values).all() and not all(map(says_nothing, raw.labels)):
        if now:
            check_unit(name, now, reading.unit)
        shown = next(each for each in raw.labels if not says_nothing(each))
        _not_as_in_training(name, "numbers", f"text now, such as {shown!r}")
    if reading.unit and not reading.unitless:
        bare = [code for code, unit in enumerate(units_behind(raw.labels)) if unit == ""]
        rows = int((np.isin(raw.codes, bare) & np.isfinite(values)).sum())
        if rows:
            text = f"column {name!r}: {rows} of {len(raw)} rows {have_no_unit(rows, reading.unit)}"
            warn(text)
    if odd.any():
        warn_of_texts(name, "numbers", raw, odd, first)
    unknown = [bool(side) and side not in reading.sides for side in sides_behind(raw.labels)]
    new = np.array([*unknown, False])[raw.codes] & np.isfinite(values)
    if new.any():
        _warn_of_sides(name, raw, new, values)
    return values


def _warn_of_sides(name: str, words: Words, new: NDArray[np.bool_], values: FloatArray) -> None:
    """Warn of rows that are known on a side on which none of training was; both of (n_rows,)."""
    row, n_new = int(np.argmax(new)), int(new.sum())
    rows = "row is a limit or a range" if n_new == 1 else "rows are limits or ranges"
    warn(
        f"column {name!r}: {n_new} {rows} as training had none, such as "
        f"{words.labels[words.codes[row]]!r}, taken as a measured {values[row]:g}",
        ColumnWarning,
    )


def sides_of(raw: Raw, reading: WrittenNumbers | None, values: FloatArray) -> FloatArray:
    """Return on which side the numbers of a column are known only, NaN where there is no number.

    `values` of shape (n_rows,): what `numbers_of` returned. Returns shape (n_rows, n_sides), as
    many as training had.
    """
    n_sides = 0 if reading is None else len(reading.sides)
    sides = np.zeros((len(values), n_sides))
    if n_sides and reading is not None and isinstance(raw, Words):
        sides = reading.sides_of(raw)
    sides[np.isnan(values)] = np.nan
    return sides


def check_unit(name: str, now: str, then: str, source: str = "") -> None:
    """Raise TableError where numbers are in another unit than in training; warn of one without.

    `now`, `then`: the units, empty without one; `source`: begins what is said.
    """
    if now == then:
        return
    what = f"{source}column {name!r}"
    if now and then:
        raise TableError(
            f"{what} is in {now}, and was in {then} in the training data: convert it to {then}"
        )
    text = f"is in {now}, and had no unit in the training data: check that it is in the same"
    if then:
        text = (
            f"has no unit, and was in {then} in the training data: its numbers are taken as {then}"
        )
    warn(f"{what} {text}")


def dates_of(raw: Raw, parts: DateParts, name: str, first: int = 0) -> FloatArray:
    """Return the parts of a column of dates, as in training; other words become missing, warned of.

    `first`: as in `numbers_of`. Raises ValueError if it holds numbers, no dates of the format of
    training, or one that can only be meant with the day first where training had the month first,
    or the other way round.
    """
    if isinstance(raw, Numbers):
        words = as_words(raw)
        if not raw.missing.all() and not (parts.format and parts.read(words).notna().any()):
            _not_as_in_training(name, "dates", f"{raw.seen} now")
        raw = words
    values = parts.transform(raw)
    odd = np.isnan(values[:, -1]) & ~raw.missing
    if isinstance(raw, Words) and odd.any():
        if (swapped := _in_other_order(raw, parts, odd)) is not None:
            now, then = ("day", "month") if parts.format.startswith("%m") else ("month", "day")
            again = "fit again and say that the day is first, or " if now == "day" else ""
            raise ValueError(
                f"column {name!r}: {swapped!r} has the {now} first, and the dates of training were "
                f"read with the {then} first: {again}write the dates as year-month-day"
            )
        if odd.sum() == (~raw.missing).sum():
            then = f"dates of the format {parts.format}" if parts.format else "dates"
            shown = raw.labels[raw.codes[int(np.argmax(odd))]]
            _not_as_in_training(name, then, f"none now, but text such as {shown!r}")
        warn_of_texts(name, "dates", raw, odd, first)
    return values


def _in_other_order(words: Words, parts: DateParts, odd: NDArray[np.bool_]) -> str | None:
    """Return a word that is a date only with day and month in the other order than in training.

    `odd` of shape (n_rows,): rows whose words are no dates of the format of training.
    """
    labels = (words.labels[code] for code in dict.fromkeys(words.codes[odd]))
    return next((each for each in labels if with_order_swapped(parts.format, [each])), None)


def warn_of_texts(
    name: str, what: str, words: Words, odd: NDArray[np.bool_], first: int = 0
) -> str:
    """Warn of texts among numbers or dates, and return what was said.

    `odd` of shape (n_rows,): which rows hold one; `first`: as in `numbers_of`.
    """
    row, n_odd = int(np.argmax(odd)), int(odd.sum())
    text = (
        f"{n_odd} of {len(words)} rows {'holds' if n_odd == 1 else 'hold'} text, such as "
        f"{words.labels[words.codes[row]]!r} in {place_of(first + row)}, read as missing values"
    )
    warn(f"column {name!r} holds {what}, but {text}", ColumnWarning)
    return text


def _not_as_in_training(name: str, then: str, now: str) -> NoReturn:
    raise ValueError(
        f"column {name!r} held {then} in training and holds {now}: pass the same column, or fit "
        "again"
    )
