"""Bounds on what rounding can do to the quantities that certificates are made of.

Standard model of floating point: |fl(x ∘ y) − x ∘ y| ≤ u |x ∘ y|, so that a sum of k products is
wrong by γ_k = k u / (1 − k u) times the sum of absolute values (Higham 2002, chapter 3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_EPS = float(np.finfo(np.float64).eps)  # twice the unit roundoff: a factor in hand


def gamma(count: float) -> float:
    """Return γ for ``count`` operations."""
    return count * _EPS / (1.0 - count * _EPS)


def in_problem_units(lower: float, upper: float, lam: float) -> tuple[float, float]:
    """Return bounds on J as bounds on J/(2λ), the value of a `Problem`, rounded outwards."""
    low, high = lower * (0.5 / lam), upper * (0.5 / lam)
    slack = gamma(2)
    return low - slack * abs(low), high + slack * abs(high)


@dataclass(frozen=True)
class Sizes:
    """Norms of one evaluation: everything the error bounds need.

    `n_samples`, `n_outputs`, `n_kernels`: l, n, m; `K`: Σ ηⱼ ‖Kⱼ‖, at least the Frobenius norm of
    K; `C`, `L`, `Y`: Frobenius norms; `K_error`, `Y_error`: of the basis, see `Eigenbasis`.
    """

    n_samples: int
    n_outputs: int
    n_kernels: int
    K: float
    C: float
    L: float
    Y: float
    K_error: float = 0.0
    Y_error: float = 0.0

    @property
    def fit_error(self) -> float:
        """Bound on the Frobenius error of the computed K C L."""
        depth = 2 * self.n_samples + self.n_outputs + self.n_kernels + 24
        return (gamma(depth) * self.K + self.K_error) * self.C * self.L

    @property
    def dot_error(self) -> float:
        """Relative error of an inner product of two l × n matrices."""
        return gamma(self.n_samples * self.n_outputs + 4)

    @property
    def weight_error(self) -> float:
        """Bound on the error of ⟨Kⱼ, C L Cᵀ⟩ over ‖Kⱼ‖."""
        depth = 3 * self.n_samples + 2 * self.n_outputs + 16
        return gamma(depth) * self.C**2 * self.L

    @property
    def gram_error(self) -> float:
        """Bound on the Frobenius error of the computed Cᵀ K C."""
        return self.gram_error_of(self.K) + self.K_error * self.C**2

    def gram_error_of(self, norm: float) -> float:
        """Return the same for another matrix in the place of K, of at most this norm."""
        return gamma(3 * self.n_samples + self.n_kernels + 24) * norm * self.C**2
