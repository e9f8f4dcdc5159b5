"""Does an estimator behave as scikit-learn's and carry its proof?"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import FloatArray, Points, RealArray, Rows
from ..exceptions import UnderfitWarning
from .problems import make_classification, make_regression

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


def check_estimator(estimator: BaseEstimator) -> None:
    """Run scikit-learn's estimator checks and ours.

    Ours: the fitted estimator holds a ``result_`` whose gap is not negative and a
    ``certificate_`` that brackets it; the order of the samples does not change predictions; a
    sample of weight zero is a sample left out; the learned kernel works in scikit-learn's SVM.

    Parameters
    ----------
    estimator : estimator
        Not fitted; it is cloned.

    Raises
    ------
    AssertionError
        If one of our checks fails; scikit-learn's raise their own.
    """
    from sklearn.base import is_classifier
    from sklearn.utils.estimator_checks import check_estimator as check_sklearn

    with warnings.catch_warnings():
        # some of these checks learn from noise
        warnings.simplefilter("ignore", UnderfitWarning)
        check_sklearn(estimator)
    classifier = is_classifier(estimator)
    X, y = make_classification() if classifier else make_regression()
    _check_certificate(estimator, X, y)
    _check_order(estimator, X, y)
    _check_zero_weight(estimator, X, y)
    _check_kernel(estimator, X, y, classifier)


def _fit(estimator: BaseEstimator, X: Rows, y: ArrayLike, **fit_params: object) -> BaseEstimator:
    from sklearn.base import clone

    return clone(estimator).fit(X, y, **fit_params)


def _values(model: BaseEstimator, X: Points) -> FloatArray:
    values: FloatArray = (
        model.decision_function(X) if hasattr(model, "classes_") else model.predict(X)
    )
    return values


def _check_certificate(estimator: BaseEstimator, X: Rows, y: ArrayLike) -> None:
    model = _fit(estimator, X, y)
    result, certificate = model.result_, model.certificate_
    assert result.gap >= 0.0, f"gap must be >= 0, got {result.gap}"
    assert certificate.lower_bound <= result.value <= certificate.upper_bound
    assert model.dual_gap_ == result.upper_bound - result.lower_bound


def _check_order(estimator: BaseEstimator, X: Points, y: RealArray) -> None:
    order = np.random.default_rng(1).permutation(len(y))
    a = _values(_fit(estimator, X, y), X)
    b = _values(_fit(estimator, X[order], y[order]), X)
    np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9, err_msg="order of the samples matters")


def _check_zero_weight(estimator: BaseEstimator, X: Points, y: RealArray) -> None:
    weight = np.ones(len(y))
    weight[5:9] = 0.0
    kept = weight > 0
    a = _values(_fit(estimator, X, y, sample_weight=weight), X)
    b = _values(_fit(estimator, X[kept], y[kept]), X)
    np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9, err_msg="a zero weight is not a drop")


def _check_kernel(estimator: BaseEstimator, X: Rows, y: ArrayLike, classifier: bool) -> None:
    from sklearn.svm import SVC, SVR

    kernel = _fit(estimator, X, y).kernel_
    machine = SVC(kernel=kernel) if classifier else SVR(kernel=kernel)
    assert np.isfinite(machine.fit(X, y).score(X, y)), "kernel_ does not work in scikit-learn"
