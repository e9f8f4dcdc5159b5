# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Compiled Newton steps on the free variables, one Cholesky factor kept up to date by rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from kernelweave.kernels_core.compiled import njit

_JIT = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz"},
}


def scratch(size: int) -> tuple[Any, ...]:
    """Return the arrays that `newton_steps` works in, for up to ``size`` free variables."""
    square = np.empty((2, size, size))
    return np.empty((2, size), dtype=np.int64), square[0], square[1], np.empty((6, size))


@njit(**_JIT)
def _factor(gram, keep, m, first, ridge, low):
    """Write the rows ``first`` to m of the Cholesky factor of ``gram[keep, keep] + ridge·I``."""
    for i in range(first, m):
        for j in range(i + 1):
            x = gram[keep[i], keep[j]]
            for k in range(j):
                x -= low[i, k] * low[j, k]
            if j < i:
                low[i, j] = x / low[j, j]
            elif x + ridge > 0.0:
                low[i, i] = np.sqrt(x + ridge)
            else:
                return False
    return True


@njit(**_JIT)
def _direction(low, keep, m, g, ones, delta):
    """Write the Newton direction with ``Σδ = 0`` for the gradient g; return ``gᵀδ``."""
    for i in range(m):
        x = g[keep[i]]
        z = 1.0
        for k in range(i):
            x -= low[i, k] * delta[k]
            z -= low[i, k] * ones[k]
        delta[i] = x / low[i, i]
        ones[i] = z / low[i, i]
    sum_delta = sum_ones = 0.0
    for i in range(m - 1, -1, -1):
        x = delta[i] / low[i, i]
        z = ones[i] / low[i, i]
        sum_delta += x
        sum_ones += z
        delta[i] = x
        ones[i] = z
        for j in range(i):
            delta[j] -= x * low[i, j]
            ones[j] -= z * low[i, j]
    shift = sum_delta / sum_ones
    rest = slope = 0.0
    for i in range(m):
        delta[i] -= shift * ones[i]
        rest += delta[i]
    for i in range(m):
        delta[i] -= rest / m
        slope += g[keep[i]] * delta[i]
    return slope


@njit(**_JIT)
def _climb(gram, n, x, g, low, high, ridge, work, keep, factor, delta, ones):
    """Climb on all variables of a small problem, dropping each that meets its bound.

    Changes x and the gradient g; returns the number of steps.
    """
    m = n
    for i in range(m):
        keep[i] = i
    first: Any = np.int64(0)  # a literal would be another variant of the factor
    steps = 0
    spent = 0.0
    while m >= 2 and spent < work:
        spent += (m * m * m - first * first * first) / 6.0 + 4.0 * m * m
        if not _factor(gram, keep, m, first, ridge, factor):
            break
        if not 0.0 < _direction(factor, keep, m, g, ones, delta) < np.inf:
            break
        t = 1.0
        first = m
        for i in range(m):
            room = (high[keep[i]] if delta[i] > 0.0 else low[keep[i]]) - x[keep[i]]
            if abs(t * delta[i]) > abs(room):
                t = abs(room / delta[i])
                first = i
        for i in range(m):
            at = keep[i]
            step = t * delta[i]
            x[at] += step
            for k in range(n):
                g[k] -= step * gram[at, k]
        steps += 1
        if first == m:
            break
        x[keep[first]] = high[keep[first]] if delta[first] > 0.0 else low[keep[first]]
        m -= 1
        for i in range(first, m):
            keep[i] = keep[i + 1]
    return steps


@njit(**_JIT)
def newton_steps(K, p, u, f, lower, upper, eps, work, index, gram, factor, lines):
    """Maximise the dual over the free variables, dropping one at each bound that is met.

    Parameters
    ----------
    K : ndarray of shape (n, n), float64 or float32, read only
    p, u, f, lower, upper : ndarray of shape (n,), float64
        A feasible point u and ``f = Ku`` are changed in place.
    eps : float
    work : float
        Multiply-adds after which no further step starts.
    index, gram, factor, lines : ndarray of shape (2, s), (s, s), (s, s) and (6, s)
        From `scratch`; with more than s free variables nothing is done.

    Returns
    -------
    tuple
        The number of steps, and of free variables m.

    Notes
    -----
    ``m³/6`` multiply-adds for the first factor, the part behind the dropped row for each later
    one, and nm at the end for f.
    """
    free, x, g, low, high = index[0], lines[0], lines[1], lines[2], lines[3]
    m = np.int64(0)
    for k in range(u.size):
        if lower[k] < u[k] < upper[k] and (eps == 0.0 or u[k] != 0.0):
            if m == free.size:
                return 0, 0
            free[m] = k
            m += 1
    if m < 2:
        return 0, 0
    trace = 0.0
    for i in range(m):
        k = free[i]
        for j in range(m):
            gram[i, j] = K[k, free[j]]
        trace += gram[i, i]
        x[i] = u[k]
        g[i] = p[k] - f[k] - (eps if u[k] > 0.0 else -eps)
        low[i] = 0.0 if eps > 0.0 and u[k] > 0.0 else lower[k]
        high[i] = 0.0 if eps > 0.0 and u[k] < 0.0 else upper[k]
    ridge = 1e-13 * trace if trace > 1e-287 else 1e-300
    steps = _climb(gram, m, x, g, low, high, ridge, work, index[1], factor, lines[4], lines[5])
    for i in range(m):
        move = x[i] - u[free[i]]
        if move != 0.0:
            k = free[i]
            u[k] = x[i]
            for j in range(u.size):
                f[j] += move * K[k, j]
    return steps, m
