"""Columns of Python objects: what their values are decides what the column is."""

from __future__ import annotations

import datetime
import decimal
import fractions
import numbers
from typing import Any, NoReturn

import numpy as np
from kernelweave.kernels_core.arrays import Labels
from numpy.typing import NDArray

from .errors import place_of
from .raw import Dates, Numbers, Raw, Words, label

_NUMBERS = (numbers.Real, decimal.Decimal, fractions.Fraction)
_DATES = (datetime.date, np.datetime64)
_SPANS = (datetime.timedelta, datetime.time, np.timedelta64)


def read_objects(values: Labels, name: str) -> Raw:
    """Return a column of objects as numbers, words or dates.

    `values` of shape (n_rows,): None, NaN, NaT, NA and empty texts are gaps; `name`: name of the
    column, for messages. Words where numbers and words are mixed. Raises TypeError if a value is
    none of these, naming the column and the row.
    """
    codes, uniques = _factorize(values, name)
    kinds = set(map(type, uniques))
    if kinds <= {bool, np.bool_}:
        return _words(codes, uniques, "booleans") if kinds else Numbers(np.full(len(codes), np.nan))
    if all(issubclass(kind, _NUMBERS) and not issubclass(kind, bool) for kind in kinds):
        whole = all(issubclass(kind, numbers.Integral) for kind in kinds) and codes.min() >= 0
        return Numbers(_spread(np.array([float(each) for each in uniques]), codes), whole)
    if all(issubclass(kind, _DATES) for kind in kinds):
        import pandas as pd

        moments = pd.Series(pd.to_datetime(list(uniques)))
        return Dates(moments.reindex(codes).reset_index(drop=True))
    if all(issubclass(kind, _SPANS) for kind in kinds):
        seconds = np.array([_seconds(each) for each in uniques])
        return Numbers(_spread(seconds, codes), seen="durations")
    allowed = (str, np.bool_, *_NUMBERS)
    for code, each in enumerate(uniques):
        if not isinstance(each, allowed):
            _refuse(each, name, int(np.flatnonzero(codes == code)[0]))
    return _words(codes, uniques, "words")


def read_labels(codes: Labels, values: list[object], seen: str) -> Words:
    """Return codes of values as codes of their labels; values of one label are one.

    `codes` of shape (n_rows,): −1 where there is a gap; `values`: what the codes stand for; empty
    texts become gaps; `seen`: what the column is, for the report.
    """
    import pandas as pd

    names = np.array([label(each) or None for each in values], dtype=object)
    owner, distinct = pd.factorize(names)
    owner = np.append(owner, -1)
    return Words(owner[codes].astype(np.int64), tuple(str(each) for each in distinct), seen)


def _factorize(values: Labels, name: str) -> tuple[Labels, list[Any]]:
    import pandas as pd

    try:
        codes, uniques = pd.factorize(values)
    except TypeError:
        for row, each in enumerate(values):
            if getattr(type(each), "__hash__", None) is None:
                _refuse(each, name, row)
        raise
    return codes, list(uniques)


def _words(codes: Labels, values: list[object], seen: str) -> Words:
    return read_labels(codes, [_decoded(each) for each in values], seen)


def _decoded(value: object) -> object:
    return bool(value) if isinstance(value, np.bool_) else value


def _spread(values: NDArray[np.float64], codes: Labels) -> NDArray[np.float64]:
    """Return the value of each code, NaN where it is −1."""
    spread: NDArray[np.float64] = np.append(values, np.nan)[codes]
    return spread


def _seconds(value: datetime.time | datetime.timedelta | np.timedelta64) -> float:
    if isinstance(value, datetime.time):
        return value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
    return float(np.timedelta64(value) / np.timedelta64(1, "s"))


def _refuse(value: object, name: str, row: int) -> NoReturn:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    raise TypeError(
        f"column {name!r} has {shown} ({type(value).__name__}) in {place_of(row)}: a value must be "
        "a number, a string, a boolean, a date or a gap"
    )
