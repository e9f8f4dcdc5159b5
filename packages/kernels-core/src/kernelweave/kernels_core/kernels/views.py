"""Views: the parts of the features that kernels of a dictionary see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class View:
    """One part of the features.

    Attributes
    ----------
    name : str
        Its key, or its columns in words.
    columns : list of int, or what scikit-learn's ColumnTransformer takes
        Positions, or names, a slice, a mask or a selector, which the table tells.
    transformer : transformer or None
        What turns these columns into numbers.
    is_named : bool
        Whether the user gave the name.
    """

    name: str
    columns: Any
    transformer: object = None
    is_named: bool = False

    @property
    def is_read(self) -> bool:
        """Whether positions are known without looking at a table."""
        return self.transformer is None and not _needs_table(self.columns)

    def label(self, kernel: str) -> str:
        """Return the name of a kernel on this view."""
        return f"{kernel} on {self.name}" if self.is_named else f"{kernel}.on({self.name})"


def views_of(columns: Iterable[object] | Mapping[str, object]) -> list[View]:
    """Return the views that ``columns`` of a `KernelDictionary` mean.

    `columns`: a view per entry, with its name where a dict.
    """
    if isinstance(columns, Mapping):
        return [_view(given, str(name)) for name, given in columns.items()]
    return [_view(given, None) for given in columns]


def _view(given: object, name: str | None) -> View:
    transformer = None
    if isinstance(given, tuple) and len(given) == 2 and hasattr(given[0], "fit"):
        transformer, given = given
    columns = given if _needs_table(given) else np.atleast_1d(np.asarray(given)).tolist()
    return View(_words(columns) if name is None else name, columns, transformer, name is not None)


def _needs_table(columns: object) -> bool:
    """Whether the columns are not simply positions; what is neither is refused as positions."""
    if isinstance(columns, (str, slice)) or callable(columns):
        return True
    return np.asarray(columns).dtype.kind in "USOb"


def _words(columns: object) -> str:
    if callable(columns):
        return str(getattr(columns, "pattern", None) or type(columns).__name__)
    return str(columns)
