"""Columns of dates: the parts that a kernel can use."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray

from .columns import Dates, Words
from .written import MOST_ODD, WORDS_AN_ODD

if TYPE_CHECKING:
    import pandas as pd

_LOOKS_LIKE_A_DATE = re.compile(r"\d\D.*\d|\d{8}|[A-Za-z]{3,9}[ -]\d")
# a month in any language between a day and a year, or three numbers
_DATE_AS_WRITTEN = re.compile(
    r"\d{4}([./-])\d{1,2}\1\d{1,2}\b.*|\d{1,2}([./-])\d{1,2}\2\d{4}\b.*|\d{1,2}/\d{1,2}/\d\d\b.*"
    r"|\d{1,2}[^\W\d_]{0,2}\.?[ /-](de )?[^\W\d_]{3,}\.?,?[ /-](de )?\d{4}\b.*"
    r"|[^\W\d_]{3,}\.? \d{1,2}[^\W\d_]{0,2},? \d{4}\b.*"
)
_WITH_CENTURY = ("%m/%d/%Y", "%d/%m/%Y")
# what skrub does not guess from one word; where both would do, the month leads, as there
_FORMATS = (
    *(
        f"{day}{clock}"
        for day in ("%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%m-%d-%y", "%d-%m-%y", *_WITH_CENTURY)
        for clock in ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
    ),
    *("%b %d, %Y", "%b %d %Y", "%d-%b-%y", "%d-%b-%Y", "%d %b %y", "%d %b %Y", "%d/%b/%Y"),
    *("%b-%y", "%b-%Y", "%b %Y", "%B %Y", "%B-%Y", "%m/%Y"),
)
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
        """Return the parts, shape (n_rows, n_parts), NaN where they are missing or no dates."""
        moments = self.read(column)
        # Monday is day 1 of a week
        parts = [
            moments.dt.day_of_week + 1 if name == "weekday" else getattr(moments.dt, name)
            for name in self.names[:-1]
        ]
        found = np.column_stack([*parts, _days(moments)]).astype(np.float64)
        if isinstance(column, Words):
            found = np.vstack([found, np.full(found.shape[1], np.nan)])[column.codes]
        return found

    def moments(self, column: Dates | Words) -> pd.Series[pd.Timestamp]:
        """Return the moment of each row, NaT for missing values and words that are no dates."""
        moments = self.read(column)
        if isinstance(column, Words):
            moments = moments.reindex(column.codes).reset_index(drop=True)
        return moments

    def read(self, column: Dates | Words) -> pd.Series[pd.Timestamp]:
        """Return the moments of rows, or of the labels of words.

        They are in the zone of training; those without a zone count as UTC.
        """
        import pandas as pd

        if isinstance(column, Words):
            words, utc = pd.Series(column.labels, dtype="str"), "%z" in self.format
            moments = pd.to_datetime(words, format=self.format or None, errors="coerce", utc=utc)
            if self.format.startswith("%Y-%m-%d"):
                iso = words.where(words.str.fullmatch(_ISO))
                read = pd.to_datetime(iso, format="ISO8601", errors="coerce", utc=utc)
                moments = moments.fillna(read)
        else:
            moments = column.values
        if self.zone:
            known = moments if moments.dt.tz else moments.dt.tz_localize("UTC")
            local: pd.Series[pd.Timestamp] = known.dt.tz_convert(self.zone)
            return local
        return _plain(moments)


def read_dates(column: Dates | Words) -> DateParts | None:
    """Return how to read a column of dates, ``None`` for words that are none.

    One or two words among many dates, such as "unknown", stand for missing values.
    """
    import pandas as pd
    from skrub import ToDatetime

    reader = ToDatetime()
    if isinstance(column, Words):
        series: pd.Series = pd.Series(_may_be_dates(column), dtype="str")
        if series.empty:
            return None
    else:
        series = column.values
    try:
        moments = reader.fit_transform(series)
    except ValueError:  # skrub refuses words by an error of this kind
        return _read_otherwise(series)
    form = reader.format_ or ""
    if form.startswith("%m.%d.") and (days := day_first(form, tuple(series))) is not None:
        # with points the day stands first, wherever it can
        return DateParts(form.replace("%m.%d", "%d.%m"), "", _names(pd.Series(days)))
    zone = reader.output_time_zone_
    return DateParts(reader.format_ or "", "" if zone is None else str(zone), _names(moments))


def day_first(form: str, words: Sequence[str]) -> pd.DatetimeIndex | None:
    """Return words that are read with the month first as dates whose day stands first.

    `form`: the format that was found; ``None`` where it has no month first, or a word is no such
    date.
    """
    import pandas as pd

    month = re.match(r"%m([./-])%d\1", form)
    if month is None:
        return None
    between = month[1]
    other = form.replace(f"%m{between}%d", f"%d{between}%m")
    found = pd.DatetimeIndex(pd.to_datetime(pd.Series(words), format=other, errors="coerce"))
    return None if found.isna().any() else found


def date_as_written(labels: tuple[str, ...]) -> str:
    """Return the first word of a column if nearly all are dates in some way to write them."""
    found = [each for each in labels if _DATE_AS_WRITTEN.fullmatch(each.strip())]
    return found[0] if found and len(found) >= 0.9 * len(labels) else ""


def _read_otherwise(words: pd.Series[str]) -> DateParts | None:
    """Return how to read words by the first format that all of them have."""
    import pandas as pd

    for form in _FORMATS:
        try:
            moments = pd.to_datetime(words, format=form)
        except ValueError:
            continue
        return DateParts(form, "", _names(moments))
    return None


def _names(moments: pd.Series[pd.Timestamp]) -> tuple[str, ...]:
    midnights = (moments.dropna() == moments.dropna().dt.normalize()).all()
    return ("year", "month", "day", *(() if midnights else ("hour",)), "weekday", _DAYS)


def _may_be_dates(words: Words) -> list[str]:
    """Return the labels that may be dates; none of a column in which more than a few may not."""
    found = [each for each in words.labels if _LOOKS_LIKE_A_DATE.search(each)]
    if (n_odd := len(words.labels) - len(found)) == 0:
        return found
    if n_odd > MOST_ODD or len(words.labels) < WORDS_AN_ODD * n_odd:
        return []
    dates = np.isin(words.labels, found)
    return found if dates[words.codes[words.codes >= 0]].mean() >= 0.5 else []


def _days(moments: pd.Series[pd.Timestamp]) -> FloatArray:
    # in the unit of the moments: nanoseconds end in 2262
    since = _plain(moments).to_numpy() - np.datetime64(0, "s")
    return np.asarray(since / np.timedelta64(1, "D"), dtype=np.float64)


def _plain(moments: pd.Series[pd.Timestamp]) -> pd.Series[pd.Timestamp]:
    """Return moments in UTC, without a time zone."""
    return moments.dt.tz_convert("UTC").dt.tz_localize(None) if moments.dt.tz else moments
