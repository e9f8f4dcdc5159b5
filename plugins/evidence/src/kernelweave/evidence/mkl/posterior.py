"""How far a new observation may lie from what weighted kernels predict."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Points
from kernelweave.kernels_core.kernels import Kernel
from kernelweave.kernels_core.memory import require
from scipy.linalg import cholesky, solve_triangular

# New rows whose kernel values with all training rows are held at a time.
_BLOCK = 2048


@dataclass(frozen=True, eq=False)
class KernelPosterior:
    """The training rows as the posterior of a Gaussian process sees them.

    - `rows`: training points as given
    - `share`: of the noise, the inverse of each weight, (n,)
    - `noise`: σ², in units of the targets' variance
    - `spread`: standard deviation of each target, (T,)
    """

    rows: Points
    share: FloatArray
    noise: float
    spread: FloatArray

    def deviation(self, kernel: Kernel, X: Points) -> FloatArray:
        """Return the standard deviation of a new observation, noise included, (n_new, T)."""
        n = self.rows.shape[0]
        require(
            2 * 8 * n * n,
            f"a factor of the Gram matrix of {n} samples",
            alternative="raise memory_limit or predict without return_std",
        )
        S = np.array(kernel(self.rows), dtype=np.float64)
        S[np.diag_indices_from(S)] += self.noise * self.share
        factor = cholesky(S, lower=True, overwrite_a=True, check_finite=False)
        variance = np.array(kernel.diag(X), dtype=np.float64)
        for first in range(0, X.shape[0], _BLOCK):
            block = slice(first, first + _BLOCK)
            cross = kernel(X[block], self.rows).T
            half = solve_triangular(factor, cross, lower=True, check_finite=False)
            variance[block] -= np.einsum("ij,ij->j", half, half)
        width = np.sqrt(np.maximum(variance, 0.0) + self.noise)
        return np.asarray(width[:, None] * self.spread)
