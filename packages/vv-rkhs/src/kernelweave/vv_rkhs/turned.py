"""Targets in the eigenvectors of a K that never changes: K C is then a scaling of rows.

A step of an output kernel costs 2 l²n flops for each product with K or its eigenvectors T; with
C = T D it costs none. Bounds stay proofs: how far T diag(σ) Tᵀ is from K is measured once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import Matrix, Vector

from .rounding import gamma
from .sylvester.eigen import EigenFactors, refined
from .sylvester.solution import SylvesterSolution


@dataclass(frozen=True, eq=False)
class DiagonalGram:
    """diag(σ), never formed; `sigma` of shape (n_samples,)."""

    sigma: Vector

    @property
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_samples)."""
        return (len(self.sigma), len(self.sigma))

    def __matmul__(self, C: Matrix) -> Matrix:
        product: Matrix = self.sigma[:, None] * C
        return product


@dataclass(frozen=True, eq=False)
class Turn:
    """K and Y in coordinates of T, and how wrong they are there.

    - `factors`: with T of shape (n_samples, n_samples)
    - `gram`: diag(tᵢᵀ K tᵢ)
    - `Y` of shape (n_samples, n_outputs): Tᵀ Y, as computed
    - `K_error` ≥ ‖UᵀKU − diag(σ)‖₂ for the orthogonal U next to T, T = UH with H ⪰ 0
    - `Y_error` ≥ ‖UᵀY − Ỹ‖ for the computed Ỹ

    What is evaluated at D is thus, up to these two, what C = UD gives: U is never formed.
    """

    factors: EigenFactors
    gram: DiagonalGram
    Y: Matrix
    K_error: float
    Y_error: float

    @classmethod
    def of(cls, factors: EigenFactors, K: Matrix, Y: Matrix) -> Turn:
        """Measure the factors of K (3 l³ flops).

        With e = ‖TᵀT − I‖₂ ≥ ‖H − I‖₂, f = ‖KT − T diag(σ)‖₂ and M = UᵀKU, from MH − H diag(σ) =
        Uᵀ(KT − T diag(σ)): ‖M − diag(σ)‖ ≤ f + e‖M‖ + e max σ, and ‖M‖ ≤ max σ + ‖M − diag(σ)‖.
        """
        T, l = factors.T, len(K)
        each = gamma(l + 2)  # of a product: times the norms of what is multiplied
        T_norm, K_norm, Y_norm = (float(np.linalg.norm(part)) for part in (T, K, Y))
        image = K @ T
        sigma = np.einsum("ij,ij->j", T, image)
        largest = float(np.abs(sigma).max())
        image -= T * sigma
        off = float(np.linalg.norm(image)) + 2.0 * each * (K_norm + largest) * T_norm
        product = T.T @ T
        product.flat[:: l + 1] -= 1.0
        skew = float(np.linalg.norm(product)) + each * T_norm**2
        rest = off + 2.0 * skew * largest
        return cls(
            factors,
            DiagonalGram(sigma),
            T.T @ Y,
            K_error=rest / (1.0 - skew) * (1.0 + 1e-9) if skew < 1.0 else math.inf,
            Y_error=(skew * Y_norm + each * T_norm * Y_norm) * (1.0 + 1e-9),
        )

    def solve(self, L: Matrix, ridge: float) -> SylvesterSolution:
        """Return D, C = T D, with K C L + r C ≈ Y, by eigenvalues alone (9 n³ + 6 ln² flops)."""
        known = self.factors.with_output(L)
        return refined(
            *(self.gram, L, self.Y, ridge, known), lambda right: known.inside(right, ridge)
        )
