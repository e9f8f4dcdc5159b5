"""Problems that several test files share."""

from __future__ import annotations

from typing import Any

import numpy as np
from kernelweave.kernels_core import RBF, KernelDictionary, Problem
from kernelweave.kernels_core.grams import PrecomputedDictionary
from kernelweave.ridge_mkl.families import power_of


def stack_problem(
    grams: Any, y: Any, learner: Any, constraint: Any, *, degree: int = 1, weight: Any = None
) -> Problem:
    grams, y = np.asarray(grams, dtype=float), np.asarray(y, dtype=float)
    family = power_of(PrecomputedDictionary(grams), degree)
    return Problem(family, learner, constraint, np.arange(y.shape[-1])[:, None] * 1.0, y, weight)


def random_grams(n: int = 14, p: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    kernels = [RBF(0.3 * 2.0**k) for k in range(p - 1)]
    grams = np.array([*(k(X) for k in kernels), X @ X.T])
    return grams, rng.standard_normal(n)


def large_problem(kind: str, *, m: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """30 unit-diagonal kernels: three widths on each of ten columns, or thirty widths on all."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 10))
    if kind == "columns":
        kernels = [RBF(2.0**e).on([c]) for c in range(10) for e in (-2, 0, 2)]
    else:
        kernels = [RBF(float(g)) for g in 2.0 ** np.linspace(-6, 4, 30)]
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 - 1 + 0.3 * rng.standard_normal(m)
    return KernelDictionary(kernels).fit_grams(X).grams, y - y.mean()


def ridge_objective(
    grams: Any, y: Any, mu: Any, *, lam: float, degree: int = 1, beta: float = 0.0
) -> float:
    """yᵀ((Σ μₖKₖ)^{∘d} + λI)⁻¹y + β‖μ‖², as the paper writes it."""
    _, alpha, mu = _solved(grams, y, mu, lam, degree)
    return float(np.asarray(y) @ alpha + beta * mu @ mu)


def ridge_gradient(
    grams: Any, y: Any, mu: Any, *, lam: float, degree: int = 1, beta: float = 0.0
) -> np.ndarray:
    """Algorithms 5 and 6 solve for α without the power; with it, the formula holds."""
    L, alpha, mu = _solved(grams, y, mu, lam, degree)
    inner = L ** (degree - 1)
    return np.array([-degree * alpha @ (inner * K) @ alpha for K in grams]) + 2.0 * beta * mu


def ridge_hessian(
    grams: Any, y: Any, mu: Any, *, lam: float, degree: int = 1, beta: float = 0.0
) -> np.ndarray:
    """The Hessian after (7) lacks the factor 2."""
    L, alpha, mu = _solved(grams, y, mu, lam, degree)
    G = np.array([(L ** (degree - 1) * K) @ alpha for K in grams])
    A = L**degree + lam * np.eye(len(L))
    H = 2.0 * degree**2 * G @ np.linalg.solve(A, G.T) + 2.0 * beta * np.eye(len(mu))
    if degree > 1:
        inner = np.outer(alpha, alpha) * L ** (degree - 2)
        H -= (
            degree
            * (degree - 1)
            * np.array([[np.sum(inner * J * K) for J in grams] for K in grams])
        )
    return H


def _solved(
    grams: Any, y: Any, mu: Any, lam: float, degree: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mu = np.asarray(mu, dtype=float)
    L = np.tensordot(mu, np.asarray(grams, dtype=float), 1)
    return L, np.linalg.solve(L**degree + lam * np.eye(len(L)), np.asarray(y, dtype=float)), mu


def ridge_dual(K: np.ndarray, y: np.ndarray, lam: float) -> np.ndarray:
    """The maximiser of 2uᵀy − uᵀ(K + λI)u."""
    return np.asarray(np.linalg.solve(K + lam * np.eye(len(K)), y))


def hinge_dual(K: np.ndarray, y: np.ndarray, lam: float) -> np.ndarray:
    """The maximiser u = y∘α of 2·1ᵀα − uᵀ(K + λI)u, α ≥ 0, Σu = 0, exact once its rows are known.

    Newton steps in (u, b) on min uᵀKu + Σ max(0, 1 − yf)²/λ, f = Ku + b, halved until it falls.
    """
    n = len(y)
    u, b = np.zeros(n), 0.0

    def primal(u: np.ndarray, b: float) -> float:
        return float(u @ K @ u + np.sum(np.maximum(0.0, 1.0 - y * (K @ u + b)) ** 2) / lam)

    for _ in range(200):
        rows = np.flatnonzero(y * (K @ u + b) < 1.0)
        system = np.ones((len(rows) + 1, len(rows) + 1))
        system[:-1, :-1] = K[np.ix_(rows, rows)] + lam * np.eye(len(rows))
        system[-1, -1] = 0.0
        found = np.linalg.solve(system, np.append(y[rows], 0.0))
        newton = np.zeros(n)
        newton[rows] = found[:-1]
        if np.array_equal(rows, np.flatnonzero(y * (K @ newton + found[-1]) < 1.0)):
            return newton
        step, before = 1.0, primal(u, b)
        ahead, rise = newton - u, float(found[-1]) - b
        while step > 1e-9 and primal(u + step * ahead, b + step * rise) >= before:
            step *= 0.5
        u, b = u + step * ahead, b + step * rise
    raise AssertionError("no rows that stay")
