"""λ by cross-validation: Gram matrices computed once, each λ started where the last one ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import PrecomputedGrams
from kernelweave.kernels_core.arrays import FloatArray, Labels, RealArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv

from .settings import Automatic

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


# from nearly interpolating to nearly constant, of Gram matrices with a diagonal of 1
USUAL = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)


def scores_along(
    estimator: BaseEstimator, grams: PrecomputedGrams, y: RealArray, weight: FloatArray, lams: Any
) -> dict[str, Any]:
    """Return the held-out score of each λ as scikit-learn's searches tell it.

    - `estimator`: with its other settings; it is not fitted
    - `grams`: training Gram matrices
    - `y` of shape (n,): numbers or labels
    - `weight` of shape (n,): positive sample weights; scores are not weighted
    - `lams`: the values of λ, ascending

    ``params``, ``mean_test_score``, ``std_test_score`` and ``split_test_score``, whose shape is
    (n_folds, n_lams).
    """
    folds = check_cv(estimator.cv, y, classifier=is_classifier(estimator)).split(y, y)
    scores = np.array(
        [_fold(estimator, grams, y, weight, lams, train, test) for train, test in folds]
    )
    return {
        "params": [{"lam": lam} for lam in lams],
        "mean_test_score": scores.mean(axis=0),
        "std_test_score": scores.std(axis=0),
        "split_test_score": scores,
    }


def _fold(
    estimator: BaseEstimator,
    grams: PrecomputedGrams,
    y: Labels,
    weight: FloatArray,
    lams: Any,
    train: npt.NDArray[np.intp],
    test: npt.NDArray[np.intp],
) -> list[float]:
    """Return the score of each λ on one fold; the path goes from the smoothest function down."""
    part = clone(estimator).set_params(kernels="precomputed", on_interrupt="raise")
    if is_classifier(part):
        part.set_params(class_weight=None)  # which the weights of the samples hold already
    scores = []
    for lam in reversed(lams):
        part.set_params(lam=lam).fit(grams[train, train], y[train], weight[train])
        scores.append(float(part.score(grams[test, train], y[test])))
        if estimator.algorithm == "krr-auto" and part.weights_.any():
            part.set_params(algorithm=Automatic(mu_init=part.weights_))
    return scores[::-1]
