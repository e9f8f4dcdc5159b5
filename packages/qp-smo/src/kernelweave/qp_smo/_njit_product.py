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
def _of_rows(K, u, reach, witness, out, a, b, c, d):
    """Write ``Ku``, ``|K||u|`` and ``Kw`` of four rows to out; return how many entries are odd."""
    n = u.size
    own_a, own_b, own_c, own_d = reach[a], reach[b], reach[c], reach[d]
    odd = 0
    for row in (a, b, c, d):
        out[0, row] = out[1, row] = out[4, row] = 0.0
    for start in range(0, n, BLOCK):
        stop = start + BLOCK if start + BLOCK < n else n
        value_a = value_b = value_c = value_d = 0.0
        size_a = size_b = size_c = size_d = 0.0
        seen_a = seen_b = seen_c = seen_d = 0.0
        for l in range(stop - start):
            k = np.uint64(start + l)
            x_a, x_b, x_c, x_d = K[a, k], K[b, k], K[c, k], K[d, k]
            point, w, other = u[k], witness[k], reach[k]
            term_a, term_b, term_c, term_d = x_a * point, x_b * point, x_c * point, x_d * point
            value_a += term_a
            value_b += term_b
            value_c += term_c
            value_d += term_d
            size_a += abs(term_a)
            size_b += abs(term_b)
            size_c += abs(term_c)
            size_d += abs(term_d)
            seen_a += x_a * w
            seen_b += x_b * w
            seen_c += x_c * w
            seen_d += x_d * w
            odd += not (abs(x_a) <= own_a * other)
            odd += not (abs(x_b) <= own_b * other)
            odd += not (abs(x_c) <= own_c * other)
            odd += not (abs(x_d) <= own_d * other)
        # rows that are the same have the same sums
        values = out[0, a] + value_a, out[0, b] + value_b, out[0, c] + value_c, out[0, d] + value_d
        sizes = out[1, a] + size_a, out[1, b] + size_b, out[1, c] + size_c, out[1, d] + size_d
        seen = out[4, a] + seen_a, out[4, b] + seen_b, out[4, c] + seen_c, out[4, d] + seen_d
        out[0, a], out[0, b], out[0, c], out[0, d] = values
        out[1, a], out[1, b], out[1, c], out[1, d] = sizes
        out[4, a], out[4, b], out[4, c], out[4, d] = seen
    return odd


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def products_of_both_sides(K, u, reach, witness, out, part):
    """Write ``Ku``, ``|K||u|``, ``Kᵀu``, ``|Kᵀ||u|``, ``Kw`` and ``Kᵀw`` to out; count odd entries.

    K (n, n) float64, read only; u, reach and w, the witness (n,); out (6, n) and part (n,), for
    scratch, hold zeros. Odd is what is not ``|Kᵢⱼ| ≤ reachᵢ reachⱼ``, so NaN and infinity are. A
    term of a product with u passes through at most ``BLOCK + n / BLOCK + 2`` roundings. n² loads
    of K, four rows at a time so that vectors are read a fourth as often; at most ``16n²`` flops.
    """
    n = u.size
    odd = 0
    pending = 0
    for i in range(0, n, 4):
        # behind the last row this again, of weight 0
        a, b = np.uint64(i), np.uint64(min(i + 1, n - 1))
        c, d = np.uint64(min(i + 2, n - 1)), np.uint64(min(i + 3, n - 1))
        if i + 4 <= n:
            odd += _of_rows(K, u, reach, witness, out, a, b, c, d)
        else:
            for last in range(i, n):
                row = np.uint64(last)
                odd += _of_rows(K, u, reach, witness, out, row, row, row, row) // 4
        w_a = witness[a]
        w_b = witness[b] if i + 1 < n else 0.0
        w_c = witness[c] if i + 2 < n else 0.0
        w_d = witness[d] if i + 3 < n else 0.0
        for k in range(n):
            out[5, k] += (w_a * K[a, k] + w_b * K[b, k]) + (w_c * K[c, k] + w_d * K[d, k])
        u_a = u[a]
        u_b = u[b] if i + 1 < n else 0.0
        u_c = u[c] if i + 2 < n else 0.0
        u_d = u[d] if i + 3 < n else 0.0
        if u_a != 0.0 or u_b != 0.0 or u_c != 0.0 or u_d != 0.0:
            pending += 4
            for k in range(n):
                term_a, term_b = u_a * K[a, k], u_b * K[b, k]
                term_c, term_d = u_c * K[c, k], u_d * K[d, k]
                part[k] += (term_a + term_b) + (term_c + term_d)
                out[3, k] += (abs(term_a) + abs(term_b)) + (abs(term_c) + abs(term_d))
        if pending >= BLOCK or i + 4 >= n:
            pending = 0
            for k in range(n):
                out[2, k] += part[k]
                part[k] = 0.0
    return odd
