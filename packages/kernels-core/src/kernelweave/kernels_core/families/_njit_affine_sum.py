"""Compiled Gram entries of a sum of kernels with affine integrands: one pass for all factors.

With ``Dⱼ = min(Sⱼ(x), Sⱼ(y))`` the distances to the upper corner in binary units, an entry is
``V·{Σ_f (B_f(x) − h_f)(B_f(y) − h_f) + s} + Σₜ Lₜ(x) Rₜ(y)``, ``V = Π Dⱼ``, ``h = H D``,
``s = Σ wⱼDⱼ²``. D and V are computed once for all factors and never stored: a tile of one row and
128 columns stays in the cache.

An index that may not be negative is unsigned: a signed one keeps the loop from vector instructions,
and a slice instead takes three times as long to compile.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import numpy as np

from ..compiled import njit

_FAST = {"reassoc", "contract", "nsz"}
# Rows of a band, which is mirrored at once, and columns of a tile, which stay in the cache with
# what is computed of them. `_affine_sum.py` counts roundings by both.
_BAND = 32
_WIDTH = 128


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _fill_minima(SX, SY, n, i, c, width, D, V):
    """Write ``D[j] = min`` and ``V = Π D[j]`` of a run of columns over the n true features."""
    for l in range(width):
        V[l] = 1.0
    for j in range(0, n - 1, 2):
        a = SX[j, i]
        b = SX[j + 1, i]
        for l in range(width):
            at = np.uint64(c + l)
            p = SY[j, at] if SY[j, at] < a else a
            q = SY[j + 1, at] if SY[j + 1, at] < b else b
            D[j, l] = p
            D[j + 1, l] = q
            V[l] *= p * q
    if n % 2 == 1:
        a = SX[n - 1, i]
        for l in range(width):
            at = np.uint64(c + l)
            p = SY[n - 1, at] if SY[n - 1, at] < a else a
            D[n - 1, l] = p
            V[l] *= p


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _add_squares(w, width, D, s):
    """Write ``s = Σ wⱼ D[j]²``, four features at a time."""
    for l in range(width):
        s[l] = 0.0
    for j in range(0, w.size, 4):
        for l in range(width):
            a = D[j, l]
            b = D[j + 1, l]
            e = D[j + 2, l]
            g = D[j + 3, l]
            s[l] += (w[j] * a * a + w[j + 1] * b * b) + (w[j + 2] * e * e + w[j + 3] * g * g)


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _add_factors(H, BX, BY, i, c, width, D, h, s):
    """Add ``Σ_f (B_f(x) − h_f)(B_f(y) − h_f)``, ``h = H D``, two factors by four features."""
    for first in range(0, BX.shape[0], 2):
        second = first + 1
        for l in range(width):
            h[0, l] = 0.0
            h[1, l] = 0.0
        for j in range(0, H.shape[1], 4):
            for l in range(width):
                a = D[j, l]
                b = D[j + 1, l]
                e = D[j + 2, l]
                g = D[j + 3, l]
                p = H[first, j] * a + H[first, j + 1] * b
                q = H[second, j] * a + H[second, j + 1] * b
                h[0, l] += p + (H[first, j + 2] * e + H[first, j + 3] * g)
                h[1, l] += q + (H[second, j + 2] * e + H[second, j + 3] * g)
        x = BX[first, i]
        z = BX[second, i]
        for l in range(width):
            at = np.uint64(c + l)
            p = (x - h[0, l]) * (BY[first, at] - h[0, l])
            s[l] += p + (z - h[1, l]) * (BY[second, at] - h[1, l])


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _add_outer(LX, RY, i, c, width, s):
    """Add ``Σₜ Lₜ(x) Rₜ(y)``, four terms at a time."""
    for t in range(0, LX.shape[0], 4):
        a = LX[t, i]
        b = LX[t + 1, i]
        e = LX[t + 2, i]
        g = LX[t + 3, i]
        for l in range(width):
            at = np.uint64(c + l)
            s[l] += (a * RY[t, at] + b * RY[t + 1, at]) + (e * RY[t + 2, at] + g * RY[t + 3, at])


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _entries(SX, SY, n, w, H, BX, BY, LX, RY, i, c, width, D, V, h, s):
    """Write the entries of row i and a run of columns into s."""
    _fill_minima(SX, SY, n, i, c, width, D, V)
    _add_squares(w, width, D, s)
    _add_factors(H, BX, BY, i, c, width, D, h, s)
    for l in range(width):
        s[l] *= V[l]
    _add_outer(LX, RY, i, c, width, s)


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _mirror_tile(out, start, stop, c, width, tile):
    """Copy out[start:stop, c:c + width], c + width ≤ stop, to its place above the diagonal."""
    rows = stop - start
    for first in range(c, c + width, _BAND):
        columns = _BAND if first + _BAND < c + width else c + width - first
        for a in range(rows):
            for b in range(columns):
                tile[b, a] = out[start + a, np.uint64(first + b)]
        for b in range(columns):
            below = first + b - start if first + b > start else 0
            for a in range(rows - below):
                out[first + b, np.uint64(start + below + a)] = tile[b, np.uint64(below + a)]


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def sum_rows(SX, SY, n, w, H, BX, BY, LX, RY, out, start, stop, lower):
    """Write the rows start..stop of the Gram matrix of a sum of f kernels.

    SX (n4, m_x), SY (n4, m_y), n4 = 4⌈n/4⌉, zero past the n features; w (n4,) and H (f, n4), or of
    no columns where there is no z; BX (f, m_x), BY (f, m_y), f even; LX (t, m_x), RY (t, m_y), t a
    multiple of 4. All of one dtype. With ``lower`` only the lower triangle is computed, and
    mirrored. Cost: 4n + f(2n + 4) + 2t flops a pair and no reads but the vectors'; every pair is
    computed alone, so the result does not depend on the cut in blocks.
    """
    kind = out.dtype
    D, h = np.zeros((SX.shape[0], _WIDTH), dtype=kind), np.empty((2, _WIDTH), dtype=kind)
    V, s = np.empty(_WIDTH, dtype=kind), np.empty(_WIDTH, dtype=kind)
    tile = np.empty((_BAND, _BAND + 4), dtype=kind)
    for band in range(start, stop, _BAND):
        end = band + _BAND if band + _BAND < stop else stop
        columns = end if lower else SY.shape[1]
        for c in range(0, columns, _WIDTH):
            width = _WIDTH if c + _WIDTH < columns else columns - c
            for i in range(band, end):
                _entries(SX, SY, n, w, H, BX, BY, LX, RY, i, c, width, D, V, h, s)
                for l in range(width):
                    out[i, np.uint64(c + l)] = s[l]
            if lower:
                _mirror_tile(out, band, end, c, width, tile)


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _add_product(W, i, c, width, own, s, out, column):
    """Add row i's entries times W to ``out[:, i]`` and, for l < i < own, its share to column."""
    within = min(width, i - c + 1) if i < own else width
    for t in range(W.shape[0]):
        u, total = W[t, c : c + width], 0.0
        for l in range(within):
            total += s[l] * u[l]
        out[t, i] += total
    if i < own:
        for t in range(W.shape[0]):
            weight, target = W[t, i], column[t]
            for l in range(min(width, i - c)):
                target[l] += weight * s[l]


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def sum_products(S, n, w, H, B, L, R, W, own, start, stop, out):
    """Add ``Σₗ K(xₖ, xₗ) Wₜₗ`` over l < own to out[t, k], for the rows start ≤ k < stop.

    Arguments as in `sum_rows`, all float64, of the same samples on both sides; W (t, own) and out
    (t, m). Rows below ``own`` use each entry twice, for out[:, k] and out[:, l], so that all rows
    together cost own²/2 + own (m − own) pairs. A row's sum is cut in runs of 128, and a column's
    in bands of 32 rows. Nothing is stored.
    """
    D, h = np.zeros((S.shape[0], _WIDTH)), np.empty((2, _WIDTH))
    V, s, column = np.empty(_WIDTH), np.empty(_WIDTH), np.zeros((W.shape[0], _WIDTH))
    for band in range(start, stop, _BAND):
        end = band + _BAND if band + _BAND < stop else stop
        columns = min(end, own)
        for c in range(0, columns, _WIDTH):
            width = _WIDTH if c + _WIDTH < columns else columns - c
            for i in range(band, end):
                _entries(S, S, n, w, H, B, B, L, R, i, c, width, D, V, h, s)
                _add_product(W, i, c, width, own, s, out, column)
            for t in range(W.shape[0]):
                target, part = out[t, c : c + width], column[t]
                for l in range(width):
                    target[l] += part[l]
                    part[l] = 0.0
