"""Converts the columns of a table to numbers and codes of categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index, Rows
from kernelweave.kernels_core.checks import COUNT, LARGEST, Rule, integer, one_of
from kernelweave.kernels_core.exceptions import Message, warn
from kernelweave.tables.columns import Raw, RawTable, as_words
from kernelweave.tables.dates import DateParts
from kernelweave.tables.errors import CellError, did_you_mean
from kernelweave.tables.frames import read_columns
from kernelweave.tables.new_cells import dates_of, numbers_of, sides_of
from kernelweave.tables.plans import KINDS, ColumnPlan
from numpy.typing import NDArray

from .categories import Categories
from .encoded import Coding, Encoded
from .training import NumberColumn, fit_categories, fit_numbers, sort_columns

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

_FREQUENCY = Rule(
    "an integer >= 1 or a share in (0, 1)",
    lambda value: COUNT.holds(value) or (isinstance(value, float) and 0.0 < value < 1.0),
)


class NoColumnError(ValueError):
    """No column of a table can be used: each is constant, say, or names its rows."""


class ColumnEncoder:
    """Converts a table to numbers without missing values and codes of categories.

    Missing numbers become the median of the training rows, with an indicator if there were missing
    values in training. Categories and booleans become one column of codes each; a missing value is
    a category. Free text becomes numeric components. Dates become year, month, day, hour, weekday
    and days since 1970. Constant, repeated and identifier-like columns are ignored. ``report_``
    describes each column.

    Parameters
    ----------
    max_categories : int, default=256
        Maximum number of categories per column; the rarest are merged.
    min_frequency : int or float, default=2
        Categories in fewer training rows, or as a float in a smaller share of them, are merged.
    kinds : dict, default=None
        The kinds of columns by name, if not as detected: "number", "category", "text", "date",
        "day first" (a date such as 5/12/2024 in December) or "ignore".

    Attributes
    ----------
    dimensions_ : list of Dimension
        The meaning of each column of ``numeric``, then of each column of ``codes``.
    report_ : list of ColumnPlan
        The kind of each column of the table, how it is read, and a remark.
    names_ : tuple of str
        The columns of the table; ``x0``, ``x1``, … if it has no names.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelweave.evidence import ColumnEncoder
    >>> table = pd.DataFrame({"height": [1.6, None, 1.8], "colour": ["red", "blue", "red"]})
    >>> encoder = ColumnEncoder(min_frequency=1).fit(table)
    >>> [dimension.name for dimension in encoder.dimensions_]
    ['height', 'height missing', 'colour']
    >>> numeric, codes = encoder.transform(table)
    >>> numeric[:, 0], codes[:, 0]
    (array([1.6, 1.7, 1.8]), array([1, 0, 1]))
    >>> print(encoder.report_[0].remark)
    1 of 3 values missing: replaced by the median 1.7, with an indicator.
    """

    def __init__(
        self,
        max_categories: int = 256,
        min_frequency: float = 2,
        kinds: Mapping[str, str] | None = None,
    ) -> None:
        self.max_categories = max_categories
        self.min_frequency = min_frequency
        self.kinds = kinds

    def fit(
        self, X: Rows, sample_weight: FloatArray | None = None, *, estimator: object = None
    ) -> ColumnEncoder:
        """Learn medians, categories and formats of dates from training rows.

        Parameters
        ----------
        X : pandas, polars or pyarrow table, array-like or sparse matrix, shape (n_rows, n_columns)
            The training rows.
        sample_weight : ndarray of shape (n_rows,), optional
            Not negative; 2 counts a row twice, 0 leaves it out.
        estimator : scikit-learn estimator, optional
            Gets ``n_features_in_`` and ``feature_names_in_``; its name is used in messages.

        Returns
        -------
        self : ColumnEncoder
            Fitted.

        Raises
        ------
        ValueError
            If a number is infinite, no column can be used, or there are fewer than two rows.
        TypeError
            If a value is not a number, text, boolean, date or missing.
        """
        integer(2).check("max_categories", self.max_categories)
        _FREQUENCY.check("min_frequency", self.min_frequency)
        table = self._read(X, estimator, reset=True)
        if len(table) < 2:
            raise ValueError("X has 1 sample: at least 2 are needed to fit")
        kinds = {**table.kinds, **(self.kinds or {})}
        _check_kinds(kinds, table.names)
        rows, weight = _positive(sample_weight, len(table))
        self.names_ = table.names
        self._named = table.named
        counted = table if len(rows) == len(table) else table.take(rows)
        self._learn(counted, weight, rows, kinds)
        return self

    def transform(
        self, X: Rows, *, estimator: object = None, first: int = 0, folds: bool = False
    ) -> Encoded:
        """Return rows as numbers and codes.

        Parameters
        ----------
        X : pandas, polars or pyarrow table, array-like or sparse matrix, shape (n_rows, n_columns)
            Rows with the columns of training. A category that training had not gets the code of
            the rare ones, or the number of categories where training had none; a missing value
            where training had none is filled and warned of.
        estimator : scikit-learn estimator, optional
            As in `fit`.
        first : int, default=0
            Where the first of the rows stands in a longer table, for messages.
        folds : bool, default=False
            Whether components of texts as the folds of a fit learned them stand behind the numbers.

        Returns
        -------
        Encoded
            ``numeric`` and ``codes``, in the order of ``dimensions_``.

        Raises
        ------
        ValueError
            If columns are missing, in excess or in another order, or hold something else than in
            training, or a number is infinite.
        """
        if not hasattr(self, "dimensions_"):
            raise ValueError("this ColumnEncoder is not fitted yet: call fit first")
        table = self._read(X, estimator, reset=False)
        raws = [table.columns[each.position] for each in self._numbers]
        values = stack(self._numbers, raws, first + np.arange(len(table)), table.comma)
        self._warn_of_new_missing(values)
        codes = np.empty((len(table), len(self._categories)), dtype=np.int64)
        for j, column in enumerate(self._categories):
            codes[:, j] = column.categories.transform(as_words(table.columns[column.position]))
        numeric = np.hstack([self._block.transform(values), self._components(table, folds=folds)])
        return Encoded(numeric, codes)

    def _learn_folds(self, X: Rows, rows: Index, parts: Sequence[Index]) -> FloatArray:
        """Learn the components of texts from some of the rows too, the training rows of each fold.

        Returns those of all rows, of all texts and of each fold, shape (n_rows, (1 + n_folds) ·
        n_texts): what `transform` puts in place of the former alone.

        `X`: what was fitted on; `rows` of shape (n_rows,): those that are used; `parts`: of these.
        """
        table = read_columns(X, None).take(rows)
        self._texts[:] = [
            each.with_folds(as_words(table.columns[each.position]), parts) for each in self._texts
        ]
        return self._components(table, folds=True)

    def _gaining(self, X: Rows, estimator: object) -> ColumnEncoder:
        """Return an encoder that also has the categories of more rows, behind those it has."""
        table = self._read(X, estimator, reset=False)
        return self._with_categories(
            [
                each.categories.gaining(as_words(table.columns[each.position]))
                for each in self._categories
            ]
        )

    def _keeping(self, codes: NDArray[np.int64], mass: FloatArray) -> ColumnEncoder:
        """Return an encoder without the texts that no row has; see `Categories.keeping`.

        `codes` of shape (n_rows, n_category_columns), `mass` of shape (n_rows,): of all rows.
        """
        share = mass / mass.sum()
        return self._with_categories(
            [
                each.categories.keeping(
                    np.bincount(column, share, len(each.categories.labels)).astype(np.float64)
                )
                for each, column in zip(self._categories, codes.T, strict=True)
            ]
        )

    def _codes_of(self, other: ColumnEncoder) -> list[NDArray[np.int64]]:
        """Return what each code of another encoder becomes, by column of categories."""
        pairs = zip(self._categories, other._categories, strict=True)
        return [mine.categories.codes_of(theirs.categories) for mine, theirs in pairs]

    def _with_categories(self, categories: Sequence[Categories]) -> ColumnEncoder:
        columns = [
            replace(each, categories=new)
            for each, new in zip(self._categories, categories, strict=True)
        ]
        out, n_others = copy(self), len(self.dimensions_) - len(columns)
        out._categories = columns
        out.dimensions_ = [*self.dimensions_[:n_others], *(each.dimension() for each in columns)]
        return out

    def _components(self, table: RawTable, *, folds: bool) -> FloatArray:
        """Return the components of all columns of texts, side by side, fold by fold."""
        components = [
            each.transform(as_words(table.columns[each.position]), folds=folds)
            for each in self._texts
        ]
        empty = np.empty((len(table), 0))
        return np.concatenate(components, axis=2).reshape(len(table), -1) if components else empty

    def fit_transform(self, X: Rows, sample_weight: FloatArray | None = None) -> Encoded:
        """Learn from training rows and return them encoded; see `fit` and `transform`."""
        return self.fit(X, sample_weight).transform(X)

    def outside(self, rows: Encoded, margin: float = 0.0) -> NDArray[np.bool_]:
        """Return which cells lie outside what training had.

        Parameters
        ----------
        rows : Encoded
            What `transform` returned.
        margin : float, default=0.0
            Share of a number's range by which it may leave the range.

        Returns
        -------
        ndarray of bool, shape (n_rows, n_dimensions)
            In the order of ``dimensions_``: numbers beyond the range, new categories where
            training had no rare ones.
        """
        block = self._block
        values = rows.numeric[:, : len(block.kept)]
        beyond = np.zeros(rows.numeric.shape, dtype=np.bool_)
        room = margin * (block.high - block.low)
        beyond[:, : len(block.kept)] = (values < block.low - room) | (values > block.high + room)
        unseen = rows.codes >= np.array([len(each.categories.labels) for each in self._categories])
        return np.hstack([beyond, unseen])

    @property
    def coding(self) -> Coding:
        """How a part of the encoded rows codes others by itself."""
        categories = [column.categories for column in self._categories]
        n_others = len(self.dimensions_) - len(categories) - len(self._block.kept)
        indicator_of = np.append(self._block.indicator_of, np.full(n_others, -1))
        rare = tuple(each.rare for each in categories)
        missing = tuple(each.missing for each in categories)
        sizes = tuple(len(each.labels) for each in categories)
        return Coding(indicator_of, sizes, rare, missing, self.min_frequency)

    def _read(self, X: Rows, estimator: BaseEstimator, *, reset: bool) -> RawTable:
        import pandas as pd
        from sklearn.utils.validation import validate_data

        table = read_columns(X, estimator)
        if estimator is not None:
            if table.named and not isinstance(X, pd.DataFrame):
                # scikit-learn 1.6 cannot read the names of every library's tables
                X = pd.DataFrame(columns=list(table.names))
            validate_data(estimator, X=X, skip_check_array=True, reset=reset)
        if not reset:
            self._check_names(table)
        return table

    def _check_names(self, table: RawTable) -> None:
        """Raise unless the columns are those of training, in their order."""
        if len(table.names) != len(self.names_) and not (table.named and self._named):
            raise ValueError(f"X has {len(table.names)} columns, training had {len(self.names_)}")
        if not (table.named and self._named) or table.names == self.names_:
            return
        missing = [name for name in self.names_ if name not in table.names]
        extra = [name for name in table.names if name not in self.names_]
        if missing or extra:
            lacks = f" lacks {_listed(missing)}, which training had" if missing else ""
            has = f" has {_listed(extra)}, which training had not" if extra else ""
            raise ValueError(f"X{lacks}{' and' if lacks and has else ''}{has}")
        raise ValueError(
            f"X has the columns of training in another order: pass X[{list(self.names_)!r}]"
        )

    def _learn(
        self,
        table: RawTable,
        weight: FloatArray | None,
        rows: NDArray[np.intp],
        kinds: Mapping[str, str],
    ) -> None:
        columns = sort_columns(table, kinds)
        self._numbers = [column for column, _ in columns.numbers]
        values = stack(self._numbers, [raw for _, raw in columns.numbers], rows, table.comma)
        self._block, dimensions = fit_numbers(self._numbers, values, weight, columns.plans)
        self._categories = fit_categories(
            columns.words,
            weight,
            columns.plans,
            max_categories=int(self.max_categories),
            min_frequency=self.min_frequency,
            asked=[name for name, kind in kinds.items() if kind == "category"],
        )
        self._texts = columns.texts
        of_texts = [each for column in self._texts for each in column.dimensions()]
        of_categories = [column.dimension() for column in self._categories]
        self.dimensions_ = [*dimensions, *of_texts, *of_categories]
        self.report_: list[ColumnPlan] = list(columns.plans.values())
        if not self.dimensions_:
            first = self.report_[0]
            text = "no column can be used; {column!r}, for instance: {remark}"
            raise NoColumnError(Message(text, column=first.column, remark=first.remark))

    def _warn_of_new_missing(self, values: FloatArray) -> None:
        unseen_missing = self._block.unseen_missing(values)
        names = list(dict.fromkeys(self.dimensions_[j].source for j in unseen_missing))
        if names:
            have = "has" if len(names) == 1 else "have"
            warn(
                f"{_listed(names)} had no missing values in training and {have} some now: the "
                "median of training fills them"
            )


def _check_kinds(kinds: dict[str, str], names: tuple[str, ...]) -> None:
    """Raise where a kind is unknown, or of a column that is not there."""
    for name, kind in kinds.items():
        if name not in names:
            hint = did_you_mean(name, names, what="columns")
            raise ValueError(f"kinds names {name!r}, which is no column; {hint}")
        one_of(*KINDS).check(f"kinds[{name!r}]", kind)


def _positive(weight: FloatArray | None, n_rows: int) -> tuple[NDArray[np.intp], FloatArray | None]:
    """Return the rows of positive weight and their weights, ``None`` where all are 1."""
    if weight is None:
        return np.arange(n_rows), None
    rows = np.flatnonzero(weight > 0.0)
    if len(rows) == 0:
        raise ValueError("sample_weight must be positive somewhere, got zeros only")
    rest = weight[rows]
    return rows, None if (rest == 1.0).all() else rest


def _listed(names: list[str], most: int = 5) -> str:
    """Return names for a sentence."""
    shown = ", ".join(repr(name) for name in names[:most])
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"column{'s' if len(names) > 1 else ''} {shown}{more}"


def stack(
    columns: Sequence[NumberColumn], raws: Sequence[Raw], rows: NDArray[np.intp], comma: str = ""
) -> FloatArray:
    """Return the numbers of columns side by side, NaN where it is missing.

    `columns`: what they were in training; `raws`: what they are; `rows` of shape (n_rows,): where
    each row stands in the user's table, for messages; `comma`: as in `RawTable`. Raises ValueError
    if a number is infinite or too large, or a column is not what it was in training.
    """
    blocks = [np.empty((len(rows), 0))]
    for column, raw in zip(columns, raws, strict=True):
        if isinstance(column.reading, DateParts):
            blocks.append(dates_of(raw, column.reading, column.name, int(rows[0])))
        else:
            values = numbers_of(raw, column.reading, column.name, int(rows[0]), comma)
            _check_size(values, column.name, rows)
            if column.reading is not None and column.reading.sides:
                blocks.append(sides_of(raw, column.reading, values))
            blocks.append(values[:, None])
    return np.hstack(blocks)


def _check_size(values: FloatArray, name: str, rows: NDArray[np.intp]) -> None:
    """Raise where a number is infinite, or so large that its products overflow."""
    with np.errstate(invalid="ignore"):
        large = np.abs(values) > LARGEST
    if not large.any():
        return
    at = int(np.argmax(large))
    if np.isinf(values[at]):
        what = "the value is infinite (infinity): put a finite number there or leave it empty"
    else:
        what = (
            f"the value {values[at]:.3g} is too large, products of such numbers overflow: scale "
            f"the column to at most {LARGEST:g}"
        )
    raise CellError(name, int(rows[at]), what)
