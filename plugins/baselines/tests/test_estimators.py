"""The estimators: LIBSVM at the learned kernel, precomputed matrices, weights, refusals."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from kernelweave.baselines import (
    AverageMKLClassifier,
    CKAClassifier,
    EasyMKLClassifier,
    ElasticNetMKLClassifier,
    PWMKClassifier,
    SimpleMKLClassifier,
    SimpleMKLRegressor,
)
from kernelweave.kernels_core import (
    RBF,
    KernelDictionary,
    KernelLearningClassifier,
    KernelLearningRegressor,
    Laplacian,
    Linear,
    NotPSDError,
    Sigmoid,
)
from kernelweave.kernels_core.grams import PrecomputedGrams
from kernelweave.kernels_core.testing import make_classification, make_regression
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import SVC, SVR

KERNELS = [Linear(), RBF(gamma=2.0), RBF(gamma=8.0), Laplacian(gamma=1.0)]
CLASSIFIERS = [
    AverageMKLClassifier,
    EasyMKLClassifier,
    CKAClassifier,
    PWMKClassifier,
    SimpleMKLClassifier,
    ElasticNetMKLClassifier,
]


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_equals_libsvm_at_the_learned_kernel(make: Any) -> None:
    X, y = make_classification(60)
    model = make(KERNELS, C=5.0, tol=1e-9 if make is not SimpleMKLClassifier else 1e-4).fit(X, y)
    other = SVC(kernel=model.kernel_, C=5.0, tol=1e-9).fit(X, y)
    where = X + 0.01
    np.testing.assert_allclose(
        model.decision_function(where), other.decision_function(where), atol=2e-2
    )
    loss = np.maximum(1.0 - y * other.decision_function(X), 0.0).sum()
    u = np.zeros(60)
    u[other.support_] = other.dual_coef_[0]
    value = 0.5 * u @ model.kernel_(X) @ u + 5.0 * loss
    assert model.result_.value == pytest.approx(value, rel=2e-4)
    assert model.result_.lower_bound <= value * (1 + 1e-9)


def test_regressor_equals_libsvm_at_the_learned_kernel() -> None:
    X, y = make_regression(60)
    model = SimpleMKLRegressor(KERNELS, C=5.0, epsilon=0.05, units="absolute", tol=1e-7).fit(X, y)
    other = SVR(kernel=model.kernel_, C=5.0, epsilon=0.05, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.predict(X), other.predict(X), atol=1e-3)


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_precomputed_equals_the_kernels_themselves(make: Any) -> None:
    X, y = make_classification(60)
    train, test = np.sort(X[:40], axis=0), X[40:]
    grams = np.array([k(train) for k in KERNELS])
    cross = np.array([k(test, train) for k in KERNELS])
    a = make(KERNELS, normalize=None, tol=1e-7).fit(train, y[:40])
    b = make("precomputed", tol=1e-7).fit(grams, y[:40])
    np.testing.assert_allclose(a.weights_, b.weights_, atol=1e-4)
    np.testing.assert_allclose(a.decision_function(test), b.decision_function(cross), atol=1e-3)
    np.testing.assert_allclose(b.kernel_(cross), a.kernel_(test, train), atol=1e-4)
    assert b.kernel_names_ == ("K0", "K1", "K2", "K3")
    with pytest.raises(ValueError, match="one cross-Gram matrix per kernel"):
        b.predict(cross[:3])


def test_precomputed_is_not_copied() -> None:
    X, y = make_classification(40)
    grams = np.array([k(X) for k in KERNELS])
    grams.flags.writeable = False
    seen = []

    class Looking(SimpleMKLClassifier):
        def formula(self, samples: Any) -> Any:
            said = super().formula(samples)
            seen.append(said.family.grams)
            return said

    Looking("precomputed", tol=1e-3).fit(grams, y)
    assert seen[0] is grams


def test_precomputed_under_a_grid_search() -> None:
    X, y = make_classification(60)
    grams = PrecomputedGrams(np.array([k(X) for k in KERNELS]))
    grid = {"C": [0.1, 10.0], "lam": [0.1, 0.9]}
    search = GridSearchCV(EasyMKLClassifier("precomputed"), grid, cv=3).fit(grams, y)
    plain = GridSearchCV(EasyMKLClassifier(KERNELS, normalize=None), grid, cv=3).fit(X, y)
    for key in ("mean_test_score",):
        np.testing.assert_allclose(search.cv_results_[key], plain.cv_results_[key])
    assert cross_val_score(CKAClassifier("precomputed"), grams, y, cv=3).shape == (3,)


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_weight_two_is_the_sample_twice(make: Any) -> None:
    X, y = make_classification(50)
    weight = np.ones(50)
    weight[7], weight[9] = 2.0, 0.0
    rows = np.delete(np.r_[np.arange(50), 7], 9)
    a = make(KERNELS).fit(X, y, sample_weight=weight)
    b = make(KERNELS).fit(X[rows], y[rows])
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), rtol=1e-9)


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_several_classes_with_string_labels(make: Any) -> None:
    X, y = load_iris(return_X_y=True)
    labels = np.array(["a", "b", "c"])[y]
    model = make(class_weight="balanced", tol=1e-3).fit(X, labels)
    assert model.score(X, labels) > 0.93
    assert model.dual_coef_.shape == (3, 150)
    assert model.result_.gap <= 1e-3
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


def test_simplemkl_is_below_every_rule() -> None:
    X, y = make_classification(80)
    best = SimpleMKLClassifier(KERNELS, C=10.0, tol=1e-6).fit(X, y)
    for make in (AverageMKLClassifier, EasyMKLClassifier, PWMKClassifier):
        model = make(KERNELS, C=10.0, tol=1e-6).fit(X, y)
        assert model.weights_.sum() == pytest.approx(1.0)
        assert best.result_.lower_bound <= model.result_.upper_bound
        assert "rule" in model.certificate_.lower_proof
    assert "rule" not in best.certificate_.lower_proof


def test_negative_weights_are_refused_where_the_sum_is_indefinite() -> None:
    X, y = make_classification(60, seed=3)
    kernels = [Linear(), RBF(gamma=2.0), RBF(gamma=20.0), Laplacian(gamma=1.0)]
    with pytest.raises(NotPSDError, match="combination with the weights"):
        CKAClassifier(kernels, method="closed-form").fit(X, y)


def test_dropped_kernels_keep_their_place() -> None:
    X, y = make_classification(40)
    dictionary = KernelDictionary([Sigmoid(gamma=2.0, coef0=1.0), *KERNELS], psd="drop")
    with pytest.warns(UserWarning, match="left out"):
        model = AverageMKLClassifier(dictionary).fit(X, y)
    np.testing.assert_allclose(model.weights_, [0.0, 0.25, 0.25, 0.25, 0.25])
    assert len(model.kernel_names_) == 4


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (AverageMKLClassifier(C=0.0), "C"),
        (AverageMKLClassifier("rbf"), "'precomputed'"),
        (EasyMKLClassifier(lam=-0.5), "lam"),
        (CKAClassifier(method="exact"), "method"),
        (PWMKClassifier(n_folds=1), "n_folds"),
        (SimpleMKLClassifier(C=-1.0), "C"),
    ],
)
def test_refusals(model: Any, said: str) -> None:
    X, y = make_classification(20)
    with pytest.raises(ValueError, match=said):
        model.fit(X, y)


def test_folds_of_a_search_check_a_set_of_samples_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from kernelweave.kernels_core.grams import psd

    X, y = make_classification(40)
    stack = PrecomputedGrams(KernelDictionary(KERNELS).fit_grams(X).grams)
    sizes: list[int] = []
    find = psd.find_indefinite
    monkeypatch.setattr(psd, "find_indefinite", lambda K: sizes.append(len(K)) or find(K))
    GridSearchCV(EasyMKLClassifier("precomputed"), {"C": [0.1, 1.0, 10.0]}, cv=2).fit(stack, y)
    assert sorted(sizes) == [20] * 8 + [40] * 4, "each fold and all, not each fit"


def test_generic_estimators_reach_the_algorithms() -> None:
    X, y = make_classification(30)
    for name in ("mkl-average", "mkl-easy", "mkl-cka", "mkl-pwmk", "mkl-simple"):
        assert KernelLearningClassifier(name).fit(X, y).result_.gap <= 1e-3
    X, y = make_regression(30)
    for name in ("mkl-average", "mkl-cka", "mkl-simple"):
        assert KernelLearningRegressor(name).fit(X, y).result_.gap <= 1e-3


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
def test_classes_may_have_weights_of_their_own(scheme: str) -> None:
    X, y = load_iris(return_X_y=True)
    model = EasyMKLClassifier(KERNELS, multiclass=scheme).fit(X, y)
    assert len(model.estimators_) == len(model.weights_) == len(model.certificate_) == 3
    assert model.decision_function(X).shape == (150, 3)
    assert model.score(X, y) > 0.9
    one = EasyMKLClassifier(KERNELS).fit(X, y == 0)
    if scheme == "ovr":
        np.testing.assert_allclose(model.decision_function(X)[:, 0], one.decision_function(X))


def test_simplemkl_of_as_many_components_as_samples_is_the_exact_one() -> None:
    X, y = make_classification(60)
    options: dict[str, Any] = {"C": 5.0, "tol": 1e-5, "random_state": 0}
    exact = SimpleMKLClassifier(KERNELS, **options).fit(X, y)
    options["approximation"] = "nystroem"
    full = SimpleMKLClassifier(KERNELS, n_components=60, **options).fit(X, y)
    assert full.result_.value == pytest.approx(exact.result_.value, rel=1e-4)
    np.testing.assert_allclose(full.decision_function(X), exact.decision_function(X), atol=5e-2)
    few = SimpleMKLClassifier(KERNELS, n_components=10, **options).fit(X, y).exact_certificate_
    assert few.lower_bound <= exact.certificate_.upper_bound
    assert few.upper_bound >= exact.certificate_.lower_bound


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (AverageMKLClassifier, {}),
        (EasyMKLClassifier, {}),
        (EasyMKLClassifier, {"lam": 0.0}),
        (EasyMKLClassifier, {"lam": 1.0}),
    ],
)
def test_rules_on_as_many_components_as_samples_are_the_exact_ones(
    kind: Any, settings: dict[str, Any]
) -> None:
    X, y = make_classification(60)
    weight = 1.0 + np.arange(60) % 3
    options: dict[str, Any] = {"C": 5.0, "tol": 1e-6, "random_state": 0, **settings}
    exact = kind(KERNELS, **options).fit(X, y, sample_weight=weight)
    assert exact.approximation_ is None
    options["approximation"] = "nystroem"
    full = kind(KERNELS, n_components=60, **options).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(full.weights_, exact.weights_, atol=1e-5)
    np.testing.assert_allclose(full.decision_function(X), exact.decision_function(X), atol=1e-2)
    assert full.result_.value == pytest.approx(exact.result_.value, rel=1e-5)


@pytest.mark.parametrize("kind", [AverageMKLClassifier, EasyMKLClassifier])
def test_few_components_bound_the_machine_of_the_exact_kernels_at_the_same_weights(
    kind: Any,
) -> None:
    X, y = load_iris(return_X_y=True)
    options: dict[str, Any] = {"approximation": "nystroem", "n_components": 8, "random_state": 0}
    few = kind(KERNELS, tol=1e-6, **options).fit(X, y)
    assert few.score(X, y) > 0.9
    grams = np.tensordot(few.weights_, [kernel(X) for kernel in KERNELS], axes=1)
    exact = AverageMKLClassifier("precomputed", tol=1e-6).fit(grams[None], y).certificate_
    assert few.exact_certificate_.lower_bound <= exact.upper_bound
    assert few.exact_certificate_.upper_bound >= exact.lower_bound
    assert few.certificate_.lower_bound >= exact.lower_bound * (1.0 - 1e-6)
