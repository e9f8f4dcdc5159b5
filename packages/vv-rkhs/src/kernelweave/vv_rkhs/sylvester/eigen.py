"""K C L + r C = Y by eigendecompositions of K and L (V, section 2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Matrix, RealArray
from kernelweave.kernels_core.interrupts import aside
from scipy.linalg import eigh

from .solution import Gram, SylvesterSolution, check_system, finish


@dataclass(frozen=True)
class EigenFactors:
    """K = T diag(σ) Tᵀ and L = S diag(ρ) Sᵀ.

    With the K and L that they come from, `solve` is exact; with later ones it is a
    preconditioner.

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
        sigma, T = aside(eigh, K, driver="evd", check_finite=False)
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
        C: Matrix = X @ self.S.T
        return C

    def solve(self, Y: Matrix, ridge: float) -> Matrix:
        """Return T X̃ Sᵀ, X̃ᵢⱼ = (Tᵀ Y S)ᵢⱼ / (σᵢ ρⱼ + r) (4 l²n + 4 ln² flops)."""
        C: Matrix = self.T @ self.inside(self.T.T @ Y, ridge)
        return C

    def apply(self, R: RealArray, rho: RealArray, ridge: float) -> RealArray:
        """Return (ρⱼ K + r I)⁻¹ rⱼ for every column of R (4 l² flops per column)."""
        Z: Matrix = self.T @ ((self.T.T @ R) / self._sums(rho, ridge))
        return Z


def solve_sylvester_eigen(
    K: Matrix,
    L: Matrix,
    Y: Matrix,
    ridge: float,
    *,
    factors: EigenFactors | None = None,
    check: bool = True,
) -> SylvesterSolution:
    """Solve K C L + r C = Y by eigendecomposition.

    C = T X̃ Sᵀ with X̃ᵢⱼ = (Tᵀ Y S)ᵢⱼ / (σᵢ ρⱼ + r), r = λl: V prints S for Sᵀ and λ for λl. One
    step of refinement follows where rounding left a residual.

    `factors` are of this K and this L, where they are known.
    """
    L, Y = check_system(K, L, Y, ridge, check=check)
    known = EigenFactors.of(np.asarray(K, dtype=np.float64), L) if factors is None else factors
    return refined(K, L, Y, ridge, known, lambda right: known.solve(right, ridge))


def refined(
    K: Gram,
    L: Matrix,
    Y: Matrix,
    ridge: float,
    known: EigenFactors,
    solve: Callable[[Matrix], Matrix],
) -> SylvesterSolution:
    """Return what ``solve`` gives for K C L + r C = Y, or after a step of refinement if better."""
    target = 1e-10 * float(np.linalg.norm(Y))
    solution = finish(K, L, Y, ridge, solve(Y), target=target, method="eigen", factors=known)
    if solution.converged:
        return solution
    C = solution.C + solve(Y - solution.fit - ridge * solution.C)
    again = finish(K, L, Y, ridge, C, target=target, method="eigen", factors=known)
    return min(solution, again, key=lambda each: each.residual_norm)
