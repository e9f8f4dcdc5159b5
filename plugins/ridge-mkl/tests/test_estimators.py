"""The estimators: conventions, precomputed Gram matrices, weights, classes and refusals."""

from __future__ import annotations

import pickle
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import (
    RBF,
    KernelDictionary,
    KernelLearningClassifier,
    KernelLearningRegressor,
    Laplacian,
    Linear,
    Sigmoid,
)
from kernelweave.kernels_core.grams import PrecomputedGrams
from kernelweave.kernels_core.testing import (
    make_classification,
    make_regression,
)
from kernelweave.ridge_mkl import (
    GeneralizedMKLClassifier,
    RidgeMKLClassifier,
    RidgeMKLRegressor,
)
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

KERNELS = [Linear(), RBF(gamma=2.0), RBF(gamma=8.0), Laplacian(gamma=1.0)]


@pytest.mark.parametrize("degree", [1, 2])
def test_equals_kernel_ridge_at_the_learned_kernel(degree: int) -> None:
    X, y = make_regression(60)
    model = RidgeMKLRegressor(KERNELS, lam=0.3, fit_intercept=False, degree=degree).fit(X, y)
    other = KernelRidge(alpha=0.3, kernel=model.kernel_).fit(X, y)
    np.testing.assert_allclose(model.predict(X + 0.01), other.predict(X + 0.01), rtol=1e-9)
    assert model.intercept_ == 0.0


def test_the_points_are_stored_once() -> None:
    """The predictor and the problem, for its proof, had 160 kB each of 2,000 rows of 10."""
    X = np.random.default_rng(0).normal(size=(60, 400))
    model = RidgeMKLRegressor(KERNELS).fit(X, X[:, 0])
    stored = pickle.dumps(model)
    assert len(stored) < 1.5 * X.nbytes
    np.testing.assert_array_equal(pickle.loads(stored).predict(X + 0.01), model.predict(X + 0.01))


def test_intercept_solves_for_a_constant() -> None:
    X, y = make_regression(60)
    a = RidgeMKLRegressor(KERNELS).fit(X, y)
    b = RidgeMKLRegressor(KERNELS).fit(X, y + 1000.0)
    np.testing.assert_allclose(b.predict(X), a.predict(X) + 1000.0, rtol=1e-9)
    assert abs(a.dual_coef_.sum()) < 1e-12


@pytest.mark.parametrize("make", [RidgeMKLClassifier, GeneralizedMKLClassifier])
def test_weight_two_is_the_sample_twice(make: Any) -> None:
    X, y = make_classification(50)
    weight = np.ones(50)
    weight[7], weight[9] = 2.0, 0.0
    rows = np.delete(np.r_[np.arange(50), 7], 9)
    a = make(KERNELS).fit(X, y, sample_weight=weight)
    b = make(KERNELS).fit(X[rows], y[rows])
    np.testing.assert_allclose(
        a.decision_function(X), b.decision_function(X), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("make", [RidgeMKLClassifier, GeneralizedMKLClassifier])
def test_several_classes_with_string_labels(make: Any) -> None:
    X, y = load_iris(return_X_y=True)
    labels = np.array(["a", "b", "c"])[y]
    model = make(class_weight="balanced", tol=1e-3).fit(X, labels)
    assert model.score(X, labels) > 0.93
    assert model.dual_coef_.shape == (3, 150)
    assert model.result_.gap <= 1e-3
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    assert SVC(kernel=model.kernel_).fit(X, labels).score(X, labels) > 0.9


@pytest.mark.parametrize("degree", [1, 2])
def test_precomputed_equals_the_kernels_themselves(degree: int) -> None:
    X, y = make_classification(60)
    train, test = X[:40], X[40:]
    grams = np.array([k(train) for k in KERNELS])
    cross = np.array([k(test, train) for k in KERNELS])
    options: dict[str, Any] = {"q": 1, "center": 0.1, "degree": degree, "random_state": 0}
    a = RidgeMKLClassifier(KERNELS, normalize=None, tol=1e-10, **options)
    b = RidgeMKLClassifier("precomputed", tol=1e-10, **options)
    for model, samples in ((a, train), (b, grams)):
        open_gap = pytest.warns(ConvergenceWarning, match="not convex")
        with open_gap if degree == 2 else nullcontext():
            model.fit(samples, y[:40])
    np.testing.assert_allclose(a.weights_, b.weights_, atol=1e-5)
    np.testing.assert_allclose(
        a.decision_function(test), b.decision_function(cross), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(b.kernel_(cross), a.kernel_(test, train), rtol=1e-4, atol=1e-6)
    assert b.n_features_in_ == 40
    with pytest.raises(ValueError, match="one cross-Gram matrix per kernel"):
        b.predict(cross[:, :, :39])


def test_precomputed_under_a_grid_search() -> None:
    X, y = make_classification(60)
    grams = PrecomputedGrams(np.array([k(X) for k in KERNELS]))
    search = GridSearchCV(RidgeMKLClassifier("precomputed"), {"lam": [0.01, 1.0]}, cv=3)
    search.fit(grams, y)
    plain = GridSearchCV(RidgeMKLClassifier(KERNELS, normalize=None), {"lam": [0.01, 1.0]}, cv=3)
    plain.fit(X, y)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
    )


def test_weighted_precomputed_leaves_samples_out() -> None:
    X, y = make_regression(30)
    grams = np.array([k(X) for k in KERNELS])
    weight = np.ones(30)
    weight[[3, 4]] = 0.0
    kept = np.flatnonzero(weight)
    a = RidgeMKLRegressor("precomputed").fit(grams, y, sample_weight=weight)
    b = RidgeMKLRegressor("precomputed").fit(grams[:, kept][:, :, kept], y[kept])
    np.testing.assert_allclose(a.predict(grams), b.predict(grams[:, :, kept]), rtol=1e-9)
    assert not a.dual_coef_[[3, 4]].any()


def test_dropped_kernels_keep_their_place() -> None:
    X, y = make_regression(40)
    dictionary = KernelDictionary([Sigmoid(gamma=2.0, coef0=1.0), *KERNELS], psd="drop")
    with pytest.warns(UserWarning, match="left out"):
        model = RidgeMKLRegressor(dictionary).fit(X, y)
    assert model.weights_.shape == (5,)
    assert model.weights_[0] == 0.0
    assert len(model.kernel_names_) == 4


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"lam": 0.0}, "lam"),
        ({"q": 0.5}, "q must be"),
        ({"degree": 0}, "degree"),
        ({"kernels": "rbf"}, r"must be None or a KernelDictionary, .* \['rbf'\], or 'precomputed'"),
        ({"algorithm": "krr-riia"}, "set beta"),
        ({"algorithm": "krr-pgd", "beta": 1.0}, "beta=None"),
        ({"algorithm": "krr-pgd2"}, "degree=2"),
        ({"algorithm": "krr-newton", "degree": 2}, "degree=1"),
        ({"algorithm": "krr-trust-region", "q": 1.5}, "use krr-newton"),
        ({"algorithm": "krr-trust-region", "q": 3.0, "degree": 2}, "use krr-spg"),
        ({"algorithm": "krr-nowton"}, "krr-newton"),
    ],
)
def test_refusals(parameters: dict[str, Any], said: str) -> None:
    X, y = make_regression(20)
    with pytest.raises((ValueError, LookupError), match=said):
        RidgeMKLRegressor(**parameters).fit(X, y)


@pytest.mark.parametrize(
    "parameters",
    [
        {"algorithm": "krr-riia", "beta": 2.0},
        {"algorithm": "krr-rpgd", "beta": 2.0},
        {"algorithm": "krr-rpgd2", "beta": 2.0, "degree": 2},
        {"algorithm": "krr-pgd2", "degree": 2},
        {"algorithm": "krr-trust-region"},
        {"algorithm": "krr-trust-region", "center": 1.0, "degree": 2},
        {"algorithm": "krr-iia"},
        {"algorithm": "krr-gmkl"},
    ],
)
def test_every_algorithm_by_name(parameters: dict[str, Any]) -> None:
    X, y = make_regression(30)
    model = RidgeMKLRegressor(KERNELS, tol=1e-4, random_state=0, **parameters).fit(X, y)
    assert model.result_.algorithm == parameters["algorithm"]
    assert model.result_.status.success


def test_generic_estimators_reach_the_algorithms() -> None:
    """Every weight is free in them too: μ₀ = 0, as in the estimators of this package."""
    X, y = make_regression(30)
    model = KernelLearningRegressor("krr-newton", C=10.0).fit(X, y)
    assert model.result_.gap <= 1e-3
    assert np.linalg.norm(model.result_.parameters) == pytest.approx(1.0)
    X, y = make_classification(30)
    model = KernelLearningClassifier("svm-gmkl", C=10.0).fit(X, y)
    assert model.result_.gap <= 1e-3
    assert np.linalg.norm(model.result_.parameters) == pytest.approx(1.0)


def test_lam_is_chosen_by_folds() -> None:
    X, y = make_regression(80)
    lams = [1e-3, 1e-1, 10.0]
    kernels = KernelDictionary(KERNELS)
    model = RidgeMKLRegressor(kernels, lam=lams, cv=4).fit(X, y)
    results = model.cv_results_
    assert "split4_test_score" not in results
    assert results["split3_test_score"].shape == (3,)
    assert model.lam_ == lams[int(np.argmax(results["mean_test_score"]))]
    plain = RidgeMKLRegressor(kernels, lam=model.lam_).fit(X, y)
    assert plain.lam_ == model.lam_
    assert plain.cv_results_ is None
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    # a search that computes and solves everything anew finds the same
    search = GridSearchCV(RidgeMKLRegressor(kernels), {"lam": lams}, cv=4).fit(X, y)
    found = search.cv_results_["mean_test_score"]
    np.testing.assert_allclose(results["mean_test_score"], found, rtol=1e-4)


@pytest.mark.parametrize("multiclass", ["shared", "ovr"])
def test_lam_is_chosen_for_classes_and_gram_matrices(multiclass: str) -> None:
    X, y = load_iris(return_X_y=True)
    weight = np.arange(len(y)) % 3
    settings = {"lam": "cv", "cv": 3, "multiclass": multiclass}
    grams = PrecomputedGrams(KernelDictionary(KERNELS, normalize="trace").fit_grams(X).grams)
    one = RidgeMKLClassifier(KERNELS, **settings).fit(X, y, weight)
    other = RidgeMKLClassifier("precomputed", **settings).fit(grams, y, weight)
    assert np.mean(one.predict(X) == other.predict(grams)) > 0.98
    assert len(np.atleast_1d(one.lam_)) == (1 if multiclass == "shared" else 3)


@pytest.mark.parametrize("wrong", ["best", [], [-1.0], 0.0])
def test_what_is_no_lam_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="lam must be a finite number > 0"):
        RidgeMKLRegressor(KERNELS, lam=wrong).fit(np.eye(4), np.arange(4.0))


def test_several_outputs_share_the_kernel() -> None:
    X, y = make_regression(60)
    both = np.column_stack([y, X[:, 0] ** 2, np.ones(len(y))])
    model = RidgeMKLRegressor(KERNELS, lam=0.3).fit(X, both)
    assert model.result_.gap <= 1e-6
    assert model.predict(X).shape == (60, 3)
    assert model.intercept_.shape == (3,)
    # each output is ridge regression at the common kernel
    K = model.kernel_(X)
    centred = both - model.intercept_
    np.testing.assert_allclose(model.dual_coef_ @ (K + 0.3 * np.eye(60)), centred.T, atol=1e-8)
    # a column twice asks for what one of twice the size in squares asks for
    twice = RidgeMKLRegressor(KERNELS, lam=0.3).fit(X, np.column_stack([y, y]))
    scaled = RidgeMKLRegressor(KERNELS, lam=0.3).fit(X, np.sqrt(2.0) * y)
    np.testing.assert_allclose(twice.weights_, scaled.weights_, atol=1e-4)
    chosen = RidgeMKLRegressor(KERNELS, lam=[0.01, 1.0], cv=3).fit(X, both)
    assert chosen.lam_ in (0.01, 1.0)
    assert RidgeMKLRegressor(KERNELS).fit(X, both[:, :1]).predict(X).shape == (60, 1)
