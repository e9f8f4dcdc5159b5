"""The estimators as scikit-learn's citizens."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from kernelweave.kernels_core import (
    IntegralFamily,
    KernelWeaveWarning,
    SolveInterrupted,
    watch,
)
from kernelweave.kernels_core.testing import make_classification, make_regression
from kernelweave.spectahedron import TessellatedKernelClassifier, TessellatedKernelRegressor
from kernelweave.spectahedron.estimators import family_of, scale_features
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, load_iris
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, SVR


@pytest.fixture(scope="module")
def iris() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_iris(return_X_y=True)
    return X, y


@pytest.fixture(scope="module")
def fitted(iris: tuple[np.ndarray, np.ndarray]) -> TessellatedKernelClassifier:
    return TessellatedKernelClassifier(tol=1e-4).fit(*iris)


def test_one_certificate_for_all_classes(fitted: Any, iris: Any) -> None:
    X, y = iris
    assert fitted.certificate_.gap <= 1e-4
    assert fitted.dual_gap_ == fitted.result_.upper_bound - fitted.result_.lower_bound
    assert fitted.dual_coef_.shape == (3, 150)
    assert fitted.intercept_.shape == (3,)
    assert fitted.decision_function(X).shape == (150, 3)
    assert fitted.score(X, y) > 0.95
    assert_allclose(np.trace(fitted.P_), len(fitted.P_), rtol=1e-12)


def test_decision_values_are_those_of_the_kernel_and_coefficients(fitted: Any, iris: Any) -> None:
    X, _ = iris
    K = fitted.kernel_(X[:7], X)
    expected = K @ fitted.dual_coef_.T + fitted.intercept_
    assert_allclose(fitted.decision_function(X[:7]), expected, rtol=1e-9, atol=1e-9)


def test_the_learned_kernel_works_elsewhere(fitted: Any, iris: Any) -> None:
    X, y = iris
    again = pickle.loads(pickle.dumps(fitted.kernel_))
    assert SVC(kernel=again).fit(X, y).score(X, y) > 0.95
    assert_allclose(again(X[:3], X[:4]), fitted.kernel_(X[:3], X[:4]))
    model = TessellatedKernelRegressor(tol=0.1).fit(*make_regression())
    Z, t = make_regression()
    assert SVR(kernel=model.kernel_).fit(Z, t).score(Z, t) > 0.3
    assert KernelRidge(kernel=model.kernel_, alpha=0.1).fit(Z, t).score(Z, t) > 0.3


def test_with_a_fixed_kernel_the_machine_is_scikit_learns() -> None:
    """At the learned kernel and the same C our decision values are SVC's."""
    X, y = make_classification(60)
    model = TessellatedKernelClassifier(C=2.0, units="absolute", tol=1e-8).fit(X, y)
    twin = SVC(kernel=model.kernel_, C=2.0, tol=1e-8).fit(X, y)
    assert_allclose(model.decision_function(X), twin.decision_function(X), atol=2e-3)


def test_string_labels_frames_and_weights(iris: Any) -> None:
    X, y = iris
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    frame = pd.DataFrame(X, columns=list("abcd"))
    weight = np.where(y == 2, 2.0, 1.0)
    model = TessellatedKernelClassifier(tol=0.01).fit(frame, names, sample_weight=weight)
    assert set(model.predict(frame)) <= set(names)
    assert_array_equal(model.feature_names_in_, list("abcd"))
    table = pl.DataFrame(X, schema=list("abcd"))
    other = TessellatedKernelClassifier(tol=0.01).fit(table, names, sample_weight=weight)
    assert_allclose(other.decision_function(table[:5]), model.decision_function(frame[:5]))


def test_class_weights_are_sample_weights(iris: Any) -> None:
    X, y = iris
    a = TessellatedKernelClassifier(tol=0.01, class_weight={0: 1.0, 1: 3.0, 2: 1.0}).fit(X, y)
    b = TessellatedKernelClassifier(tol=0.01).fit(X, y, sample_weight=np.where(y == 1, 3.0, 1.0))
    assert_allclose(a.decision_function(X), b.decision_function(X))
    balanced = TessellatedKernelClassifier(tol=0.01, class_weight="balanced").fit(X, y)
    plain = TessellatedKernelClassifier(tol=0.01).fit(X, y)
    assert_allclose(balanced.decision_function(X), plain.decision_function(X))


# a pair's box is that of its two classes, and points of the third may lie outside
@pytest.mark.filterwarnings("ignore:.*outside the box:kernelweave.kernels_core.KernelWeaveWarning")
@pytest.mark.parametrize(("scheme", "parts"), [("ovr", 3), ("ovo", 3)])
def test_a_kernel_per_subproblem(iris: Any, scheme: str, parts: int) -> None:
    X, y = iris
    model = TessellatedKernelClassifier(multiclass=scheme, tol=0.01).fit(X, y)
    assert len(model.P_) == len(model.certificate_) == len(model.kernel_) == parts
    assert all(result.gap <= 0.01 for result in model.result_)
    assert model.decision_function(X).shape == (150, 3)
    assert model.score(X, y) > 0.95


def test_points_outside_the_box_are_clipped_with_a_count_or_refused() -> None:
    X, y = make_classification(60)
    far = np.array([[0.5, 0.5], [9.0, 0.5], [0.5, -9.0]])
    model = TessellatedKernelClassifier(delta=0.1, tol=0.05).fit(X, y)
    with pytest.warns(KernelWeaveWarning, match="2 "):
        clipped = model.decision_function(far)
    width = X.max(axis=0) - X.min(axis=0)
    border = np.clip(far, X.min(axis=0) - 0.1 * width, X.max(axis=0) + 0.1 * width)
    border = X.min(axis=0) + (border - X.min(axis=0)) * (1 - 1e-12)
    assert_allclose(clipped, model.decision_function(border), rtol=1e-6)
    strict = TessellatedKernelClassifier(delta=0.1, tol=0.05, outside="raise").fit(X, y)
    with pytest.raises(ValueError, match="outside"):
        strict.decision_function(far)


def test_polynomial_kernel_without_scaling_and_with_a_domain() -> None:
    X, y = make_regression(50)
    poly = TessellatedKernelRegressor(kernel="polynomial", degree=2, scale=False, tol=0.01)
    assert poly.fit(X, y).certificate_.gap <= 0.01
    boxed = TessellatedKernelRegressor(domain=(-1.0, 2.0), tol=0.01).fit(X, y)
    assert_allclose(boxed.kernel_.kernel.family.lower, [-1.0, -1.0])
    with pytest.raises(ValueError, match="domain must contain"):
        TessellatedKernelRegressor(domain=(0.2, 0.8)).fit(X, y)
    raw = TessellatedKernelRegressor(scale=False, tol=0.01).fit(100 * X, y)
    assert raw.certificate_.gap <= 0.01
    assert raw.score(100 * X, y) > 0.5


def wide(m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.random((m, n))
    return X, np.where(X[:, 0] > 0.5, X[:, 1], 1.0 - X[:, 1]) + 0.1 * rng.normal(size=m)


@pytest.mark.parametrize("n", [16, 60])
def test_many_columns_are_compared_three_at_a_time(n: int) -> None:
    X, z = wide(80, n)
    y = z > 0.5
    model = TessellatedKernelClassifier(tol=0.01).fit(X, y)
    assert model.kernel_.kernel.family.order == 3
    assert model.P_.shape == (2 * (n + 1), 2 * (n + 1))
    assert model.result_.gap <= 0.01
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    numbers = TessellatedKernelRegressor(tol=0.01, dtype="float32", order=2).fit(X, z)
    assert numbers.result_.gap <= 0.01
    few = TessellatedKernelClassifier(tol=0.01).fit(X[:, :15], y)
    assert few.kernel_.kernel.family.order is None
    # monomials in z go with all columns alone
    deep = TessellatedKernelClassifier(tol=0.1, delta=0.1, z_degree=1, max_iter=2)
    assert family_of(deep, np.zeros((2, n))).order is None


@pytest.mark.parametrize("algorithm", ["tkl-frank-wolfe", "tkl-interior-point", "tkl-low-rank"])
@pytest.mark.parametrize("order", [1, [(0, 1), (2,)]])
def test_every_algorithm_learns_from_groups_of_columns(algorithm: str, order: Any) -> None:
    X, z = wide(40, 4)
    results = [
        TessellatedKernelRegressor(algorithm=name, order=order, tol=tol).fit(X, z).result_
        for name, tol in ((algorithm, 1e-2), ("tkl-low-rank", 1e-4))
    ]
    assert results[0].gap <= 1e-2
    assert results[0].lower_bound <= results[1].upper_bound
    assert results[1].lower_bound <= results[0].upper_bound


def test_a_known_group_needs_no_other() -> None:
    """A sum over listed groups at degree 0 does not see the columns that no group has."""
    X, z = wide(60, 6)
    model = TessellatedKernelClassifier(order=[(0, 1)], degree=0, tol=0.01).fit(X, z > 0.5)
    other = X.copy()
    other[:, 2:] = 0.5
    assert_allclose(model.decision_function(other), model.decision_function(X), atol=1e-12)


@pytest.mark.parametrize("n", [2, 60])
def test_defaults_fit_any_units(n: int) -> None:
    """Prices and grams."""
    X = np.random.default_rng(0).random((160, n))
    z = np.sin(4.0 * X[:, 0]) + X[:, 1]
    train, test = slice(120), slice(120, None)
    plain = TessellatedKernelRegressor(tol=1e-2).fit(X[train], z[train])
    assert plain.score(X[test], z[test]) > (0.9 if n == 2 else 0.5)
    large = TessellatedKernelRegressor(tol=1e-6).fit(1e3 * X[train], 1e6 * z[train] + 1e7)
    near = TessellatedKernelRegressor(tol=1e-6).fit(X[train], z[train])
    assert_allclose(large.predict(1e3 * X[test]), 1e6 * near.predict(X[test]) + 1e7, atol=3e3)
    classes = TessellatedKernelClassifier(tol=1e-2).fit(X[train], z[train] > 1.0)
    assert classes.score(X[test], z[test] > 1.0) > 0.8


def test_absolute_units_are_those_of_the_formulas() -> None:
    X, y = make_regression(60)
    scaled = TessellatedKernelRegressor(C=2.0, epsilon=0.2, tol=1e-6).fit(X, y)
    K = scaled.kernel_.kernel
    family = family_of(type(scaled)(), scale_features(scaled, X))
    typical = np.mean(family.diag(scale_features(scaled, X), np.eye(family.n_P)))
    assert_allclose(scaled.C_, 2.0 * y.std() / typical)
    assert K.P.shape == (family.n_P, family.n_P)
    in_absolute_units = TessellatedKernelRegressor(
        C=scaled.C_, epsilon=0.2 * y.std(), units="absolute", tol=1e-6
    ).fit(X, y)
    assert_allclose(in_absolute_units.predict(X), scaled.predict(X), atol=1e-6)
    weight = np.random.default_rng(0).integers(1, 4, 60)
    copies = np.repeat(np.arange(60), weight)
    weighted = TessellatedKernelRegressor(tol=1e-6).fit(X, y, sample_weight=weight)
    assert_allclose(weighted.C_, TessellatedKernelRegressor(tol=0.1).fit(X[copies], y[copies]).C_)


def test_search_and_calibration_accept_it(iris: Any) -> None:
    X, y = iris
    search = GridSearchCV(TessellatedKernelClassifier(tol=0.05), {"C": [0.1, 1.0]}, cv=2)
    assert search.fit(X, y).best_score_ > 0.9
    calibrated = CalibratedClassifierCV(TessellatedKernelClassifier(tol=0.05), cv=2).fit(X, y)
    assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)


def test_interrupted_fits_keep_the_best_iterate() -> None:
    X, y = make_classification(60)

    def interrupt(progress: Any) -> None:
        if progress.n_iter == 1:
            raise KeyboardInterrupt

    model = TessellatedKernelClassifier(tol=1e-9)
    with watch(interrupt), pytest.raises(SolveInterrupted):
        model.fit(X, y)
    assert model.predict(X).shape == (60,)
    assert model.result_.status.label == "interrupted"
    kept = TessellatedKernelClassifier(tol=1e-9, on_interrupt="return")
    with watch(interrupt):
        assert kept.fit(X, y).score(X, y) > 0.5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("C", v) for v in (0, -1.0, np.nan, np.inf, "1", True)),
        *(("degree", v) for v in (-1, 1.5)),
        *(("delta", v) for v in (-0.1, np.nan)),
        ("kernel", "rbf"),
        ("outside", "ignore"),
        ("dtype", "float16"),
        ("min_eig", 1.0),
        ("z_degree", -1),
        *(("order", v) for v in (0, 1.5, "all", None, True, [], [(0, 9)])),
        ("tol", -1.0),
        ("max_iter", -1),
        ("max_time", 0),
        ("multiclass", "all"),
        ("class_weight", "heavy"),
        ("algorithm", "tkl-frank-wolf"),
    ],
)
def test_senseless_parameters_are_named(iris: Any, name: str, value: Any) -> None:
    model = TessellatedKernelClassifier().set_params(**{name: value})
    with pytest.raises((ValueError, LookupError), match=name if name != "algorithm" else "did you"):
        model.fit(*iris)
    assert not hasattr(model, "P_")


def test_memory_is_refused_before_work() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = TessellatedKernelRegressor(memory_limit=2**20)
    with pytest.raises(MemoryError, match="MiB, more than the memory limit of 1 MiB"):
        model.fit(X, y)


@pytest.mark.parametrize("value", [2.0**-600, 2.0**600])
def test_extreme_scales(value: float) -> None:
    """Scaling by a power of two rounds nothing, so not a bit of the answer may change."""
    X, y = make_classification(40)
    a = TessellatedKernelClassifier(tol=0.01).fit(X, y)
    b = TessellatedKernelClassifier(tol=0.01).fit(X * value, y)
    assert_array_equal(a.decision_function(X), b.decision_function(X * value))


def test_constant_features_and_duplicates_do_no_harm() -> None:
    X, y = make_classification(40)
    constant = np.column_stack([X, np.full(40, 3.0)])
    assert TessellatedKernelClassifier(tol=0.01).fit(constant, y).score(constant, y) > 0.6
    twice = TessellatedKernelClassifier(tol=1e-6).fit(np.vstack([X, X]), np.hstack([y, y]))
    double = TessellatedKernelClassifier(C=2.0, tol=1e-6).fit(X, y)
    assert_allclose(twice.decision_function(X), double.decision_function(X), atol=1e-6)


def test_one_class_is_refused_with_the_count() -> None:
    X, y = make_classification(20)
    with pytest.raises(ValueError, match="1 class"):
        TessellatedKernelClassifier().fit(X, np.ones(20))
    weight = (y > 0).astype(float)
    with pytest.raises(ValueError, match="1 class"):
        TessellatedKernelClassifier().fit(X, y, sample_weight=weight)


def test_clones_are_equal_and_repeat() -> None:
    X, y = make_classification(40)
    model = TessellatedKernelClassifier(C=3.0, tol=0.01)
    a, b = clone(model).fit(X, y), clone(model).fit(X, y)
    assert_array_equal(a.decision_function(X), b.decision_function(X))


def test_a_box_that_drowns_its_samples_is_named():
    X = np.random.default_rng(0).random((12, 40))
    y = np.arange(12) % 2
    fitted = TessellatedKernelClassifier(tol=0.5, max_iter=2, C=1e-6, order=40)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        fitted.fit(X, y)
    message = next(str(each.message) for each in seen if "volume" in str(each.message))
    assert "volume 1.1e+12 in 40 features" in message
    assert "lower delta, to 0.39 or less" in message
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        fitted.set_params(delta=0.38).fit(X, y)
    assert not [each for each in seen if "volume" in str(each.message)]


def bumps(Z: np.ndarray, x: np.ndarray) -> np.ndarray:
    near = np.exp(-8.0 * np.sum((Z - x) ** 2, axis=1))
    return near[:, None] * np.column_stack([np.ones(len(Z)), Z])


@pytest.mark.parametrize("algorithm", ["tkl-low-rank", "tkl-interior-point", "tkl-frank-wolfe"])
def test_a_family_of_ones_own_is_a_kernel(algorithm: str, iris: Any) -> None:
    X, y = iris[0][50:, 2:], iris[1][50:]
    family = IntegralFamily(bumps, 3, [-0.5, -0.5], [1.5, 1.5])
    model = TessellatedKernelClassifier(kernel=family, algorithm=algorithm, tol=0.01).fit(X, y)
    assert model.certificate_.gap <= 0.01
    assert model.score(X, y) > 0.9
    again = pickle.loads(pickle.dumps(clone(model).fit(X, y)))
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    K = model.kernel_(X)
    assert_allclose(
        SVC(kernel="precomputed", C=model.C_).fit(K, y).predict(K), model.predict(X), atol=0
    )


def test_what_is_no_family_is_refused(iris: Any) -> None:
    with pytest.raises(ValueError, match="a family such as IntegralFamily, got 'rbf'"):
        TessellatedKernelClassifier(kernel="rbf").fit(*iris)
