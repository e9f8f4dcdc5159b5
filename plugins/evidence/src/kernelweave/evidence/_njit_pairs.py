"""Compiled passes over pairs of rows: distances, products, and the gradient of every dimension.

Columns are stored as rows, so that every inner loop runs along memory. A symmetric set of pairs
(a, b), b ≤ a, is packed: the pairs of row a follow those of row a − 1.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

from kernelweave.kernels_core.compiled import njit

_FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _pair_row(left, right, a, width, metric, strength, d2, linear, product):
    """Fill d², Σ ℓ²·xy and Π (1 + sκ)/(1 + s) of row a of ``left`` with ``right[:width]``.

    ``left`` and ``right`` are (X, U, H, C): first view (p, n), ranks (p, n), the one-point part
    of κ (p + q, n), codes of levels (q, n). ``metric`` is ℓ² (p + q,); ``strength`` (3, p + q)
    holds s/(1 + s), 1/(1 + s) and κ's jump where two levels agree.
    """
    X, U, H, C = left
    XR, UR, HR, CR = right
    p = X.shape[0]
    for b in range(width):
        d2[b] = 0.0
        linear[b] = 0.0
        product[b] = 1.0
    for i in range(p):
        x, u, h = X[i, a], U[i, a], H[i, a]
        own, part, rest = metric[i], strength[0, i], strength[1, i]
        xs, us, hs = XR[i], UR[i], HR[i]
        for b in range(width):
            step = x - xs[b]
            d2[b] += own * step * step
            linear[b] += own * x * xs[b]
            product[b] *= rest + part * (h + hs[b] - 3.0 * abs(u - us[b]))
    for j in range(C.shape[0]):
        i = p + j
        code, h = C[j, a], H[i, a]
        own, part, rest, jump = metric[i], strength[0, i], strength[1, i], strength[2, i]
        cs, hs = CR[j], HR[i]
        half = own / (2.0 * jump)
        for b in range(width):
            same = 1.0 if code == cs[b] else 0.0
            kappa = h + hs[b] + jump * same
            d2[b] += own * (1.0 - same)
            linear[b] += half * kappa
            product[b] *= rest + part * kappa


@njit(cache=True, nogil=True, error_model="numpy")
def fill_pairs(left, right, first, n_rows, packed, metric, strength, d2, linear, product):
    """Fill the pairs of the rows ``first, first + 1, …`` of ``left``, one row after another.

    A row meets all of ``right``, or with ``packed`` what lies up to itself.
    """
    start = 0
    for a in range(first, first + n_rows):
        end = start + (a + 1 if packed else right[2].shape[1])
        _pair_row(
            left, right, a, end - start, metric, strength,
            d2[start:end], linear[start:end], product[start:end],
        )  # fmt: skip
        start = end


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def packed_slopes(points, strength, by_distance, by_linear, by_product, metric_slope, kappa_slope):
    """Add to the slopes in ℓ² and in s/(1 + s) of every dimension.

    ``by_distance``, ``by_linear`` hold dL/dd² and dL/d(Σ ℓ²xy) of the packed pairs, ``by_product``
    dL/dk₄ · k₄. Where f = (1 + sκ)/(1 + s), d log f / d(s/(1 + s)) = (κ − 1)/f.
    """
    X, U, H, C = points
    p = X.shape[0]
    start = 0
    for a in range(H.shape[1]):
        width = a + 1
        far = by_distance[start : start + width]
        flat = by_linear[start : start + width]
        shape = by_product[start : start + width]
        for i in range(p):
            x, u, h = X[i, a], U[i, a], H[i, a]
            part, rest = strength[0, i], strength[1, i]
            xs, us, hs = X[i], U[i], H[i]
            total = 0.0
            for b in range(width):
                step = x - xs[b]
                total += far[b] * step * step + flat[b] * x * xs[b]
            metric_slope[i] += total
            total = 0.0
            for b in range(width):
                kappa = h + hs[b] - 3.0 * abs(u - us[b])
                total += shape[b] * (kappa - 1.0) / (rest + part * kappa)
            kappa_slope[i] += total
        for j in range(C.shape[0]):
            i = p + j
            code, h = C[j, a], H[i, a]
            part, rest, jump = strength[0, i], strength[1, i], strength[2, i]
            cs, hs = C[j], H[i]
            half = 0.5 / jump
            total = 0.0
            other = 0.0
            for b in range(width):
                same = 1.0 if code == cs[b] else 0.0
                kappa = h + hs[b] + jump * same
                total += far[b] * (1.0 - same) + flat[b] * half * kappa
                other += shape[b] * (kappa - 1.0) / (rest + part * kappa)
            metric_slope[i] += total
            kappa_slope[i] += other
        start += width
