"""A kernel per subproblem: one-vs-rest and one-vs-one over fitted binary classifiers."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils.multiclass import _ovr_decision_function

FloatArray = npt.NDArray[np.float64]


def fit_parts(
    template: Any,
    X: FloatArray,
    codes: npt.NDArray[np.intp],
    weight: FloatArray,
    n_classes: int,
    *,
    scheme: str,
) -> list[Any]:
    """Fit one clone of ``template`` per subproblem, in the order of the classes or pairs.

    Parameters
    ----------
    template : estimator
        A binary classifier, not fitted.
    X : ndarray of shape (n_samples, n_features)
        Features.
    codes : ndarray of shape (n_samples,)
        Class indices.
    weight : ndarray of shape (n_samples,)
        Sample weights, class weights included.
    n_classes : int
        Number of classes.
    scheme : {"ovr", "ovo"}
        Which subproblems.

    Returns
    -------
    list of estimators
        n_classes, or n_classes (n_classes − 1) / 2 of them.
    """
    parts = []
    if scheme == "ovr":
        for code in range(n_classes):
            parts.append(clone(template).fit(X, (codes == code).astype(int), weight))
        return parts
    for first, second in combinations(range(n_classes), 2):
        rows = (codes == first) | (codes == second)
        labels = (codes[rows] == second).astype(int)
        parts.append(clone(template).fit(X[rows], labels, weight[rows]))
    return parts


def one_vs_one_votes(values: FloatArray, n_classes: int) -> FloatArray:
    """Return votes with confidences as tie-breakers, shape (n_samples, n_classes).

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_pairs)
        Decision values, positive for the second class of each pair.
    n_classes : int
        Number of classes.
    """
    votes: FloatArray = _ovr_decision_function(values > 0, values, n_classes)
    return votes
