"""Compiled loops over Gram matrices: weighted sums, quadratic forms, a check of the entries."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import numpy as np

from ..compiled import njit

# Sums may be taken in any order, so that they are vectorised; callers bound the rounding error for
# every order. Entries must be finite, which callers make sure of.
_FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}


@njit(cache=True, nogil=True, error_model="numpy")
def add_rows(K, weight, out):
    """Add ``weight · K`` to out in place, both of one shape: 2 flops an entry."""
    for i in range(K.shape[0]):
        for j in range(K.shape[1]):
            out[i, j] += weight * K[i, j]


@njit(cache=True, nogil=True, error_model="numpy")
def add_four(K, L, M, N, weights, out):
    """Do ``add_rows(K, k, out)`` and so on for L, M and N, but read and write out only once."""
    k, l, m, n = weights
    for i in range(K.shape[0]):
        for j in range(K.shape[1]):
            out[i, j] = (((out[i, j] + k * K[i, j]) + l * L[i, j]) + m * M[i, j]) + n * N[i, j]


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def quadratic_form(K, rows, u):
    """Return ``uᵀKu``, and ``|u|ᵀ|K||u|``, to which its rounding error is proportional.

    K of shape (n, n), float64 or float32, is symmetric, and only its lower triangle is read; rows
    of shape (m,) holds the positions where u, of shape (n,), is not 0, in ascending order. About
    2mn flops and mn/2 loads of K.
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
def soundness(K, reach, near):
    """Return whether all entries are sound, and whether K is symmetric to the last bit: n² loads.

    Sound are ``|Kᵢⱼ| ≤ rᵢrⱼ`` < ∞, the Cauchy-Schwarz inequality up to rounding where ``reach``, of
    shape (n,), holds r, the roots of Kᵢᵢ plus a tolerance, and ``|Kᵢⱼ − Kⱼᵢ| ≤ near·rᵢrⱼ``. NaN and
    infinity are unsound. The pass ends at the first tile with such an entry, and says False twice.

    K is compared tile by tile with a transposed copy of the tile on the other side of the diagonal,
    so that the loop that compares reads consecutive entries. The next tile is called from memory
    meanwhile: rows of a tile are too short for the processor to see that it comes.
    """
    n = K.shape[0]
    # a tile of float64 takes 18 KB, which stays in the first-level cache; the difference of two
    # entries of float32 is exact in it
    tile = 48
    mirrored = np.empty((tile, tile))
    unequal = 0
    for i0 in range(0, n, tile):
        rows = min(tile, n - i0)
        for j0 in range(i0, n, tile):
            columns = min(tile, n - j0)
            for j in range(columns):
                for i in range(rows):
                    # unsigned: numba would test a signed index for being negative
                    mirrored[i, j] = K[j0 + j, np.uint64(i0 + i)]
            wrong = 0
            for i in range(rows):
                own = reach[i0 + i]
                for j in range(columns):
                    at = np.uint64(j0 + j)
                    x = K[i0 + i, at]
                    apart = abs(x - mirrored[i, np.uint64(j)])
                    most = own * reach[at]
                    wrong += not ((abs(x) <= most) & (apart <= near * most))
                    unequal += apart != 0.0
            if wrong:
                return False, False
    return True, unequal == 0
