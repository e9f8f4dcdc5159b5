"""The few functions that smooth kernels of one history have to offer, as columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from kernelweave.kernels_core import memory
from kernelweave.kernels_core.arrays import Index, Matrix, RealArray
from scipy.linalg import get_lapack_funcs

_SQUARES = 6  # matrices of all samples, or of samples and columns, that a search holds at most


def leading(
    grams: RealArray, which: Index, error: float, most: int
) -> tuple[Matrix, RealArray] | None:
    """Return U with orthonormal columns, and UᵀKⱼU, that lose at most an error of each matrix.

    ‖Kⱼ − U UᵀKⱼU Uᵀ‖ ≤ error in the Frobenius norm: for S = Σ Kⱼ and X orthogonal to U,
    ‖UᵀKⱼX‖² ≤ ‖Kⱼ‖ tr XᵀSX, which a pivoted Cholesky factor of S bounds.

    - `grams` of shape (n_kernels, n_samples, n_samples): positive semidefinite
    - `which`: of these
    - `error`: above 0
    - `most`: columns

    Returns `U` of shape (n_samples, n_columns); the others (n_which, n_columns, n_columns);
    ``None`` where that takes more columns, or the search more memory than the limit: problems on
    all samples have the same answers.
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
