"""Gradients and Hessians against finite differences, on arrays and through the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernelweave.qp_smo import Ridge, SquaredHingeSVC
from kernelweave.ridge_mkl import LqBall, Orthant
from kernelweave.ridge_mkl.oracle import Oracle

from .ridge_problems import (
    random_grams,
    ridge_gradient,
    ridge_hessian,
    ridge_objective,
    stack_problem,
)


def central(function: Any, x: np.ndarray, h: float = 1e-5) -> np.ndarray:
    columns = [
        (np.asarray(function(x + h * e)) - np.asarray(function(x - h * e))) / (2 * h)
        for e in np.eye(len(x))
    ]
    return np.array(columns).T


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("beta", [0.0, 0.7])
def test_functions_on_arrays(degree: int, beta: float) -> None:
    grams, y = random_grams()
    mu = np.array([0.4, 0.9, 0.2, 1.3])
    options: dict[str, Any] = {"lam": 0.3, "degree": degree, "beta": beta}
    gradient = ridge_gradient(grams, y, mu, **options)
    numeric = central(lambda x: ridge_objective(grams, y, x, **options), mu)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-8)
    hessian = ridge_hessian(grams, y, mu, **options)
    numeric = central(lambda x: ridge_gradient(grams, y, x, **options), mu)
    np.testing.assert_allclose(hessian, numeric, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("learner", [Ridge(C=2.0), Ridge(C=2.0, fit_intercept=True), "hinge"])
@pytest.mark.parametrize("constraint", [LqBall(), Orthant(beta=0.3)])
def test_oracle(degree: int, learner: Any, constraint: Any) -> None:
    grams, y = random_grams()
    targets: Any = np.vstack([y, y[::-1] ** 2])
    if learner == "hinge":
        learner, targets = SquaredHingeSVC(C=2.0), np.where(targets > 0.3, 1.0, -1.0)
    weight = np.linspace(0.5, 2.0, len(y))
    problem = stack_problem(grams, targets, learner, constraint, degree=degree, weight=weight)
    oracle = Oracle(problem)
    mu = np.array([0.4, 0.9, 0.2, 1.3])
    at = oracle.evaluate(mu)
    hessian, scaled = oracle.hessian(at), oracle.scaled_hessian(at)
    _, scaled_gradient, _ = oracle.scaled(at)
    value = central(lambda x: oracle.evaluate(x).value, mu)
    np.testing.assert_allclose(at.gradient, value, rtol=1e-6, atol=1e-7)
    slope = central(lambda x: oracle.evaluate(x).gradient, mu)
    np.testing.assert_allclose(hessian, slope, rtol=1e-5, atol=1e-6)
    value = central(lambda x: oracle.scaled(oracle.evaluate(x))[0], mu)
    np.testing.assert_allclose(scaled_gradient, value, rtol=1e-6, atol=1e-7)
    slope = central(lambda x: oracle.scaled(oracle.evaluate(x))[1], mu)
    np.testing.assert_allclose(scaled, slope, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("learner", [Ridge(C=2.0), Ridge(C=2.0, fit_intercept=True), "hinge"])
def test_inverse_objective_is_concave(learner: Any) -> None:
    grams, y = random_grams()
    targets: Any = np.vstack([y, y[::-1]])
    if learner == "hinge":
        learner, targets = SquaredHingeSVC(C=2.0), np.where(targets > 0.1, 1.0, -1.0)
    oracle = Oracle(stack_problem(grams, targets, learner, LqBall()))
    rng = np.random.default_rng(3)
    for _ in range(10):
        at = oracle.evaluate(rng.exponential(size=4))
        H = oracle.scaled_hessian(at)
        assert np.linalg.eigvalsh(H)[0] >= -1e-10 * np.abs(H).max()


def test_oracle_agrees_with_functions() -> None:
    grams, y = random_grams()
    mu = np.array([0.4, 0.9, 0.2, 1.3])
    oracle = Oracle(stack_problem(grams, y, Ridge(C=2.0), LqBall(), degree=2))
    at = oracle.evaluate(mu)
    # the paper's objective is twice the problem's
    value = ridge_objective(grams, y, mu, lam=0.5, degree=2)
    assert at.value == pytest.approx(0.5 * value, rel=1e-12)
    wanted = 0.5 * ridge_gradient(grams, y, mu, lam=0.5, degree=2)
    np.testing.assert_allclose(at.gradient, wanted, rtol=1e-11)


def test_float32_grams_are_read_in_place() -> None:
    grams, y = random_grams()
    small = grams.astype(np.float32)
    problem = stack_problem(small, y, Ridge(), LqBall())
    problem.family.__dict__["grams"] = small
    oracle = Oracle(problem)
    assert oracle.grams.dtype == np.float32
    at = oracle.evaluate(np.ones(4))
    exact = 0.5 * ridge_objective(small.astype(float), y, np.ones(4), lam=1.0)
    assert at.value == pytest.approx(exact, rel=1e-12)
