"""Distances and products between new rows and landmarks, in the precision of their arguments.

Everything that depends on one row is worked out before: a dimension costs a pair seven operations.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

from kernelweave.kernels_core.compiled import njit

_FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def scaled_pairs(left, right, levels, weights, first, d2, rest):
    """Fill d² and w₃ Σ ℓ²xy + w₄ Π (1 + sκ)/(1 + s) of the rows ``first, first + 1, …``.

    ``left`` and ``right`` are (x, v, g, c, line): ℓX (p, n), 3s/(1 + s)·U (p, n), s/(1 + s)·H
    (p + q, n), to which the left side has added 1/(1 + s), codes (q, n), and the row's part of
    Σ ℓ²xy, from which d²/2 is taken. ``levels`` (2, q) holds ℓ² and s/(1 + s) times the match
    weight, ``weights`` w₄, w₃ and w₃/2. Numbers come in pairs: p is even. No literal takes part:
    single precision stays single.
    """
    x, v, g, c, line = left
    xr, vr, gr, cr, liner = right
    scale, slope, half = weights
    p = x.shape[0]
    for row in range(d2.shape[0]):
        a = first + row
        far, shape = d2[row], rest[row]
        for b in range(d2.shape[1]):
            far[b] = 0
            shape[b] = scale
        for i in range(0, p, 2):
            x0, v0, g0 = x[i, a], v[i, a], g[i, a]
            x1, v1, g1 = x[i + 1, a], v[i + 1, a], g[i + 1, a]
            xs, vs, gs = xr[i], vr[i], gr[i]
            xt, vt, gt = xr[i + 1], vr[i + 1], gr[i + 1]
            for b in range(d2.shape[1]):
                step, other = x0 - xs[b], x1 - xt[b]
                far[b] += step * step + other * other
                kappa = g0 + gs[b] - abs(v0 - vs[b])
                shape[b] *= kappa * (g1 + gt[b] - abs(v1 - vt[b]))
        for j in range(c.shape[0]):
            code, base = c[j, a], g[p + j, a]
            apart, match_weight = levels[0, j], levels[1, j]
            cs, gs = cr[j], gr[p + j]
            for b in range(d2.shape[1]):
                if code == cs[b]:
                    shape[b] *= base + gs[b] + match_weight
                else:
                    shape[b] *= base + gs[b]
                    far[b] += apart
        offset = slope * line[a]
        for b in range(d2.shape[1]):
            shape[b] += offset + slope * liner[b] - half * far[b]
