"""A better multiplier next to a C that certifies an output kernel.

A bound charges τ λ_max(Cᵀ K C): one direction that stands out costs all of it. Directions scaled to
one level cost no more than they bring, and C is then wrong by the square of what it was.
"""

from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.arrays import Matrix


def levelled(C: Matrix, B: Matrix, Y: Matrix, ridge: float, tau: float) -> Matrix:
    """Return C V diag(w) Vᵀ with the best w for 2⟨C, Y⟩ − r‖C‖² − τ λ_max(Cᵀ K C).

    With B = V diag(b) Vᵀ, pⱼ = ⟨C vⱼ, Y vⱼ⟩ and qⱼ = ‖C vⱼ‖² the bound is Σ 2wⱼpⱼ − r wⱼ²qⱼ − τs²,
    wⱼ = min(pⱼ/(r qⱼ), s/√bⱼ): concave in s, with its maximum in closed form between any two of the
    s at which a direction reaches its own best.

    - `C`, `Y` of shape (l, n): multipliers and targets
    - `B` of shape (n, n): Cᵀ K C, symmetric
    - `ridge`, `tau`: r and τ

    Returns shape (l, n). Costs 9 n³ + 6 l n² flops.
    """
    b, V = np.linalg.eigh(B)
    tiny = max(1e-14 * float(b[-1]), 1e-300)
    roots = np.sqrt(np.maximum(b, tiny))
    turned = C @ V
    p = np.maximum(np.einsum("ij,ij->j", turned, Y @ V), 0.0)
    q = np.maximum(np.einsum("ij,ij->j", turned, turned), 1e-300)
    own = p / (ridge * q)
    order = np.argsort(-own * roots)
    ends = np.append((own * roots)[order][1:], 0.0)
    s = np.cumsum((p / roots)[order]) / (ridge * np.cumsum((q / roots**2)[order]) + tau)
    level = float(s[np.argmax(s >= ends)])
    better: Matrix = (turned * np.minimum(own, level / roots)) @ V.T
    return better
