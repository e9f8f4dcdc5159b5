"""Compiled sums for decision values with a bound of their own rounding."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import numpy as np

from ..compiled import njit

_RUN = 64
_SPLIT = 134217729.0


@njit(cache=True, nogil=True, error_model="numpy")
def pair_values(left, right, slopes, squares, ends, reach, own, W, start, stop, values, sizes):
    """Add ``Σₗ Wₜₗ V {Σ_f (Bₖ − h)(Bₗ − h) + s}`` to values, and the same of sizes to sizes.

    left (m, n) and right (n, s) hold the sides b − x of all samples and of those with weights,
    slopes (f, n) half the slopes, squares (n,) their sums of squares over three, ends and reach
    (f, m) the values B and their sizes, own (s,) which samples have weights, W (t, s).
    (stop − start)·s·n·(4f + 5) flops; allocates three runs of 64.
    """
    n, f, t = left.shape[1], len(ends), len(W)
    V, s = np.empty(_RUN), np.empty(_RUN)
    h, g = np.empty((f, _RUN)), np.empty((f, _RUN))
    for k in range(start, stop):
        for c in range(0, right.shape[1], _RUN):
            width = min(_RUN, right.shape[1] - c)
            V[:] = 1.0
            s[:] = 0.0
            h[:] = 0.0
            g[:] = 0.0
            for j in range(n):
                side = left[k, j]
                for l in range(width):
                    d = min(side, right[j, c + l])
                    V[l] *= d
                    s[l] += squares[j] * (d * d)
                for i in range(slopes.shape[0]):
                    slope = slopes[i, j]
                    for l in range(width):
                        d = slope * min(side, right[j, c + l])
                        h[i, l] += d
                        g[i, l] += abs(d)
            for task in range(t):
                value, size = 0.0, 0.0
                for l in range(width):
                    o = own[c + l]
                    term, large = s[l], s[l]
                    for i in range(f):
                        term += (ends[i, k] - h[i, l]) * (ends[i, o] - h[i, l])
                        large += (reach[i, k] + g[i, l]) * (reach[i, o] + g[i, l])
                    w = W[task, c + l] * V[l]
                    value += w * term
                    size += abs(w) * large
                values[task, k] += value
                sizes[task, k] += size


@njit(cache=True, nogil=True, error_model="numpy")
def compensated_dot(x, y):
    """Return xᵀy as if in twice the precision (Ogita, Rump and Oishi 2005, Dot2); 25 flops each."""
    total, rest = 0.0, 0.0
    for i in range(len(x)):
        a, b = x[i], y[i]
        p = a * b
        big = _SPLIT * a
        ah = big - (big - a)
        al = a - ah
        big = _SPLIT * b
        bh = big - (big - b)
        bl = b - bh
        e = al * bl - (((p - ah * bh) - al * bh) - ah * bl)
        z = total + p
        q = z - total
        rest += ((total - (z - q)) + (p - q)) + e
        total = z
    return total + rest
