"""Problems that several test files share."""

from __future__ import annotations

from typing import Any

import numpy as np
from kernelweave.kernels_core import RBF, KernelDictionary, Problem
from kernelweave.kernels_core.estimators import PrecomputedStack
from kernelweave.ridge_mkl.families import FittedFamily


def stack_problem(
    grams: Any, y: Any, learner: Any, constraint: Any, *, degree: int = 1, weight: Any = None
) -> Problem:
    grams, y = np.asarray(grams, dtype=float), np.asarray(y, dtype=float)
    family = FittedFamily(PrecomputedStack(grams), degree)
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
