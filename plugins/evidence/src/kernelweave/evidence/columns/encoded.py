"""What a table becomes: numbers and codes of categories, and what each dimension is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray

Flags: TypeAlias = NDArray[np.bool_]
# a number, the indicator of its missing values, what fills them
Fills: TypeAlias = tuple[tuple[int, int, float], ...]
# one for all dimensions without categories: a model of thousands of columns stores it once
_NO_SHARES = np.empty(0)
DimensionKind = Literal["number", "side", "missing", "category", "date part", "text"]


@dataclass(frozen=True)
class NumberBlock:
    """What all columns of numbers need to know of the training rows.

    - `medians` of shape (n_columns,): what fills a missing value
    - `has_missing` of shape (n_columns,): which columns had missing values
    - `kept`: columns that are used: neither constant nor a repetition
    - `indicators`: columns whose missing values become a dimension
    - `indicator_of` of shape (n_kept,): which column of the result is the indicator of missing
      values of each kept column, −1 where it had none
    - `low`, `high` of shape (n_kept,): range of the kept columns
    """

    medians: FloatArray
    has_missing: Flags
    kept: NDArray[np.intp]
    indicators: NDArray[np.intp]
    indicator_of: NDArray[np.intp]
    low: FloatArray
    high: FloatArray

    @classmethod
    def fit(
        cls, values: FloatArray, owners: NDArray[np.intp], weight: FloatArray | None
    ) -> NumberBlock:
        """Learn from training rows.

        `values` of shape (n_rows, n_columns): NaN where it is missing; no column of missing values
        only; `owners` of shape (n_columns,): columns of one owner, such as the parts of a date,
        miss the same rows; `weight` of shape (n_rows,): positive; 2 counts a row twice.
        """
        missing = np.isnan(values)
        has_missing: Flags = np.asarray(missing.any(axis=0))
        medians = _medians(values, missing, weight)
        with np.errstate(invalid="ignore"):
            low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
        kept = first_ones(values, np.flatnonzero(low < high))
        first = np.unique(owners, return_index=True)[1]
        indicators = first_ones(missing.view(np.uint8), first[has_missing[first]])
        places = {missing[:, j].tobytes(): len(kept) + i for i, j in enumerate(indicators)}
        indicator_of = np.array(
            [places.get(missing[:, j].tobytes(), -1) for j in kept], dtype=np.intp
        )
        return cls(medians, has_missing, kept, indicators, indicator_of, low[kept], high[kept])

    def transform(self, values: FloatArray) -> FloatArray:
        """Return kept columns with missing values filled, then indicators, C-contiguous."""
        missing = np.isnan(values)
        out = np.empty((len(values), len(self.kept) + len(self.indicators)))
        out[:, : len(self.kept)] = np.where(missing, self.medians, values)[:, self.kept]
        out[:, len(self.kept) :] = missing[:, self.indicators]
        return out

    def unseen_missing(self, values: FloatArray) -> NDArray[np.intp]:
        """Return the kept columns with missing values here and none in training."""
        now = np.isnan(values[:, self.kept]).any(axis=0)
        return np.flatnonzero(now & ~self.has_missing[self.kept])


def first_ones(values: NDArray[np.generic], columns: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return those of the columns that repeat no earlier one of them."""
    seen: dict[bytes, int] = {}
    return np.array(
        [j for j in columns if seen.setdefault(_fingerprint(values[:, j]), j) == j], dtype=np.intp
    )


def repeated(values: NDArray[np.generic], column: int, among: NDArray[np.intp]) -> int:
    """Return which of ``among`` has the same values as ``column``."""
    wanted = _fingerprint(values[:, column])
    return next(int(j) for j in among if _fingerprint(values[:, j]) == wanted)


def _fingerprint(column: NDArray[np.generic]) -> bytes:
    """Return the bytes of a column; −0 is 0, every NaN the same."""
    if column.dtype.kind == "f":
        column = np.where(np.isnan(column), np.nan, column + 0.0)  # type: ignore[operator]
    return column.tobytes()


def _medians(values: FloatArray, missing: Flags, weight: FloatArray | None) -> FloatArray:
    if weight is None:
        return np.asarray(np.nanmedian(values, axis=0))
    return np.array(
        [
            weighted_median(values[~missing[:, j], j], weight[~missing[:, j]])
            for j in range(values.shape[1])
        ]
    )


def weighted_median(values: FloatArray, weight: FloatArray) -> float:
    """Return the median where a weight of 2 counts a value twice.

    `values`, `weight` of shape (n,): finite values, positive weights.
    """
    order = np.argsort(values, kind="stable")
    mass = np.cumsum(weight[order])
    half = 0.5 * mass[-1]
    # where half the mass lies exactly on a border, the mean of both sides
    low = int(np.searchsorted(mass, half * (1.0 - 1e-12)))
    high = int(np.searchsorted(mass, half * (1.0 + 1e-12)))
    return float(0.5 * values[order[low]] + 0.5 * values[order[high]])


class Encoded(NamedTuple):
    """Rows of a table as numbers and as codes of categories.

    Attributes
    ----------
    numeric : ndarray of shape (n_rows, n_numeric)
        Numbers, date parts and indicators of missing values; C-contiguous.
    codes : ndarray of shape (n_rows, n_category_columns)
        The category of each row, from 0; a category that was not in the training rows has the
        number of categories as its code.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence import Encoded
    >>> rows = Encoded(np.zeros((3, 2)), np.zeros((3, 1), dtype=np.int64))
    >>> rows.numeric.shape, rows.codes.shape
    ((3, 2), (3, 1))
    """

    numeric: NDArray[np.float64]
    codes: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Coding:
    """How a part of some encoded rows codes others, which it has not seen.

    - `indicator_of` of shape (n_numeric,): which number is the indicator of missing values of each
      number, −1 where none is
    - `sizes`, `rare`, `missing`: of each column of codes the number of categories, the code of the
      rare ones and that of missing values
    - `least`: how many rows a category must have, or as a float which share of them, not to be rare
    """

    indicator_of: NDArray[np.intp]
    sizes: tuple[int, ...]
    rare: tuple[int, ...]
    missing: tuple[int, ...]
    least: float

    def fills(self, numeric: NDArray[np.float64], share: NDArray[np.float64]) -> Fills:
        """Return what fills missing values: number, its indicator, median of training rows."""
        fills = []
        for j, indicator in enumerate(self.indicator_of):
            present = numeric[:, indicator] == 0.0
            if indicator >= 0 and present.any():
                median = weighted_median(numeric[present, j], share[present])
                fills.append((j, int(indicator), median))
        return tuple(fills)

    def pools(
        self, codes: NDArray[np.int64], share: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], ...]:
        """Return for each column what each code becomes: rare and unseen ones are one."""
        columns = zip(codes.T, self.sizes, self.rare, self.missing, strict=True)
        return tuple(self._pool(column, share, *each) for column, *each in columns)

    def _pool(
        self,
        column: NDArray[np.int64],
        share: NDArray[np.float64],
        size: int,
        rare: int,
        missing: int,
    ) -> NDArray[np.int64]:
        mass = np.bincount(column, weights=share, minlength=size + 1)
        if not isinstance(self.least, float):
            # of weighted rows, whichever counts more
            rows = np.bincount(column, minlength=size + 1)
            mass = np.maximum(rows, mass / mass.sum() * len(column))
        named = np.setdiff1d(np.arange(size), [rare, missing])
        few = named[(mass[named] > 0.0) & (mass[named] < self.least)]
        absent = named[mass[named] == 0.0]
        out = np.arange(size + 1)
        # as in training, a single rare category stays what it is
        if mass[rare] > 0.0 or len(few) > 1:
            out[few] = out[absent] = out[size] = rare
        else:
            out[absent] = size
        return out


@dataclass(frozen=True)
class GroupColumn:
    """Which encoded column names the group of a row.

    - `place`: among the dimensions, numbers and then codes
    - `indicator`: which number is the indicator of missing values of a number, −1 where none is
    - `shared`: codes that rows of several groups have: those of rare, missing and new categories
    - `code`: which column of codes it is, −1 of a number
    """

    place: int
    indicator: int = -1
    shared: tuple[int, ...] = ()
    code: int = -1

    @classmethod
    def of(cls, place: int, coding: Coding) -> GroupColumn:
        """Return what a dimension tells of groups."""
        n_numbers, j = len(coding.indicator_of), place - len(coding.indicator_of)
        if place < n_numbers:
            return cls(place, int(coding.indicator_of[place]))
        return cls(place, -1, (coding.rare[j], coding.missing[j], coding.sizes[j]), j)

    def names(self, numeric: NDArray[np.float64], codes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return a number for the group of each row, NaN where the column names none, (n,)."""
        if self.code >= 0:
            column = codes[:, self.code]
            return np.where(np.isin(column, self.shared), np.nan, column)
        names = numeric[:, self.place]
        return names if self.indicator < 0 else np.where(numeric[:, self.indicator], np.nan, names)


@dataclass(frozen=True)
class GroupTerm:
    """A term of the kernel: 1 for two rows of one group, or the product of a number of both.

    - `column`: names the groups
    - `name`: of that column in the user's table
    - `slope`: which number, as the first view has it, has an effect that differs by group; −1 where
      the group has a level
    - `of`: the name of that number's column
    """

    column: GroupColumn
    name: str = ""
    slope: int = -1
    of: str = ""

    def __str__(self) -> str:
        return f"{self.of} by {self.name}" if self.slope >= 0 else self.name


def terms_of_groups(
    group: GroupColumn | None, further: tuple[GroupTerm, ...]
) -> tuple[GroupTerm, ...]:
    """Return all terms of groups in the order of their weights: the levels of the first are first.

    `group`: the column that names the groups held out; `further`: other terms.
    """
    return further if group is None else (GroupTerm(group), *further)


@dataclass(frozen=True, eq=False)
class Dimension:
    """One dimension of an encoded table, and the column of the user's table it comes from.

    Parameters
    ----------
    name : str
        Name of the dimension: that of its column, with the part of a date, a side or "missing"
        behind it.
    source : str
        Name of the column in the user's table.
    kind : {"number", "side", "missing", "category", "date part", "text"}
        "category" has codes of categories, "text" is a component of a column of texts; "missing" is
        1 if the value is missing and 0 otherwise, and "side" if a number is known on one side
        only, as <0.5 is.
    categories : tuple of str, default=()
        The categories, in the order of their codes; empty for numbers.
    frequencies : ndarray of shape (n_categories,), default=empty
        Share of the training rows in each category; empty for numbers.

    Examples
    --------
    >>> from kernelweave.evidence import Dimension
    >>> Dimension("height", "height", "number").categories
    ()
    """

    name: str
    source: str
    kind: DimensionKind
    categories: tuple[str, ...] = ()
    frequencies: NDArray[np.float64] = field(default_factory=lambda: _NO_SHARES)


def places_of(dimensions: Sequence[Dimension], *columns: str) -> tuple[int, ...]:
    """Return which dimensions come from some columns of a table."""
    return tuple(k for k, each in enumerate(dimensions) if each.source in columns)
