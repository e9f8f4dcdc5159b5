"""What to say of columns that remain categories, though some of their cells are more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from kernelweave.kernels_core.exceptions import Message

from .columns import Words, are_codes
from .dates import date_as_written, read_dates
from .written import MOST_UNITS, WORDS_AN_ODD, first_limit, sides_behind, units_behind


def remark_on_codes(words: Words) -> str:
    """Return what to say of words that would be numbers, if no zero led one of them."""
    if words.seen != "text" or not are_codes(words.labels):
        return ""
    shown = next(each for each in words.labels if each[0] == "0" and len(each) > 1)
    return Message(
        "Codes that begin with 0, such as {shown}, are categories; to use it as a number, "
        "{as_number}.",
        shown=repr(shown),
        as_number="set its kind to 'number'",
    )


def remark_on_words(words: Words) -> str:
    """Return what to say of words among numbers or dates that are too many to be missing values.

    And of numbers in several units, and of limits without numbers beside them.
    """
    if words.seen != "text":
        return ""
    units, sides = units_behind(words.labels), sides_behind(words.labels)
    if len({*units} - {None}) > 1 and not any(sides):
        return _remark_on_units(units)  # those of the other units would be missing too
    if None not in units and (shown := first_limit(words.labels)):
        return Message(
            "Limits such as {shown} remain categories, since few cells are plain numbers; to use "
            "them as numbers, {as_number}.",
            shown=repr(shown),
            as_number="set its kind to 'number'",
        )
    # 12-34 may be a code as well as a range
    are_known = np.array([each not in (None, "between") for each in sides], dtype=np.bool_)
    what, how = "numbers", Message("{as_number}", as_number="set its kind to 'number'")
    is_half = 2 * are_known.sum() > len(are_known)
    if not is_half and (parts := read_dates(words, any_words=True)) is not None:
        what, how = "dates", Message("{as_date}", as_date="set its kind to 'date'")
        are_known = parts.read(words).notna().to_numpy()
    n_known, n_rows = int(words.counts[are_known].sum()), int(words.counts.sum())
    if are_known.all() or 2 * n_known <= n_rows or 2 * are_known.sum() <= len(are_known):
        return ""
    return Message(
        "{n_known} of {n_rows} rows are {what}, and the others text, such as {shown}; to use the "
        "{what}, with text as missing values, {how}.",
        n_known=n_known,
        n_rows=n_rows,
        what=what,
        shown=repr(words.labels[int(np.argmin(are_known))]),
        how=how,
    )


def _remark_on_units(units: Sequence[str | None]) -> str:
    """Return what to say of numbers in several units; nothing of words beside them."""
    named = [each or "none" for each in dict.fromkeys(units) if each is not None]
    if None in units or len(named) > MOST_UNITS or len(units) < WORDS_AN_ODD:
        return ""
    return (
        f"Numbers in several units ({', '.join(named)}) are categories: write all of them in one "
        "unit."
    )


def remark_on_dates(words: Words) -> str:
    """Return what to say of words that are dates, but in no format that all of them have."""
    shown = date_as_written(words.labels) if words.seen == "text" else ""
    return shown and (
        f"Values such as {shown!r} look like dates, but in no known format that fits all. To "
        "use them as dates, write them all like 2024-05-31."
    )
