"""Kernel quantile regression against a conic solver, scikit-learn and its own definition."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from kernelweave.kernels_core import SolveStatus
from kernelweave.kernels_core.families import TessellatedFamily
from kernelweave.kernels_core.grams import UnstoredKernel
from kernelweave.kernels_core.testing import check_learner, make_regression
from kernelweave.qp_smo import QuantileSVR, solve_quantile_svr, solve_svr
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import mean_pinball_loss
from svm_problems import exact_dual, exact_primal, rbf, real_targets, violation


def primal(K, y, bound, quantile):
    """The problem in the function itself, not in its dual coefficients."""
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    w, b = cp.Variable(y.size), cp.Variable()
    left = y - root @ w - b
    loss = cp.sum(cp.multiply(bound, cp.maximum(quantile * left, (quantile - 1.0) * left)))
    return cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + loss))


@pytest.mark.parametrize("backend", ["smo", "interior-point"])
@pytest.mark.parametrize("quantile", [0.05, 0.5, 0.9])
@pytest.mark.parametrize(("kernel", "C"), [("rbf", 1.0), ("rbf", 100.0), ("linear", 10.0)])
def test_brackets_and_matches_clarabel(kernel, C, quantile, backend, conic_optimum):
    X, y = real_targets(n=80, seed=4)
    K = rbf(X, 0.3) if kernel == "rbf" else X @ X.T
    solution = solve_quantile_svr(K, y, C=C, quantile=quantile, tol=1e-8, backend=backend)
    reference, digits = conic_optimum(primal(K, y, np.full(80, C), quantile), 1e-11)
    assert solution.status is SolveStatus.CONVERGED
    assert solution.gap <= 1e-8
    assert solution.objective == pytest.approx(reference, rel=max(1e-8, digits))
    assert solution.lower_bound <= reference * (1 + max(1e-9, digits))
    assert solution.upper_bound >= reference * (1 - max(1e-9, digits))
    lower, upper = np.full(80, (quantile - 1.0) * C), np.full(80, quantile * C)
    assert violation(K, y, 0.0, lower, upper, solution.alpha, 1e-12 * C) <= 1e-8 + 1e-10


@pytest.mark.parametrize("quantile", [0.1, 0.75])
def test_the_bounds_hold_in_rational_numbers(quantile):
    X, y = real_targets(n=30, seed=2)
    K, C = rbf(X, 0.5), 4.0
    s = solve_quantile_svr(K, y, C=C, quantile=quantile)
    lower, upper = np.full(30, (quantile - 1.0) * C), np.full(30, quantile * C)
    assert (lower <= s.alpha).all()
    assert (s.alpha <= upper).all()
    assert s.alpha.sum() == 0.0
    assert s.lower_bound <= exact_dual(K, y, 0.0, s.alpha)
    assert s.upper_bound >= exact_primal(K, y, 0.0, lower, upper, s.alpha, s.intercept)


@pytest.mark.parametrize("quantile", [0.1, 0.33, 0.5, 0.9])
def test_at_most_the_share_lies_below_and_at_most_the_rest_above(quantile):
    X, y = real_targets(n=100, seed=3)
    K = rbf(X, 0.3)
    s = solve_quantile_svr(K, y, C=5.0, quantile=quantile, tol=1e-10)
    left = y - s.function_values - s.intercept
    assert (left < -1e-6).sum() <= quantile * 100
    assert (left > 1e-6).sum() <= (1.0 - quantile) * 100


def test_the_median_is_a_regression_without_a_tube():
    X, y = real_targets(n=60)
    K = rbf(X, 0.5)
    median = solve_quantile_svr(K, y, C=6.0, tol=1e-9)
    absolute = solve_svr(K, y, C=3.0, epsilon=0.0, tol=1e-9)
    assert median.objective == pytest.approx(absolute.objective, rel=1e-8)
    np.testing.assert_allclose(median.alpha, absolute.alpha, atol=1e-5)


def test_barely_regularised_it_is_scikit_learns_linear_quantile():
    X, y = real_targets(n=120, seed=6)
    theirs = QuantileRegressor(quantile=0.8, alpha=0.0).fit(X, y)
    ours = solve_quantile_svr(X @ X.T, y, C=1e4, quantile=0.8, tol=1e-6)
    mine = ours.function_values + ours.intercept
    loss = mean_pinball_loss(y, theirs.predict(X), alpha=0.8)
    assert mean_pinball_loss(y, mine, alpha=0.8) == pytest.approx(loss, rel=1e-4)
    np.testing.assert_allclose(mine, theirs.predict(X), atol=0.02)


def test_weights_match_clarabel_and_zero_equals_removal(conic_optimum):
    X, y = real_targets(n=70, seed=9)
    K = rbf(X, 0.5)
    weight = np.random.default_rng(2).uniform(0.0, 2.0, size=y.size)
    weight[10:20] = 0.0
    options = {"C": 2.0, "quantile": 0.7, "tol": 1e-8}
    solution = solve_quantile_svr(K, y, sample_weight=weight, **options)
    reference, digits = conic_optimum(primal(K, y, 2.0 * weight, 0.7), 1e-11)
    assert solution.objective == pytest.approx(reference, rel=max(1e-8, digits))
    keep = weight > 0.0
    part = solve_quantile_svr(K[np.ix_(keep, keep)], y[keep], sample_weight=weight[keep], **options)
    np.testing.assert_allclose(solution.alpha[keep], part.alpha, atol=1e-6)


def test_a_gram_matrix_that_is_not_in_memory():
    X, y = make_regression(120)
    family = TessellatedFamily(1, lower=np.full(2, -0.5), upper=np.full(2, 1.5))
    A = np.random.default_rng(0).normal(size=(family.n_P, 3))
    prepared, learner = family.prepare(X), QuantileSVR(C=5.0, quantile=0.8)
    stored = learner.solve(prepared.gram(A @ A.T), y, tol=1e-8)
    kernel = UnstoredKernel(prepared.unstored(A @ A.T), (12 * 60**2) + 1)
    found = learner.solve(kernel, y, tol=1e-5)
    assert found.lower_bound <= stored.upper_bound
    assert stored.lower_bound <= found.upper_bound
    assert found.gap <= 1e-3 * stored.upper_bound


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.95])
def test_it_keeps_what_algorithms_rely_on(quantile):
    check_learner(QuantileSVR(C=2.0, quantile=quantile))


@pytest.mark.parametrize("quantile", [0.0, 1.0, -0.5, np.nan, "half"])
def test_a_wrong_quantile_is_named(quantile):
    said = r"quantile must be a finite number > 0 and < 1, got"
    with pytest.raises(ValueError, match=said):
        solve_quantile_svr(np.eye(3), np.arange(3.0), C=1.0, quantile=quantile)
    with pytest.raises(ValueError, match=said):
        QuantileSVR(quantile=quantile).validate()


def test_libsvm_has_no_such_loss():
    with pytest.raises(ValueError, match=r'charges residuals .* use backend="smo"'):
        solve_quantile_svr(np.eye(3), np.arange(3.0), C=1.0, quantile=0.9, backend="libsvm")
