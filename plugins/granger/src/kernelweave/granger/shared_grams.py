"""Gram matrices shared by problems that are solved at the same time.

One product serves all problems: the matrices are read once, where problems one by one read them
once each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import memory
from kernelweave.kernels_core.arrays import Index, Matrix, RealArray
from scipy.linalg import get_blas_funcs, get_lapack_funcs

LOST = 0.1  # of the tolerance, by functions that are left out
_WORTH = 4  # times fewer functions than samples
_SPARSE = 8  # times fewer weights than zeros: adding one by one is faster then

_SQUARES = 6  # matrices of all samples, or of samples and columns, that a search holds at most


def leading(
    grams: RealArray, which: Index, error: float, most: int
) -> tuple[Matrix, RealArray] | None:
    """Return U with orthonormal columns, and UᵀKⱼU, that lose at most an error of each matrix.

    ‖Kⱼ − U UᵀKⱼU Uᵀ‖ ≤ error in the Frobenius norm: for S = Σ Kⱼ and X orthogonal to U, ‖UᵀKⱼX‖² ≤
    ‖Kⱼ‖ tr XᵀSX, which a pivoted Cholesky factor of S bounds. ``None`` where that takes more than
    ``most`` columns, or the search more memory than the limit: problems on all samples have the
    same answers.
    """
    l = grams.shape[1]
    if 8 * _SQUARES * l * l > memory.limit_bytes():
        return None
    total = np.zeros(grams.shape[1:])
    for j in which:
        total += grams[j]
    largest = max((float(np.trace(grams[j])) for j in which), default=0.0)
    # half of the squared error for what is certainly small, half for what proves to be
    certain = error**2 / (6.0 * max(largest, 1e-300) * len(total))
    pivoted: Any = get_lapack_funcs("pstrf", dtype=np.float64)
    factor, order, rank, _ = pivoted(total, tol=certain, lower=1)
    columns = np.zeros((len(total), rank))
    columns[order - 1] = np.tril(factor)[:, :rank]
    Q = np.linalg.qr(columns)[0]
    values, vectors = np.linalg.eigh(Q.T @ (total @ Q))
    # fewer lose more of S than all errors together
    if np.count_nonzero(values > len(which) * error) > most:
        return None
    if 8 * (_SQUARES * l + len(which) * (rank + 1)) * rank > memory.limit_bytes():
        return None
    U = np.ascontiguousarray(Q @ vectors[:, ::-1])
    small = np.zeros((len(which), rank, rank))
    kept = np.zeros((len(which), rank + 1))
    place = np.arange(rank)
    for inside, squares, j in zip(small, kept, which, strict=True):
        inside[:] = U.T @ (grams[j] @ U)
        squares[1:] = (inside**2).cumsum(axis=0).cumsum(axis=1)[place, place]
    n = int(np.argmax((kept[:, -1:] - kept <= 0.5 * error**2).all(axis=0)))
    return (U[:, :n], np.ascontiguousarray(small[:, :n, :n])) if n <= most else None


@dataclass(frozen=True, eq=False)
class SharedKernels:
    """K₁ … K_m on l samples, as several problems at a time use them.

    - `n_kernels`, `n_samples`: m and l; coordinates may stand for samples
    - `dtype`: of what comes out
    - `n_bytes`: of the matrices, which a product reads
    - `combine`: from the weights (n_problems, m) of some problems, and which they are, to Σ ηⱼ Kⱼ
      of each, shape (n_problems, l, l)
    - `images`: from a c of each, shape (n_problems, l), to Kⱼ c, shape (n_problems, m, l)
    """

    n_kernels: int
    n_samples: int
    dtype: np.dtype[np.floating]
    n_bytes: int
    combine: Callable[[Matrix, Index], RealArray]
    images: Callable[[RealArray, Index], RealArray]


def shared(grams: RealArray) -> SharedKernels:
    """Return the kernels of contiguous matrices that are the same for every problem."""
    return SharedKernels(
        len(grams),
        grams.shape[1],
        grams.dtype,
        grams.nbytes,
        lambda weights, _: combined(grams, weights),
        lambda C, _: images(grams, C),
    )


def moved(
    grams: RealArray, still: Index, back: Index, mixed: Index, features: list[list[RealArray]]
) -> SharedKernels:
    """Return kernels of problems that each reorder the samples of some kernels on their own.

    `back` of shape (n_problems, n_samples): sample of the matrices at each place, for kernels that
    are `still`; `features`: for each problem Z, K = Z Zᵀ, of each kernel that is `mixed`, whose
    matrices here are unused.
    """

    def combine(weights: Matrix, problems: Index) -> RealArray:
        rest = weights.copy()
        rest[:, still] = 0.0
        rest[:, mixed] = 0.0
        whole = combined(grams, rest)
        still_part = combined(grams[still], weights[:, still])
        for K, each, order in zip(whole, still_part, back[problems], strict=True):
            _add_moved(K, each, order)
        for K, w, problem in zip(whole, weights[:, mixed], problems, strict=True):
            used = [np.sqrt(v) * Z for v, Z in zip(w, features[problem], strict=True) if v > 0]
            if used:
                Z = np.hstack(used).astype(K.dtype, copy=False)
                K += Z @ Z.T
        return whole

    def images_of(C: RealArray, problems: Index) -> RealArray:
        products, orders, placed = images(grams, C), back[problems], np.empty_like(C)
        np.put_along_axis(placed, orders, C, axis=1)
        still_part = images(grams[still], placed)
        products[:, still] = np.take_along_axis(still_part, orders[:, None, :], axis=2)
        for rows, c, problem in zip(products, C, problems, strict=True):
            for j, Z in zip(mixed, features[problem], strict=True):
                rows[j] = Z @ (Z.T @ c)
        return products

    return replace(shared(grams), combine=combine, images=images_of)


def _add_moved(K: RealArray, gram: RealArray, order: Index) -> None:
    """Add a matrix whose samples are in another order; moved round in a circle, by its blocks."""
    first, l = int(order[0]), len(order)
    if not np.array_equal(order, (np.arange(l) + first) % l):
        K += gram.take(order, axis=0).take(order, axis=1)
        return
    ends = (slice(0, l - first), slice(first, l)), (slice(l - first, l), slice(0, first))
    for rows, from_rows in ends:
        for columns, from_columns in ends:
            K[rows, columns] += gram[from_rows, from_columns]


def combined(grams: RealArray, weights: Matrix) -> RealArray:
    """Return sums of (m, l, l) matrices for each row of weights, shape (n, l, l)."""
    m, l, _ = grams.shape
    cast, flat = weights.astype(grams.dtype, copy=False), grams.reshape(m, l * l)
    sums: RealArray
    if np.count_nonzero(weights) * _SPARSE > weights.size:
        sums = cast @ flat
    else:
        sums = np.zeros((len(weights), l * l), dtype=grams.dtype)
        add = get_blas_funcs("axpy", dtype=grams.dtype)
        for k, j in zip(*np.nonzero(weights), strict=True):
            add(flat[j], sums[k], a=cast[k, j])
    return sums.reshape(len(weights), l, l)


def images(grams: RealArray, C: RealArray) -> RealArray:
    """Return products of (m, l, l) symmetric matrices with each row of C, shape (n, m, l)."""
    m, l, _ = grams.shape
    products: RealArray = C @ grams.reshape(m * l, l).T
    return products.reshape(len(C), m, l)


def factored(
    grams: RealArray, seen: Index, rows: Index, unit: Index, error: float, dtype: npt.DTypeLike
) -> SharedKernels:
    """Return the matrices of some samples, with products of few functions if that is worth it.

    The matrices of one history may have few functions, Kⱼ = Q Mⱼ Qᵀ: products with vectors then go
    through Q and lose at most `error` of each matrix, in the Frobenius norm; sums go through the
    matrices. Raises MemoryBudgetError if a copy is more than the limit.
    """
    m, l = len(seen), len(rows)
    every = np.array_equal(rows, np.arange(grams.shape[1]))
    if m == len(grams) and every and dtype == grams.dtype:
        whole = np.ascontiguousarray(grams)
    else:
        memory.require(
            grams.nbytes + m * l * l * np.dtype(dtype).itemsize,
            f"{len(grams)} Gram matrices of {grams.shape[1]} samples and a copy of {m} of them",
            alternative="forbid no links, give fewer kernels or lags, or raise {memory_limit}",
        )
        whole = blocks(grams, seen, rows, rows, dtype)
    units = [np.flatnonzero(unit == each) for each in np.unique(unit)]
    parts = []
    for which in units:
        exact = grams if every else blocks(grams, seen[which], rows, rows, grams.dtype)
        places = seen[which] if every else np.arange(len(which))
        one = leading(exact, places, error, l // _WORTH)
        if one is None:
            return shared(whole)
        parts.append((which, one[0].astype(dtype), one[1].astype(dtype)))

    def images_of(C: RealArray, _: Index) -> RealArray:
        products = np.empty((len(C), m, l), dtype=C.dtype)
        for which, Q, M in parts:
            products[:, which] = images(M, C @ Q) @ Q.T
        return products

    return replace(shared(whole), images=images_of)


def blocks(
    grams: RealArray, which: Index, rows: Index, columns: Index, dtype: npt.DTypeLike
) -> RealArray:
    """Return rows and columns of some matrices, shape (n_which, n_rows, n_columns).

    Rows first: they are contiguous, and both together as indices take three times as long.
    """
    submatrices = np.empty((len(which), len(rows), len(columns)), dtype=dtype)
    for one, j in zip(submatrices, which, strict=True):
        one[:] = grams[j].take(rows, axis=0).take(columns, axis=1)
    return submatrices
