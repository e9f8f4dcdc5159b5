"""Quadratic PGD and its regularised form (Algorithms 5 and 6), for any degree d ≥ 2.

Corrected: α solves with the Hadamard power; Algorithm 6 descends (printed, it climbs); weights are
projected rather than rescaled; a zero start, a stationary maximum, is refused. The paper's
Proposition 2.3 (convex for small λ) is false; the problem is convex in powers of μ where d ≤ q, see
`LqBall.product_bound`, and there one start ends with a proved gap.
"""

from __future__ import annotations

from .generalized_mkl import GeneralizedMKLSearch
from .settings import GradientSettings, QuadraticPGD, RegularizedQuadraticPGD


class QuadraticPGDSearch(GeneralizedMKLSearch):
    """``krr-pgd2``: μ ← P(μ + ηd αᵀUₖα), Uₖ = (Σ μⱼKⱼ)^{∘(d−1)} ∘ Kₖ, over the ℓq ball."""

    settings: GradientSettings = QuadraticPGD()


class RegularizedQuadraticPGDSearch(GeneralizedMKLSearch):
    """``krr-rpgd2``: μ ← max(μ − η(2βμ − d αᵀUₖα), 0) on F + β‖μ‖²."""

    settings: GradientSettings = RegularizedQuadraticPGD()
