"""Kernels inside scikit-learn's own estimators."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from kernelweave.kernels_core.kernels import (
    RBF,
    Combination,
    KernelDictionary,
    Linear,
    Polynomial,
    Sigmoid,
    as_sklearn_gp_kernel,
)
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as gpk
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return ((X - X.mean(0)) / X.std(0))[:200], y[:200]


def test_svc_with_a_callable_is_svc_with_its_own_kernel(cancer):
    X, y = cancer
    ours = SVC(kernel=RBF(gamma=0.05), C=3.0).fit(X[:150], y[:150])
    theirs = SVC(kernel="rbf", gamma=0.05, C=3.0).fit(X[:150], y[:150])
    # two solves of LIBSVM at its tolerance 1e-3, on Grams that differ by rounding
    np.testing.assert_allclose(
        ours.decision_function(X[150:]), theirs.decision_function(X[150:]), atol=5e-3
    )


def test_grid_search_reaches_into_the_kernel(cancer):
    X, y = cancer
    grid = {"kernel__k1__gamma": [1e-3, 1e-1], "kernel__k2__degree": [1, 2]}
    search = GridSearchCV(SVC(kernel=RBF(gamma=1.0) + Polynomial(degree=3)), grid, cv=2)
    search.fit(X, y)
    best = search.best_estimator_.kernel
    assert best.k1.gamma == search.best_params_["kernel__k1__gamma"]
    assert best.k2.degree == search.best_params_["kernel__k2__degree"]
    assert search.estimator.kernel == RBF(gamma=1.0) + Polynomial(degree=3)


def test_kernel_ridge_with_vectors(cancer):
    X, y = cancer
    ours = KernelRidge(kernel=RBF(gamma=0.05), alpha=0.1).fit(X[:40], y[:40])
    theirs = KernelRidge(kernel="rbf", gamma=0.05, alpha=0.1).fit(X[:40], y[:40])
    np.testing.assert_allclose(ours.predict(X[40:80]), theirs.predict(X[40:80]), rtol=1e-9)


def test_a_fitted_combination_serves_svc_and_kernel_ridge(cancer):
    X, y = cancer
    train, test = X[:60], X[60:80]
    with pytest.warns(UserWarning, match="set to zero"):
        fitted = KernelDictionary(
            [Linear(), Sigmoid(0.5, 1.0), RBF(0.1)], normalize="center-trace", psd="clip"
        ).fit_grams(train)
    weights = np.array([0.2, 0.5, 0.3])
    kernel = pickle.loads(pickle.dumps(fitted.kernel(weights)))
    K, cross = fitted.gram(fitted.X, weights), np.tensordot(weights, fitted.cross(test), 1)
    for by_kernel, by_gram in (
        (SVC(kernel=kernel), SVC(kernel="precomputed")),
        (KernelRidge(kernel=kernel), KernelRidge(kernel="precomputed")),
    ):
        method = "decision_function" if isinstance(by_gram, SVC) else "predict"
        one = getattr(by_kernel.fit(train, y[:60]), method)(test)
        two = getattr(by_gram.fit(K, y[:60]), method)(cross)
        np.testing.assert_allclose(one, two, atol=1e-5)


def test_gaussian_processes():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:80] * 20.0, (y[:80] - y.mean()) / y.std()
    ours = GaussianProcessRegressor(as_sklearn_gp_kernel(RBF(gamma=0.5)), alpha=0.1).fit(X, y)
    theirs = GaussianProcessRegressor(gpk.RBF(1.0, "fixed"), alpha=0.1).fit(X, y)
    for a, b in zip(
        ours.predict(X[:9], return_std=True), theirs.predict(X[:9], return_std=True), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)
    composed = gpk.ConstantKernel(2.0) * as_sklearn_gp_kernel(RBF(gamma=0.5)) + gpk.WhiteKernel(0.1)
    reference = gpk.ConstantKernel(2.0) * gpk.RBF(1.0, "fixed") + gpk.WhiteKernel(0.1)
    fits = [GaussianProcessRegressor(k).fit(X, y) for k in (composed, reference)]
    np.testing.assert_allclose(fits[0].kernel_.theta, fits[1].kernel_.theta, atol=1e-3)


def test_the_gp_kernel_is_a_value():
    kernel = as_sklearn_gp_kernel(Combination([Linear(), RBF(0.3)], np.array([0.5, 0.5])))
    assert clone(kernel) == kernel
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert as_sklearn_gp_kernel(RBF(0.3)) != kernel
    assert not kernel.is_stationary()
    X = np.eye(3)
    K, gradient = kernel(X, eval_gradient=True)
    assert gradient.shape == (3, 3, 0)
    np.testing.assert_allclose(kernel.diag(X), K.diagonal())
    with pytest.raises(ValueError, match="Gradient"):
        kernel(X, X[:1], eval_gradient=True)
    with pytest.raises(TypeError, match="KernelWeave kernel"):
        as_sklearn_gp_kernel("rbf")
