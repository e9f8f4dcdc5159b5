"""Columns of dates: the parts that a kernel can use."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray

from .raw import Dates, Words

if TYPE_CHECKING:
    import pandas as pd

_LOOKS_LIKE_A_DATE = re.compile(r"\d\D.*\d|\d{8}")
_DAYS = "days since 1970"
# with the hour or without, whichever training had
_ISO = r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?"


@dataclass(frozen=True)
class DateParts:
    """How one column becomes year, month, day, hour, weekday and days since 1970.

    `format`: of words that are dates; empty for a column of dates; `zone`: the time zone whose
    calendar gives the parts; empty without one; `names`: of the parts.
    """

    format: str
    zone: str
    names: tuple[str, ...]

    def transform(self, column: Dates | Words) -> FloatArray:
        """Return the parts, shape (n_rows, n_parts), NaN for gaps and words that are no dates."""
        moments = self._moments(column)
        days = _days(moments)
        calendar = _calendar(moments)
        # skrub gives no hour where all moments are midnights
        hour = np.where(np.isnan(days), np.nan, 0.0)
        parts = [calendar.get(name, hour) for name in self.names[:-1]]
        found = np.column_stack([*parts, days]).astype(np.float64)
        if isinstance(column, Words):
            found = np.vstack([found, np.full(found.shape[1], np.nan)])[column.codes]
        return found

    def _moments(self, column: Dates | Words) -> pd.Series[Any]:
        """Return moments in the zone of training; those without a zone count as UTC."""
        import pandas as pd

        if isinstance(column, Words):
            words, utc = _series(column), "%z" in self.format
            moments = pd.to_datetime(words, format=self.format or None, errors="coerce", utc=utc)
            if self.format.startswith("%Y-%m-%d"):
                iso = words.where(words.str.fullmatch(_ISO))
                read = pd.to_datetime(iso, format="ISO8601", errors="coerce", utc=utc)
                moments = moments.fillna(read)
        else:
            moments = column.values
        if self.zone:
            known = moments if moments.dt.tz else moments.dt.tz_localize("UTC")
            local: pd.Series[Any] = known.dt.tz_convert(self.zone)
            return local
        return _plain(moments)


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
    zone = reader.output_time_zone_
    names = (*(str(each) for each in _calendar(moments).columns), _DAYS)
    return DateParts(reader.format_ or "", "" if zone is None else str(zone), names)


def _may_be_dates(labels: tuple[str, ...]) -> bool:
    return len(labels) > 0 and all(_LOOKS_LIKE_A_DATE.search(each) for each in labels)


def _series(column: Dates | Words) -> pd.Series[Any]:
    import pandas as pd

    if isinstance(column, Words):
        return pd.Series(column.labels, dtype="str")
    return column.values


def _calendar(moments: pd.Series[Any]) -> pd.DataFrame:
    from skrub import DatetimeEncoder

    encoder = DatetimeEncoder(resolution="hour", add_weekday=True, add_total_seconds=False)
    parts: pd.DataFrame = encoder.fit_transform(moments.rename("part"))
    return parts.rename(columns=lambda name: str(name).removeprefix("part_"))


def _days(moments: pd.Series[Any]) -> FloatArray:
    # in the unit of the moments: nanoseconds end in 2262
    since = _plain(moments).to_numpy() - np.datetime64(0, "s")
    return np.asarray(since / np.timedelta64(1, "D"), dtype=np.float64)


def _plain(moments: pd.Series[Any]) -> pd.Series[Any]:
    """Return moments in UTC, without a time zone."""
    return moments.dt.tz_convert("UTC").dt.tz_localize(None) if moments.dt.tz else moments
