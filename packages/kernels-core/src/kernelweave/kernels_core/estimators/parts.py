"""Several classes with kernels of their own: a binary classifier per class or per pair."""

from __future__ import annotations

import warnings
from dataclasses import fields
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.utils.multiclass import _ovr_decision_function

from ..arrays import FloatArray, Index, Points
from ..exceptions import UnderfitWarning
from ..grams.precomputed import PrecomputedGrams

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


# training points, or the Gram matrices that stand for them
Given: TypeAlias = "Points | PrecomputedGrams"
SCHEMES = ("ovr", "ovo")
# what has one value for all parts
_COMMON = ("classes_", "estimators_", "kernel_names_", "n_iter_")


def parts_of(codes: Index, n_classes: int, scheme: str) -> list[tuple[Index, Index]]:
    """Return rows and 0/1 labels of each subproblem, 1 for the class or the second of a pair.

    `codes` of shape (n_samples,): class indices; `n_classes`: their number; `scheme` in {"ovr",
    "ovo"}: which subproblems. In the order of the classes or pairs.
    """
    everything = np.arange(codes.size)
    if scheme == "ovr":
        return [(everything, (codes == c).astype(np.intp)) for c in range(n_classes)]
    pairs = combinations(range(n_classes), 2)
    rows = [(np.flatnonzero((codes == a) | (codes == b)), b) for a, b in pairs]
    return [(at, (codes[at] == b).astype(np.intp)) for at, b in rows]


def fit_parts(estimator: BaseEstimator, X: Given, codes: Index, weight: FloatArray) -> None:
    """Fit a clone per subproblem and store lists of what each found.

    - `estimator`: with ``classes_``
    - `X` of shape (n_samples, n_features): training points
    - `codes` of shape (n_samples,): class indices
    - `weight` of shape (n_samples,): class weights included
    """
    alone = {"multiclass": "shared", "class_weight": None, "warm_start": False}
    alone["probability"] = False
    alone |= estimator._for_parts()
    known = estimator.get_params(deep=False)
    template = clone(estimator).set_params(**{k: v for k, v in alone.items() if k in known})
    parts = parts_of(codes, len(estimator.classes_), estimator.multiclass)
    with warnings.catch_warnings():
        # all classes together are judged
        warnings.simplefilter("ignore", UnderfitWarning)
        estimator.estimators_ = [
            clone(template).fit(take(X, rows, rows), labels, weight[rows]) for rows, labels in parts
        ]
    estimator._part_rows = [rows for rows, _ in parts]
    first = estimator.estimators_[0]
    for field in fields(estimator):
        if not field.init and field.name not in _COMMON and hasattr(first, field.name):
            found = [getattr(part, field.name) for part in estimator.estimators_]
            setattr(estimator, field.name, found)
    if hasattr(first, "kernel_names_"):
        estimator.kernel_names_ = first.kernel_names_
    estimator.n_iter_ = max(part.n_iter_ for part in estimator.estimators_)


def part_decisions(estimator: BaseEstimator, X: Given) -> FloatArray:
    """Return a decision value per class, shape (n_new, n_classes).

    `estimator`: fitted by `fit_parts`; `X` of shape (n_new, n_features): points to judge. Returns
    shape (n_new, n_classes): those of the one-vs-rest parts, or votes of the pairs with confidences
    as tie-breakers.
    """
    columns = zip(estimator.estimators_, estimator._part_rows, strict=True)
    values = np.column_stack([part.decision_function(_seen_by(X, rows)) for part, rows in columns])
    if estimator.multiclass == "ovr":
        return values
    votes: FloatArray = _ovr_decision_function(values > 0, values, len(estimator.classes_))
    return votes


def take(X: Given, rows: Index, columns: Index) -> Given:
    """Return some of the points; of Gram matrices their entries with the training columns."""
    return X[rows, columns] if isinstance(X, PrecomputedGrams) else X[rows]


def _seen_by(X: Given, rows: Index) -> Given:
    return X[:, rows] if isinstance(X, PrecomputedGrams) else X
