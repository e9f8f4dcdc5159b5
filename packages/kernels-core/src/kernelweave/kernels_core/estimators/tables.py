"""Tables read as the views of a dictionary say: columns by name, by a selector, transformed."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.compose import ColumnTransformer
from sklearn.utils.validation import check_array

from ..arrays import Points, Rows
from ..kernels import KernelDictionary


class TableReader:
    """Turns tables into numbers, a block of columns per view, and knows where each view lies.

    `stated`: with views that name, select or transform columns; `X` of shape (n_samples,
    n_columns): training table: the selectors and transformers are fitted to it; `y` of shape
    (n_samples,): for transformers that look at targets. `dictionary`: the same kernels, by the
    positions of their columns in `points`; `points` of shape (n_samples, n_features): the training
    table in numbers; sparse where most of it is 0.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelweave.kernels_core import KernelDictionary
    >>> from kernelweave.kernels_core.estimators.tables import TableReader
    >>> table = pd.DataFrame({"age": [31.0, 45.0], "height": [1.7, 1.8]})
    >>> reader = TableReader(KernelDictionary(["rbf"], columns={"body": ["height"]}), table, None)
    >>> reader.dictionary.names, reader.points
    (('rbf on body',), array([[1.7],
           [1.8]]))
    """

    def __init__(self, stated: KernelDictionary, X: Rows, y: ArrayLike | None) -> None:
        views = {view.name: view for _, _, view in stated._stated() if view is not None}
        for name, view in views.items():
            fault = _unknown_name(view.columns, getattr(X, "columns", None))
            if fault is not None:
                raise ValueError(f"view {name} has {fault}")
        places = {name: str(place) for place, name in enumerate(views)}
        steps = [
            (places[name], *_step(view.transformer, view.columns)) for name, view in views.items()
        ]
        self._table = ColumnTransformer(steps)
        found = self._table.fit_transform(X, y)
        # without any column scikit-learn returns early
        slices = getattr(self._table, "output_indices_", {})
        for name, place in places.items():
            if place not in slices or slices[place].start == slices[place].stop:
                raise ValueError(f"view {name} selects no column of X: leave it out")
        self.points = _numbers(found)
        source: Any = stated
        while source.columns is None:
            source = source.kernels
        self.dictionary = KernelDictionary(
            source.kernels,
            columns={name: np.r_[slices[place]].tolist() for name, place in places.items()},
            normalize=stated.normalize,
            psd=stated.psd,
        )

    def transform(self, X: Rows) -> Points:
        """Return other rows in numbers, shape (n_samples, n_features)."""
        return _numbers(self._table.transform(X))


def _unknown_name(columns: object, known: Any) -> str | None:
    """Return what is wrong with a view's names where X has others, `known`, or none."""
    asked = [columns] if isinstance(columns, str) else columns
    names = [each for each in asked if isinstance(each, str)] if isinstance(asked, Iterable) else []
    if names and known is None:
        return f"columns by name, {names[0]!r}, and X has no names: pass a DataFrame or positions"
    for name in names:
        if name not in known:
            near = get_close_matches(name, map(str, known), n=1)
            hint = f", did you mean {near[0]!r}?" if near else ""
            return f"the column {name!r}, which X does not have{hint}"
    return None


def _step(transformer: object, columns: object) -> tuple[object, object]:
    """Return a step of a ColumnTransformer; what is passed through must have two dimensions."""
    if transformer is None:
        return "passthrough", [columns] if isinstance(columns, str) else columns
    return transformer, columns


def _numbers(X: Rows) -> Points:
    try:
        numbers: Points = check_array(X, accept_sparse="csr", dtype=np.float64)
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
        raise ValueError(
            f"a view holds what is no number ({error}): give it a transformer, such as "
            "(TfidfVectorizer(), 'review') for text or (OneHotEncoder(), ['colour']) for words"
        ) from None
    return numbers
