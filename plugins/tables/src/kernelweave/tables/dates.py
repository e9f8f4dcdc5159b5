"""Columns of dates: the parts that a kernel can use."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray

from .columns import Dates, Words
from .written import MOST_ODD, WORDS_AN_ODD

if TYPE_CHECKING:
    import pandas as pd

_LOOKS_LIKE_A_DATE = re.compile(r"\d\D.*\d|\d{8}|[A-Za-z]{3,9}[ -]\d")
# a month in any language between a day and a year, or three numbers
_DATE_AS_WRITTEN = re.compile(
    r"\d{4}([./-])\d{1,2}\1\d{1,2}(?!\d).*|\d{1,2}([./-])\d{1,2}\2\d{4}\b.*"
    r"|\d{1,2}/\d{1,2}/\d\d\b.*|\d{4}年\d{1,2}月\d{1,2}日.*"
    r"|\d{1,2}[^\W\d_]{0,2}\.?[ /-](de )?[^\W\d_]{3,}\.?,?[ /-](de )?\d{4}\b.*"
    r"|[^\W\d_]{3,}\.? \d{1,2}[^\W\d_]{0,2},? \d{4}\b.*"
)
_WITH_CENTURY = ("%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y")
# what skrub does not guess from one word; where both would do, the month leads, as there
_FORMATS = (
    *(
        f"{day}{clock}"
        for day in ("%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%m-%d-%y", "%d-%m-%y", *_WITH_CENTURY)
        for clock in ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
    ),
    *("%b %d, %Y", "%b %d %Y", "%d-%b-%y", "%d-%b-%Y", "%d %b %y", "%d %b %Y", "%d/%b/%Y"),
    *("%b-%y", "%b-%Y", "%b %Y", "%B %Y", "%B-%Y", "%m/%Y", "%Y年%m月%d日", "%Y%m%d"),
    # of mails and of logs
    *("%a, %d %b %Y %H:%M:%S %z", "%d/%b/%Y:%H:%M:%S %z"),
)
# Labels that are tried first: nearly every wrong format fails on these.
_PROBED = 100
_DAYS = "days since 1970"
# with the hour or without, whichever training had; after the hour with a zone or without
_MOMENT = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?"
_ISO = rf"({_MOMENT}( ?Z|[+-]\d\d(:?\d\d)?)?|\d{{4}}-\d\d-\d\d)"
_DAY_WITH_A_ZONE = r"\d{4}-\d\d-\d\d ?[Z+-]"


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
        values = np.column_stack([*parts, _days(moments)]).astype(np.float64)
        if isinstance(column, Words):
            values = np.vstack([values, np.full(values.shape[1], np.nan)])[column.codes]
        return values

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
            words = pd.Series(column.labels, dtype="str")
            form = self.format
            if not form:
                # pandas would take the format of the first word, in which others may be no dates,
                # and the month first where the day should be
                found = read_dates(column) or read_dates(column, any_words=True)
                form = "" if found is None else found.format
            # where pandas guesses the format, it would take such a zone for the hour
            rest = words if form else words.where(~words.str.match(_DAY_WITH_A_ZONE))
            moments = pd.to_datetime(rest, format=form or None, errors="coerce", utc=True)
            # whatever the format, words may be ISO 8601, of any zone, that of summer or winter too
            iso = words.where(words.str.fullmatch(_ISO) & moments.isna())
            # else pandas 2 would read them in the zone of the word before
            iso = iso.mask(words.str.fullmatch(_MOMENT), words + "Z")
            read = pd.to_datetime(iso, format="ISO8601", errors="coerce", utc=True)
            moments = moments.fillna(read)
        else:
            moments = column.values
        if self.zone:
            zoned = moments if moments.dt.tz else moments.dt.tz_localize("UTC")
            local: pd.Series[pd.Timestamp] = zoned.dt.tz_convert(self.zone)
            return local
        return _plain(moments)


def read_dates(column: Dates | Words, *, any_words: bool = False) -> DateParts | None:
    """Return how to read a column of dates, ``None`` for words that are none.

    One or two words among many dates, such as "unknown" or 31.02.2024, stand for missing values,
    and with `any_words` all words that are not written as dates.
    """
    import pandas as pd

    if isinstance(column, Words) and any_words:
        dates = [each for each in column.labels if _DATE_AS_WRITTEN.fullmatch(each.strip())]
        # ISO dates are read beside any format
        others = [each for each in dates if not re.fullmatch(_ISO, each)]
        return _read_all(pd.Series(others or dates, dtype="str")) if dates else None
    if isinstance(column, Words):
        like_dates = [bool(_LOOKS_LIKE_A_DATE.search(each)) for each in column.labels]
        labels = _unless_odd(column, np.asarray(like_dates, dtype=np.bool_))
        if not labels:
            return None
        parts = _read_all(pd.Series(labels, dtype="str"))
        if parts is None and (labels := _of_one_format(column)):
            parts = _read_all(pd.Series(labels, dtype="str"))
        return parts
    return _read_all(column.values)


def _read_all(series: pd.Series[Any]) -> DateParts | None:
    """Return how to read dates, or words that all are dates of one format."""
    from skrub import ToDatetime

    reader = ToDatetime()
    try:
        moments = reader.fit_transform(series)
    except ValueError:  # skrub refuses words by an error of this kind
        return _read_otherwise(series)
    form = reader.format_ or ""
    # with points the day stands first, wherever it can
    if form.startswith("%m.%d.") and (swapped := with_day_first(form, tuple(series))) is not None:
        return swapped
    zone = reader.output_time_zone_
    return DateParts(reader.format_ or "", "" if zone is None else str(zone), _names(moments))


def with_day_first(form: str, words: Sequence[str]) -> DateParts | None:
    """Return how to read words with the day first that are read with the month first.

    `form`: the format that was found; ``None`` where it has no month first, or a word is no such
    date.
    """
    return with_order_swapped(form, words) if form.startswith("%m") else None


def with_order_swapped(form: str, words: Sequence[str]) -> DateParts | None:
    """Return how to read words with day and month in the other order than in a format.

    ``None`` where neither begins it, or a word is no such date.
    """
    import pandas as pd

    begins = re.match(r"%([dm])([./-])%(?!\1)([dm])\2", form)
    if begins is None:
        return None
    first, between, second = begins.groups()
    other = f"%{second}{between}%{first}{form[begins.end() - 1 :]}"
    zone = "UTC" if "%z" in form else ""
    moments = pd.to_datetime(pd.Series(words), format=other, errors="coerce", utc=bool(zone))
    return None if moments.isna().any() else DateParts(other, zone, _names(moments))


def date_as_written(labels: tuple[str, ...]) -> str:
    """Return the first word of a column if nearly all are dates in some way to write them."""
    dates = [each for each in labels if _DATE_AS_WRITTEN.fullmatch(each.strip())]
    return dates[0] if dates and len(dates) >= 0.9 * len(labels) else ""


def _read_otherwise(words: pd.Series[str]) -> DateParts | None:
    """Return how to read words by the first format that all of them have."""
    import pandas as pd

    for form in _FORMATS:
        try:
            moments = pd.to_datetime(words, format=form)
        except ValueError:
            continue
        return DateParts(form, "UTC" if "%z" in form else "", _names(moments))
    return None


def _names(moments: pd.Series[pd.Timestamp]) -> tuple[str, ...]:
    midnights = (moments.dropna() == moments.dropna().dt.normalize()).all()
    return ("year", "month", "day", *(() if midnights else ("hour",)), "weekday", _DAYS)


def _of_one_format(words: Words) -> list[str]:
    """Return the labels of the format that all but a few have; none where there is no such one."""
    import pandas as pd
    from pandas.tseries.api import guess_datetime_format

    with warnings.catch_warnings():
        # of a day above 12 that leads
        warnings.simplefilter("ignore", UserWarning)
        guesses = [
            guess_datetime_format(each, dayfirst=leads)
            for each in words.labels[: MOST_ODD + 1]
            for leads in (False, True)
        ]
    labels, best = pd.Series(words.labels, dtype="str"), list[str]()
    for form in dict.fromkeys([*filter(None, guesses), *_FORMATS]):
        ways: Any = {"format": form, "errors": "coerce", "utc": "%z" in form}
        if pd.to_datetime(labels[:_PROBED], **ways).isna().sum() <= MOST_ODD:
            readable = pd.to_datetime(labels, **ways).notna().to_numpy()
            best = max(best, _unless_odd(words, readable), key=len)
    return best


def _unless_odd(words: Words, known: NDArray[np.bool_]) -> list[str]:
    """Return the labels that are known, shape (n_labels,); none where more than a few are not."""
    n_odd, n_rows = int((~known).sum()), words.counts
    if n_odd > MOST_ODD or len(known) < WORDS_AN_ODD * n_odd:
        return []
    many = 2 * n_rows[known].sum() >= n_rows.sum()
    return list(itertools.compress(words.labels, known)) if many else []


def _days(moments: pd.Series[pd.Timestamp]) -> FloatArray:
    # in the unit of the moments: nanoseconds end in 2262
    since = _plain(moments).to_numpy() - np.datetime64(0, "s")
    return np.asarray(since / np.timedelta64(1, "D"), dtype=np.float64)


def _plain(moments: pd.Series[pd.Timestamp]) -> pd.Series[pd.Timestamp]:
    """Return moments in UTC, without a time zone."""
    return moments.dt.tz_convert("UTC").dt.tz_localize(None) if moments.dt.tz else moments
