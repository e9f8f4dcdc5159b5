"""Citizens of scikit-learn: every estimator check passes, none is excused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import (
    RBF,
    KernelDictionary,
    KernelWeaveWarning,
    Linear,
    MemoryBudgetError,
)
from kernelweave.kernels_core.kernels import PrecomputedGrams
from kernelweave.vv_rkhs import (
    GaussianGrid,
    MatrixValuedKernelClassifier,
    MatrixValuedKernelRegressor,
)
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

KERNELS = [Linear(), RBF(gamma=0.1), RBF(gamma=1.0)]


@parametrize_with_checks(
    [MatrixValuedKernelRegressor(tol=1e-3), MatrixValuedKernelClassifier(tol=1e-2)]
)
def test_estimator_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1], np.sin(X[:, 0]) + X[:, 1]])
    return X, Y + 0.1 * rng.standard_normal(Y.shape)


def test_one_kernel_is_kernel_ridge(data: Any) -> None:
    X, Y = data
    ours = MatrixValuedKernelRegressor([RBF(gamma=0.3)], lam=0.01, learn_output=False).fit(X, Y)
    ridge = KernelRidge(kernel="rbf", gamma=0.3, alpha=0.01 * 30).fit(X, Y)
    np.testing.assert_allclose(ours.predict(X), ridge.predict(X), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours.dual_coef_, ridge.dual_coef_, rtol=1e-9, atol=1e-12)


def test_kernel_and_coefficients_predict(data: Any) -> None:
    X, Y = data
    model = MatrixValuedKernelRegressor(KERNELS).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), model.kernel_(X, X) @ model.dual_coef_)
    assert model.score(X, Y) > 0.9
    assert 0.0 < model.certificate_.lower_bound < model.certificate_.upper_bound
    assert model.result_.status.label == "stationary"


def test_one_column_predicts_as_a_vector(data: Any) -> None:
    X, Y = data
    flat = MatrixValuedKernelRegressor(KERNELS).fit(X, Y[:, 0])
    column = MatrixValuedKernelRegressor(KERNELS).fit(X, Y[:, :1])
    assert flat.predict(X).shape == (30,)
    np.testing.assert_array_equal(flat.predict(X)[:, None], column.predict(X))
    assert flat.certificate_.gap <= 1e-4


@pytest.mark.parametrize("learn", ["input", "output"])
def test_convex_parts_carry_a_certificate(data: Any, learn: str) -> None:
    X, Y = data
    model = MatrixValuedKernelRegressor(
        KERNELS, learn_input=learn == "input", learn_output=learn == "output", tol=1e-6
    ).fit(X, Y)
    assert model.certificate_.gap <= 1e-6
    assert model.result_.status.label == "converged"


def test_weight_two_is_the_sample_twice(data: Any) -> None:
    X, Y = data
    weight = np.ones(30)
    weight[:3], weight[3] = 2.0, 0.0
    weighted = MatrixValuedKernelRegressor(KERNELS).fit(X, Y, sample_weight=weight)
    keep = np.r_[0:3, 0:3, 4:30]
    repeated = MatrixValuedKernelRegressor(KERNELS).fit(X[keep], Y[keep])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-9)
    np.testing.assert_allclose(weighted.predict(X), weighted.kernel_(X, X) @ weighted.dual_coef_)


def test_precomputed_equals_points(data: Any) -> None:
    X, Y = data
    grams = np.stack([k(X) for k in KERNELS])
    weight = np.linspace(0.0, 2.0, 30)
    points = MatrixValuedKernelRegressor(KERNELS, tol=1e-7).fit(X, Y, sample_weight=weight)
    given = MatrixValuedKernelRegressor("precomputed", tol=1e-7)
    given.fit(grams, Y, sample_weight=weight)
    np.testing.assert_allclose(given.predict(grams), points.predict(X), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(given.result_.value, points.result_.value, rtol=1e-6)


def test_precomputed_in_a_grid_search(data: Any) -> None:
    X, Y = data
    X_grams = PrecomputedGrams(np.stack([k(X) for k in KERNELS]))
    search = GridSearchCV(MatrixValuedKernelRegressor("precomputed"), {"lam": [1e-2, 1e-1]}, cv=3)
    plain = GridSearchCV(MatrixValuedKernelRegressor(KERNELS), {"lam": [1e-2, 1e-1]}, cv=3)
    a = search.fit(X_grams, Y).cv_results_["mean_test_score"]
    b = plain.fit(X, Y).cv_results_["mean_test_score"]
    np.testing.assert_allclose(a, b, rtol=1e-3)


def test_classifier_on_iris() -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = MatrixValuedKernelClassifier(KernelDictionary(KERNELS, normalize="trace"), tol=1e-2)
    assert cross_val_score(model, X, names, cv=3).mean() > 0.93
    fitted = clone(model).set_params(class_weight="balanced").fit(X, names)
    assert fitted.output_kernel_.shape == (3, 3)
    assert fitted.decision_function(X).shape == (150, 3)


def test_float32_stack_moves_the_objective_by_little(data: Any) -> None:
    X, Y = data
    double = MatrixValuedKernelRegressor(KERNELS, learn_output=False, tol=1e-7).fit(X, Y)
    single = clone(double).set_params(dtype="float32").fit(X, Y)
    assert abs(single.result_.value / double.result_.value - 1.0) < 1e-6


def test_memory_is_refused_before_the_work(data: Any) -> None:
    X, Y = data
    with pytest.raises(MemoryBudgetError, match="3 Gram matrices"):
        MatrixValuedKernelRegressor(KERNELS, memory_limit=1000).fit(X, Y)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"kernels": "rbf"}, "precomputed"),
        ({"p": 3.0}, "p must be"),
        ({"penalty": "lasso"}, "elastic-net"),
        ({"penalty": "group"}, "groups"),
        ({"mu": 0.0, "penalty": "elastic-net"}, "mu must be"),
        ({"lam": 0.0}, "lam must be"),
        ({"tau": -1.0}, "tau must be"),
        ({"rho": 0.0, "algorithm": "vv-dinuzzo"}, "rho must be"),
        ({"dtype": "float16"}, "dtype must be"),
    ],
)
def test_bad_parameters_are_named(data: Any, params: dict[str, Any], said: str) -> None:
    X, Y = data
    with pytest.raises(ValueError, match=said):
        MatrixValuedKernelRegressor(**params).fit(X, Y)


@pytest.mark.parametrize("scale", [1e8, 1e-12])
@pytest.mark.parametrize("kernels", [[RBF(gamma=1.0), RBF(gamma=0.1)], GaussianGrid(1.0, 3)])
def test_kernels_that_see_nothing_are_reported(scale: float, kernels: Any) -> None:
    X = np.random.default_rng(0).standard_normal((70, 2))
    model = MatrixValuedKernelRegressor(kernels)
    with pytest.warns(KernelWeaveWarning, match=r"no kernel tells .* scale them") as seen:
        model.fit(scale * X, X)
    assert seen[0].filename == __file__
    far = model.predict(3.0 * scale * X + scale)
    np.testing.assert_allclose(far, np.broadcast_to(far[0], far.shape), atol=1e-8)
    model.fit(X, X)  # says nothing
