"""The parts of the gradient and the Hessian of yᵀ((Σ μₖKₖ)^{∘d} + λI)⁻¹y, on plain arrays."""

from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, RealArray


def products(grams: RealArray, u: FloatArray, L: FloatArray, degree: int) -> FloatArray:
    """Return (L^{∘(d−1)} ∘ Kₖ)uₜ, shape (p, T, n), for u of shape (T, n).

    - `grams` of shape (p, n, n): Kₖ
    - `u` of shape (T, n): rows to multiply
    - `L` of shape (n, n): Σ μₖKₖ; not read at degree 1
    - `degree`: d
    """
    power = None if degree == 1 else L ** (degree - 1)
    out = np.empty((len(grams), *u.shape))
    for k, K in enumerate(grams):
        out[k] = u @ (K if power is None else power * K)
    return out


def gradient_at(grams: RealArray, u: FloatArray, L: FloatArray, degree: int) -> FloatArray:
    """Return −d Σₜ uₜᵀ(L^{∘(d−1)} ∘ Kₖ)uₜ, shape (p,); arguments as in `products`."""
    weights = u.T @ u
    if degree > 1:
        weights *= L ** (degree - 1)
    return np.array([-degree * float(np.vdot(weights, K)) for K in grams])


def second_products(grams: RealArray, u: FloatArray, L: FloatArray, degree: int) -> FloatArray:
    """Return d(d−1) Σₜ uₜᵀ(L^{∘(d−2)} ∘ Kⱼ ∘ Kₖ)uₜ, shape (p, p); arguments as in `products`.

    Cost: 2p²n² flops above degree 1, none at degree 1.
    """
    p = len(grams)
    if degree == 1:
        return np.zeros((p, p))
    weights = u.T @ u
    if degree > 2:
        weights *= L ** (degree - 2)
    out = np.empty((p, p))
    for j in range(p):
        weighted = weights * grams[j]
        for k in range(j + 1):
            out[j, k] = out[k, j] = float(np.vdot(weighted, grams[k]))
    return degree * (degree - 1) * out
