"""Compiled Gram entries of a sum of kernels with affine integrands: one pass for all factors.

With ``Dⱼ = min(Sⱼ(x), Sⱼ(y))`` the distances to the upper corner in binary units, an entry is
``V·{Σ_f (B_f(x) − h_f)(B_f(y) − h_f) + s} + Σₜ Lₜ(x) Rₜ(y)``, ``V = Π Dⱼ``, ``h = H D``,
``s = Σ wⱼDⱼ²``. D and V are computed once for all factors and never stored: a tile of one row and
128 columns stays in the cache.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import numpy as np

from ..compiled import njit

_FAST = {"reassoc", "contract", "nsz"}
_BAND = 32
_WIDTH = 128


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _fill_minima(SX, SY, n, i, c, width, D, V):
    """Write ``D[j] = min`` and ``V = Π D[j]`` of a run of columns over the n true features."""
    x, y, d = SX[0, i], SY[0, c : c + width], D[0]
    for l in range(width):
        e = y[l] if y[l] < x else x
        d[l] = e
        V[l] = e
    for j in range(1, n - 1, 2):
        xa, xb = SX[j, i], SX[j + 1, i]
        ya, yb = SY[j, c : c + width], SY[j + 1, c : c + width]
        da, db = D[j], D[j + 1]
        for l in range(width):
            p = ya[l] if ya[l] < xa else xa
            q = yb[l] if yb[l] < xb else xb
            da[l] = p
            db[l] = q
            V[l] *= p * q
    if n % 2 == 0:
        x, y, d = SX[n - 1, i], SY[n - 1, c : c + width], D[n - 1]
        for l in range(width):
            e = y[l] if y[l] < x else x
            d[l] = e
            V[l] *= e


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _add_squares(w, width, D, s):
    """Write ``s = Σ wⱼ D[j]²``, four features at a time."""
    for l in range(width):
        s[l] = 0.0
    for j in range(0, w.size, 4):
        w0, w1, w2, w3 = w[j], w[j + 1], w[j + 2], w[j + 3]
        d0, d1, d2, d3 = D[j], D[j + 1], D[j + 2], D[j + 3]
        for l in range(width):
            a, b, e, g = d0[l], d1[l], d2[l], d3[l]
            s[l] += (w0 * a * a + w1 * b * b) + (w2 * e * e + w3 * g * g)


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _add_factors(H, BX, BY, i, c, width, D, h, s):
    """Add ``Σ_f (B_f(x) − h_f)(B_f(y) − h_f)``, ``h = H D``, two factors by four features."""
    h0, h1 = h[0], h[1]
    for f in range(0, BX.shape[0], 2):
        for l in range(width):
            h0[l] = 0.0
            h1[l] = 0.0
        for j in range(0, H.shape[1], 4):
            p0, p1, p2, p3 = H[f, j], H[f, j + 1], H[f, j + 2], H[f, j + 3]
            q0, q1, q2, q3 = H[f + 1, j], H[f + 1, j + 1], H[f + 1, j + 2], H[f + 1, j + 3]
            d0, d1, d2, d3 = D[j], D[j + 1], D[j + 2], D[j + 3]
            for l in range(width):
                a, b, e, g = d0[l], d1[l], d2[l], d3[l]
                h0[l] += (p0 * a + p1 * b) + (p2 * e + p3 * g)
                h1[l] += (q0 * a + q1 * b) + (q2 * e + q3 * g)
        x0, x1 = BX[f, i], BX[f + 1, i]
        y0, y1 = BY[f, c : c + width], BY[f + 1, c : c + width]
        for l in range(width):
            s[l] += (x0 - h0[l]) * (y0[l] - h0[l]) + (x1 - h1[l]) * (y1[l] - h1[l])


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _add_outer(LX, RY, i, c, width, s):
    """Add ``Σₜ Lₜ(x) Rₜ(y)``, four terms at a time."""
    for t in range(0, LX.shape[0], 4):
        p0, p1, p2, p3 = LX[t, i], LX[t + 1, i], LX[t + 2, i], LX[t + 3, i]
        y0, y1 = RY[t, c : c + width], RY[t + 1, c : c + width]
        y2, y3 = RY[t + 2, c : c + width], RY[t + 3, c : c + width]
        for l in range(width):
            s[l] += (p0 * y0[l] + p1 * y1[l]) + (p2 * y2[l] + p3 * y3[l])


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
        columns = min(_BAND, c + width - first)
        for a in range(rows):
            source = out[start + a, first : first + columns]
            for b in range(columns):
                tile[b, a] = source[b]
        for b in range(columns):
            target, source = out[first + b, start:stop], tile[b]
            for a in range(max(0, first + b - start), rows):
                target[a] = source[a]


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
        end = min(band + _BAND, stop)
        columns = end if lower else SY.shape[1]
        for c in range(0, columns, _WIDTH):
            width = min(_WIDTH, columns - c)
            for i in range(band, end):
                _entries(SX, SY, n, w, H, BX, BY, LX, RY, i, c, width, D, V, h, s)
                target = out[i, c : c + width]
                for l in range(width):
                    target[l] = s[l]
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
        end = min(band + _BAND, stop)
        columns = min(end, own)
        for c in range(0, columns, _WIDTH):
            width = min(_WIDTH, columns - c)
            for i in range(band, end):
                _entries(S, S, n, w, H, B, B, L, R, i, c, width, D, V, h, s)
                _add_product(W, i, c, width, own, s, out, column)
            for t in range(W.shape[0]):
                target, part = out[t, c : c + width], column[t]
                for l in range(width):
                    target[l] += part[l]
                    part[l] = 0.0
