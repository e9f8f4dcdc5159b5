"""A compiled pass over a Gram matrix: its products with a point from both sides, and its entries.

It reads every entry once, at memory's speed.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.compiled import njit

# Sums may be taken in any order within a block; NaN and infinity keep their meaning.
_FAST = {"nsz", "reassoc", "contract"}
BLOCK = 128


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def products_of_both_sides(K, u, reach, witness, out, part):
    """Write ``Ku``, ``|K||u|``, ``Kᵀu``, ``|Kᵀ||u|``, ``Kw`` and ``Kᵀw`` to out; count odd entries.

    K (n, n) float64, read only; u, reach and w, the witness (n,); out (6, n) and part (n,), for
    scratch, hold zeros. Odd is what is not ``|Kᵢⱼ| ≤ reachᵢ reachⱼ``, so NaN and infinity are. A
    term of a product with u passes through at most ``BLOCK + n / BLOCK + 2`` roundings. n² loads
    of K, and ``4n (3n + m)`` flops with m nonzeros in u.
    """
    n = u.size
    odd = 0
    pending = 0
    for i in range(n):
        own = reach[i]
        seen = witness[i]
        for start in range(0, n, BLOCK):
            stop = start + BLOCK if start + BLOCK < n else n
            value = 0.0
            size = 0.0
            witnessed = 0.0
            for l in range(stop - start):
                k = np.uint64(start + l)
                x = K[i, k]
                term = x * u[k]
                value += term
                size += abs(term)
                witnessed += x * witness[k]
                odd += not (abs(x) <= own * reach[k])
            out[0, i] += value
            out[1, i] += size
            out[4, i] += witnessed
        for c in range(n):
            out[5, c] += seen * K[i, c]
        weight = u[i]
        if weight != 0.0:
            pending += 1
            for c in range(n):
                term = weight * K[i, c]
                part[c] += term
                out[3, c] += abs(term)
        if pending == BLOCK or i == n - 1:
            pending = 0
            for c in range(n):
                out[2, c] += part[c]
                part[c] = 0.0
    return odd
