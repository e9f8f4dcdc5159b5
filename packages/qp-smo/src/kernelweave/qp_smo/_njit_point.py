# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Compiled passes over one dual point: repair, product, power-of-two grid, certificate.

`start` and `land` do at once what solves need; the functions at the end are their parts, which are
compiled again only where something calls them alone.
"""

from __future__ import annotations

import math

import numpy as np
from kernelweave.kernels_core.compiled import njit

_UNIT = 2.0**-53
_SMALLEST_EXPONENT = -1000
_WIDTH = 512


@njit(cache=True, nogil=True, error_model="numpy")
def _gram_product(K, u, f, a):
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
        width = _WIDTH if start + _WIDTH < n else n - start
        for first in range(0, m, 8):
            for k in range(width):
                s[k] = 0.0
                t[k] = 0.0
            for r in range(first, first + 8 if first + 8 < m else m):
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
    exponent = math.frexp(total * 1.0000001)[1] - 52
    return exponent if exponent > _SMALLEST_EXPONENT else _SMALLEST_EXPONENT


@njit(cache=True, nogil=True, error_model="numpy")
def _repair_start(u, lower, upper):
    """Clip u in place, balance its signs, and snap to a bound what is within 8 grid steps."""
    positive = 0.0
    negative = 0.0
    for k in range(u.size):
        x = u[k] if u[k] > lower[k] else lower[k]
        x = x if x < upper[k] else upper[k]
        u[k] = x
        if x > 0.0:
            positive += x
        else:
            negative -= x
    shrink_up = negative / positive if positive > negative else 1.0
    shrink_down = positive / negative if negative > positive else 1.0
    smaller = positive if positive < negative else negative
    tiny = math.ldexp(1.0, _exponent(2.0 * smaller) + 3)
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
            down = k[i] - low[i]
            up = high[i] - k[i]
            room = down if sign > 0.0 else up
            if inner_only:
                room = down if down < up else up
                room = room if room < abs(k[i]) - 1.0 else abs(k[i]) - 1.0
            if room > best:
                best = room
                at = i
        if at < 0:
            break
        take = math.floor(best)
        take = left if left < take else take
        if take < 1.0:
            break
        k[at] -= sign * take
        left -= take
    return sign * left


@njit(cache=True, nogil=True, error_model="numpy")
def _to_grid(u, lower, upper, point, low, high):
    """Write the exactly feasible grid point near u, and the box moved inwards onto the grid.

    Entries are integers times ``2^e``; they sum to 0 exactly. 6n flops.
    """
    total = 0.0
    for k in range(u.size):
        total += abs(u[k])
    # no partial sum of multiples of the step near u passes 2⁵³ steps
    step = math.ldexp(1.0, _exponent(total))
    most = 2.0**53
    excess = 0.0
    for k in range(u.size):
        least = np.ceil(lower[k] / step)
        largest = np.floor(upper[k] / step)
        x = np.rint(u[k] / step)
        least = least if least > -most else -most
        largest = largest if largest < most else most
        x = x if x > least else least
        x = x if x < largest else largest
        low[k] = least
        high[k] = largest
        point[k] = x
        excess += x
    for turn in range(2):
        excess = _take(point, low, high, excess, turn == 0)
    for k in range(u.size):
        point[k] *= step
        low[k] = lower[k] if low[k] <= -most else low[k] * step
        high[k] = upper[k] if high[k] >= most else high[k] * step


@njit(cache=True, nogil=True, error_model="numpy")
def _violation(p, f, u, lower, upper, eps):
    """Return the maximal violating pair of ``p − f``: 6n flops."""
    top = -np.inf
    bottom = np.inf
    for k in range(u.size):
        g = p[k] - f[k]
        up = g - eps if u[k] >= 0.0 else g + eps
        down = g - eps if u[k] > 0.0 else g + eps
        if u[k] < upper[k] and up > top:
            top = up
        if u[k] > lower[k] and down < bottom:
            bottom = down
    return top - bottom if top > bottom else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _dual_sums(p, f, error, u, eps):
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
        above = r - eps + widen
        below = -r - eps + widen
        if upper[k] > 0.0 and not above <= 0.0:
            total += upper[k] * above
        if lower[k] < 0.0 and not below <= 0.0:
            total -= lower[k] * below
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _values_with_error(K, u, asymmetry, f, error):
    """Write ``f = Ku`` and a bound of the error of each entry; return the rows read."""
    n_rows = _gram_product(K, u, f, error)
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
    _repair_start(u, lower, upper)
    n_rows = _gram_product(K, u, f, error)
    return n_rows, _violation(p, f, u, lower, upper, eps)


@njit(cache=True, nogil=True, error_model="numpy")
def land(K, p, u, lower, upper, eps, asymmetry, point, low, high, f, error):
    """Do all that a certificate needs at the grid point near u, in one call.

    `to_grid` into ``point, low, high``, `values_with_error` into ``f, error``; returns the rows
    read, the violation, and `dual_sums`.
    """
    _to_grid(u, lower, upper, point, low, high)
    n_rows = _values_with_error(K, point, asymmetry, f, error)
    left = _violation(p, f, point, low, high, eps)
    return n_rows, left, _dual_sums(p, f, error, point, eps)


@njit(cache=True, nogil=True, error_model="numpy")
def gram_product(K, u, f, a):
    """Call `_gram_product` alone."""
    return _gram_product(K, u, f, a)


@njit(cache=True, nogil=True, error_model="numpy")
def repair_start(u, lower, upper):
    """Call `_repair_start` alone."""
    return _repair_start(u, lower, upper)


@njit(cache=True, nogil=True, error_model="numpy")
def to_grid(u, lower, upper, point, low, high):
    """Call `_to_grid` alone."""
    return _to_grid(u, lower, upper, point, low, high)


@njit(cache=True, nogil=True, error_model="numpy")
def violation(p, f, u, lower, upper, eps):
    """Call `_violation` alone."""
    return _violation(p, f, u, lower, upper, eps)


@njit(cache=True, nogil=True, error_model="numpy")
def dual_sums(p, f, error, u, eps):
    """Call `_dual_sums` alone."""
    return _dual_sums(p, f, error, u, eps)


@njit(cache=True, nogil=True, error_model="numpy")
def values_with_error(K, u, asymmetry, f, error):
    """Call `_values_with_error` alone."""
    return _values_with_error(K, u, asymmetry, f, error)
