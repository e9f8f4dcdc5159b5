"""Several classes with kernels of their own: a binary classifier per class or per pair."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from kernelweave.kernels_core.kernels import PrecomputedGrams
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.multiclass import _ovr_decision_function

FloatArray = NDArray[np.float64]
SCHEMES = ("shared", "ovr", "ovo")
# what a fitted estimator holds once per part, in the order of the classes or pairs
_LISTED = (
    *("weights_", "support_", "kernel_", "dual_coef_", "intercept_", "support_samples_"),
    *("problem_", "result_", "certificate_", "dual_gap_"),
)


def parts_of(codes: NDArray[np.intp], n_classes: int, scheme: str) -> list[tuple[Any, Any]]:
    """Return rows and 0/1 labels of each subproblem, 1 for the class or the second of a pair.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Class indices.
    n_classes : int
    scheme : {"ovr", "ovo"}
    """
    everything = np.arange(codes.size)
    if scheme == "ovr":
        return [(everything, (codes == c).astype(int)) for c in range(n_classes)]
    pairs = combinations(range(n_classes), 2)
    rows = [(np.flatnonzero((codes == a) | (codes == b)), b) for a, b in pairs]
    return [(at, (codes[at] == b).astype(int)) for at, b in rows]


def fit_parts(estimator: Any, X: Any, codes: NDArray[np.intp], weight: FloatArray) -> None:
    """Fit a clone per subproblem and store lists of what each found.

    Parameters
    ----------
    estimator : SparseMKLClassifier
        With ``classes_``.
    X : ndarray of shape (n, n_features) or PrecomputedGrams
    codes : ndarray of shape (n,)
    weight : ndarray of shape (n,)
        Class weights included.
    """
    template = clone(estimator).set_params(multiclass="shared", class_weight=None)
    parts = parts_of(codes, len(estimator.classes_), estimator.multiclass)
    estimator.estimators_ = [
        clone(template).fit(_take(X, rows, square=True), labels, weight[rows])
        for rows, labels in parts
    ]
    estimator._part_rows = [rows for rows, _ in parts]
    for name in _LISTED:
        setattr(estimator, name, [getattr(part, name) for part in estimator.estimators_])
    estimator.kernel_names_ = estimator.estimators_[0].kernel_names_
    estimator.n_iter_ = max(part.n_iter_ for part in estimator.estimators_)


def part_decisions(estimator: Any, X: Any) -> FloatArray:
    """Return a decision value per class, shape (n_new, n_classes).

    Parameters
    ----------
    estimator : SparseMKLClassifier
        Fitted by `fit_parts`.
    X : array-like of shape (n_new, n_features) or PrecomputedGrams
    """
    columns = zip(estimator.estimators_, estimator._part_rows, strict=True)
    values = np.column_stack(
        [part.decision_function(_take(X, rows, square=False)) for part, rows in columns]
    )
    if estimator.multiclass == "ovr":
        return values
    votes: FloatArray = _ovr_decision_function(values > 0, values, len(estimator.classes_))
    return votes


def _take(X: Any, rows: NDArray[np.intp], *, square: bool) -> Any:
    if isinstance(X, PrecomputedGrams):
        return X[rows, rows] if square else X[:, rows]
    return X[rows] if square else X
