"""Compiled passes over pairs of rows: distances, products, and the gradient of every dimension.

Columns are stored as rows, so that every inner loop runs along memory. A symmetric set of pairs
(a, b), b ≤ a, is packed: the pairs of row a follow those of row a − 1.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.compiled import njit

_FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _pair_row(left, right, a, width, metric, strength, d2, linear, product):
    """Fill d², Σ ℓ²·xy and Π (1 + sκ)/(1 + s) of row a of ``left`` with ``right[:width]``.

    ``left`` and ``right`` are (X, U, H, C): first view (p, n), ranks (p, n), the one-point part
    of κ (p + q, n), codes of categories (q, n). ``metric`` is ℓ² (p + q,); ``strength`` (3, p + q)
    holds s/(1 + s), 1/(1 + s) and the match weight: what κ gains where two categories agree.
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
        ell2, part, rest = metric[i], strength[0, i], strength[1, i]
        xs, us, hs = XR[i], UR[i], HR[i]
        for b in range(width):
            step = x - xs[b]
            d2[b] += ell2 * step * step
            linear[b] += ell2 * x * xs[b]
            product[b] *= rest + part * (h + hs[b] - 3.0 * abs(u - us[b]))
    for j in range(C.shape[0]):
        i = p + j
        code, h = C[j, a], H[i, a]
        ell2, part, rest, match_weight = metric[i], strength[0, i], strength[1, i], strength[2, i]
        cs, hs = CR[j], HR[i]
        half = ell2 / (2.0 * match_weight)
        for b in range(width):
            same = 1.0 if code == cs[b] else 0.0
            kappa = h + hs[b] + match_weight * same
            d2[b] += ell2 * (1.0 - same)
            linear[b] += half * kappa
            product[b] *= rest + part * kappa


@njit(cache=True, nogil=True, error_model="numpy")
def fill_pairs(left, right, first, n_rows, packed, metric, strength, d2, linear, product):
    """Fill the pairs of the rows ``first, first + 1, …`` of ``left``, one row after another.

    A row is paired with all rows of ``right``, or with ``packed`` with those up to itself.
    """
    start = 0
    for a in range(first, first + n_rows):
        end = start + (a + 1 if packed else right[2].shape[1])
        _pair_row(
            left, right, a, end - start, metric, strength,
            d2[start:end], linear[start:end], product[start:end],
        )  # fmt: skip
        start = end


@njit(cache=True, nogil=True, fastmath=_FAST)
def summed(left, right, width):
    """Return Σ left·right.

    This is a loop of its own, apart from the one that fills the arrays: a loop that does both is
    compiled into several versions, which differ in the order of the sum, and which of them runs
    depends on where the arrays are in memory.
    """
    total = 0.0
    for b in range(width):
        total += left[b] * right[b]
    return total


@njit(cache=True, nogil=True, fastmath=_FAST)
def spread(change, a, probes, moved):
    """Add the product of row and column a of a symmetric matrix, ``change``, with the probes."""
    for k in range(probes.shape[0]):
        probe, out = probes[k], moved[k]
        entry = probe[a]
        for b in range(a):
            out[b] += change[b] * entry
        out[a] += summed(change, probe, a) + change[a] * entry


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def packed_changes(
    points, first, n_rows, strength, by_distance, linear, by_product, slope, probes, metric, kappa
):
    """Add the derivatives of L, and of the kernel times the probes, by every ℓ² and s/(1 + s).

    ``by_distance`` holds dk/dd² and ``by_product`` the weighted fourth term of the packed pairs,
    ``linear`` is the weight of Σ ℓ²xy, ``slope`` dL/dk. Where f = (1 + sκ)/(1 + s),
    d log f / d(s/(1 + s)) = (κ − 1)/f. ``metric`` and ``kappa`` are (slopes (p + q,), kernel
    changes times the probes (p + q, n_probes, n)). The packed pairs are those of the rows ``first,
    first + 1, …``.
    """
    X, U, H, C = points
    p = X.shape[0]
    metric_slope, metric_moved = metric
    kappa_slope, kappa_moved = kappa
    change = np.empty(H.shape[1])
    start = 0
    for a in range(first, first + n_rows):
        width = a + 1
        far = by_distance[start : start + width]
        shape = by_product[start : start + width]
        pull = slope[start : start + width]
        for i in range(p):
            x, u, h = X[i, a], U[i, a], H[i, a]
            part, rest = strength[0, i], strength[1, i]
            xs, us, hs = X[i], U[i], H[i]
            for b in range(width):
                step = x - xs[b]
                change[b] = far[b] * step * step + linear * x * xs[b]
            metric_slope[i] += summed(change, pull, width)
            spread(change, a, probes, metric_moved[i])
            for b in range(width):
                value = h + hs[b] - 3.0 * abs(u - us[b])
                change[b] = shape[b] * (value - 1.0) / (rest + part * value)
            kappa_slope[i] += summed(change, pull, width)
            spread(change, a, probes, kappa_moved[i])
        for j in range(C.shape[0]):
            i = p + j
            code, h = C[j, a], H[i, a]
            part, rest, match_weight = strength[0, i], strength[1, i], strength[2, i]
            cs, hs = C[j], H[i]
            half = 0.5 * linear / match_weight
            for b in range(width):
                same = 1.0 if code == cs[b] else 0.0
                change[b] = far[b] * (1.0 - same) + half * (h + hs[b] + match_weight * same)
            metric_slope[i] += summed(change, pull, width)
            spread(change, a, probes, metric_moved[i])
            for b in range(width):
                value = h + hs[b] + (match_weight if code == cs[b] else 0.0)
                change[b] = shape[b] * (value - 1.0) / (rest + part * value)
            kappa_slope[i] += summed(change, pull, width)
            spread(change, a, probes, kappa_moved[i])
        start += width


@njit(cache=True, nogil=True, fastmath=_FAST)
def packed_distances(points, first, n_rows, metric, d2):
    """Fill d² of the packed pairs of some rows."""
    X, _, _, C = points
    p = X.shape[0]
    start = 0
    for a in range(first, first + n_rows):
        row = d2[start : start + a + 1]
        row[:] = 0.0
        for i in range(p):
            x, ell2, xs = X[i, a], metric[i], X[i]
            for b in range(a + 1):
                step = x - xs[b]
                row[b] += ell2 * step * step
        for j in range(C.shape[0]):
            code, ell2, cs = C[j, a], metric[p + j], C[j]
            for b in range(a + 1):
                row[b] += 0.0 if code == cs[b] else ell2
        start += a + 1


@njit(cache=True, nogil=True, fastmath=_FAST)
def packed_distance_changes(
    points, first, n_rows, by_distance, slope, probes, metric_slope, metric_moved
):
    """Do what `packed_changes` does where the kernel is a function of d² alone."""
    X, _, H, C = points
    p = X.shape[0]
    change = np.empty(H.shape[1])
    start = 0
    for a in range(first, first + n_rows):
        far = by_distance[start : start + a + 1]
        pull = slope[start : start + a + 1]
        for i in range(p + C.shape[0]):
            if i < p:
                x, xs = X[i, a], X[i]
                for b in range(a + 1):
                    step = x - xs[b]
                    change[b] = far[b] * step * step
            else:
                code, cs = C[i - p, a], C[i - p]
                for b in range(a + 1):
                    change[b] = 0.0 if code == cs[b] else far[b]
            metric_slope[i] += summed(change, pull, a + 1)
            spread(change, a, probes, metric_moved[i])
        start += a + 1


@njit(cache=True, nogil=True)
def unpack(packed, square):
    """Fill the lower triangle of a square matrix from its packed pairs."""
    start = 0
    for a in range(square.shape[0]):
        row = square[a]
        for b in range(a + 1):
            row[b] = packed[start + b]
        start += a + 1


@njit(cache=True, nogil=True, fastmath=_FAST)
def pack_slope(inverse, dual, scale, out):
    """Pack ``scale·S⁻¹ − Σₜ aₜaₜᵀ``, half of it on the diagonal: pairs count once.

    ``inverse`` (n, n), of which the lower triangle is read, and ``dual`` (n_outputs, n).
    """
    start = 0
    for a in range(inverse.shape[0]):
        inverse_row, row = inverse[a], out[start : start + a + 1]
        for b in range(a + 1):
            row[b] = scale * inverse_row[b]
        for t in range(dual.shape[0]):
            coefficients = dual[t]
            left = coefficients[a]
            for b in range(a + 1):
                row[b] -= left * coefficients[b]
        row[a] *= 0.5
        start += a + 1
