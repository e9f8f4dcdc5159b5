"""Linear PGD and its regularised form rPGD (Algorithm 2, and Algorithm 1 on equation 7).

As printed, line 7 rescales μ onto the sphere, whose fixed points are optimal at q = 2 only (F stays
11–12 % too high at q = 1); here μ is projected, which is right for every q.
"""

from __future__ import annotations

from .generalized_mkl import GeneralizedMKLSearch
from .settings import GradientSettings, LinearPGD, RegularizedLinearPGD


class LinearPGDSearch(GeneralizedMKLSearch):
    """``krr-pgd``: μ ← P(μ + η v), vₖ = αᵀKₖα, over {μ ≥ 0, ‖μ − μ₀‖_q ≤ Λ}."""

    settings: GradientSettings = LinearPGD()


class RegularizedLinearPGDSearch(GeneralizedMKLSearch):
    """``krr-rpgd``: μ ← max(μ − η(2βμ − v), 0) on F + β‖μ‖²."""

    settings: GradientSettings = RegularizedLinearPGD()
