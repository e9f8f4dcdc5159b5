"""The conventions page, statement by statement, by equality with an independent answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernelweave import baselines, evidence, mkl_sparse, ridge_mkl, vv_rkhs
from kernelweave.baselines import (
    AverageMKLClassifier,
    CKAClassifier,
    EasyMKLClassifier,
    ElasticNetMKLClassifier,
    ElasticNetMKLRegressor,
    KernelQuantileRegressor,
    PWMKClassifier,
    SimpleMKLClassifier,
    SimpleMKLRegressor,
)
from kernelweave.evidence import EvidenceMKLClassifier, EvidenceMKLRegressor
from kernelweave.kernels_core import RBF, KernelDictionary, Linear, Polynomial
from kernelweave.kernels_core.testing import make_classification, make_regression
from kernelweave.mkl_sparse import SparseMKLClassifier, SparseMKLRegressor
from kernelweave.qp_smo import (
    DualSolution,
    Ridge,
    SquaredHingeSVC,
    solve_svc,
    solve_svr,
)
from kernelweave.qp_smo.saddle import KSupport, solve_kernel_weights
from kernelweave.ridge_mkl import (
    GeneralizedMKLClassifier,
    RidgeMKLClassifier,
    RidgeMKLRegressor,
)
from kernelweave.spectahedron import TessellatedKernelClassifier, TessellatedKernelRegressor
from kernelweave.vv_rkhs import (
    MatrixValuedKernelClassifier,
    MatrixValuedKernelRegressor,
    VectorLeastSquares,
)
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.base import is_classifier
from sklearn.datasets import load_iris
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import SVC, SVR, LinearSVC

C, EPSILON, TOL = 3.0, 0.1, 1e-9
Array = NDArray[np.float64]
Loss = Callable[[Array, Array], Array]


def hinge(y: Array, f: Array) -> Array:
    return np.maximum(1.0 - y * f, 0.0)


def squared_hinge(y: Array, f: Array) -> Array:
    return hinge(y, f) ** 2


def tube(y: Array, f: Array) -> Array:
    return np.maximum(np.abs(y - f) - EPSILON, 0.0)


def primal(K: Array, y: Array, u: Array, bias: float, loss: Loss, c: Any = C) -> float:
    """Return ½‖f‖² + Σ Cᵢ loss, with the ½ and without 1/m, bias outside the norm."""
    f = K @ u
    return float(0.5 * u @ f + np.sum(c * loss(y, f + bias)))


@pytest.fixture(scope="module")
def classes() -> tuple[Array, Array]:
    X, y = make_classification(60)
    return RBF(gamma=2.0)(X), y


@pytest.fixture(scope="module")
def numbers() -> tuple[Array, Array]:
    X, y = make_regression(60)
    return RBF(gamma=2.0)(X), y


def dense(machine: Any, n: int) -> Array:
    """Return scikit-learn's coefficients with an entry for every sample."""
    u = np.zeros(n)
    u[machine.support_] = machine.dual_coef_[0]
    return u


def assert_strong_duality(
    solution: DualSolution, K: Array, y: Array, loss: Loss, dual: Callable[[Array], float], u: Array
) -> None:
    """Check both formulas at our solution, and the dual one at an independent solution u.

    LIBSVM keeps K in float32, so its u is right to about 1e-6: enough for the dual value, which
    is flat there, and for the coefficients at 1e-4.
    """
    value = primal(K, y, solution.dual_coef, solution.intercept, loss)
    assert solution.upper_bound == pytest.approx(value, rel=1e-9)
    assert solution.objective == pytest.approx(dual(solution.dual_coef), rel=1e-9)
    assert solution.objective == pytest.approx(value, rel=1e-8)
    assert solution.objective == pytest.approx(dual(u), rel=1e-9)
    assert solution.dual_coef == pytest.approx(u, abs=1e-4)


def test_svc_is_scikit_learns_with_the_same_c(classes: tuple[Array, Array]) -> None:
    K, y = classes
    ours = solve_svc(K, y, C=C, tol=TOL)
    theirs = SVC(kernel="precomputed", C=C, tol=TOL).fit(K, y)
    assert_strong_duality(
        ours, K, y, hinge, lambda u: np.abs(u).sum() - 0.5 * u @ K @ u, dense(theirs, len(y))
    )
    assert ours.intercept == pytest.approx(theirs.intercept_[0], abs=1e-5)
    values = ours.function_values + ours.intercept
    assert values == pytest.approx(theirs.decision_function(K), abs=1e-5)


def test_svr_is_scikit_learns_with_the_same_c(numbers: tuple[Array, Array]) -> None:
    K, y = numbers
    ours = solve_svr(K, y, C=C, epsilon=EPSILON, tol=TOL)
    theirs = SVR(kernel="precomputed", C=C, epsilon=EPSILON, tol=TOL).fit(K, y)

    def dual(u: Array) -> float:
        return float(y @ u - EPSILON * np.abs(u).sum() - 0.5 * u @ K @ u)

    assert_strong_duality(ours, K, y, tube, dual, dense(theirs, len(y)))


def test_svr_of_the_paper_without_the_half(numbers: tuple[Array, Array]) -> None:
    # min ‖f‖² + C′ Σ ℓ has twice the value of ours at C′ / 2, at the same f
    K, y = numbers[0][:20, :20], numbers[1][:20]
    other = 5.0
    ours = solve_svr(K, y, C=other / 2.0, epsilon=EPSILON, tol=TOL)
    f = K @ ours.dual_coef
    value = ours.dual_coef @ f + other * tube(y, f + ours.intercept).sum()
    assert value == pytest.approx(2.0 * ours.objective, rel=1e-7)
    theirs = SVR(kernel="precomputed", C=other / 2.0, epsilon=EPSILON, tol=TOL).fit(K, y)
    assert ours.dual_coef == pytest.approx(dense(theirs, len(y)), abs=1e-4)


def test_squared_hinge_is_a_hard_margin_with_a_ridge(classes: tuple[Array, Array]) -> None:
    K, y = classes
    found = SquaredHingeSVC(C=C).solve(K, y)
    ridged = K + np.eye(len(y)) / (2.0 * C)
    theirs = SVC(kernel="precomputed", C=1e8, tol=TOL).fit(ridged, y)

    def dual(u: Array) -> float:
        return float(np.abs(u).sum() - 0.5 * u @ K @ u - np.sum(u**2) / (4.0 * C))

    u, objective = found.dual_coef[0], found.details.objective
    assert found.upper_bound == pytest.approx(
        primal(K, y, u, found.intercept[0], squared_hinge), rel=1e-9
    )
    assert objective == pytest.approx(dual(u), rel=1e-9)
    assert objective == pytest.approx(dual(dense(theirs, len(y))), rel=1e-9)
    assert u == pytest.approx(dense(theirs, len(y)), abs=1e-4)


def minimum(objective: Callable[[Array], float], n: int) -> float:
    found = minimize(objective, np.zeros(n), method="L-BFGS-B", options={"maxiter": 10_000})
    return float(found.fun)


def test_squared_hinge_conversions(classes: tuple[Array, Array]) -> None:
    K, y = classes[0][:12, :12], classes[1][:12]
    other, lam = 4.0, 0.2

    def halved(z: Array) -> float:
        f = K @ z[:-1]
        return float(0.5 * z[:-1] @ f + 0.5 * other * squared_hinge(y, f + z[-1]).sum())

    half = SquaredHingeSVC(C=other / 2.0).solve(K, y)
    assert half.details.objective == pytest.approx(minimum(halved, 13), rel=1e-5)

    doubled = SquaredHingeSVC(C=1.0 / (2.0 * lam)).solve(K, y)
    a, A = y * doubled.dual_coef[0], (y[:, None] * y) * (K + lam * np.eye(12))
    assert 2.0 * doubled.details.objective == pytest.approx(2.0 * a.sum() - a @ A @ a, rel=1e-9)
    gradient = y * (2.0 - 2.0 * A @ a)
    free = a > 1e-9
    # the optimality conditions of the other form: equal gradients where α > 0
    assert np.ptp(gradient[free]) < 1e-6


def test_ridge_is_kernel_ridge_with_the_inverse_of_its_alpha(numbers: tuple[Array, Array]) -> None:
    K, y = numbers
    weight = np.linspace(0.5, 2.0, len(y))
    found = Ridge(C=C).solve(K, y, sample_weight=weight)
    u = KernelRidge(alpha=1.0 / C, kernel="precomputed").fit(K, y, weight).dual_coef_
    assert found.dual_coef[0] == pytest.approx(u, rel=1e-8, abs=1e-10)
    norm, residual = float(u @ K @ u), y - K @ u
    value = 0.5 * norm + 0.5 * C * np.sum(weight * residual**2)
    assert found.details.objective == pytest.approx(value, rel=1e-9)
    dual = u @ y - 0.5 * norm - 0.5 * np.sum(u**2 / (C * weight))
    assert found.details.objective == pytest.approx(dual, rel=1e-9)


def test_ridge_conversions(numbers: tuple[Array, Array]) -> None:
    K, y = numbers
    lam, n = 0.02, len(y)
    weight = np.linspace(0.5, 2.0, n)
    inverse = y @ np.linalg.solve(K + lam * np.eye(n), y)
    assert 2.0 * Ridge(C=1.0 / lam).solve(K, y).details.objective == pytest.approx(inverse)
    # (1 / Σw) Σ w ‖y − f‖² + λ ‖f‖², of several outputs
    Y = np.stack([y, y[::-1] ** 2])
    ours = VectorLeastSquares(lam).solve(K, Y, sample_weight=weight)
    total = 0.0
    for target, u in zip(Y, ours.dual_coef, strict=True):
        alone = KernelRidge(alpha=lam * weight.sum(), kernel="precomputed").fit(K, target, weight)
        assert u == pytest.approx(alone.dual_coef_, rel=1e-8, abs=1e-10)
        f = K @ alone.dual_coef_
        total += weight @ (target - f) ** 2 / weight.sum() + lam * alone.dual_coef_ @ f
    assert 2.0 * lam * ours.upper_bound == pytest.approx(total, rel=1e-8)
    same = [Ridge(C=1.0 / (lam * weight.sum())).solve(K, each, sample_weight=weight) for each in Y]
    assert sum(each.upper_bound for each in same) == pytest.approx(ours.upper_bound, rel=1e-8)


def test_linear_svc_has_its_bias_in_the_norm() -> None:
    X, y = make_classification(30)

    def objective(z: Array) -> float:
        return float(0.5 * z @ z + C * squared_hinge(y, X @ z[:-1] + z[-1]).sum())

    theirs = LinearSVC(loss="squared_hinge", C=C, tol=1e-9, max_iter=100_000).fit(X, y)
    found = np.r_[theirs.coef_[0], theirs.intercept_]
    assert objective(found) == pytest.approx(minimum(objective, 3), rel=1e-6)


def test_paper_without_the_half(classes: tuple[Array, Array]) -> None:
    # min ‖f‖² + C′ Σ hinge has twice the value of ours at C′ / 2, at the same f
    K, y = classes
    other = 5.0
    ours = solve_svc(K, y, C=other / 2.0, tol=TOL)
    f = K @ ours.dual_coef
    value = ours.dual_coef @ f + other * hinge(y, f + ours.intercept).sum()
    assert value == pytest.approx(2.0 * ours.objective, rel=1e-7)


def test_mean_loss_with_lambda(classes: tuple[Array, Array]) -> None:
    K, y = classes
    lam = 0.01
    ours = solve_svc(K, y, C=1.0 / (2.0 * lam * len(y)), tol=TOL)
    f = K @ ours.dual_coef
    value = lam * ours.dual_coef @ f + hinge(y, f + ours.intercept).mean()
    assert value / (2.0 * lam) == pytest.approx(ours.objective, rel=1e-7)


@pytest.mark.parametrize("scale", [0.01, 7.0])
def test_scale_of_the_kernel_is_scale_of_c(classes: tuple[Array, Array], scale: float) -> None:
    K, y = classes
    scaled = solve_svc(scale * K, y, C=C, tol=TOL)
    plain = solve_svc(K, y, C=scale * C, tol=TOL)
    assert scaled.alpha == pytest.approx(plain.alpha / scale, abs=1e-6 / min(scale, 1.0))
    assert scaled.objective == pytest.approx(plain.objective / scale, rel=1e-7)


def test_weights_of_samples(classes: tuple[Array, Array]) -> None:
    K, y = classes
    weight = np.ones(len(y))
    weight[3], weight[7] = 0.0, 2.0
    ours = solve_svc(K, y, C=C, sample_weight=weight, tol=TOL)
    rows = np.r_[np.delete(np.arange(len(y)), 3), 7]
    written_out = solve_svc(K[np.ix_(rows, rows)], y[rows], C=C, tol=TOL)
    assert ours.alpha[3] == 0.0
    assert ours.objective == pytest.approx(written_out.objective, rel=1e-8)
    assert ours.intercept == pytest.approx(written_out.intercept, abs=1e-6)
    # scikit-learn numbers its support without the samples of weight 0, so give it none
    weight[3] = 0.5
    ours = solve_svc(K, y, C=C, sample_weight=weight, tol=TOL)
    theirs = SVC(kernel="precomputed", C=C, tol=TOL).fit(K, y, sample_weight=weight)
    assert ours.dual_coef == pytest.approx(dense(theirs, len(y)), abs=1e-4)


def test_class_weight_multiplies_c() -> None:
    X, y = make_classification(40)
    a = TessellatedKernelClassifier(C=2.0, units="absolute", class_weight={1.0: 3.0}, tol=1e-4).fit(
        X, y
    )
    b = TessellatedKernelClassifier(C=2.0, units="absolute", tol=1e-4).fit(
        X, y, np.where(y > 0, 3.0, 1.0)
    )
    assert a.decision_function(X) == pytest.approx(b.decision_function(X), abs=1e-9)


def test_learned_kernel_is_the_same_machine_in_scikit_learn() -> None:
    X, y = make_classification(60)
    X = 100.0 * X - 7.0  # features as given, in any unit
    ours = TessellatedKernelClassifier(C=10.0, units="absolute", tol=1e-5).fit(X, y)
    theirs = SVC(kernel=ours.kernel_, C=10.0, tol=1e-8).fit(X, y)
    u = ours.dual_coef_
    assert ours.kernel_(X, X) @ u + ours.intercept_ == pytest.approx(
        ours.decision_function(X), abs=1e-9
    )
    K, v = ours.kernel_(X), dense(theirs, len(y))
    value = np.abs(v).sum() - 0.5 * v @ K @ v
    assert ours.result_.upper_bound == pytest.approx(value, rel=1e-5)
    assert ours.decision_function(X) == pytest.approx(theirs.decision_function(X), abs=1e-2)
    assert ours.result_.upper_bound == pytest.approx(
        primal(ours.kernel_(X), y, u, ours.intercept_, hinge, 10.0), rel=1e-9
    )
    assert np.trace(ours.P_) == pytest.approx(len(ours.P_))
    assert (np.sign(ours.decision_function(X)) == ours.predict(X)).all()


def test_regressor_does_not_scale_y() -> None:
    X, y = make_regression(60)
    ours = TessellatedKernelRegressor(C=5.0, epsilon=EPSILON, units="absolute", tol=1e-5).fit(X, y)
    u = ours.dual_coef_
    assert ours.result_.upper_bound == pytest.approx(
        primal(ours.kernel_(X), y, u, ours.intercept_, tube, 5.0), rel=1e-9
    )
    theirs = SVR(kernel=ours.kernel_, C=5.0, epsilon=EPSILON, tol=1e-8).fit(X, y)
    v = dense(theirs, len(y))
    value = y @ v - EPSILON * np.abs(v).sum() - 0.5 * v @ ours.kernel_(X) @ v
    assert ours.result_.upper_bound == pytest.approx(value, rel=1e-5)
    assert ours.predict(X) == pytest.approx(theirs.predict(X), abs=1e-3)


@pytest.mark.parametrize("units", ["scale", "absolute"])
def test_c_and_epsilon_of_a_fit_are_those_of_the_formulas(units: str) -> None:
    X, y = make_regression(60)
    y = 50.0 * y + 1000.0
    ours = TessellatedKernelRegressor(C=1.0, epsilon=0.2, units=units, tol=1e-5).fit(X, y)
    assert ours.epsilon_ == pytest.approx(0.2 * (y.std() if units == "scale" else 1.0))
    theirs = SVR(kernel=ours.kernel_, C=ours.C_, epsilon=ours.epsilon_, tol=1e-8).fit(X, y)
    assert ours.predict(X) == pytest.approx(theirs.predict(X), abs=2e-3 * y.std())


@pytest.mark.parametrize("delta", [0.1, 0.5])
@pytest.mark.parametrize("degree", [0, 1])
def test_c_counts_in_units_of_the_mean_diagonal_at_p_of_one(degree: int, delta: float) -> None:
    X, y = make_classification(40)
    ours = TessellatedKernelClassifier(C=2.0, degree=degree, delta=delta, tol=1e-2).fit(X, y)
    # k(x, x) at P = I is the integral of |Z(z, x)|² over z in the box [−δ, 1 + δ]ⁿ, where Z is 1 in
    # degree 0 and has the entries of z and x too in degree 1, of features scaled to [0, 1]
    n, side = X.shape[1], 1.0 + 2.0 * delta
    x = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    squares = 1.0 + n * (0.25 + side**2 / 12.0) + (x**2).sum(axis=1) if degree else np.ones(len(x))
    assert pytest.approx(2.0 / (side**n * squares).mean(), rel=1e-9) == ours.C_


def test_generalized_mkl_has_twice_the_c_of_the_squared_hinge() -> None:
    X, y = make_classification(40)
    other = 3.0
    ours = GeneralizedMKLClassifier([RBF(2.0)], C=other, tol=1e-7).fit(X, y)
    theirs = SquaredHingeSVC(C=other / 2.0).solve(ours.kernel_(X), y)
    assert ours.result_.value == pytest.approx(theirs.details.objective, rel=1e-5)
    value = theirs.dual_coef[0] @ ours.kernel_(X) @ theirs.dual_coef[0]
    f = ours.kernel_(X) @ theirs.dual_coef[0] + theirs.intercept[0]
    value += other * squared_hinge(y, f).sum()
    assert value == pytest.approx(2.0 * ours.result_.value, rel=1e-5)


OF_LISTS = (
    AverageMKLClassifier,
    CKAClassifier,
    PWMKClassifier,
    EasyMKLClassifier,
    SimpleMKLClassifier,
    SimpleMKLRegressor,
    ElasticNetMKLClassifier,
    ElasticNetMKLRegressor,
    KernelQuantileRegressor,
    EvidenceMKLClassifier,
    EvidenceMKLRegressor,
    SparseMKLClassifier,
    SparseMKLRegressor,
    GeneralizedMKLClassifier,
    RidgeMKLClassifier,
    RidgeMKLRegressor,
    MatrixValuedKernelClassifier,
    MatrixValuedKernelRegressor,
)
# of the optimum, so that predictions of two solves agree
ACCURACY: dict[Any, dict[str, Any]] = {
    AverageMKLClassifier: {},
    CKAClassifier: {},
    PWMKClassifier: {},
    EasyMKLClassifier: {},
    EvidenceMKLClassifier: {},
    EvidenceMKLRegressor: {},
    MatrixValuedKernelClassifier: {"tol": 1e-8, "learn_output": False},
}


def test_every_estimator_of_a_list_is_here() -> None:
    named = {
        getattr(package, name)
        for package in (baselines, evidence, mkl_sparse, ridge_mkl, vv_rkhs)
        for name in dir(package)
        if name.endswith(("Classifier", "Regressor", "ClassifierCV", "RegressorCV"))
    }
    known = {kind for kind in named if "kernels" in kind().get_params(deep=False)}
    assert all(kind().normalize == "trace" for kind in known)
    assert {kind for kind in known if not kind.__name__.endswith("CV")} == set(OF_LISTS)


@pytest.mark.parametrize("normalize", ["trace", None])
@pytest.mark.parametrize("kind", OF_LISTS)
def test_a_list_is_normalised_alike_everywhere(kind: Any, normalize: str | None) -> None:
    X, y = (make_classification if is_classifier(kind()) else make_regression)(40)
    # equal rows are merged, which sorts them, and folds go by their order
    order = np.lexsort(X.T[::-1])
    X, y, kernels = 3.0 * X[order], y[order], [Linear(), Polynomial(2)]
    accuracy = ACCURACY.get(kind, {"tol": 1e-8})
    grams = np.stack([k(X) for k in kernels])
    if normalize == "trace":
        grams /= grams.trace(axis1=1, axis2=2)[:, None, None] / len(X)
    ours = kind(kernels, normalize=normalize, **accuracy).fit(X, y)
    theirs = kind("precomputed", **accuracy).fit(grams, y)
    by_dictionary = kind(KernelDictionary(kernels, normalize=normalize), **accuracy).fit(X, y)
    name = "decision_function" if is_classifier(ours) else "predict"
    values = getattr(ours, name)(X)
    for other, points in (theirs, grams), (by_dictionary, X):
        assert other.weights_ == pytest.approx(ours.weights_, rel=1e-3, abs=1e-3)
        assert getattr(other, name)(points) == pytest.approx(values, rel=1e-3, abs=1e-3 * np.ptp(y))


def test_a_dictionary_is_taken_as_it_is() -> None:
    assert KernelDictionary([Linear()]).normalize is None


def test_value_of_a_learned_polynomial_kernel() -> None:
    X, y = make_classification(60)
    ours = TessellatedKernelClassifier(
        kernel="polynomial", degree=2, C=0.5, units="absolute", tol=1e-5
    ).fit(X, y)
    # the largest of min over P is that of P = n_P v vᵀ / |v|² at v = Φᵀu, so that vᵀPv is
    # n_P |Φᵀu|²: one machine on the Gram matrix n_P ΦΦᵀ has the same value
    features = PolynomialFeatures(2).fit_transform((X - X.min(axis=0)) / np.ptp(X, axis=0))
    n_P = features.shape[1]
    K = n_P * features @ features.T
    u = dense(SVC(kernel="precomputed", C=0.5, tol=1e-9).fit(K, y), len(y))
    value = np.abs(u).sum() - 0.5 * u @ K @ u
    assert ours.result_.upper_bound == pytest.approx(value, rel=1e-4)
    assert np.trace(ours.P_) == pytest.approx(n_P)


@pytest.mark.parametrize(
    "kind",
    [
        TessellatedKernelClassifier,
        SparseMKLClassifier,
        AverageMKLClassifier,
        CKAClassifier,
        EasyMKLClassifier,
        PWMKClassifier,
        SimpleMKLClassifier,
        ElasticNetMKLClassifier,
        GeneralizedMKLClassifier,
        RidgeMKLClassifier,
        EvidenceMKLClassifier,
        MatrixValuedKernelClassifier,
    ],
)
def test_decision_values_are_positive_for_the_second_class(kind: Any) -> None:
    X, y = make_classification(60)
    labels = np.where(y > 0, "ant", "Zebra")
    first = labels == "ant"
    # the second in the order of characters is the first in the data
    X, labels = np.vstack([X[first], X[~first]]), np.r_[labels[first], labels[~first]]
    model = kind().fit(X, labels)
    assert list(model.classes_) == ["Zebra", "ant"]
    values = np.asarray(model.decision_function(X)).reshape(len(X), -1)
    if values.shape[1] == 1:
        assert (np.where(values[:, 0] > 0, "ant", "Zebra") == model.predict(X)).all()
    else:
        assert (model.classes_[values.argmax(axis=1)] == model.predict(X)).all()
    assert values[labels == "ant", -1].mean() > values[labels == "Zebra", -1].mean()


def test_several_classes_minimise_the_sum() -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[::3], y[::3]
    ours = TessellatedKernelClassifier(C=0.1, units="absolute", tol=1e-4).fit(X, y)
    K = ours.kernel_(X)
    total = 0.0
    for label in range(3):
        target = np.where(y == label, 1.0, -1.0)
        theirs = SVC(kernel="precomputed", C=0.1, tol=1e-8).fit(K, target)
        u = dense(theirs, len(y))
        total += float(np.abs(u).sum() - 0.5 * u @ K @ u)
    assert ours.result_.upper_bound == pytest.approx(total, rel=1e-4)
    assert ours.dual_coef_.shape == (3, len(y))


def test_ridge_on_weights_has_no_half(classes: tuple[Array, Array]) -> None:
    K, y = classes
    grams = np.stack([K, np.eye(len(y)), K**2])
    found = solve_kernel_weights(grams, y, C=C, penalty=KSupport(0.7), tol=1e-6)
    beta = found.weights
    assert beta.sum() == pytest.approx(1.0, abs=1e-12)
    mixed = np.einsum("j,jik->ik", beta, grams)
    value = solve_svc(mixed, y, C=C, tol=TOL).objective + 0.7 * np.sum(beta**2)
    assert found.value == pytest.approx(value, rel=1e-6)
