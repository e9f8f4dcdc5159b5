"""The paper as printed against the paper as corrected, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import Status, solve
from kernelweave.qp_smo import Ridge
from kernelweave.ridge_mkl import (
    LqBall,
    Orthant,
    margin_bound,
    rademacher_bound,
)
from kernelweave.ridge_mkl.trust_region import riemannian_hessian, solve_subproblem, tangent_basis

from .ridge_problems import (
    random_grams,
    ridge_gradient,
    ridge_hessian,
    ridge_objective,
    stack_problem,
)


def test_printed_hessian_is_half() -> None:
    grams, y = random_grams()
    mu = np.ones(4)
    A = np.tensordot(mu, grams, 1) + 0.3 * np.eye(14)
    alpha = np.linalg.solve(A, y)
    printed = np.array([[alpha @ K @ np.linalg.solve(A, J @ alpha) for J in grams] for K in grams])
    np.testing.assert_allclose(ridge_hessian(grams, y, mu, lam=0.3), 2 * printed, rtol=1e-9)


@pytest.mark.parametrize("q", [1.0, 4.0])
def test_printed_normalisation_stops_above_the_optimum(q: float) -> None:
    grams, y = random_grams(seed=1)
    problem = stack_problem(grams, y, Ridge(C=20.0), LqBall(q=q, center=1.0, radius=2.0))
    best = solve(problem, "krr-newton", tol=1e-9).value
    mu = np.ones(4) + 2.0 * 4 ** (-1 / q)
    for _ in range(3000):
        mu = mu - 0.05 * ridge_gradient(grams, y, mu, lam=0.05)
        mu = 1.0 + 2.0 * (mu - 1.0) / np.linalg.norm(mu - 1.0, q)
    assert ridge_objective(grams, y, mu, lam=0.05) > best * 1.003


def test_printed_algorithm_6_climbs_and_ours_descends() -> None:
    grams, y = random_grams()
    value = lambda mu: ridge_objective(grams, y, mu, lam=0.3, degree=2, beta=0.2)  # noqa: E731
    gradient = ridge_gradient(grams, y, np.ones(4), lam=0.3, degree=2, beta=0.2)
    assert value(np.ones(4) + 0.05 * gradient) > value(np.ones(4))
    problem = stack_problem(grams, y, Ridge(C=1 / 0.3), Orthant(beta=0.2), degree=2)
    result = solve(problem, "krr-rpgd2", tol=1e-8, random_state=0)
    assert result.status is Status.CONVERGED
    assert result.value < value(np.ones(4))
    again = solve(problem, "krr-spg", tol=1e-8, random_state=1)
    assert again.value == pytest.approx(result.value, rel=1e-7)


def test_zero_start_is_refused_above_degree_1() -> None:
    grams, y = random_grams()
    ball = LqBall(center=0.0)
    with pytest.raises(ValueError, match="stationary maximum"):
        solve(stack_problem(grams, y, Ridge(), ball, degree=2), "krr-pgd2", mu_init=np.zeros(4))
    result = solve(stack_problem(grams, y, Ridge(), ball), "krr-newton", mu_init=np.zeros(4))
    assert result.status is Status.CONVERGED


@pytest.mark.parametrize("center", [0.0, (0.1, 2.0, 2.0, 2.0), (0.0, 3.0, 0.0, 3.0)])
@pytest.mark.parametrize("degree", [1, 2])
def test_a_sphere_that_leaves_the_orthant(center: Any, degree: int) -> None:
    """Λ ≤ ‖μ₀‖_∞ does not keep the sphere in the orthant: its part with μ ≥ μ₀ has the optimum."""
    grams, y = random_grams()
    problem = stack_problem(grams, y, Ridge(C=20.0), LqBall(center=center), degree=degree)
    for start in (None, np.array([1.0, 0.0, 0.0, 0.0])):
        mu_init = None if start is None else start + center
        result = solve(problem, "krr-trust-region", tol=1e-7, mu_init=mu_init)
        assert result.status is Status.CONVERGED
        assert np.all(result.parameters >= np.asarray(center))
        other = solve(problem, "krr-spg", tol=1e-7)
        assert result.lower_bound <= other.upper_bound
        assert other.lower_bound <= result.upper_bound


def test_the_trust_region_is_for_the_sphere() -> None:
    grams, y = random_grams()
    for degree, other in ((1, "krr-newton"), (2, "krr-spg")):
        problem = stack_problem(grams, y, Ridge(), LqBall(q=3.0), degree=degree)
        with pytest.raises(ValueError, match=rf"needs q = 2, got q=3\.0: use {other}"):
            solve(problem, "krr-trust-region")


def test_riemannian_hessian_by_finite_differences() -> None:
    grams, y = random_grams()
    x = np.array([0.5, 0.5, 0.1, 0.7])
    x /= np.linalg.norm(x)
    g = ridge_gradient(grams, y, 1.0 + x, lam=0.3)
    H = ridge_hessian(grams, y, 1.0 + x, lam=0.3)
    B = tangent_basis(x)
    hess = riemannian_hessian(x, g, H, B)

    def along(xi: np.ndarray) -> float:
        return ridge_objective(grams, y, 1.0 + (x + xi) / np.linalg.norm(x + xi), lam=0.3)

    h = 1e-3
    for k in range(3):
        d = h * B[:, k]
        numeric = (along(d) - 2 * along(0 * d) + along(-d)) / h**2
        assert numeric == pytest.approx(hess[k, k], rel=1e-4)
        assert numeric != pytest.approx((B.T @ H @ B)[k, k], rel=1e-2)


@pytest.mark.parametrize("hard", [False, True])
def test_subproblem_is_global(hard: bool) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        H = np.diag(np.sort(rng.standard_normal(4)))
        g = rng.standard_normal(4)
        if hard:
            g[0] = 0.0
        xi = solve_subproblem(H, g, 0.8)
        assert np.linalg.norm(xi) <= 0.8 * (1 + 1e-9)
        trials = rng.standard_normal((20000, 4))
        trials *= 0.8 * rng.random((20000, 1)) ** 0.25 / np.linalg.norm(trials, axis=1)[:, None]
        values = trials @ g + 0.5 * np.sum((trials @ H) * trials, axis=1)
        assert g @ xi + 0.5 * xi @ H @ xi <= values.min() + 1e-9


def test_iia_refuses_q_1() -> None:
    grams, y = random_grams()
    with pytest.raises(ValueError, match="krr-newton"):
        solve(stack_problem(grams, y, Ridge(), LqBall(q=1)), "krr-iia")


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize(("p", "m"), [(2, 20), (6, 60)])
def test_rademacher_bound_is_above_a_monte_carlo_average(degree: int, p: int, m: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, 2))
    distance = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    grams = np.array([np.exp(-(2.0 ** (-k)) * distance) for k in range(p)])
    suprema = []
    for _ in range(2000):
        s = rng.choice([-1.0, 1.0], size=m)
        if degree == 1:  # the supremum over the ball of sᵀK_μs
            top = np.linalg.norm([s @ K @ s for K in grams])
        else:  # μᵀQμ at most the largest eigenvalue of Q
            Q = [[s @ (K * J) @ s for J in grams] for K in grams] if p < 4 else None
            top = (
                np.linalg.eigvalsh(Q)[-1]
                if Q
                else np.linalg.norm(
                    np.einsum("i,jik,lik,k->jl", s, grams, grams, s, optimize=True), 2
                )
            )
        suprema.append(np.sqrt(top) / m)
    average = float(np.mean(suprema))
    bound = rademacher_bound(m, p, degree=degree)
    assert average <= bound
    assert bound <= 4.0 * average


def test_margin_bound_has_twice_the_complexity() -> None:
    low = margin_bound(1000, 5, margin=0.5, delta=0.1)
    high = margin_bound(1000, 5, margin=0.25, delta=0.1)
    assert high - low == pytest.approx(2 * (4 - 2) * rademacher_bound(1000, 5))
    assert np.sqrt(46 / 11) < 2 * np.sqrt(23 / 11)  # what is printed is less than what follows
    with pytest.raises(ValueError, match="margin"):
        margin_bound(10, 2, margin=0.0)
