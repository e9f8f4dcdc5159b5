"""K C L + r C = Y for K = Z Zᵀ with few columns, without forming K (V, algorithm A)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import Matrix
from kernelweave.kernels_core.checks import check_array
from scipy.linalg import eigh

from .solution import SylvesterSolution, check_system, finish

# Each solves once more for what is left: what three do not reach is taken for what the cancellation
# leaves.
_REFINEMENTS = 3


@dataclass(frozen=True)
class FactoredGram:
    """K = Z Zᵀ, never formed.

    Parameters
    ----------
    Z : ndarray of shape (n_samples, n_features), float64
        Features: of a linear kernel, random Fourier features, or columns of several kernels
        side by side, each scaled by the root of its weight.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.vv_rkhs import FactoredGram
    >>> FactoredGram(np.array([[1.0], [2.0]])) @ np.array([[1.0], [1.0]])
    array([[3.],
           [6.]])
    """

    Z: Matrix

    @property
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_samples)."""
        return (self.Z.shape[0], self.Z.shape[0])

    def __matmul__(self, C: Matrix) -> Matrix:
        product: Matrix = self.Z @ (self.Z.T @ C)
        return product

    def trace(self) -> float:
        """Return tr K = ‖Z‖²."""
        return float(np.vdot(self.Z, self.Z))


def solve_sylvester_low_rank(
    Z: Matrix, L: Matrix, Y: Matrix, ridge: float, *, check: bool = True
) -> SylvesterSolution:
    """Solve Z Zᵀ C L + r C = Y without forming Z Zᵀ.

    With ZᵀZ = V diag(σ) Vᵀ and L = S diag(ρ) Sᵀ, C = (Y − Z V X Sᵀ) / r where
    Xᵢⱼ = ρⱼ (Vᵀ Zᵀ Y S)ᵢⱼ / (σᵢ ρⱼ + r): the identity of Woodbury. Cost: ld² + 9d³ + 4ldn flops for
    d features; K would take l²d and l³. Refined as long as that lowers the residual.
    """
    K = FactoredGram(check_array("Z", Z, 2) if check else np.asarray(Z, dtype=np.float64))
    L, Y = check_system(K, L, Y, ridge, check=check)
    sigma, V = eigh(K.Z.T @ K.Z, check_finite=False)
    rho, S = eigh(L, check_finite=False)
    sigma, rho = np.maximum(sigma, 0.0), np.maximum(rho, 0.0)

    def apply(right: Matrix) -> Matrix:
        X = V.T @ (K.Z.T @ right) @ S
        X *= rho / (sigma[:, None] * rho + ridge)
        return (right - K.Z @ (V @ X @ S.T)) / ridge

    target = 1e-10 * float(np.linalg.norm(Y))
    found = finish(K, L, Y, ridge, apply(Y), target=target, method="low-rank")
    for _ in range(_REFINEMENTS):  # Woodbury cancels when r is small
        if found.converged:
            break
        C = found.C + apply(Y - found.product @ L - ridge * found.C)
        refined = finish(K, L, Y, ridge, C, target=target, method="low-rank")
        if not refined.residual_norm < found.residual_norm:
            break
        found = refined
    return found
