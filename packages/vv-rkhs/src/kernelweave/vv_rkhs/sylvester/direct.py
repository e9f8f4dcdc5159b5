"""K C L + r C = Y by factorisations (V, section 2), and what every C solver checks and returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Matrix, RealArray
from kernelweave.kernels_core.checks import POSITIVE, check_array, check_vector
from kernelweave.kernels_core.grams import as_grams
from kernelweave.kernels_core.interrupts import run_interruptibly
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh


@dataclass(frozen=True)
class SylvesterSolution:
    """C with K C L + r C ≈ Y, and what it cost.

    Attributes
    ----------
    C : ndarray of shape (n_samples, n_outputs)
        The solution.
    residual_norm : float
        Frobenius norm of Y − K C L − r C, computed afresh from C.
    converged : bool
        Whether the residual is within what was asked (always, for a direct method that is not
        limited by rounding).
    n_iter : int
        Iterations; 0 for a direct method.
    n_columns : int
        Products of K with one column: the unit in which iterative methods compare.
    method : str
        Which solver made it.
    product : ndarray of shape (n_samples, n_outputs)
        K C.
    fit : ndarray of shape (n_samples, n_outputs)
        K C L.
    factors : object or None
        The `EigenFactors`, where the method made them.
    sketch : object or None
        The `NystromFactors`, where the method used them.
    """

    C: Matrix
    residual_norm: float
    converged: bool
    n_iter: int
    n_columns: int
    method: str
    product: Matrix
    fit: Matrix
    factors: EigenFactors | None = None
    sketch: Any = None


def check_system(
    K: Matrix,
    L: ArrayLike,
    Y: ArrayLike,
    ridge: float,
    *,
    check: bool = True,
    tol: float = 1e-8,
    **starts: Matrix | None,
) -> tuple[Matrix, Matrix]:
    """Return L and Y as float64 matrices after checking that the four parts fit.

    With ``check`` also that K, L and Y are finite numbers, that K and L are symmetric, that ``tol``
    is positive and that ``starts``, such as C0, fit Y.
    """
    if check:
        as_grams(K[None] if K.ndim == 2 else K, "K", square=True)
        as_grams([L], "L", square=True)
        check_vector("Y", np.ravel(Y), np.size(Y))
    L, Y = np.asarray(L, dtype=np.float64), np.asarray(Y, dtype=np.float64)
    if Y.ndim != 2:
        raise ValueError(f"Y must have shape (n_samples, n_outputs), got {Y.shape}")
    if K.shape != (Y.shape[0], Y.shape[0]):
        raise ValueError(f"K must have shape {(Y.shape[0],) * 2} as Y has rows, got {K.shape}")
    if L.shape != (Y.shape[1], Y.shape[1]):
        raise ValueError(f"L must have shape {(Y.shape[1],) * 2} as Y has columns, got {L.shape}")
    POSITIVE.check("ridge", ridge)
    if check:
        POSITIVE.check("tol", tol)
        for name, start in starts.items():
            if start is not None and check_array(name, start, 2).shape != Y.shape:
                raise ValueError(f"{name} must have shape {Y.shape} as Y, got {np.shape(start)}")
    return L, Y


def finish(
    K: Matrix,
    L: Matrix,
    Y: Matrix,
    ridge: float,
    C: Matrix,
    *,
    target: float,
    method: str,
    n_iter: int = 0,
    n_columns: int = 0,
    factors: EigenFactors | None = None,
) -> SylvesterSolution:
    """Return the solution with its residual computed from C itself (2l²n + 2ln² flops)."""
    product = K @ C
    fit = product @ L
    residual = Y - fit - ridge * C
    norm = float(np.linalg.norm(residual))
    spent = n_columns + Y.shape[1]
    return SylvesterSolution(C, norm, norm <= target, n_iter, spent, method, product, fit, factors)


@dataclass(frozen=True)
class EigenFactors:
    """K = T diag(σ) Tᵀ and L = S diag(ρ) Sᵀ.

    Attributes
    ----------
    T : ndarray of shape (n_samples, n_samples)
        Eigenvectors of K.
    sigma : ndarray of shape (n_samples,)
        Eigenvalues of K, ascending; negative ones, which are rounding, set to 0.
    S : ndarray of shape (n_outputs, n_outputs)
        Eigenvectors of L.
    rho : ndarray of shape (n_outputs,)
        Eigenvalues of L, likewise.
    noise : float, default=0.0
        Size of what rounding does to σ. Sums σρ + r below ρ times it count as so much: a smaller
        r would blow up what K does not contain.
    """

    T: Matrix
    sigma: npt.NDArray[np.float64]
    S: Matrix
    rho: npt.NDArray[np.float64]
    noise: float = 0.0

    @classmethod
    def of(cls, K: Matrix, L: Matrix) -> EigenFactors:
        """Return the factors of K and L (about 9 l³ + 9 n³ flops)."""
        sigma, T = run_interruptibly(eigh, K, driver="evd", check_finite=False)
        noise = max(-float(sigma[0]), float(np.finfo(np.float64).eps * sigma[-1]))
        return cls(T, np.maximum(sigma, 0.0), np.eye(1), np.ones(1), noise).with_output(L)

    def with_output(self, L: Matrix) -> EigenFactors:
        """Return factors with the same K and another L (9 n³ flops)."""
        rho, S = eigh(L, check_finite=False)
        return EigenFactors(self.T, self.sigma, S, np.maximum(rho, 0.0), self.noise)

    def _sums(self, rho: RealArray, ridge: float) -> Matrix:
        sums: Matrix = np.maximum(self.sigma[:, None] * rho + ridge, self.noise * rho)
        return sums

    def inside(self, Y: Matrix, ridge: float) -> Matrix:
        """Return X̃ Sᵀ, X̃ᵢⱼ = (Y S)ᵢⱼ / (σᵢ ρⱼ + r), for targets Tᵀ Y (4 ln² flops)."""
        X = Y @ self.S
        X /= self._sums(self.rho, ridge)
        return X @ self.S.T

    def solve(self, Y: Matrix, ridge: float) -> Matrix:
        """Return T X̃ Sᵀ, X̃ᵢⱼ = (Tᵀ Y S)ᵢⱼ / (σᵢ ρⱼ + r) (4 l²n + 4 ln² flops)."""
        return self.T @ self.inside(self.T.T @ Y, ridge)


def solve_sylvester_eigen(
    K: Matrix, L: Matrix, Y: Matrix, ridge: float, *, check: bool = True
) -> SylvesterSolution:
    """Solve K C L + r C = Y by eigendecomposition.

    C = T X̃ Sᵀ with X̃ᵢⱼ = (Tᵀ Y S)ᵢⱼ / (σᵢ ρⱼ + r), r = λl: V prints S for Sᵀ and λ for λl. One
    step of refinement follows where rounding left a residual.
    """
    L, Y = check_system(K, L, Y, ridge, check=check)
    eigen = EigenFactors.of(np.asarray(K, dtype=np.float64), L)
    return refined(K, L, Y, ridge, eigen, lambda right: eigen.solve(right, ridge))


def refined(
    K: Matrix,
    L: Matrix,
    Y: Matrix,
    ridge: float,
    factors: EigenFactors,
    solve: Callable[[Matrix], Matrix],
) -> SylvesterSolution:
    """Return what ``solve`` gives for K C L + r C = Y, or after a step of refinement if better."""
    target = 1e-10 * float(np.linalg.norm(Y))
    solution = finish(K, L, Y, ridge, solve(Y), target=target, method="eigen", factors=factors)
    if solution.converged:
        return solution
    C = solution.C + solve(Y - solution.fit - ridge * solution.C)
    again = finish(K, L, Y, ridge, C, target=target, method="eigen", factors=factors)
    return min(solution, again, key=lambda each: each.residual_norm)


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
    return cho_solve(factor, Y, check_finite=False)
