"""A point of the low-rank method: a factor of P and what is known there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import Matrix
from kernelweave.kernels_core.formula.learner import Solution

from .gram import GramAt
from .saddle import Direction


@dataclass
class FactorPoint:
    """A factor and what the learner and the oracle say there."""

    U: Matrix
    gram: GramAt
    solution: Solution
    direction: Direction
    upper: float

    @property
    def stationarity(self) -> float:
        """λ_U = ⟨U, DU⟩: the certificate closes when it meets λ_max(D)."""
        return float(np.sum(self.U * (self.direction.moment @ self.U)))
