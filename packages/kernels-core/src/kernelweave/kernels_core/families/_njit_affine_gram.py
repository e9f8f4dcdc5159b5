"""Compiled Gram rows of kernels whose integrand is affine in z: volumes and rank-one Grams.

Both walk over tiles of 32 rows by 256 columns, two rows at a time, and mirror each tile of a
symmetric result while it is in the cache.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import numpy as np

from ..compiled import njit

_FAST = {"reassoc", "contract", "nsz"}
_BAND = 32
_WIDTH = 256
_SQRT3 = 1.7320508075688772


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
def _multiply_minima(XT, YT, i, c, width, product):
    """Set ``product = Πⱼ min(XTⱼᵢ, YTⱼ)`` of a run of columns."""
    n = XT.shape[0]
    x, y = XT[0, i], YT[0, c : c + width]
    for l in range(width):
        product[l] = y[l] if y[l] < x else x
    for j in range(1, n - 1, 2):
        xa, xb = XT[j, i], XT[j + 1, i]
        ya, yb = YT[j, c : c + width], YT[j + 1, c : c + width]
        for l in range(width):
            product[l] *= (ya[l] if ya[l] < xa else xa) * (yb[l] if yb[l] < xb else xb)
    if n % 2 == 0:
        x, y = XT[n - 1, i], YT[n - 1, c : c + width]
        for l in range(width):
            product[l] *= y[l] if y[l] < x else x


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def volume_rows(XT, YT, out, start, stop, lower):
    """Write ``V(x, y) = Πⱼ min(Xⱼ, Yⱼ)`` for rows start..stop.

    XT (n, m_x) and YT (n, m_y) hold the distances to the upper corner, in float64; with ``lower``
    only the lower triangle is computed, and mirrored. Cost: 2n flops a pair.
    """
    product = np.empty(_WIDTH)
    tile = np.empty((_BAND, _BAND + 4), dtype=out.dtype)
    for band in range(start, stop, _BAND):
        end = min(band + _BAND, stop)
        columns = end if lower else YT.shape[1]
        for c in range(0, columns, _WIDTH):
            width = min(_WIDTH, columns - c)
            for i in range(band, end):
                _multiply_minima(XT, YT, i, c, width, product)
                target = out[i, c : c + width]
                for l in range(width):
                    target[l] = product[l]
            if lower:
                _mirror_tile(out, band, end, c, width, tile)


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _sum_minima(ZX, ZY, sign, i, i2, c, width, h, s, h2, s2):
    """Set ``h = Σ sign·D`` and ``s = Σ D²``, D = min(x, y), for the rows i and i2 (h2, s2)."""
    for l in range(width):
        h[l] = 0.0
        s[l] = 0.0
        h2[l] = 0.0
        s2[l] = 0.0
    for j in range(0, ZX.shape[0], 2):
        xa, xb = ZX[j, i], ZX[j + 1, i]
        ua, ub = ZX[j, i2], ZX[j + 1, i2]
        ga, gb = sign[j], sign[j + 1]
        ya, yb = ZY[j, c : c + width], ZY[j + 1, c : c + width]
        for l in range(width):
            da = ya[l] if ya[l] < xa else xa
            db = yb[l] if yb[l] < xb else xb
            h[l] += ga * da + gb * db
            s[l] += da * da + db * db
        for l in range(width):
            da = ya[l] if ya[l] < ua else ua
            db = yb[l] if yb[l] < ub else ub
            h2[l] += ga * da + gb * db
            s2[l] += da * da + db * db


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _finish_row(left, right, V, out, i, c, width, h, s, add):
    """Write ``V·{(B − √3h)(B_y − √3h) + s} + e a_y + a e_y + k + k_y`` of row i; see below."""
    B, e, a, k = left[0, i], left[1, i], left[2, i], left[3, i]
    root = out.dtype.type(_SQRT3)
    By = right[0, c : c + width]
    for l in range(width):
        g = root * h[l]
        h[l] = (B - g) * (By[l] - g) + s[l]
    ey, ay = right[1, c : c + width], right[2, c : c + width]
    for l in range(width):
        s[l] = e * ay[l] + a * ey[l]
    ky, volume, target = right[3, c : c + width], V[i, c : c + width], out[i, c : c + width]
    if add:
        for l in range(width):
            target[l] += s[l] + volume[l] * h[l] + (k + ky[l])
    else:
        for l in range(width):
            target[l] = s[l] + volume[l] * h[l] + (k + ky[l])


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def rank_one_rows(ZX, ZY, sign, V, left, right, out, start, stop, lower, add):
    """Write ``V·{(Bₓ − h)(B_y − h) + s} + eₓ a_y + aₓ e_y + kₓ + k_y`` for rows start..stop.

    ZX (n, m_x) and ZY (n, m_y), n even, are the distances to the upper corner times ``|rⱼ|/√12``,
    so that ``h = √3 Σ signⱼ min(ZXⱼ, ZYⱼ)`` and ``s = Σ min²``; left (4, m_x) and right (4, m_y)
    hold B, e, a, k by rows; V (m_x, m_y). All of one dtype. With ``lower`` only the lower triangle
    is computed, and mirrored; with ``add`` the result is added to ``out``, whose tiles must then be
    symmetric. Cost: 5n + 10 flops a pair and one read of V; every pair is computed alone, so the
    result does not depend on the cut in blocks.
    """
    kind = out.dtype
    h, s = np.empty(_WIDTH, dtype=kind), np.empty(_WIDTH, dtype=kind)
    h2, s2 = np.empty(_WIDTH, dtype=kind), np.empty(_WIDTH, dtype=kind)
    tile = np.empty((_BAND, _BAND + 4), dtype=kind)
    for band in range(start, stop, _BAND):
        end = min(band + _BAND, stop)
        columns = end if lower else ZY.shape[1]
        for c in range(0, columns, _WIDTH):
            width = min(_WIDTH, columns - c)
            for i in range(band, end, 2):
                i2 = min(i + 1, end - 1)
                _sum_minima(ZX, ZY, sign, i, i2, c, width, h, s, h2, s2)
                _finish_row(left, right, V, out, i, c, width, h, s, add)
                if i2 > i:
                    _finish_row(left, right, V, out, i2, c, width, h2, s2, add)
            if lower:
                _mirror_tile(out, band, end, c, width, tile)
