"""Gaussian processes with a smooth information criterion, a method to compare with.

After Murphy and Benavoli (2026), "Constraint- and Score-Based Nonlinear Granger Causality Discovery
with Kernels", arXiv:2601.09579: a length scale for each series, of which the penalty of O'Neill and
Burke (2023, Statistics and Computing 33:71) removes those that do not earn log(n)/2 nats of the
evidence. This is a program of ours; theirs is no package.
"""

from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.spatial.distance import pdist, squareform

# the penalty's ε falls from the first to the last in so many steps, each from the last's solution
_FIRST, _LAST, _STEPS = 10.0, 1e-5, 20
_JITTER = 1e-8


def gp_sic(X: FloatArray) -> FloatArray:
    """Return graph[i, j], the inverse length scale of series j's past for series i; one lag."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    squares = np.array([squareform(pdist(past[:, None], "sqeuclidean")) for past in Z[:-1].T])
    return np.array([_inverse_scales(squares, target) for target in Z[1:].T])


def _inverse_scales(squares: FloatArray, target: FloatArray) -> FloatArray:
    d, n = squares.shape[:2]
    # inverse length scales, and the logarithms of the function's and the noise's variance
    point = np.concatenate([np.full(d, d**-0.5), [0.0, np.log(0.1)]])
    for eps in np.geomspace(_FIRST, _LAST, _STEPS):
        bounds = [(0.0, None)] * d + [(-10.0, 10.0), (-14.0, 5.0)]
        found = minimize(
            penalised, point, (squares, target, 0.5 * np.log(n), eps), jac=True, bounds=bounds
        )
        point = found.x
    scales: FloatArray = point[:d]
    return scales


def penalised(
    point: FloatArray, squares: FloatArray, target: FloatArray, price: float, eps: float
) -> tuple[float, FloatArray]:
    """Return -log p(target) + price Σ θⱼ²/(θⱼ² + ε²), and its gradient.

    - `point` of shape (n_series + 2,): θ, log of the function's variance, log of the noise's
    - `squares` of shape (n_series, n, n): squared distances in each series
    """
    theta, variance, noise = point[:-2], *np.exp(point[-2:])
    n = len(target)
    K = variance * np.exp(-0.5 * np.tensordot(theta**2, squares, axes=1))
    factor = cho_factor(K + (noise + _JITTER) * np.eye(n), lower=True)
    alpha = cho_solve(factor, target)
    value = 0.5 * target @ alpha + np.log(np.diag(factor[0])).sum() + 0.5 * n * np.log(2 * np.pi)
    # of half the trace of (S⁻¹ − ααᵀ) dS
    outer = cho_solve(factor, np.eye(n)) - np.outer(alpha, alpha)
    weighted = outer * K
    by_theta = -0.5 * theta * np.tensordot(squares, weighted, axes=2)
    by_logs = 0.5 * np.array([weighted.sum(), noise * np.trace(outer)])
    below = theta**2 + eps**2
    by_theta += price * 2 * theta * eps**2 / below**2
    return value + price * (theta**2 / below).sum(), np.concatenate([by_theta, by_logs])
