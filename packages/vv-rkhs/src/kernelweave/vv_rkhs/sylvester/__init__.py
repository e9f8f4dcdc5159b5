"""Solvers of K C L + r C = Y for C: one file each, and one that chooses."""

from __future__ import annotations

from .auto import solve_sylvester
from .cost import SpectrumEstimate
from .eigen import EigenFactors
from .low_rank import FactoredGram
from .nystrom import NystromFactors
from .solution import SylvesterSolution

__all__ = [
    "EigenFactors",
    "FactoredGram",
    "NystromFactors",
    "SpectrumEstimate",
    "SylvesterSolution",
    "solve_sylvester",
]
