# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Compiled passes over one dual point: repair, product, power-of-two grid, certificate."""

from __future__ import annotations

import math

import numpy as np
from kernelweave.kernels_core.compiled import njit

_UNIT = 2.0**-53
_SMALLEST_EXPONENT = -1000
_WIDTH = 512


@njit(cache=True, nogil=True, error_model="numpy")
def gram_product(K, u, f, a):
    """Compute ``f = Σ uₖ K[k]`` and ``a = Σ |uₖ| |K[k]|`` in float64 over the rows with u ≠ 0.

    Eight rows are summed before they are added, so a term passes through at most ``m / 8 + 9``
    roundings, with m nonzeros in u.

    Parameters
    ----------
    K : ndarray of shape (n, n), float64 or float32, read only
    u : ndarray of shape (n,), float64
    f, a : ndarray of shape (n,), float64
        Overwritten.

    Returns
    -------
    int
        m, the number of rows that were read.

    Notes
    -----
    4mn flops and 8mn bytes (4mn in float32).
    """
    n = f.size
    rows = np.empty(n, dtype=np.int64)
    m = 0
    for k in range(n):
        f[k] = 0.0
        a[k] = 0.0
        if u[k] != 0.0:
            rows[m] = k
            m += 1
    s = np.empty(_WIDTH)
    t = np.empty(_WIDTH)
    for start in range(0, n, _WIDTH):
        width = min(_WIDTH, n - start)
        for first in range(0, m, 8):
            for k in range(width):
                s[k] = 0.0
                t[k] = 0.0
            for r in range(first, min(first + 8, m)):
                x = u[rows[r]]
                row = K[rows[r], start : start + width]
                for k in range(width):
                    term = x * row[k]
                    s[k] += term
                    t[k] += abs(term)
            for k in range(width):
                f[start + k] += s[k]
                a[start + k] += t[k]
    return m


@njit(cache=True, nogil=True, error_model="numpy")
def _exponent(total):
    """Return the exponent of the grid step for points with ``Σ|u|`` about ``total``."""
    if total == 0.0:
        return _SMALLEST_EXPONENT
    return max(math.frexp(total * 1.0000001)[1] - 52, _SMALLEST_EXPONENT)


@njit(cache=True, nogil=True, error_model="numpy")
def grid_exponent(u):
    """Return e such that no partial sum of multiples of 2^e near u passes 2⁵³ steps."""
    total = 0.0
    for k in range(u.size):
        total += abs(u[k])
    return _exponent(total)


@njit(cache=True, nogil=True, error_model="numpy")
def repair_start(u, lower, upper):
    """Clip u in place, balance its signs, and snap to a bound what is within 8 grid steps."""
    positive = 0.0
    negative = 0.0
    for k in range(u.size):
        u[k] = min(max(u[k], lower[k]), upper[k])
        positive += max(u[k], 0.0)
        negative -= min(u[k], 0.0)
    shrink_up = negative / positive if positive > negative else 1.0
    shrink_down = positive / negative if negative > positive else 1.0
    tiny = math.ldexp(1.0, _exponent(2.0 * min(positive, negative)) + 3)
    for k in range(u.size):
        x = u[k] * (shrink_up if u[k] > 0.0 else shrink_down)
        if upper[k] - x <= tiny:
            x = upper[k]
        elif x - lower[k] <= tiny:
            x = lower[k]
        elif abs(x) <= tiny:
            x = 0.0
        u[k] = x


@njit(cache=True, nogil=True, error_model="numpy")
def _take(k, low, high, excess, inner_only):
    """Move ``excess`` (signed, an integer) off the entries with the most room; return the rest."""
    sign = 1.0 if excess > 0.0 else -1.0
    left = abs(excess)
    while left > 0.0:
        best = 0.0
        at = -1
        for i in range(k.size):
            room = k[i] - low[i] if sign > 0.0 else high[i] - k[i]
            if inner_only:
                room = min(min(k[i] - low[i], high[i] - k[i]), abs(k[i]) - 1.0)
            if room > best:
                best = room
                at = i
        if at < 0:
            break
        take = min(left, math.floor(best))
        if take < 1.0:
            break
        k[at] -= sign * take
        left -= take
    return sign * left


@njit(cache=True, nogil=True, error_model="numpy")
def to_grid(u, lower, upper, point, low, high):
    """Write the exactly feasible grid point near u, and the box moved inwards onto the grid.

    Entries are integers times ``2^e``; they sum to 0 exactly. 6n flops.
    """
    exponent = grid_exponent(u)
    step = math.ldexp(1.0, exponent)
    most = 2.0**53
    excess = 0.0
    for k in range(u.size):
        low[k] = max(np.ceil(lower[k] / step), -most)
        high[k] = min(np.floor(upper[k] / step), most)
        point[k] = min(max(np.rint(u[k] / step), low[k]), high[k])
        excess += point[k]
    for turn in range(2):
        excess = _take(point, low, high, excess, turn == 0)
    for k in range(u.size):
        point[k] *= step
        low[k] = lower[k] if low[k] <= -most else low[k] * step
        high[k] = upper[k] if high[k] >= most else high[k] * step


@njit(cache=True, nogil=True, error_model="numpy")
def violation(p, f, u, lower, upper, eps):
    """Return the maximal violating pair of ``p − f``: 6n flops."""
    top = -np.inf
    bottom = np.inf
    for k in range(u.size):
        g = p[k] - f[k]
        if u[k] < upper[k]:
            top = max(top, g - eps if u[k] >= 0.0 else g + eps)
        if u[k] > lower[k]:
            bottom = min(bottom, g - eps if u[k] > 0.0 else g + eps)
    return max(0.0, top - bottom)


@njit(cache=True, nogil=True, error_model="numpy")
def dual_sums(p, f, error, u, eps):
    """Return ``Σ pu − ε|u|``, ``Σ |pu| + ε|u|``, ``Σ uf``, ``Σ |uf|`` and ``Σ |u| error``."""
    kappa = 0.0
    size = 0.0
    quadratic = 0.0
    quadratic_size = 0.0
    margin = 0.0
    for k in range(u.size):
        x = abs(u[k])
        kappa += p[k] * u[k] - eps * x
        size += abs(p[k] * u[k]) + eps * x
        quadratic += u[k] * f[k]
        quadratic_size += abs(u[k] * f[k])
        margin += x * error[k]
    return kappa, size, quadratic, quadratic_size, margin


@njit(cache=True, nogil=True, error_model="numpy")
def loss_above(p, f, error, lower, upper, eps, b):
    """Return the loss terms of the primal at any f within ``error``, each one rounded up."""
    total = 0.0
    for k in range(f.size):
        r = p[k] - f[k] - b
        widen = error[k] + 4.5 * _UNIT * (abs(p[k]) + abs(f[k]) + abs(b) + eps)
        # A zero weight times an infinite residual would be NaN.
        if upper[k] > 0.0:
            total += upper[k] * max(r - eps + widen, 0.0)
        if lower[k] < 0.0:
            total -= lower[k] * max(-r - eps + widen, 0.0)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def values_with_error(K, u, asymmetry, f, error):
    """Write ``f = Ku`` and a bound of the error of each entry; return the rows read."""
    n_rows = gram_product(K, u, f, error)
    total = 0.0
    for k in range(u.size):
        total += abs(u[k])
    unit = 1.01 * _UNIT * (n_rows / 8.0 + 12.0)
    skew = 0.51 * asymmetry * total
    for k in range(u.size):
        error[k] = unit * error[k] + skew
    return n_rows


@njit(cache=True, nogil=True, error_model="numpy")
def start(K, p, u, lower, upper, eps, f, error):
    """Repair u in place and write ``f = Ku``; return the rows read and the violation."""
    repair_start(u, lower, upper)
    n_rows = gram_product(K, u, f, error)
    return n_rows, violation(p, f, u, lower, upper, eps)


@njit(cache=True, nogil=True, error_model="numpy")
def land(K, p, u, lower, upper, eps, asymmetry, point, low, high, f, error):
    """Do all that a certificate needs at the grid point near u, in one call.

    `to_grid` into ``point, low, high``, `values_with_error` into ``f, error``; returns the rows
    read, the violation, and `dual_sums`.
    """
    to_grid(u, lower, upper, point, low, high)
    n_rows = values_with_error(K, point, asymmetry, f, error)
    left = violation(p, f, point, low, high, eps)
    return n_rows, left, dual_sums(p, f, error, point, eps)
