"""Several classes with kernels of their own: a binary classifier per class or per pair."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

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


def alone(estimator: BaseEstimator, **changed: object) -> BaseEstimator:
    """Return an unfitted copy for a part of the rows or of the classes.

    `changed`: parameters that are otherwise in it, where the estimator has them.
    """
    changed |= {"probability": False, "class_weight": None, "warm_start": False}
    known = estimator.get_params(deep=False)
    copy: BaseEstimator = clone(estimator)
    return copy.set_params(**{k: v for k, v in changed.items() if k in known})


@dataclass(frozen=True, eq=False)
class PartsPredictor:
    """A decision value per class: of the one-vs-rest parts, or votes of the pairs.

    `estimators`: fitted to the parts; `rows`: the training samples of each; `n_classes`: without
    it, one part is one class. Votes have confidences as tie-breakers.
    """

    estimators: list[BaseEstimator]
    rows: list[Index]
    n_classes: int | None

    def __call__(self, X: Given) -> FloatArray:
        """Return the decision values, shape (n_new, n_classes)."""
        columns = zip(self.estimators, self.rows, strict=True)
        parts = [part.decision_function(_seen_by(X, rows)) for part, rows in columns]
        values = np.column_stack(parts)
        if self.n_classes is None:
            return values
        votes: FloatArray = _ovr_decision_function(values > 0, values, self.n_classes)
        return votes


def fit_parts(
    estimator: BaseEstimator,
    X: Given,
    codes: Index,
    weight: FloatArray,
    groups: Index | None = None,
) -> dict[str, Any]:
    """Fit a clone per subproblem and return lists of what each found, by attribute.

    - `estimator`: with ``classes_``
    - `X` of shape (n_samples, n_features): training points
    - `codes` of shape (n_samples,): class indices
    - `weight` of shape (n_samples,): class weights included
    - `groups` of shape (n_samples,): what goes together
    """
    n_classes, template = len(estimator.classes_), alone(estimator, multiclass="shared")
    parts = parts_of(codes, n_classes, estimator.multiclass)
    with warnings.catch_warnings():
        # all classes together are judged
        warnings.simplefilter("ignore", UnderfitWarning)
        fits = [
            clone(template).fit(
                take(X, rows, rows),
                labels,
                weight[rows],
                groups=None if groups is None else groups[rows],
            )
            for rows, labels in parts
        ]
    first = fits[0]
    found: dict[str, Any] = {
        field.name: [getattr(part, field.name) for part in fits]
        for field in fields(estimator)
        if not field.init and field.name not in _COMMON and hasattr(first, field.name)
    }
    found["estimators_"], found["n_iter_"] = fits, max(part.n_iter_ for part in fits)
    if hasattr(first, "kernel_names_"):
        found["kernel_names_"] = first.kernel_names_
    several = None if estimator.multiclass == "ovr" else n_classes
    found["_predictor"] = PartsPredictor(fits, [rows for rows, _ in parts], several)
    return found


def take(X: Given, rows: Index, columns: Index) -> Given:
    """Return some of the points; of Gram matrices their entries with the training columns."""
    return X[rows, columns] if isinstance(X, PrecomputedGrams) else X[rows]


def _seen_by(X: Given, rows: Index) -> Given:
    return X[:, rows] if isinstance(X, PrecomputedGrams) else X
