"""What the classes of a target may be beside classes: gaps, spellings of one word, or dates."""

from __future__ import annotations

import pandas as pd

from .columns import Words, is_missing, read_objects, spellings_of_one
from .dates import read_dates


def gap_hint(series: pd.Series) -> str:
    """Return what to say of a class that may mean a missing value."""
    empty = [cell for cell in series.unique() if is_missing(cell)]
    if not empty:
        return ""
    n_rows = int((series == empty[0]).sum())
    return (
        f"{str(empty[0])!r} is a class of its own in the target {str(series.name)!r}: if it means "
        f"a missing value, remove its {n_rows} row{'s' if n_rows > 1 else ''}"
    )


def case_hint(series: pd.Series) -> str:
    """Return what to say of classes that differ in nothing but case and blanks."""
    same = spellings_of_one(map(str, series.unique()))
    if not same:
        return ""
    return (
        f"the classes {' and '.join(map(repr, same[:4]))} of the target {str(series.name)!r} "
        "differ only in case or spaces: if they are the same class, write them in one way"
    )


def date_hint(series: pd.Series) -> str:
    """Return what to say of classes that are dates."""
    words = read_objects(series.astype(str).to_numpy(object), str(series.name))
    if not isinstance(words, Words) or read_dates(words) is None:
        return ""
    return (
        f"the classes of the target {str(series.name)!r} are dates: to predict a time, write "
        "its cells as numbers, such as days since a fixed day"
    )
