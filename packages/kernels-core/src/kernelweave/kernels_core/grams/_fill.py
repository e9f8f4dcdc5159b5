"""Fill Gram matrices block by block: exact symmetry, half the work, small temporaries."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import DTypeLike

from ..arrays import Points, RealArray, is_sparse, row_slices

Block = RealArray
# Entries of a block that passes one by one over: 256 KiB in float64, which stays in cache.
_IN_CACHE = 1 << 15
# Entries of a block that is a product of matrices: 8 MiB, so that BLAS has work and the temporaries
# of a rule stay small.
_FOR_BLAS = 1 << 20
# rows and columns of a part of a matrix that stays in cache with its transpose
TILE = 128


def row_blocks(n_rows: int, n_columns: int, entries: int = _IN_CACHE) -> Iterator[slice]:
    """Return slices of rows whose blocks hold about ``entries`` entries, by default cache-sized."""
    return row_slices(n_rows, max(1, min(1024, entries // max(1, n_columns))))


def fill_pairs(
    n_x: int, n_y: int | None, rule: Callable[[slice, slice], Block], dtype: DTypeLike
) -> Block:
    """Return K with ``K[r, c] = rule(r, c)``; with ``n_y=None`` the lower half is mirrored.

    ``rule(rows, columns)`` returns the block of two slices, which may be overwritten; without
    ``n_y`` it is symmetric.
    """
    K = np.empty((n_x, n_x if n_y is None else n_y), dtype=dtype)
    for rows in row_blocks(n_x, K.shape[1], _FOR_BLAS):
        if n_y is not None:
            K[rows] = rule(rows, slice(0, n_y))
            continue
        left = slice(0, rows.start)
        if rows.start:
            K[rows, left] = rule(rows, left)
            K[left, rows] = K[rows, left].T
        K[rows, rows] = rule(rows, rows)
        mirror(K[rows, rows])
    return K


def mirror(K: Block) -> None:
    """Copy the lower half of a square matrix to the upper one, in tiles that stay in cache."""
    for i in range(0, len(K), TILE):
        rows = slice(i, i + TILE)
        for j in range(0, i, TILE):
            K[j : j + TILE, rows] = K[rows, j : j + TILE].T
        square = K[rows, rows]
        square[:] = np.tril(square) + np.tril(square, -1).T


def largest(K: Block) -> float:
    """Return the largest |Kᵢⱼ|, NaN where an entry is: one read of K."""
    if K.size == 0:
        return 0.0
    ends = [(K[rows].min(), K[rows].max()) for rows in row_blocks(*K.shape)]
    low, high = np.array(ends, dtype=np.float64).T
    return float(max(high.max(), -low.min()))


def asymmetry(K: Block) -> float:
    """Return the largest |Kᵢⱼ − Kⱼᵢ|, in tiles that stay in cache with their transposes."""
    worst = 0.0
    for i in range(0, len(K), TILE):
        for j in range(0, i + 1, TILE):
            left, right = K[i : i + TILE, j : j + TILE], K[j : j + TILE, i : i + TILE].T
            if not np.array_equal(left, right):
                apart = np.abs(np.subtract(left, right, dtype=np.float64))
                worst = max(worst, float(apart.max()))
    return worst


def inner(X: Points, Y: Points | None) -> Block:
    """Return X Yᵀ as a dense array, exactly symmetric for ``Y=None``."""
    # dense and the same array twice: BLAS computes one triangle and mirrors it
    K = X @ (X if Y is None else Y).T
    return np.ascontiguousarray(K.toarray() if is_sparse(K) else K)


def add_outer(K: Block, u: Block, v: Block) -> None:
    """Add uᵢ + vⱼ to K in place; with ``u is v`` a symmetric K stays exactly symmetric."""
    for rows in row_blocks(*K.shape):
        K[rows] += (u[rows, None] + v[None, :]).astype(K.dtype, copy=False)


def scale_outer(K: Block, u: Block, v: Block) -> None:
    """Multiply K by uᵢ vⱼ in place; with ``u is v`` a symmetric K stays exactly symmetric."""
    for rows in row_blocks(*K.shape):
        K[rows] *= (u[rows, None] * v[None, :]).astype(K.dtype, copy=False)


def add_scaled(out: Block, K: Block, weight: float) -> None:
    """Add weight·K to ``out`` in place, a block of rows at a time."""
    for rows in row_blocks(*out.shape):
        out[rows] += K[rows] * out.dtype.type(weight)


def squared_norms(X: Points) -> Block:
    """Return ‖xᵢ‖² for every row, shape (n,), of the type of X."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel().astype(X.dtype, copy=False)
    return np.asarray(np.einsum("ij,ij->i", X, X))
