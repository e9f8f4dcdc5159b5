"""Solvers of K C L + r C = Y for C: one file each, and one that chooses."""

from __future__ import annotations

from .auto import SpectrumEstimate, solve_sylvester
from .direct import EigenFactors, SylvesterSolution
from .iterative import NystromFactors

__all__ = [
    "EigenFactors",
    "NystromFactors",
    "SpectrumEstimate",
    "SylvesterSolution",
    "solve_sylvester",
]
