"""What may be wrong with a table without being an error, said before anybody trusts a score."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from kernelweave.kernels_core.arrays import FloatArray, Labels
from kernelweave.kernels_core.exceptions import Message

from .columns import Dates, Numbers, Words, spellings_of_one
from .dates import read_dates
from .frames import read_columns
from .plans import first_reading
from .table import Table, as_numbers
from .target import Target
from .written import MOST_UNITS, WrittenNumbers, units_behind

_NINES = re.compile(r"99+")
_CODE = re.compile("[A-Z]{2}")
# Fewer codes of two letters may be anything, such as OK and NA.
_FEWEST_CODES = 3
# Of fewer rows or values anything may be chance.
_FEWEST_ROWS = 10
# Rows that tell an order: of longer tables every so many.
_LOOKED_AT = 1000
# Share of repeated rows from which scores are doubted: a few copies move none.
_REPEATED = 0.05


def check_data(
    table: Table, columns: Sequence[str], target: Target, *, later: bool = False
) -> list[str]:
    """Return what a person would ask about a table, a sentence each.

    Numbers in several units, codes such as -999 that may stand for missing values, the word NA
    that may be a code, categories in several spellings, days written as numbers, columns that give
    the target away, rows that occur more than once, rows in the order of time, and a target that
    hangs on a few rows. `later`: whether later rows are held out, so that their order needs no
    sentence.
    """
    X, y = table.frame[list(columns)], target.values
    if len(X) < _FEWEST_ROWS:
        return []
    read = read_columns(X)
    raws = list(zip(read.names, read.columns, strict=True))
    notes: list[str] = []
    for (name, raw), (_, cells) in zip(raws, X.items(), strict=True):
        if isinstance(raw, Numbers):
            values = raw.values[~raw.missing]
            notes += _codes_of_missing(name, values)
            notes += [] if name in table.kinds else _days_as_numbers(name, np.unique(values))
        elif isinstance(raw, Words):
            notes += [*_units(name, raw), *_code_or_missing(name, raw, cells), *_case(name, raw)]
            reading = None if name in table.kinds else first_reading(raw, table.comma)
            if reading is not None and isinstance(reading[0], WrittenNumbers):
                values = reading[0].values_of(raw, table.comma)
                notes += _codes_of_missing(name, values[np.isfinite(values)])
    notes += [*_copies(X, y, target.task), *_repeated(X, y)]
    if target.ends is not None:
        notes += _tells_what_is_known(X, target.ends)
    some = np.arange(0, len(X), -(-len(X) // _LOOKED_AT))
    for name, raw in [] if later else raws:
        if not isinstance(raw, Numbers) and (order := _order(raw.take(some))):
            notes.append(
                f"the rows are sorted by {name!r}, and validation rows lie between training rows: "
                f"for later times, use --order={name!r} or pass the {order} rows as --test"
            )
    judged_by_squares = target.task == "regression" and target.ends is None
    return [*notes, *(_few_rows(table, y) if judged_by_squares else ())]


def _units(name: str, words: Words) -> Iterator[str]:
    """Yield a sentence where numbers are in several units, and so are words."""
    units = set(units_behind(words.labels)) if len(words.labels) >= _FEWEST_ROWS else set()
    if None in units or not 1 < len(units) <= MOST_UNITS:
        return
    # where all but a word or two have one, they are numbers
    if WrittenNumbers.fit(words.labels, np.ones(len(words.labels)).tolist()) is None:
        named = [each or "none" for each in sorted(map(str, units), reverse=True)]
        yield (
            f"column {name!r} has numbers in several units ({', '.join(named)}) and is read as "
            "categories: write all of them in one unit"
        )


def _code_or_missing(name: str, words: Words, cells: pd.Series) -> Iterator[str]:
    """Yield a sentence where NA, which is read as missing, stands among codes of two letters."""
    count = 0 if words.seen == "categories" else int((cells == "NA").sum())
    if count and len(words.labels) >= _FEWEST_CODES and all(map(_CODE.fullmatch, words.labels)):
        yield (
            f"column {name!r}: NA in {count} row{'s' if count > 1 else ''} is read as missing, and "
            f"all others are codes of two letters, such as {words.labels[0]}: if it is a code too, "
            "rename it, for example to NA1"
        )


def _case(name: str, words: Words) -> Iterator[str]:
    """Yield a sentence where categories differ in nothing but case and blanks."""
    # names of rows may differ in case, and numbers have units
    recur = 2 * len(words.labels) <= words.counts.sum()
    same = spellings_of_one(each for each in words.labels if recur and not each[:1].isdigit())
    if same:
        yield (
            f"column {name!r}: the categories {' and '.join(map(repr, same[:4]))} differ only in "
            "case or spaces: if they are the same, write them in one way"
        )


def _codes_of_missing(name: str, values: FloatArray) -> Iterator[str]:
    for code in (values.min(initial=0.0), values.max(initial=0.0)):
        rest = values[values != code]
        count = len(values) - len(rest)
        if count < 2 or not len(rest) or not _NINES.fullmatch(f"{abs(code):.15g}"):
            continue
        low, high = rest.min(), rest.max()
        if min(abs(code - low), abs(code - high)) > high - low > 0.0:
            yield (
                f"column {name!r}: {count} rows hold {code:g}, far from all others ({low:g} to "
                f"{high:g}): if it stands for a missing value, leave the cells empty"
            )


def _days_as_numbers(name: str, values: FloatArray) -> Iterator[str]:
    """Yield a sentence where the distinct values of a column all read as 20240131."""
    if len(values) < _FEWEST_ROWS or values[0] < 19000101 or values[-1] > 21001231:
        return
    days, months = values % 100, values // 100 % 100
    if ((days >= 1) & (days <= 31) & (months >= 1) & (months <= 12) & (values % 1 == 0)).all():
        yield Message(
            "column {name!r} holds days such as {day:.0f} and is read as a number: to use its "
            "month and weekday, {as_date}",
            name=name,
            day=values[0],
            as_date="set its kind to 'date'",
        )


def _copies(X: pd.DataFrame, y: Labels, task: str) -> Iterator[str]:
    """Yield a sentence for each column that gives the target away."""
    gives_away = _is_multiple if task == "regression" else _is_renamed
    for name, column in X.items():
        if gives_away(column, y):
            rows = "wherever it is known" if column.isna().any() else "in every row"
            yield (
                f"column {str(name)!r} determines the target {rows} (leakage): if it is not known "
                f"at prediction time, leave it out with --drop {str(name)!r}"
            )


def _tells_what_is_known(X: pd.DataFrame, ends: FloatArray) -> Iterator[str]:
    """Yield a sentence for each column that says which targets are known, as a second event."""
    known = ends[0] == ends[1]
    if known.all() or not known.any():
        return
    for name, column in X.items():
        if _is_renamed(column, known):
            yield (
                f"column {str(name)!r} says which targets are known and which by half (leakage): "
                f"if it is not known at prediction time, leave it out with --drop {str(name)!r}"
            )


def _is_multiple(column: pd.Series, y: Labels) -> bool:
    """Whether a column is the target, but for its unit and its zero."""
    x = as_numbers(column)
    present = np.isfinite(x)
    if 2 * present.sum() < len(x):
        return False
    x, y = _standard(x[present]), _standard(y[present].astype(np.float64))
    slope = float(x @ y)
    if abs(slope) < 1.0 - 1e-12:
        return False
    # one row far from all others hides what the rest does
    usual = float(np.median(np.abs(y - np.median(y))))
    return bool((np.abs(y - slope * x) <= 1e-6 * usual).all()) if usual > 0.0 else True


def _standard(values: FloatArray) -> FloatArray:
    """Return values of mean 0 and length 1, zeros where they are all the same."""
    # squares of large ones would overflow
    values = values / (np.abs(values).max() or 1.0)
    values = values - values.mean()
    return values / (np.linalg.norm(values) or 1.0)


def _is_renamed(column: pd.Series, y: Labels) -> bool:
    """Whether a column has one word for each class."""
    words, _ = pd.factorize(column, use_na_sentinel=False)
    classes, _ = pd.factorize(y, use_na_sentinel=False)
    return np.array_equal(words, classes)


def _repeated(X: pd.DataFrame, y: Labels) -> Iterator[str]:
    rows = X.assign(**{"\0target": y})
    n_repeated = int(rows.duplicated().sum())
    if n_repeated < _REPEATED * len(rows):
        return
    if _differ_by_chance(rows):
        yield (
            f"{n_repeated} of {len(rows)} rows repeat an earlier one, target included: the scores "
            "are too good if a copy of a validation row is in the training rows; remove duplicates"
        )


def shared_rows(table: Table, other: Table, columns: Sequence[str]) -> list[str]:
    """Return a sentence where rows of a test are among those learned from."""
    names = [name for name in columns if name in table.columns and name in other.columns]
    training, test = _fingerprints(table.frame[names]), _fingerprints(other.frame[names])
    n_shared = int(np.isin(test, training).sum())
    if n_shared < _REPEATED * len(test) or not _differ_by_chance(table.frame[names]):
        return []
    return [
        f"{n_shared} of the {len(test)} rows of {other.source} are training rows, so the test "
        "score is too good"
    ]


def _fingerprints(frame: pd.DataFrame) -> npt.NDArray[np.integer]:
    columns: dict[str, object] = {}
    for name, column in frame.items():
        numbers = as_numbers(column)
        # 3 and 3.0 are the same, whatever else the column holds
        words = column.astype(object).where(np.isnan(numbers), "").fillna("").astype(str)
        columns |= {f"number {name}": np.nan_to_num(numbers), f"word {name}": words}
    return pd.util.hash_pandas_object(pd.DataFrame(columns), index=False).to_numpy()


def _differ_by_chance(rows: pd.DataFrame) -> bool:
    """Whether there are so many possible rows that two are hardly the same by chance."""
    shares = (rows[name].value_counts(normalize=True, dropna=False) for name in rows)
    # the probability that two rows are the same
    possible = -sum(math.log(float((each**2).sum())) for each in shares)
    return possible > 2.0 * math.log(len(rows))


def _few_rows(table: Table, y: FloatArray) -> Iterator[str]:
    """Yield a sentence where one row in a hundred makes most of the target's variance."""
    squares, most_rows = _standard(y) ** 2, -(-len(y) // 100)
    shares = np.sort(squares)[::-1][:most_rows].cumsum()
    n_rows = int(np.searchsorted(shares, 0.5, side="right")) + 1
    if n_rows <= most_rows:
        share = float(shares[n_rows - 1])
        rows = f"{n_rows} of {len(y)} rows make" if n_rows > 1 else f"1 of {len(y)} rows makes"
        most = table.where(int(squares.argmax()))
        yield (
            f"{rows} up {100 * share:.0f} % of the target's variance, {most} most of all: R² "
            "depends on few rows"
        )


def _order(raw: Words | Dates) -> str:
    """Return which rows are the latest: "last", "first", or "" of what is not in order of time."""
    parts = read_dates(raw)
    if parts is None:
        return ""
    days = parts.transform(raw)[:, -1]
    steps = np.diff(days[np.isfinite(days)])
    if int(np.count_nonzero(steps)) < _FEWEST_ROWS:
        return ""
    return "last" if (steps >= 0.0).all() else "first" if (steps <= 0.0).all() else ""
