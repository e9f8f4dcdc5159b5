"""The negative log evidence of kernel weights and noise, with its gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, RealArray
from scipy.linalg import lapack

# the least noise, in units of the targets' variance
FLOOR = 1e-6


@dataclass(frozen=True)
class Values:
    """L at some weights and what its slopes are made of.

    `value`: L; infinite where S has no factor; `prices` of shape (q + 1,): T tr(S⁻¹Kⱼ), that of the
    noise last: slopes of the concave part of 2L; `forms` of shape (q + 1,): Σₜ aₜᵀKⱼaₜ with aₜ =
    S⁻¹yₜ.
    """

    value: float
    prices: FloatArray
    forms: FloatArray

    @property
    def slopes(self) -> FloatArray:
        """½ (prices − forms), the gradient of L."""
        return 0.5 * (self.prices - self.forms)


@dataclass(frozen=True, eq=False)
class WeightEvidence:
    """L(w, σ²) = ½ Σₜ yₜᵀS⁻¹yₜ + ½T log det S + ½Tr log σ², S = Σ wⱼKⱼ + σ²D.

    `stack` of shape (q, n, n): Kⱼ; `targets` of shape (T, n): y, centred and scaled; `weight` of
    shape (n,): D = diag(1/weight); r = Σ max(weight − 1, 0), so that a row of weight 2 is the row
    twice.
    """

    stack: RealArray
    targets: FloatArray
    weight: FloatArray

    @property
    def repeats(self) -> float:
        """r, the rows that a weight stands for beside its own."""
        return float(np.maximum(self.weight - 1.0, 0.0).sum())

    def __call__(self, weights: FloatArray, noise: float) -> Values:
        """Return L and its slopes at w of shape (q,) and σ²: n³ + 2qn² flops."""
        T, n = self.targets.shape
        flat = self.stack.reshape(len(weights), n * n)
        S = (weights @ flat).reshape(n, n)
        S[np.diag_indices_from(S)] += noise / self.weight
        factor, info = lapack.dpotrf(S.T, lower=0, clean=0, overwrite_a=1)
        if info:
            nothing = np.zeros(len(weights) + 1)
            return Values(np.inf, nothing, nothing)
        dual, _ = lapack.dpotrs(factor, self.targets.T, lower=0)
        value = 0.5 * float(np.sum(dual.T * self.targets))
        value += T * float(np.log(factor.diagonal()).sum()) + 0.5 * T * self.repeats * np.log(noise)
        half, _ = lapack.dpotri(factor, lower=0, overwrite_c=1)
        diagonal = half.diagonal().copy()
        inverse = np.triu(half)
        inverse += inverse.T
        inverse[np.diag_indices_from(inverse)] = diagonal
        prices, forms = flat @ inverse.ravel(), flat @ (dual @ dual.T).ravel()
        own_price = np.sum(diagonal / self.weight) + self.repeats / noise
        own_form = np.sum(dual**2 / self.weight[:, None])
        return Values(value, T * np.append(prices, own_price), np.append(forms, own_form))
