"""Solvers of K C L + r C = Y for C: one file each, and one that chooses."""

from __future__ import annotations

from .auto import choose_method, solve_sylvester
from .cg import solve_sylvester_cg
from .cholesky import solve_sylvester_cholesky
from .columns import solve_sylvester_columns
from .cost import Spectrum
from .eigen import EigenFactors, solve_sylvester_eigen
from .low_rank import FactoredGram, solve_sylvester_low_rank
from .nystrom import NystromFactors
from .solution import SylvesterSolution

__all__ = [
    "EigenFactors",
    "FactoredGram",
    "NystromFactors",
    "Spectrum",
    "SylvesterSolution",
    "choose_method",
    "solve_sylvester",
    "solve_sylvester_cg",
    "solve_sylvester_cholesky",
    "solve_sylvester_columns",
    "solve_sylvester_eigen",
    "solve_sylvester_low_rank",
]
