"""A start taken from a solved neighbour: another C, ε, box, or other samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import Matrix

# Columns that a neighbour's P may start with, and the least eigenvalue of one beside the largest:
# each column costs in every step, and one that is missed is found again as the top eigenvector of
# D.
_MOST_COLUMNS = 8
_LEAST_SHARE = 1e-5


@dataclass(frozen=True)
class Start:
    """Where to begin instead of at the balanced direction.

    Parameters
    ----------
    P : ndarray of shape (n_P, n_P)
        Positive semidefinite, of any trace.
    dual_coef : ndarray of shape (n_tasks, n_samples)
        Signed dual coefficients; clipped to the box and balanced where they are not feasible.
    """

    P: Matrix
    dual_coef: Matrix

    def factor(self, min_eig: float) -> Matrix:
        """Return U of norm one with U Uᵀ near P − ηI, of at most eight columns."""
        values, vectors = np.linalg.eigh(self.P)
        values = np.maximum(values - min_eig, 0.0)
        kept = values > _LEAST_SHARE * max(float(values[-1]), np.finfo(np.float64).tiny)
        kept[:-_MOST_COLUMNS] = False
        if not kept.any():
            kept[-1], values[-1] = True, 1.0
        U: Matrix = vectors[:, kept] * np.sqrt(values[kept])
        return U / np.linalg.norm(U)


def at_new_caps(dual_coef: Matrix, old: float, new: float) -> Matrix:
    """Return coefficients with those at the box's end ``old`` moved to ``new``.

    `dual_coef` of shape (n_tasks, n_samples): signed, each in [−old, old]; `old`, `new`: C before
    and after.
    """
    size = np.abs(dual_coef)
    moved = np.where(size >= (1.0 - 1e-6) * old, new, np.minimum(size, new))
    result: Matrix = np.sign(dual_coef) * moved
    return result
