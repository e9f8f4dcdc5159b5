"""K C L + r C = Y by one Cholesky factorisation per distinct eigenvalue of L."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Matrix
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from .solution import SylvesterSolution, check_system, finish


def distinct_eigenvalues(rho: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
    """Return for each of the ascending eigenvalues the index of the first one equal to it.

    Equal means within 1e-14 of the largest: L = I has one eigenvalue, whatever rounding says.
    """
    tolerance = 1e-14 * float(np.abs(rho).max(initial=0.0))
    starts = np.zeros(len(rho), dtype=np.intp)
    for j in range(1, len(rho)):
        first = starts[j - 1]
        starts[j] = first if rho[j] - rho[first] <= tolerance else j
    return starts


def solve_sylvester_cholesky(
    K: Matrix, L: Matrix, Y: Matrix, ridge: float, *, check: bool = True
) -> SylvesterSolution:
    """Solve K C L + r C = Y by factoring ρK + rI for each eigenvalue ρ of L.

    With L = S diag(ρ) Sᵀ the columns of C S solve (ρⱼ K + r I) c = (Y S)ⱼ. Cost: l³/3 flops per
    distinct ρⱼ > 0, which for few outputs, or L = I, is less than an eigendecomposition of K.
    """
    L, Y = check_system(K, L, Y, ridge, check=check)
    rho, S = eigh(L, check_finite=False)
    rho = np.maximum(rho, 0.0)
    rotated = Y @ S
    C = rotated / ridge
    starts = distinct_eigenvalues(rho)
    for first in np.unique(starts):
        if rho[first] == 0.0:
            continue
        group = np.flatnonzero(starts == first)
        C[:, group] = _solve_shifted(K, float(rho[first]), ridge, rotated[:, group])
    target = 1e-10 * float(np.linalg.norm(Y))
    return finish(K, L, Y, ridge, C @ S.T, target=target, method="cholesky")


def _solve_shifted(K: Matrix, rho: float, ridge: float, Y: Matrix) -> Matrix:
    """Solve (ρK + rI) C = Y."""
    A = rho * K
    A.flat[:: len(A) + 1] += ridge
    try:
        # Aᵀ = A has the columns that LAPACK overwrites, A would be copied
        factor = cho_factor(A.T, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError as error:
        raise LinAlgError(
            f"ρK + rI is not positive definite for ρ = {rho:.3g}, r = {ridge:.3g}: K has a "
            "negative eigenvalue, if only by rounding: set those to zero, or regularise more"
        ) from error
    C: Matrix = cho_solve(factor, Y, check_finite=False)
    return C
