"""A table as a matrix, for estimators that take numbers only."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt
from kernelweave.evidence import ColumnEncoder
from kernelweave.kernels_core.arrays import Rows
from sklearn.base import BaseEstimator, TransformerMixin


class TableMatrix(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Converts a table to the numbers of `ColumnEncoder`, and its categories to one-hot columns.

    A column of two categories becomes one indicator, of the second. A category that was not in the
    training rows has only zeros, or 0.5 if there is a single indicator.

    `encoder_`: fitted; its ``report_`` describes each column.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelweave.workbench.matrix import TableMatrix
    >>> table = pd.DataFrame({"size": [1.0, 2.0, 4.0], "kind": pd.Categorical(["a", "b", "a"])})
    >>> TableMatrix().fit_transform(table)
    array([[1., 0.],
           [2., 1.],
           [4., 0.]])
    """

    def fit(self, X: Rows, y: object = None) -> TableMatrix:
        """Learn the kind and the categories of each column."""
        self.encoder_ = ColumnEncoder().fit(X, estimator=self)
        return self

    def transform(self, X: Rows) -> npt.NDArray[np.float64]:
        """Return rows as numbers, shape (n_rows, n_dimensions), without missing values."""
        numeric, codes = self.encoder_.transform(X, estimator=self)
        labels = [each.categories for each in self.encoder_.dimensions_ if each.kind == "category"]
        parts = [
            _indicators(column, len(each)) for column, each in zip(codes.T, labels, strict=True)
        ]
        return np.hstack([numeric, *parts])

    def get_feature_names_out(self, input_features: object = None) -> npt.NDArray[np.object_]:
        """Return a name for each number: its column, a dot, and a count, such as ``"town.1"``."""
        seen: Counter[str] = Counter()
        names = []
        for each in self.encoder_.dimensions_:
            n_categories = len(each.categories) if each.kind == "category" else 1
            for _ in range(n_categories if n_categories > 2 else 1):
                names.append(f"{each.source}.{seen[each.source]}")
                seen[each.source] += 1
        return np.array(names, dtype=object)


def _indicators(codes: npt.NDArray[np.int64], n_categories: int) -> npt.NDArray[np.float64]:
    shown = np.equal.outer(codes, np.arange(n_categories)).astype(np.float64)
    if n_categories > 2:
        return shown
    half = 0.5 * (codes >= n_categories)
    return shown[:, 1:] + half[:, None]
