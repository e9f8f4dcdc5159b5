"""The set of sparse kernel weights, with the ridge on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from kernelweave.kernels_core.magnitude import check_strength
from numpy.typing import ArrayLike

from .projection import check_k0


@dataclass(frozen=True)
class SparseSimplex:
    """``{β ≥ 0 : Σβ = 1, ‖β‖₀ ≤ k₀}`` with the penalty ``λ‖β‖²``.

    Parameters
    ----------
    k0 : int, default=3
        Kernels at most.
    lam : float, default=1.0
        λ > 0.

    Examples
    --------
    >>> from kernelweave.mkl_sparse import SparseSimplex
    >>> SparseSimplex(k0=2, lam=0.5).penalty([0.5, 0.5, 0.0])
    0.25
    """

    k0: int = 3
    lam: float = 1.0
    name: ClassVar[str] = "sparse-simplex"

    def validate(self) -> None:
        """Raise ValueError unless k₀ is a positive integer and λ a positive number."""
        check_k0(self.k0, self.k0 if isinstance(self.k0, int) else 1)
        check_strength("lam", self.lam)

    def penalty(self, weights: ArrayLike) -> float:
        """Return ``λ‖β‖²``."""
        beta = np.asarray(weights, dtype=np.float64)
        return float(self.lam * (beta @ beta))
