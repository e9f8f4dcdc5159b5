from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from kernelweave.kernels_core import SolveStatus
from kernelweave.qp_smo import solve_svc
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from svm_problems import rbf, two_classes, violation


def svc_dual(K, y, bound):
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    alpha = cp.Variable(y.size)
    quadratic = 0.5 * cp.sum_squares(root.T @ cp.multiply(y, alpha))
    return cp.Problem(
        cp.Maximize(cp.sum(alpha) - quadratic), [alpha >= 0, alpha <= bound, y @ alpha == 0]
    )


def gram_cases():
    X, y = two_classes(n=90, d=5, seed=3)
    wine = load_wine()
    W = StandardScaler().fit_transform(wine.data)
    w = np.where(wine.target == 1, 1.0, -1.0)
    return {
        "rbf": (rbf(X, 0.5), y, 3.0),
        "linear": (X @ X.T, y, 1.0),
        "poly": ((0.1 * X @ X.T + 1) ** 3, y, 20.0),
        "wine-linear": (W @ W.T, w, 2.0),
        "wine-rbf": (rbf(W, 0.05), w, 100.0),
        "zero": (np.zeros((90, 90)), y, 1.0),
        "identity": (np.eye(90), y, 0.3),
    }


@pytest.mark.parametrize("name", gram_cases())
@pytest.mark.parametrize("backend", ["smo", "interior-point"])
def test_brackets_and_matches_clarabel(name, backend, conic_optimum):
    K, y, C = gram_cases()[name]
    solution = solve_svc(K, y, C=C, tol=1e-8, backend=backend)
    reference, digits = conic_optimum(svc_dual(K, y, C), 1e-11)
    assert solution.status is SolveStatus.CONVERGED
    assert solution.objective == pytest.approx(reference, rel=max(1e-8, digits))
    assert solution.lower_bound <= reference * (1 + max(1e-9, digits))
    assert solution.upper_bound >= reference * (1 - max(1e-9, digits))
    assert solution.gap < 1e-6


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("name", ["rbf", "linear", "wine-rbf"])
def test_violation_is_within_tol(name, tol):
    K, y, C = gram_cases()[name]
    solution = solve_svc(K, y, C=C, tol=tol)
    signed = y * C
    ours = violation(
        K, y, 0.0, np.minimum(signed, 0), np.maximum(signed, 0), solution.dual_coef, 1e-12 * C
    )
    assert solution.kkt_violation <= tol
    assert ours == pytest.approx(solution.kkt_violation, abs=1e-10)


def test_agrees_with_scikit_learn():
    data = load_breast_cancer()
    X = StandardScaler().fit_transform(data.data)
    y = 2.0 * data.target - 1.0
    K = rbf(X, 0.03)
    ours = solve_svc(K, y, C=5.0, tol=1e-7)
    theirs = SVC(C=5.0, kernel="precomputed", tol=1e-7).fit(K, y)
    dense = np.zeros(y.size)
    dense[theirs.support_] = theirs.dual_coef_[0]
    # Its solver keeps K in float32: 6e-8 of C times the diagonal in the gradient.
    np.testing.assert_allclose(ours.dual_coef, dense, atol=1e-4)
    assert ours.intercept == pytest.approx(theirs.intercept_[0], abs=1e-5)
    decision = ours.function_values + ours.intercept
    np.testing.assert_allclose(decision, theirs.decision_function(K), atol=1e-5)
    exact = float(dense @ y) - 0.5 * float(dense @ K @ dense)
    assert exact <= ours.objective * (1 + 1e-9)


@pytest.mark.parametrize("backend", ["smo", "interior-point"])
@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_warm_start_from_the_optimum_takes_no_steps(backend, tol):
    K, y, _ = gram_cases()["rbf"]
    cold = solve_svc(K, y, C=0.1, tol=tol)
    warm = solve_svc(K, y, C=0.1, tol=tol, alpha0=cold.alpha)
    assert cold.n_iter > 20
    assert warm.n_iter <= 1
    assert warm.objective == pytest.approx(cold.objective, rel=1e-12)


def test_warm_start_helps_on_a_nearby_gram():
    X, y = two_classes(n=200, d=5, seed=5)
    cold = solve_svc(rbf(X, 0.5), y, C=10.0)
    near = solve_svc(rbf(X, 0.501), y, C=10.0)
    warm = solve_svc(rbf(X, 0.501), y, C=10.0, alpha0=cold.alpha)
    assert warm.n_iter < 0.3 * near.n_iter


def test_infeasible_start_is_repaired():
    K, y, C = gram_cases()["rbf"]
    wild = np.random.default_rng(0).normal(scale=10 * C, size=y.size)
    solution = solve_svc(K, y, C=C, alpha0=wild, tol=1e-8)
    assert solution.objective == pytest.approx(solve_svc(K, y, C=C, tol=1e-8).objective, rel=1e-9)
    assert solution.dual_coef.sum() == 0.0


def test_weights_scale_the_bound_and_match_clarabel(conic_optimum):
    K, y, C = gram_cases()["rbf"]
    weight = np.random.default_rng(1).uniform(0.0, 2.0, size=y.size)
    solution = solve_svc(K, y, C=C, sample_weight=weight, tol=1e-8)
    assert np.all(solution.alpha <= C * weight)
    reference, digits = conic_optimum(svc_dual(K, y, C * weight), 1e-11)
    assert solution.objective == pytest.approx(reference, rel=max(1e-8, digits))


@pytest.mark.parametrize("backend", ["smo", "interior-point"])
def test_weight_zero_equals_removal(backend):
    K, y, C = gram_cases()["rbf"]
    weight = np.ones(y.size)
    weight[5:25] = 0.0
    keep = weight > 0.0
    with_zeros = solve_svc(K, y, C=C, sample_weight=weight, tol=1e-9, backend=backend)
    removed = solve_svc(K[np.ix_(keep, keep)], y[keep], C=C, tol=1e-9, backend=backend)
    assert np.all(with_zeros.alpha[~keep] == 0.0)
    np.testing.assert_allclose(with_zeros.alpha[keep], removed.alpha, atol=1e-7)
    assert with_zeros.intercept == pytest.approx(removed.intercept, abs=1e-7)


def test_shrinking_reaches_the_same_optimum():
    X, y = two_classes(n=700, d=3, seed=2, noise=1.0)
    K = X @ X.T + 1e-3 * rbf(X, 1.0)
    solution = solve_svc(K, y, C=5.0, tol=1e-5, backend="smo")
    reference = solve_svc(K, y, C=5.0, tol=1e-9, backend="interior-point")
    assert solution.status is SolveStatus.CONVERGED
    assert solution.objective == pytest.approx(reference.objective, rel=1e-7)


@pytest.mark.parametrize("n", [2, 3, 127, 128, 129])
def test_sizes_around_the_block_of_the_passes(n):
    X, y = two_classes(n=max(n, 4), d=3, seed=n)
    X, y = X[:n], y[:n]
    solution = solve_svc(rbf(X, 1.0), y, C=1.0, tol=1e-8)
    assert solution.kkt_violation <= 1e-8
    assert solution.gap < 1e-7


def test_float32_bounds_hold_for_the_matrix_as_given():
    X, y = two_classes(n=80)
    K = rbf(X, 0.5).astype(np.float32)
    single = solve_svc(K, y, C=2.0, tol=1e-6)
    double = solve_svc(K.astype(np.float64), y, C=2.0, tol=1e-9)
    assert single.lower_bound <= double.upper_bound
    assert double.lower_bound <= single.upper_bound
    assert single.objective == pytest.approx(double.objective, rel=1e-8)


def test_duplicate_rows_and_scale_invariance():
    X, y = two_classes(n=60)
    X2, y2 = np.vstack([X, X]), np.concatenate([y, y])
    once = solve_svc(rbf(X, 0.5), y, C=2.0, tol=1e-8)
    twice = solve_svc(rbf(X2, 0.5), y2, C=1.0, tol=1e-8)
    assert twice.objective == pytest.approx(once.objective, rel=1e-8)
    scaled = solve_svc(4.0 * rbf(X, 0.5), y, C=0.5, tol=1e-8)
    assert 4.0 * scaled.objective == pytest.approx(once.objective, rel=1e-8)
