# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Compiled Newton steps on the free variables, one Cholesky factor kept up to date by rows."""

from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.compiled import njit


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def _dot(a, b, m):
    s = 0.0
    for k in range(m):
        s += a[k] * b[k]
    return s


@njit(cache=True, nogil=True, error_model="numpy")
def _factor(gram, keep, m, first, ridge, low):
    """Write the rows ``first`` to m of the Cholesky factor of ``gram[keep, keep] + ridge·I``."""
    for i in range(first, m):
        row = low[i]
        source = gram[keep[i]]
        for j in range(i):
            row[j] = (source[keep[j]] - _dot(row, low[j], j)) / low[j, j]
        pivot = source[keep[i]] + ridge - _dot(row, row, i)
        if not pivot > 0.0:
            return False
        row[i] = np.sqrt(pivot)
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _solve(low, m, b):
    """Overwrite b with the solution of ``L Lᵀ x = b``."""
    for i in range(m):
        b[i] = (b[i] - _dot(low[i], b, i)) / low[i, i]
    for i in range(m - 1, -1, -1):
        b[i] /= low[i, i]
        row = low[i]
        x = b[i]
        for j in range(i):
            b[j] -= x * row[j]


@njit(cache=True, nogil=True, error_model="numpy")
def _direction(low, m, g, ones, delta):
    """Write the Newton direction with ``Σδ = 0`` for the gradient g; return ``gᵀδ``."""
    for i in range(m):
        delta[i] = g[i]
        ones[i] = 1.0
    _solve(low, m, delta)
    _solve(low, m, ones)
    sum_delta = 0.0
    sum_ones = 0.0
    for i in range(m):
        sum_delta += delta[i]
        sum_ones += ones[i]
    shift = sum_delta / sum_ones
    rest = 0.0
    for i in range(m):
        delta[i] -= shift * ones[i]
        rest += delta[i]
    slope = 0.0
    for i in range(m):
        delta[i] -= rest / m
        slope += g[i] * delta[i]
    return slope


@njit(cache=True, nogil=True, error_model="numpy")
def _step_length(x, low, high, keep, delta, m):
    """Return the longest step up to 1 that stays in the box, and what blocks it or -1."""
    t = 1.0
    at = -1
    for i in range(m):
        k = keep[i]
        d = delta[i]
        if d > 0.0 and x[k] + t * d > high[k]:
            t = max((high[k] - x[k]) / d, 0.0)
            at = i
        elif d < 0.0 and x[k] + t * d < low[k]:
            t = max((low[k] - x[k]) / d, 0.0)
            at = i
    return t, at


@njit(cache=True, nogil=True, error_model="numpy")
def _climb(gram, x, g, low, high, ridge, work):
    """Climb on all variables of a small problem, dropping each that meets its bound.

    Changes x and the gradient g; returns the number of steps.
    """
    m = x.size
    keep = np.arange(m)
    factor = np.empty((m, m))
    delta = np.empty(m)
    ones = np.empty(m)
    local = np.empty(m)
    first = np.int64(0)
    steps = 0
    spent = 0.0
    while m >= 2 and spent < work:
        spent += (m**3 - first**3) / 6.0 + 4.0 * m * m
        if not _factor(gram, keep, m, first, ridge, factor):
            break
        for i in range(m):
            local[i] = g[keep[i]]
        slope = _direction(factor, m, local, ones, delta)
        if not 0.0 < slope < np.inf:
            break
        t, at = _step_length(x, low, high, keep, delta, m)
        for i in range(m):
            step = t * delta[i]
            x[keep[i]] += step
            row = gram[keep[i]]
            for k in range(g.size):
                g[k] -= step * row[k]
        steps += 1
        if at < 0:
            break
        k = keep[at]
        x[k] = high[k] if delta[at] > 0.0 else low[k]
        for i in range(at, m - 1):
            keep[i] = keep[i + 1]
        m -= 1
        first = at
    return steps


@njit(cache=True, nogil=True, error_model="numpy")
def newton_steps(K, p, u, f, lower, upper, eps, max_free, work):
    """Maximise the dual over the free variables, dropping one at each bound that is met.

    Parameters
    ----------
    K : ndarray of shape (n, n), float64 or float32, read only
    p, u, f, lower, upper : ndarray of shape (n,), float64
        A feasible point u and ``f = Ku`` are changed in place.
    eps : float
    max_free : int
        With more free variables than this nothing is done.
    work : float
        Multiply-adds after which no further step starts.

    Returns
    -------
    tuple
        The number of steps, and of free variables m.

    Notes
    -----
    ``m³/6`` multiply-adds for the first factor, the part behind the dropped row for each later
    one, and nm at the end for f.
    """
    n = u.size
    free = np.empty(n, dtype=np.int64)
    m = 0
    for k in range(n):
        if lower[k] < u[k] < upper[k] and (eps == 0.0 or u[k] != 0.0):
            free[m] = k
            m += 1
    if m < 2 or m > max_free:
        return 0, 0
    gram = np.empty((m, m))
    x = np.empty(m)
    g = np.empty(m)
    low = np.empty(m)
    high = np.empty(m)
    trace = 0.0
    for i in range(m):
        k = free[i]
        row = K[k]
        for j in range(m):
            gram[i, j] = row[free[j]]
        trace += gram[i, i]
        x[i] = u[k]
        side = eps if u[k] > 0.0 else -eps
        g[i] = p[k] - f[k] - side
        low[i] = 0.0 if eps > 0.0 and u[k] > 0.0 else lower[k]
        high[i] = 0.0 if eps > 0.0 and u[k] < 0.0 else upper[k]
    steps = _climb(gram, x, g, low, high, max(1e-13 * trace, 1e-300), work)
    for i in range(m):
        k = free[i]
        move = x[i] - u[k]
        if move != 0.0:
            u[k] = x[i]
            row = K[k]
            for j in range(n):
                f[j] += move * row[j]
    return steps, m
