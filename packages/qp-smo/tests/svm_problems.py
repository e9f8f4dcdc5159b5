"""Problems that several test files solve, and oracles that share no code with the package."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def rbf(X, gamma):
    d = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return np.exp(-gamma * d)


def two_classes(n=60, d=4, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] * X[:, 1] + noise * rng.normal(size=n) > 0.0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y


def real_targets(n=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)


def exact(values):
    return [Fraction(float(v)) for v in values]


def exact_dual(K, p, epsilon, u):
    """The dual value in rational arithmetic."""
    u, p = exact(u), exact(p)
    n = len(u)
    linear = sum(p[i] * u[i] for i in range(n)) - Fraction(epsilon) * sum(abs(x) for x in u)
    quadratic = sum(
        u[i] * u[j] * Fraction(float(K[i, j])) for i in range(n) for j in range(n) if u[i] and u[j]
    )
    return linear - quadratic / 2


def exact_primal(K, p, epsilon, lower, upper, u, b):
    """The primal value at f = Ku in rational arithmetic."""
    n = len(u)
    u, p, lower, upper = exact(u), exact(p), exact(lower), exact(upper)
    b, epsilon = Fraction(float(b)), Fraction(float(epsilon))
    f = [sum(Fraction(float(K[i, j])) * u[j] for j in range(n) if u[j]) for i in range(n)]
    loss = sum(
        upper[i] * max(p[i] - f[i] - b - epsilon, 0) - lower[i] * max(f[i] + b - p[i] - epsilon, 0)
        for i in range(n)
    )
    return sum(u[i] * f[i] for i in range(n)) / 2 + loss


def violation(K, p, epsilon, lower, upper, u, slack=0.0):
    """The maximal violating pair, in plain NumPy with a loop."""
    g = p - K @ u
    up, down = [], []
    for i in range(len(u)):
        if u[i] < upper[i] - slack:
            up.append(g[i] - epsilon if u[i] >= 0 else g[i] + epsilon)
        if u[i] > lower[i] + slack:
            down.append(g[i] - epsilon if u[i] > 0 else g[i] + epsilon)
    return max(0.0, max(up) - min(down))


def exact_bound(K, y, lower, upper, solution):
    """The least primal value over b at ``(1 + stretch) u`` of a classifier, in rationals."""
    n, longer = len(y), 1 + Fraction(solution.stretch)
    K = K.tolist() if isinstance(K, np.ndarray) else K
    u = [longer * x for x in exact(solution.dual_coef)]
    p, lower, upper = exact(y), exact(lower), exact(upper)
    f = [sum(Fraction(K[i][j]) * u[j] for j in range(n) if u[j]) for i in range(n)]
    losses = [
        sum(
            upper[i] * max(p[i] - f[i] - b, 0) - lower[i] * max(f[i] + b - p[i], 0)
            for i in range(n)
        )
        for b in {p[i] - f[i] for i in range(n)}
    ]
    return sum(u[i] * f[i] for i in range(n)) / 2 + min(losses)
