"""Bounds against arithmetic with fifty digits, and the counts that the certified gap takes."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import mpmath
import numpy as np
import pytest
from kernelweave.kernels_core import Status, solve
from kernelweave.kernels_core.rounding import blocked_product, n_roundings, sums_to_zero
from kernelweave.qp_smo import Ridge, SquaredHingeSVC
from kernelweave.ridge_mkl import LqBall, Orthant
from kernelweave.ridge_mkl.oracle import Oracle

from .ridge_problems import large_problem, random_grams, stack_problem


def exact_value(K: np.ndarray, y: np.ndarray, lam: float, intercept: bool) -> Any:
    n = len(y)
    A = mpmath.matrix(K.tolist()) + mpmath.mpf(lam) * mpmath.eye(n)
    alpha = mpmath.lu_solve(A, mpmath.matrix(y.tolist()))
    value = sum(alpha[i] * mpmath.mpf(float(y[i])) for i in range(n))
    if intercept:
        z = mpmath.lu_solve(A, mpmath.ones(n, 1))
        value -= sum(alpha) ** 2 / sum(z)
    return value / 2


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("lam", [1e-8, 1e-3, 10.0])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e7])
def test_learner_brackets_the_exact_value(intercept: bool, lam: float, scale: float) -> None:
    grams, y = random_grams(12)
    K = grams.sum(axis=0)
    y = scale * y
    solution = Ridge(C=1 / lam, fit_intercept=intercept).solve(K, y)
    with mpmath.workdps(50):
        value = exact_value(K, y, 1 / (1 / lam), intercept)
        assert mpmath.mpf(solution.lower_bound) <= value <= mpmath.mpf(solution.upper_bound)
    assert solution.upper_bound - solution.lower_bound <= 1e-6 * solution.upper_bound


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(3))
def test_hinge_equals_a_conic_solver(conic_optimum: Any, C: float, seed: int) -> None:
    grams, z = random_grams(20, seed=seed)
    K, y = grams.sum(axis=0), np.where(z > 0.2, 1.0, -1.0)
    weight = np.linspace(0.5, 2.0, 20)
    learner = SquaredHingeSVC(C=0.5 * C)
    solution = learner.solve(K, y, sample_weight=weight)
    u = cp.Variable(20)
    root = np.linalg.cholesky(K + np.diag(1 / (C * weight)))
    objective = cp.Maximize(y @ u - 0.5 * cp.sum_squares(root.T @ u))
    problem = cp.Problem(objective, [cp.multiply(y, u) >= 0, cp.sum(u) == 0])
    wanted, digits = conic_optimum(problem, 1e-11)
    assert solution.details.objective == pytest.approx(wanted, rel=max(1e-7, digits))
    assert solution.upper_bound - solution.lower_bound <= 1e-10 * wanted
    assert float(solution.dual_coef.sum()) == 0.0
    assert (solution.dual_coef * y >= 0).all()
    warm = learner.solve(K, y, sample_weight=weight, dual0=solution.dual_coef)
    assert warm.details.objective == pytest.approx(solution.details.objective, rel=1e-12)
    assert warm.n_iter <= 2


@pytest.mark.parametrize("seed", range(5))
def test_lower_bound_holds_from_every_point(seed: int) -> None:
    grams, y = random_grams(seed=seed)
    for constraint in (LqBall(q=1.5, center=0.2), Orthant(beta=0.5)):
        problem = stack_problem(grams, y, Ridge(C=5.0), constraint)
        best = solve(problem, "krr-newton", tol=1e-10).upper_bound
        oracle = Oracle(problem)
        rng = np.random.default_rng(seed)
        for _ in range(20):
            at = oracle.evaluate(constraint.project(rng.exponential(size=4)))
            assert at.lower <= best * (1 + 1e-12)
            assert at.upper >= best * (1 - 1e-10)


def test_sum_is_exactly_zero() -> None:
    rng = np.random.default_rng(0)
    for scale in (1e-200, 1.0, 1e200):
        u = scale * rng.standard_normal(1001)
        v = sums_to_zero(u)
        assert float(v.sum()) == float(v[::-1].sum()) == 0.0
        assert (np.sign(v) * np.sign(u) >= 0).all()
        assert np.abs(v - u).sum() <= 1.0001 * abs(u.sum())
    assert not sums_to_zero(np.array([1.0, 2.0])).any()


def test_blocked_product_is_within_its_bound() -> None:
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((5, 700)), rng.standard_normal((700, 2))
    exact = np.array([[mpmath.fdot(a.tolist(), b.tolist()) for b in B.T] for a in A])
    error = np.abs((blocked_product(A, B) - exact).astype(float))
    assert (error <= n_roundings(700) * 2.0**-53 * (np.abs(A) @ np.abs(B))).all()
    assert n_roundings(700) < 25


LIMITS = {1.0: 30, 2.0: 40}


@pytest.mark.parametrize("kind", ["columns", "widths"])
@pytest.mark.parametrize("q", [1.0, 2.0])
def test_certified_gap_in_few_evaluations(kind: str, q: float) -> None:
    grams, y = large_problem(kind)
    for lam in (1e-2, 1.0):
        for center in (0.0, 1.0):
            problem = stack_problem(grams, y, Ridge(C=1 / lam), LqBall(q=q, center=center))
            result = solve(problem, "krr-auto", tol=1e-8, random_state=0)
            assert result.status is Status.CONVERGED
            assert result.gap <= 1e-8
            assert result.history.counts["n_evaluations"][-1] <= LIMITS[q]


def test_constant_target_is_solved_exactly() -> None:
    grams, _ = random_grams()
    problem = stack_problem(grams, np.full(14, 3.3), Ridge(fit_intercept=True), LqBall())
    result = solve(problem, "krr-auto", tol=1e-9)
    assert (result.lower_bound, result.upper_bound) == (0.0, 0.0)
    assert result.solution.intercept[0] == 3.3
