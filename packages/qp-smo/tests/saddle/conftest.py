import numpy as np
import pytest


def small_problem(n=24, q=4, seed=0):
    """Return Grams of different shape and scale, and noisy labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.standard_normal(n) > 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    square = ((X[:, None] - X[None]) ** 2).sum(-1)
    grams = [X @ X.T, (0.1 * X @ X.T + 1.0) ** 2]
    grams += [np.exp(-(2.0**e) * square) for e in range(-2, q - 4)]
    return np.stack(grams[:q]), y, X


@pytest.fixture
def problem():
    return small_problem()


@pytest.fixture
def make_problem():
    return small_problem
