"""Columns of dates: the parts that a kernel can use."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .raw import Dates, FloatArray, Words

if TYPE_CHECKING:
    import pandas as pd

_LOOKS_LIKE_A_DATE = re.compile(r"\d\D.*\d|\d{8}")
_DAYS = "days since 1970"


@dataclass(frozen=True, eq=False)
class DateParts:
    """How one column becomes year, month, day, hour, weekday and days since 1970.

    Attributes
    ----------
    reader : skrub.ToDatetime
        Brings texts and other time zones to what training had.
    encoder : skrub.DatetimeEncoder
        Gives the parts.
    parts : tuple of str
        Their names.
    """

    reader: Any
    encoder: Any
    parts: tuple[str, ...]

    @classmethod
    def fit(cls, moments: pd.Series[Any], reader: Any) -> DateParts:
        """Learn which parts there are from moments that ``reader`` gave."""
        from skrub import DatetimeEncoder

        encoder = DatetimeEncoder(resolution="hour", add_weekday=True, add_total_seconds=False)
        names = encoder.fit_transform(moments.rename("part")).columns
        return cls(reader, encoder, (*(str(each)[len("part_") :] for each in names), _DAYS))

    @property
    def read_as(self) -> str:
        """The format of texts, empty for a column of dates."""
        return self.reader.format_ or ""

    def transform(self, column: Dates | Words) -> FloatArray:
        """Return the parts, shape (n_rows, n_parts), NaN for gaps and texts that are no dates."""
        import pandas as pd

        moments = self.reader.transform(_series(column))
        parts = self.encoder.transform(moments.rename("part")).to_numpy(dtype=np.float64)
        flat = moments.dt.tz_convert("UTC").dt.tz_localize(None) if moments.dt.tz else moments
        days = (flat - pd.Timestamp(0)) / pd.Timedelta(days=1)
        found = np.column_stack([parts, days.to_numpy(dtype=np.float64)])
        if isinstance(column, Words):
            found = np.vstack([found, np.full(found.shape[1], np.nan)])[column.codes]
        return found


def read_dates(column: Dates | Words) -> DateParts | None:
    """Return how to read a column of dates, ``None`` for words that are none."""
    if isinstance(column, Words) and not _may_be_dates(column.labels):
        return None
    from skrub import ToDatetime

    reader = ToDatetime()
    try:
        moments = reader.fit_transform(_series(column))
    except ValueError:  # skrub refuses words by an error of this kind
        return None
    return DateParts.fit(moments, reader)


def _may_be_dates(labels: tuple[str, ...]) -> bool:
    return len(labels) > 0 and all(_LOOKS_LIKE_A_DATE.search(each) for each in labels)


def _series(column: Dates | Words) -> pd.Series[Any]:
    import pandas as pd

    if isinstance(column, Words):
        return pd.Series(column.labels, dtype="str", name="part")
    return column.values.rename("part")
