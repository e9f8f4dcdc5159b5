"""Citizens of scikit-learn: every estimator check passes, none is excused."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.kernels_core import (
    RBF,
    KernelWeaveWarning,
    Linear,
    MemoryBudgetError,
    NotPSDError,
    Problem,
    SolveInterrupted,
    UnderfitWarning,
    solve,
)
from kernelweave.kernels_core.grams import PrecomputedGrams
from kernelweave.vv_rkhs import (
    ElasticNet,
    FrobeniusOutputKernels,
    GaussianGrid,
    MatrixValuedKernelClassifier,
    MatrixValuedKernelRegressor,
    PrecomputedFamily,
    SquaredLpNorm,
    VectorLeastSquares,
)
from kernelweave.vv_rkhs.spg import SpectralGradientSearch
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, cross_val_score

# at rest on a problem that is not convex the gap stays open, and every fit says so
pytestmark = pytest.mark.filterwarnings("ignore:.*no step of the search")
KERNELS = [Linear(), RBF(gamma=0.1), RBF(gamma=1.0)]
JOINT: dict[str, Any] = {"lam": 1e-3, "learn_output": True}


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


def test_weighted_samples_are_those_of_kernel_ridge(data: Any) -> None:
    X, Y = data
    weight = np.linspace(0.1, 3.0, 30)
    ours = MatrixValuedKernelRegressor([RBF(gamma=0.3)], lam=0.01, learn_output=False)
    ours.fit(X, Y, sample_weight=weight)
    ridge = KernelRidge(kernel="rbf", gamma=0.3, alpha=0.01 * weight.sum())
    ridge.fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(ours.predict(X), ridge.predict(X), rtol=1e-9, atol=1e-11)


def test_kernel_and_coefficients_predict(data: Any) -> None:
    X, Y = data
    with pytest.warns(ConvergenceWarning, match="no step of the search.*is not proved"):
        model = MatrixValuedKernelRegressor(KERNELS, **JOINT).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), model.kernel_(X, X) @ model.dual_coef_)
    assert model.score(X, Y) > 0.9
    assert 0.0 < model.certificate_.lower_bound < model.certificate_.upper_bound
    assert model.result_.status.label == "stationary"
    assert "relaxation, every kernel" in str(model.certificate_)
    with pytest.warns(ConvergenceWarning):
        model.set_params(max_iter=1, tol=1e-9).fit(X, Y)
    assert model.certificate_.lower_bound == 0.0
    assert "not negative" in str(model.certificate_)


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
        KERNELS, learn_input=learn == "input", learn_output=learn == "output", lam=1e-3, tol=1e-6
    ).fit(X, Y)
    assert model.certificate_.gap <= 1e-6
    assert model.result_.status.label == "converged"


def test_weight_two_is_the_sample_twice(data: Any) -> None:
    X, Y = data
    weight = np.ones(30)
    weight[:3], weight[3] = 2.0, 0.0
    weighted = MatrixValuedKernelRegressor(KERNELS, **JOINT).fit(X, Y, sample_weight=weight)
    keep = np.r_[0:3, 0:3, 4:30]
    repeated = MatrixValuedKernelRegressor(KERNELS, **JOINT).fit(X[keep], Y[keep])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-9)
    np.testing.assert_allclose(weighted.predict(X), weighted.kernel_(X, X) @ weighted.dual_coef_)
    shared = repeated.kernel_(X, X[keep]) @ repeated.dual_coef_
    np.testing.assert_allclose(repeated.predict(X), shared)


def test_precomputed_equals_points(data: Any) -> None:
    X, Y = data
    grams = np.stack([k(X) for k in KERNELS])
    weight = np.linspace(0.0, 2.0, 30)
    # a list is normalised to a mean diagonal of 1 of the samples that count, all but the first
    grams *= 29 / grams[:, 1:, 1:].trace(axis1=1, axis2=2)[:, None, None]
    points = MatrixValuedKernelRegressor(KERNELS, tol=1e-7, **JOINT).fit(X, Y, sample_weight=weight)
    given = MatrixValuedKernelRegressor("precomputed", tol=1e-7, **JOINT)
    given.fit(grams, Y, sample_weight=weight)
    np.testing.assert_allclose(given.predict(grams), points.predict(X), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(given.result_.value, points.result_.value, rtol=1e-6)


def test_precomputed_in_a_grid_search(data: Any) -> None:
    X, Y = data
    X_grams = PrecomputedGrams(np.stack([k(X) for k in KERNELS]))
    search = GridSearchCV(MatrixValuedKernelRegressor("precomputed"), {"lam": [1e-2, 1e-1]}, cv=3)
    as_they_are = MatrixValuedKernelRegressor(KERNELS, normalize=None)
    plain = GridSearchCV(as_they_are, {"lam": [1e-2, 1e-1]}, cv=3)
    a = search.fit(X_grams, Y).cv_results_["mean_test_score"]
    b = plain.fit(X, Y).cv_results_["mean_test_score"]
    np.testing.assert_allclose(a, b, rtol=1e-3)


def test_classifier_on_iris() -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = MatrixValuedKernelClassifier(KERNELS, tol=1e-2)
    assert cross_val_score(model, X, names, cv=3).mean() > 0.93
    fitted = clone(model).set_params(class_weight="balanced").fit(X, names)
    assert fitted.output_kernel_.shape == (3, 3)
    assert fitted.decision_function(X).shape == (150, 3)


def test_float32_stack_moves_the_objective_by_little(data: Any) -> None:
    X, Y = data
    double = MatrixValuedKernelRegressor(KERNELS, lam=1e-3, tol=1e-7).fit(X, Y)
    single = clone(double).set_params(dtype="float32").fit(X, Y)
    assert abs(single.result_.value / double.result_.value - 1.0) < 1e-6


def test_memory_is_refused_before_the_work(data: Any) -> None:
    X, Y = data
    with pytest.raises(MemoryBudgetError, match="3 Gram matrices"):
        MatrixValuedKernelRegressor(KERNELS, memory_limit=1000).fit(X, Y)


@pytest.mark.parametrize("learn", [{}, {"learn_output": False}, {"learn_input": False}])
@pytest.mark.parametrize("scale", [2.0**-100, 2.0**40])
def test_the_unit_of_the_targets_changes_no_step(data: Any, learn: Any, scale: float) -> None:
    X, Y = data
    model = MatrixValuedKernelRegressor(KERNELS, **(JOINT | learn))
    here, steps = model.fit(X, Y).predict(X), model.n_iter_
    there = model.fit(X, scale * Y).predict(X) / scale
    assert model.n_iter_ == steps
    np.testing.assert_array_equal(there, here)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_hardly_any_regularisation_warns_and_interpolates(data: Any, dtype: str) -> None:
    X, Y = data
    smooth = [Linear(), RBF(gamma=0.01), RBF(gamma=0.1)]
    model = MatrixValuedKernelRegressor(smooth, dtype=dtype, tol=1e-6, max_iter=20)
    model.set_params(lam=1e-45, learn_output=True)
    with pytest.warns(ConvergenceWarning, match="relative gap"):
        model.fit(X, Y)
    assert model.score(X, Y) > 0.9


def test_a_fit_to_matrices_forgets_the_points(data: Any) -> None:
    X, Y = data
    model = MatrixValuedKernelRegressor(KERNELS).fit(pd.DataFrame(X, columns=list("abc")), Y)
    model.set_params(kernels="precomputed").fit(np.stack([k(X) for k in KERNELS]), Y)
    for name in ("kernel_", "kernel_names_", "feature_names_in_"):
        assert not hasattr(model, name)


def test_blocks_of_points_are_predicted_as_one(data: Any) -> None:
    X, Y = data
    model = MatrixValuedKernelRegressor(KERNELS, center=True).fit(X, Y)
    whole = model.predict(X)
    model.memory_limit = 64 * len(X) * 7  # seven points at a time, then the last two
    np.testing.assert_allclose(model.predict(X), whole, rtol=1e-12)


@pytest.mark.parametrize(
    ("params", "same"),
    [
        ({"penalty": "lp", "p": 1.5}, SquaredLpNorm(1.5)),
        ({"penalty": "elastic-net", "mu": 0.3}, ElasticNet(0.3)),
        ({"penalty": "group", "groups": [0, 0, 1], "p": 1.2}, SquaredLpNorm(1.2, (0, 0, 1))),
    ],
)
def test_penalties_by_name_are_their_objects(data: Any, params: Any, same: Any) -> None:
    X, Y = data
    named = MatrixValuedKernelRegressor(KERNELS, lam=1e-3, **params).fit(X, Y)
    given = MatrixValuedKernelRegressor(KERNELS, lam=1e-3, penalty=same).fit(X, Y)
    np.testing.assert_array_equal(named.weights_, given.weights_)
    if "groups" in params:
        assert named.weights_[0] == named.weights_[1] != named.weights_[2]


class Simplex:
    """The squared ℓ1 norm as someone else would write it."""

    def start(self, n_kernels: int) -> np.ndarray:
        return np.full(n_kernels, 1.0 / n_kernels)

    def value(self, weights: np.ndarray) -> float:
        return 0.0 if weights.min() >= 0.0 and weights.sum() <= 1.0 + 1e-12 else np.inf

    def update(self, alpha: np.ndarray) -> np.ndarray:
        return (alpha + 1e-9) / (alpha + 1e-9).sum()

    def conjugate(self, w: np.ndarray) -> float:
        return float(w.max())

    def prox(self, weights: np.ndarray, step: float) -> np.ndarray:
        return SquaredLpNorm(1.0).prox(weights, step)


@pytest.mark.parametrize("algorithm", ["vv-spg", "vv-block-descent"])
def test_a_penalty_of_ones_own(data: Any, algorithm: str) -> None:
    X, Y = data
    ours = MatrixValuedKernelRegressor(KERNELS, lam=1e-3, tol=1e-5).fit(X, Y)
    own = MatrixValuedKernelRegressor(
        KERNELS, penalty=Simplex(), lam=1e-3, tol=1e-5, algorithm=algorithm
    )
    fitted = clone(own).fit(X, Y)
    assert fitted.certificate_.gap <= 1e-5
    np.testing.assert_allclose(fitted.result_.value, ours.result_.value, rtol=2e-5)


def test_dinuzzo_learns_the_output_kernel_alone(data: Any) -> None:
    X, Y = data
    model = MatrixValuedKernelRegressor(KERNELS, algorithm="vv-dinuzzo", rho=0.01, lam=0.01)
    model.set_params(learn_output=True)
    model.fit(X, Y)
    np.testing.assert_array_equal(model.weights_, np.full(3, 1.0 / 3.0))
    grams = [k(X) for k in KERNELS]
    K = sum(K / K.trace() for K in grams) * len(X) / 3.0
    problem = Problem(
        PrecomputedFamily(K[None]),
        VectorLeastSquares(0.01),
        FrobeniusOutputKernels(0.5),
        np.arange(30.0)[:, None],
        Y.T,
    )
    np.testing.assert_allclose(
        model.result_.value, solve(problem, "vv-dinuzzo", tol=1e-4).value, rtol=1e-6
    )


def test_centring_moves_with_the_targets(data: Any) -> None:
    X, Y = data
    shift = np.array([5.0, -3.0, 100.0])
    weight = np.linspace(0.5, 2.0, 30)
    model = MatrixValuedKernelRegressor(KERNELS, center=True)
    here = model.fit(X, Y, sample_weight=weight).predict(X)
    np.testing.assert_allclose(model.intercept_, np.average(Y, axis=0, weights=weight))
    there = model.fit(X, Y + shift, sample_weight=weight).predict(X)
    np.testing.assert_allclose(there - shift, here, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("on_interrupt", ["raise", "return"])
def test_interruption_keeps_the_best_iterate(
    data: Any, monkeypatch: pytest.MonkeyPatch, on_interrupt: str
) -> None:
    X, Y = data
    step, made = SpectralGradientSearch.step, []

    def interrupted(self: Any) -> None:
        made.append(self.state)
        if len(made) == 3:
            raise KeyboardInterrupt
        step(self)

    monkeypatch.setattr(SpectralGradientSearch, "step", interrupted)
    model = MatrixValuedKernelRegressor(KERNELS, tol=1e-9, on_interrupt=on_interrupt, **JOINT)
    with pytest.raises(SolveInterrupted) if on_interrupt == "raise" else contextlib.nullcontext():
        model.fit(X, Y)
    assert model.result_.status.label == "interrupted"
    assert model.n_iter_ == 2
    assert model.score(X, Y) > 0.5


@pytest.mark.parametrize("labels", [np.array(["no", "yes"]), np.array([-1, 7]), np.arange(12)])
def test_classes_of_any_number_and_kind(labels: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(len(labels), size=120)
    codes[: len(labels)] = np.arange(len(labels))
    centres = 6.0 * np.stack([np.arange(12) % 4, np.arange(12) // 4], axis=1)
    X = centres[codes] + rng.standard_normal((120, 2))
    model = MatrixValuedKernelClassifier([RBF(gamma=0.1), Linear()], tol=1e-2)
    model.fit(X, labels[codes])
    assert model.score(X, labels[codes]) > 0.95
    assert model.output_kernel_.shape == (len(labels), len(labels))
    values = model.decision_function(X)
    expected = values > 0 if len(labels) == 2 else values.argmax(axis=1)
    np.testing.assert_array_equal(model.predict(X), labels[expected.astype(int)])


def test_class_weight_multiplies_sample_weights(data: Any) -> None:
    X = data[0]
    y = np.where(X[:, 0] > 0.8, "rare", "common")
    weight = np.where(y == "rare", 5.0, 1.0)
    model = MatrixValuedKernelClassifier(KERNELS, tol=1e-3, class_weight={"rare": 5.0})
    by_class = model.fit(X, y).decision_function(X)
    model.set_params(class_weight=None)
    plain = model.fit(X, y).decision_function(X)
    by_sample = model.fit(X, y, sample_weight=weight).decision_function(X)
    np.testing.assert_allclose(by_class, by_sample, rtol=1e-10, atol=1e-12)
    assert np.abs(by_class - plain).max() > 1e-2


def test_a_class_without_weight_is_named(data: Any) -> None:
    X = data[0]
    y = np.array(["a", "b", "c"])[np.arange(30) % 3]
    with pytest.raises(ValueError, match="class 'b' without any"):
        MatrixValuedKernelClassifier(KERNELS).fit(X, y, sample_weight=(y != "b").astype(float))
    with pytest.raises(ValueError, match="got 1 class"):
        MatrixValuedKernelClassifier(KERNELS).fit(X, np.full(30, "a"))


def test_an_indefinite_matrix_is_refused(data: Any) -> None:
    Y = data[1]
    grams = np.stack([np.eye(30), np.diag(np.linspace(-1.0, 1.0, 30))])
    with pytest.raises(NotPSDError, match=r"X\[1\] is not positive semidefinite"):
        MatrixValuedKernelRegressor("precomputed").fit(grams, Y)
    grams[1] = np.diag(np.linspace(-1e-12, 1.0, 30))  # as centring and scaling leave it
    with pytest.warns(UnderfitWarning):  # such matrices say nothing of one sample by another
        model = MatrixValuedKernelRegressor("precomputed").fit(grams, Y)
    assert model.result_.status.success


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"kernels": "rbf"}, "precomputed"),
        ({"p": 3.0}, "p must be"),
        ({"penalty": "lasso"}, "elastic-net"),
        ({"penalty": "group"}, "groups"),
        ({"mu": 0.0, "penalty": "elastic-net"}, "mu must be"),
        ({"lam": 0.0}, "lam must be"),
        ({"lam": "best"}, "lam must be 'loo', 'cv' or a finite number > 0, got 'best'"),
        ({"tau": -1.0}, "tau must be"),
        ({"rho": 0.0, "algorithm": "vv-dinuzzo", "learn_output": True}, "rho must be"),
        ({"dtype": "float16"}, "dtype must be"),
        ({"center": "mean"}, "center must be True or False"),
        ({"learn_input": "no"}, "learn_input must be True or False"),
        ({"learn_output": False, "algorithm": "vv-dinuzzo"}, "learn_output must be True"),
        ({"penalty": ElasticNet}, "penalty must be one of"),
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
    reason = r"all samples are equally similar .* scale them"
    with pytest.warns(UnderfitWarning), pytest.warns(KernelWeaveWarning, match=reason) as seen:
        model.fit(scale * X, X)
    assert seen[0].filename == __file__
    far = model.predict(3.0 * scale * X + scale)
    np.testing.assert_allclose(far, np.broadcast_to(far[0], far.shape), atol=1e-8)
    model.fit(X, X)  # says nothing
