"""Projections and dual bounds of the sets against a conic solver and brute force."""

from __future__ import annotations

import math
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from kernelweave.kernels_core.formula import Solution, lower_bound
from kernelweave.ridge_mkl import LqBall, Orthant
from kernelweave.ridge_mkl.projected_newton import minimize_quadratic
from scipy.optimize import minimize_scalar


@pytest.mark.parametrize("q", [1.0, 1.2, 1.5, 2.0, 3.0, 4.0, np.inf])
@pytest.mark.parametrize("radius", [0.5, 3.0])
def test_projection(conic_optimum: Any, q: float, radius: float) -> None:
    z = 2.0 * np.random.default_rng(0).standard_normal(6)
    t = cp.Variable(6, nonneg=True)
    nearest = cp.Problem(cp.Minimize(cp.sum_squares(t - z)), [cp.norm(t, q) <= radius])
    best, digits = conic_optimum(nearest, 1e-9)
    own = LqBall(q=q, radius=radius).project(z)
    assert (own >= 0).all()
    assert np.linalg.norm(own, q) <= radius * (1 + 1e-12)
    assert float(np.sum((own - z) ** 2)) == pytest.approx(best, rel=max(1e-6, digits), abs=1e-8)


def test_projection_keeps_points_inside() -> None:
    z = np.array([0.1, 0.0, 0.3])
    np.testing.assert_array_equal(LqBall(q=1.5).project(z), z)


@pytest.mark.parametrize("q", [1.0, 1.5, 2.0, 4.0, np.inf])
def test_support_and_maximizer(conic_optimum: Any, q: float) -> None:
    ball = LqBall(q=q, radius=0.7, center=0.4)
    v = np.random.default_rng(0).exponential(size=5)
    mu = cp.Variable(5, nonneg=True)
    largest = cp.Problem(cp.Maximize(v @ mu), [cp.norm(mu - 0.4, q) <= 0.7])
    best, digits = conic_optimum(largest, 1e-9)
    assert ball.worst(v) == pytest.approx(best, rel=max(1e-7, digits))
    assert float(v @ ball.maximizer(v)) == pytest.approx(best, rel=max(1e-7, digits))
    assert ball.worst(v) >= float(v @ ball.maximizer(v))


@pytest.mark.parametrize("longest", [math.inf, 1.0])
@pytest.mark.parametrize("constraint", [Orthant(beta=0.6), LqBall(q=1.5, radius=0.7)])
def test_lower_bound_is_the_best_multiple(longest: float, constraint: Any) -> None:
    v, a, b = np.array([0.5, 2.0]), 3.0, 0.7
    at = np.zeros((1, 2))
    solution = Solution(
        dual_coef=at,
        intercept=np.zeros(1),
        lower_bound=0.0,
        upper_bound=1.0,
        function_values=at,
        slope=at,
        linear=a,
        quadratic=b,
        longest=longest,
    )

    def minus(s: float) -> float:
        return constraint.worst(0.5 * s * s * v) + 0.5 * s * s * b - s * a

    end = min(longest, 6.0)
    found = minimize_scalar(minus, bounds=(0.0, end), options={"xatol": 1e-12})
    brute = -min(float(found.fun), minus(end))
    assert lower_bound(solution, constraint, v) == pytest.approx(brute, rel=1e-9)
    assert lower_bound(solution, constraint, v) <= brute * (1 + 1e-9)


@pytest.mark.parametrize("q", [None, 1.0, 1.5, 2.0, 4.0])
@pytest.mark.parametrize("rank", [2, 6])
def test_quadratic_program(conic_optimum: Any, q: float | None, rank: int) -> None:
    rng = np.random.default_rng(5)
    B = rng.standard_normal((rank, 6))
    H = B.T @ B + (1e-3 * np.eye(6) if q is None else 0.0)
    g = -rng.exponential(size=6)
    t = cp.Variable(6, nonneg=True)
    limits = [] if q is None else [cp.norm(t, q) <= 1]
    root = np.linalg.cholesky(H + 1e-14 * np.eye(6)).T
    least = cp.Problem(cp.Minimize(g @ t + 0.5 * cp.sum_squares(root @ t)), limits)
    best, digits = conic_optimum(least, 1e-9)
    own = minimize_quadratic(H, g, q, np.full(6, 0.2))
    assert float(g @ own + 0.5 * own @ H @ own) == pytest.approx(best, rel=max(1e-6, digits))


@pytest.mark.parametrize(
    ("ball", "said"),
    [
        (LqBall(q=0.5), "q must be a number >= 1"),
        (LqBall(radius=0.0), "radius"),
        (LqBall(center=-1.0), "center"),
        (Orthant(beta=0.0), "beta"),
    ],
)
def test_refusals(ball: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ball.validate()


def test_as_many_centers_as_kernels() -> None:
    with pytest.raises(ValueError, match="one per kernel"):
        LqBall(center=(1.0, 2.0)).centers(3)
