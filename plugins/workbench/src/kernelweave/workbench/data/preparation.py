"""Text and missing values: refused, or turned into numbers by stated steps that are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..errors import CommandError
from .table import Table, as_numbers, is_missing, is_number

MOST_CATEGORIES = 50


@dataclass(frozen=True)
class Preparation:
    """How the columns of a table become numbers.

    Attributes
    ----------
    columns : tuple of str
        Features in order.
    categories : mapping of str to tuple of str
        The columns of text, each with the words it had: one indicator a word.
    impute : bool
        Whether missing numbers become the column's median and missing words its most frequent.
    """

    columns: tuple[str, ...]
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    impute: bool = False

    @classmethod
    def of(cls, table: Table, columns: Sequence[str], *, encode: bool, impute: bool) -> Preparation:
        """Find out what the columns of a table need.

        Parameters
        ----------
        table : Table
            What is learned from.
        columns : sequence of str
            Its features.
        encode, impute : bool
            What the user allows.

        Returns
        -------
        Preparation
            Nothing to do where nothing is allowed or needed.

        Raises
        ------
        CommandError
            If a column has too many words to be categories, or nothing but missing values.
        """
        texts = [name for name in columns if encode and is_text(table.frame[name])]
        words = {name: _words(table, name) for name in texts}
        if impute:
            for name in columns:
                if all(map(is_missing, table.frame[name])):
                    raise CommandError(
                        f"{table.source}: column {name!r} has no value at all: leave it out with "
                        f"--drop {name!r}"
                    )
        return cls(tuple(columns), words, impute)

    @property
    def is_needed(self) -> bool:
        """Whether a step stands before the kernel machine."""
        return bool(self.categories) or self.impute

    def inputs(self, table: Table) -> npt.NDArray[np.float64] | pd.DataFrame:
        """Return the rows of a table as the estimator takes them.

        Parameters
        ----------
        table : Table
            Holds every column; others are passed over.

        Returns
        -------
        ndarray or DataFrame of shape (n_rows, n_columns)
            A frame of numbers and words where there are steps to come, else finite numbers.

        Raises
        ------
        CommandError
            Naming the column that is absent, or the first cell that cannot be used.
        """
        if not self.is_needed:
            return table.features(self.columns)
        table.require(self.columns)
        return pd.DataFrame({name: self._cells(table, name) for name in self.columns})

    def _cells(self, table: Table, name: str) -> Any:
        if name not in self.categories:
            return table.numbers(name, keep_missing=self.impute)
        known, cells = set(self.categories[name]), np.empty(len(table.frame), dtype=object)
        for row, cell in enumerate(table.frame[name]):
            place = f"{table.source}: column {name!r}, {table.where(row)}"
            if is_missing(cell):
                if not self.impute:
                    raise CommandError(
                        f"{place}: the value is missing: fill it in, remove the row, or use "
                        f"--impute"
                    )
                cells[row] = np.nan
            elif str(cell) in known:
                cells[row] = str(cell)
            else:
                words = ", ".join(map(repr, self.categories[name][:8]))
                raise CommandError(
                    f"{place}: {str(cell)!r} did not occur in the data the model was fitted on "
                    f"({words}): correct it, or fit again with such rows"
                )
        return pd.Series(cells, dtype=object)

    def transformer(self) -> Any:
        """Return the unfitted step: a ColumnTransformer of scikit-learn."""
        from sklearn.compose import ColumnTransformer
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder

        numbers = [name for name in self.columns if name not in self.categories]
        texts = list(self.categories)
        encoder = OneHotEncoder(
            categories=[list(self.categories[name]) for name in texts],
            drop="if_binary",
            sparse_output=False,
        )
        fill = SimpleImputer(strategy="median") if self.impute else "passthrough"
        words = SimpleImputer(strategy="most_frequent")
        steps = [
            ("numbers", fill, numbers),
            ("texts", make_pipeline(words, encoder) if self.impute else encoder, texts),
        ]
        return ColumnTransformer([step for step in steps if step[2]])

    def sentence(self) -> str:
        """Return what is done, for people."""
        parts = []
        if self.categories:
            shown = ", ".join(f"{name} ({len(w)} words)" for name, w in self.categories.items())
            parts.append(f"an indicator for each word of {shown}")
        if self.impute:
            words = " and missing words by the most frequent one" if self.categories else ""
            parts.append(f"missing numbers replaced by the column's median{words}")
        return "; ".join(parts)


def is_text(series: pd.Series) -> bool:
    """Whether a column holds words: fewer than half of its known cells are numbers.

    Parameters
    ----------
    series : Series
        A column.

    Returns
    -------
    bool
        A single word among numbers is a typing error, not a category.

    Examples
    --------
    >>> import pandas as pd
    >>> is_text(pd.Series(["red", "blue", ""])), is_text(pd.Series(["1", "2", "3x"]))
    (True, False)
    """
    known = [cell for cell in series if not is_missing(cell)]
    if pd.api.types.is_datetime64_any_dtype(series) or np.isfinite(as_numbers(series)).all():
        return False
    return 2 * sum(map(is_number, known)) < len(known)


def _words(table: Table, name: str) -> tuple[str, ...]:
    words = sorted({str(cell) for cell in table.frame[name] if not is_missing(cell)})
    if len(words) > MOST_CATEGORIES:
        raise CommandError(
            f"{table.source}: column {name!r} has {len(words)} different words, more than "
            f"{MOST_CATEGORIES}: leave it out with --drop {name!r}"
        )
    return tuple(words)
