"""Compiled checks of a Gram matrix."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import numpy as np

from ..compiled import njit


@njit(cache=True, nogil=True, error_model="numpy")
def is_sound(K, reach):
    """Return whether ``Kᵢⱼ = Kⱼᵢ`` to the last bit and ``|Kᵢⱼ| ≤ rᵢrⱼ`` < ∞: n² loads.

    The quick answer for most matrices; `scan_gram` measures what is amiss with the others.
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


@njit(cache=True, nogil=True, error_model="numpy")
def scan_gram(K, reach):
    """Return ``(max |Kᵢⱼ|, max |Kᵢⱼ − Kⱼᵢ|, finite, within)`` in one tiled pass: n² loads.

    ``within`` tells whether ``|Kᵢⱼ| ≤ rᵢrⱼ`` for the vector r, ``reach``.
    """
    n = K.shape[0]
    tile = 64
    largest = np.zeros(tile)
    skew = np.zeros(tile)
    poison = np.zeros(tile)
    excess = np.zeros(tile)
    other = np.empty((tile, tile))
    for i0 in range(0, n, tile):
        i1 = min(i0 + tile, n)
        for j0 in range(i0, n, tile):
            j1 = min(j0 + tile, n)
            for j in range(j0, j1):
                source = K[j, i0:i1]
                for i in range(source.size):
                    other[i, j - j0] = source[i]
            for i in range(i0, i1):
                source = K[i, j0:j1]
                mirror = other[i - i0]
                far = reach[j0:j1]
                own = reach[i]
                for j in range(source.size):
                    x = np.float64(source[j])
                    d = abs(x - mirror[j])
                    poison[j] += (x - x) + (d - d)
                    x = abs(x)
                    skew[j] = d if d > skew[j] else skew[j]
                    largest[j] = x if x > largest[j] else largest[j]
                    over = x - own * far[j]
                    excess[j] = over if over > excess[j] else excess[j]
    most = 0.0
    uneven = 0.0
    beyond = 0.0
    total = 0.0
    for j in range(tile):
        most = max(most, largest[j])
        uneven = max(uneven, skew[j])
        beyond = max(beyond, excess[j])
        total += poison[j]
    return most, uneven, total == 0.0, beyond == 0.0
