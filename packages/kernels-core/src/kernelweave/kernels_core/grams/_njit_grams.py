"""Compiled passes over Gram matrices: checks, weighted sums, quadratic forms with majorants."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import numpy as np

from ..compiled import njit

_FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}


@njit(cache=True, nogil=True, error_model="numpy")
def add_rows(K, weight, out):
    """Add ``weight · K`` to out: 2 flops an entry."""
    for i in range(K.shape[0]):
        for j in range(K.shape[1]):
            out[i, j] += weight * K[i, j]


@njit(cache=True, nogil=True, error_model="numpy")
def add_four(K, L, M, N, weights, out):
    """Add four matrices to out as `add_rows` does one after another, in one pass over out."""
    k, l, m, n = weights
    for i in range(K.shape[0]):
        for j in range(K.shape[1]):
            out[i, j] = (((out[i, j] + k * K[i, j]) + l * L[i, j]) + m * M[i, j]) + n * N[i, j]


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def quadratic_form(K, rows, u):
    """Return ``uᵀKu`` and ``|u|ᵀ|K||u|`` from the lower triangle of the rows where u ≠ 0.

    K (n, n), float64 or float32, read only; rows (m,), the ascending positions of the entries of u
    (n,) that are not 0. About 2mn flops and mn/2 loads of K.
    """
    value = 0.0
    size = 0.0
    for r in rows:
        part = 0.0
        absolute = 0.0
        row = K[r, :r]
        head = u[:r]
        for c in range(r):
            term = row[c] * head[c]
            part += term
            absolute += abs(term)
        corner = K[r, r] * u[r]
        value += u[r] * (2.0 * part + corner)
        size += abs(u[r]) * (2.0 * absolute + abs(corner))
    return value, size


@njit(cache=True, nogil=True, error_model="numpy")
def is_sound(K, reach):
    """Return whether ``Kᵢⱼ = Kⱼᵢ`` to the last bit and ``|Kᵢⱼ| ≤ rᵢrⱼ`` < ∞: n² loads.

    ``reach`` holds r, r² a little above Kᵢᵢ: Cauchy and Schwarz's inequality up to rounding. If
    this is False, NumPy finds the wrong entries. Each tile of K is compared with a transposed copy
    of the mirrored one, so that no loop strides through memory.
    """
    n = K.shape[0]
    tile = 48
    mirrored = np.empty((tile, tile), K.dtype)
    for i0 in range(0, n, tile):
        rows = tile if i0 + tile < n else n - i0
        for j0 in range(i0, n, tile):
            columns = tile if j0 + tile < n else n - j0
            for j in range(columns):
                for i in range(rows):
                    mirrored[i, j] = K[j0 + j, np.uint64(i0 + i)]
            wrong = 0
            for i in range(rows):
                own = reach[i0 + i]
                for j in range(columns):
                    at = np.uint64(j0 + j)
                    x = K[i0 + i, at]
                    wrong += not ((x == mirrored[i, j]) & (abs(x) <= own * reach[at]))
            if wrong:
                return False
    return True
