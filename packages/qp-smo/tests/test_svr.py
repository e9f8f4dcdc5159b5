from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from kernelweave.kernels_core import SolveStatus
from kernelweave.qp_smo import solve_svr
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from svm_problems import rbf, real_targets, violation


def svr_dual(K, y, bound, epsilon):
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    above, below = cp.Variable(y.size, nonneg=True), cp.Variable(y.size, nonneg=True)
    u = above - below
    value = y @ u - epsilon * cp.sum(above + below) - 0.5 * cp.sum_squares(root.T @ u)
    return cp.Problem(cp.Maximize(value), [above <= bound, below <= bound, cp.sum(u) == 0])


@pytest.mark.parametrize("backend", ["smo", "interior-point"])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
@pytest.mark.parametrize(("kernel", "C"), [("rbf", 1.0), ("rbf", 100.0), ("linear", 10.0)])
def test_brackets_and_matches_clarabel(kernel, C, epsilon, backend, conic_optimum):
    X, y = real_targets(n=80, seed=4)
    K = rbf(X, 0.3) if kernel == "rbf" else X @ X.T
    solution = solve_svr(K, y, C=C, epsilon=epsilon, tol=1e-8, backend=backend)
    reference, digits = conic_optimum(svr_dual(K, y, C, epsilon), 1e-11)
    assert solution.status is SolveStatus.CONVERGED
    assert solution.objective == pytest.approx(reference, rel=max(1e-8, digits))
    assert solution.lower_bound <= reference * (1 + max(1e-9, digits))
    assert solution.upper_bound >= reference * (1 - max(1e-9, digits))
    lower = np.full(y.size, -C)
    left = violation(K, y, epsilon, lower, -lower, solution.alpha, 1e-12 * C)
    assert left <= 1e-8 + 1e-10


def test_agrees_with_scikit_learn():
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    y = (y - y.mean()) / y.std()
    K = rbf(X, 0.03)
    ours = solve_svr(K, y, C=2.0, epsilon=0.2, tol=1e-7)
    theirs = SVR(C=2.0, epsilon=0.2, kernel="precomputed", tol=1e-7).fit(K, y)
    dense = np.zeros(y.size)
    dense[theirs.support_] = theirs.dual_coef_[0]
    # Its solver keeps K in float32: 6e-8 of C times the diagonal in the gradient.
    np.testing.assert_allclose(ours.alpha, dense, atol=1e-4)
    assert ours.intercept == pytest.approx(theirs.intercept_[0], abs=1e-5)
    exact = float(dense @ y) - 0.2 * np.abs(dense).sum() - 0.5 * float(dense @ K @ dense)
    assert exact <= ours.objective * (1 + 1e-9)


def test_a_wide_tube_needs_no_samples():
    X, y = real_targets()
    solution = solve_svr(rbf(X, 0.5), y, C=1.0, epsilon=10.0)
    assert not solution.alpha.any()
    assert solution.upper_bound == 0.0 == solution.lower_bound
    assert np.all(np.abs(y - solution.intercept) <= 10.0)


def test_weights_match_clarabel_and_zero_equals_removal(conic_optimum):
    X, y = real_targets(n=70, seed=9)
    K = rbf(X, 0.5)
    weight = np.random.default_rng(2).uniform(0.0, 2.0, size=y.size)
    weight[10:20] = 0.0
    solution = solve_svr(K, y, C=2.0, epsilon=0.1, sample_weight=weight, tol=1e-8)
    reference, digits = conic_optimum(svr_dual(K, y, 2.0 * weight, 0.1), 1e-11)
    assert solution.objective == pytest.approx(reference, rel=max(1e-8, digits))
    keep = weight > 0.0
    removed = solve_svr(
        K[np.ix_(keep, keep)], y[keep], C=2.0, epsilon=0.1, sample_weight=weight[keep], tol=1e-8
    )
    np.testing.assert_allclose(solution.alpha[keep], removed.alpha, atol=1e-6)


def test_warm_start_from_the_optimum():
    X, y = real_targets(n=120, seed=1)
    K = rbf(X, 0.5)
    cold = solve_svr(K, y, C=0.7, epsilon=0.05, tol=1e-6)
    warm = solve_svr(K, y, C=0.7, epsilon=0.05, tol=1e-6, alpha0=cold.alpha)
    assert warm.n_iter <= 2 < cold.n_iter


def test_translation_of_the_targets_moves_the_intercept_only():
    X, y = real_targets(seed=8)
    K = rbf(X, 0.5)
    one = solve_svr(K, y, C=1.0, epsilon=0.1, tol=1e-9)
    moved = solve_svr(K, y + 1000.0, C=1.0, epsilon=0.1, tol=1e-9)
    assert moved.intercept - one.intercept == pytest.approx(1000.0, abs=1e-6)
    assert moved.objective == pytest.approx(one.objective, rel=1e-8)


def test_where_pairs_crawl_a_factor_of_many_free_samples_ends_it():
    """The gap closes at a thousandth of the violation that pairs reach fast."""
    X, y = make_friedman1(900, noise=1.0, random_state=0)
    kernel = rbf(StandardScaler().fit_transform(X), 0.1)
    found = solve_svr(kernel, (y - y.mean()) / y.std(), C=1000.0, epsilon=0.1)
    assert found.status is SolveStatus.CONVERGED
    assert np.count_nonzero(found.alpha) > 500
    assert found.gap < 1e-3
    *_, last = found.log
    assert "1 of them Newton" in last
    # pairs alone take 34,000 steps
    assert found.n_iter < 24_000
