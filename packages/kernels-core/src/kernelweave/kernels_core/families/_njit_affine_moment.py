"""Compiled moment sums of the degree-1 tessellated family, over pairs of samples.

Every sum is cut in the same short runs, so that its rounding error is that of a sum of about
``64 + m/64 + 32`` terms and not of ``m²/2``: 64 pairs, then the runs of a row, then 32 rows.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

from ..compiled import njit

_FAST = {"reassoc", "contract", "nsz"}
# As in `_moments.py`, whose bound on the rounding counts these runs.
_RUN = 64


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _fill_sides(X, b, unit, k, c, width, s, mean, side):
    """Multiply s by ``V/unit`` and fill ``mean = (b + max)/2`` and ``side = b − max`` of a run.

    The pair (k, k), where the run reaches it, is halved: the sums run over l ≤ k.
    """
    for j in range(X.shape[0]):
        x, top, scale = X[j, k], b[j], unit[j]
        y, means, sides = X[j, c : c + width], mean[j], side[j]
        for l in range(width):
            high = y[l] if y[l] > x else x
            means[l] = 0.5 * (top + high)
            sides[l] = top - high
        for l in range(width):
            s[l] *= sides[l] * scale
    if c + width == k + 1:
        s[width - 1] *= 0.5


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _fill_weights(W, k, c, width, s):
    """Fill ``s = Σₜ WₜₖWₜₗ`` of a run."""
    for l in range(width):
        s[l] = 0.0
    for t in range(W.shape[0]):
        weight = W[t, k]
        other = W[t, c : c + width]
        for l in range(width):
            s[l] += weight * other[l]


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _add_products(weighted, mean, width, zz):
    """Add ``Σₗ weighted[a, l]·mean[b, l]`` to ``zz[a, b]`` for 4 x 2 tiles with b ≤ a + 3."""
    for a in range(0, weighted.shape[0], 4):
        p0, p1, p2, p3 = weighted[a], weighted[a + 1], weighted[a + 2], weighted[a + 3]
        for b in range(0, a + 4, 2):
            q0, q1 = mean[b], mean[b + 1]
            s00 = s10 = s20 = s30 = s01 = s11 = s21 = s31 = 0.0
            for l in range(width):
                u, v = q0[l], q1[l]
                s00 += p0[l] * u
                s01 += p0[l] * v
                s10 += p1[l] * u
                s11 += p1[l] * v
                s20 += p2[l] * u
                s21 += p2[l] * v
                s30 += p3[l] * u
                s31 += p3[l] * v
            zz[a, b] += s00
            zz[a, b + 1] += s01
            zz[a + 1, b] += s10
            zz[a + 1, b + 1] += s11
            zz[a + 2, b] += s20
            zz[a + 2, b + 1] += s21
            zz[a + 3, b] += s30
            zz[a + 3, b + 1] += s31


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _add_row(F, s, mean, side, weighted, columns, c, width, fx, fz):
    """Add a run to the sums of its row: ``s·F``, ``s·mean`` and ``s·side²``."""
    n = side.shape[0]
    for i in range(F.shape[0]):
        f, total = F[i, c : c + width], 0.0
        for l in range(width):
            total += s[l] * f[l]
        fx[i] += total
    for j in range(n):
        means, sides, products = mean[j], side[j], weighted[j]
        column = columns[j, c : c + width]
        total = 0.0
        for l in range(width):
            products[l] = s[l] * means[l]
        for l in range(width):
            column[l] += products[l]
        for l in range(width):
            total += products[l]
        fz[0, j] += total
        total = 0.0
        for l in range(width):
            total += s[l] * (sides[l] * sides[l])
        fz[1, j] += total


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _close_row(F, k, fx, fz, row_zz, xx, zx, zz):
    """Add the sums of row k to those of its group, and clear them."""
    n = fz.shape[1]
    for i in range(n + 1):
        for j in range(n + 1):
            xx[i, j] += F[i, k] * fx[j]
        for j in range(n):
            zx[j, i] += F[i, k] * fz[0, j]
    for j in range(n):
        zx[j, n + 1] += fz[1, j]
        fz[0, j] = 0.0
        fz[1, j] = 0.0
    for j in range(n + 1):
        fx[j] = 0.0
    for i in range(zz.shape[0]):
        for j in range(zz.shape[0]):
            zz[i, j] += row_zz[i, j]
            row_zz[i, j] = 0.0


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _close_group(F, columns, stop, zx):
    """Add ``Σₗ columns[j, l]·F[i, l]`` to ``zx[j, i]`` by runs, and clear the columns."""
    for i in range(F.shape[0]):
        for j in range(columns.shape[0]):
            runs = 0.0
            for c in range(0, stop, _RUN):
                width = min(_RUN, stop - c)
                p, f, total = columns[j, c : c + width], F[i, c : c + width], 0.0
                for l in range(width):
                    total += p[l] * f[l]
                runs += total
            zx[j, i] += runs
    for j in range(columns.shape[0]):
        for l in range(stop):
            columns[j, l] = 0.0


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def moment_group(
    X, F, b, unit, W, start, stop, s, mean, side, weighted, columns, fx, fz, row_zz, xx, zx, zz
):
    """Add the sums ``Σ_{l ≤ k} sₖₗ E[…]`` of the rows start ≤ k < stop to xx, zx and zz.

    With ``sₖₗ = Σₜ Wₜₖ Wₜₗ V(xₖ, xₗ)`` (halved for l = k), z uniform on [max(xₖ, xₗ), b] with
    means z̄ and sides D: xx (n + 1, n + 1) gets Σ s Fₖ Fₗᵀ; the first n + 1 columns of zx
    (n, n + 2) get Σ s z̄ (Fₖ + Fₗ)ᵀ and its last Σ s D²; zz (n4, n4), n4 = 4⌈n/4⌉, gets Σ s z̄ z̄ᵀ
    in its entries [a, c] with c ≤ a < n. X (n, m), F = [1; X] (n + 1, m), W (t, m), b and unit
    (n,). Work arrays, zero on entry and on exit: columns (n, m), fx (n + 1,), fz (2, n), row_zz
    (n4, n4), and the rows past n of mean and weighted (n4, 64); of any content: s (64,), side
    (n, 64). All float64. Cost: (n² + 12n + 2t) flops a pair, (stop² − start²)/2 pairs.
    """
    for k in range(start, stop):
        for c in range(0, k + 1, _RUN):
            width = min(_RUN, k + 1 - c)
            _fill_weights(W, k, c, width, s)
            _fill_sides(X, b, unit, k, c, width, s, mean, side)
            _add_row(F, s, mean, side, weighted, columns, c, width, fx, fz)
            _add_products(weighted, mean, width, row_zz)
        _close_row(F, k, fx, fz, row_zz, xx, zx, zz)
    _close_group(F, columns, stop, zx)
