"""The set of sparse kernel weights, with the ridge on them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from kernelweave.kernels_core.checks import COUNT, STRENGTH
from kernelweave.kernels_core.parameters import Value, parameter
from numpy.typing import ArrayLike


class SparseSimplex(Value):
    """``{β ≥ 0 : Σβ = 1, ‖β‖₀ ≤ k₀}`` with the penalty ``λ‖β‖²``.

    Examples
    --------
    >>> from kernelweave.mkl_sparse import SparseSimplex
    >>> SparseSimplex(k0=2, lam=0.5).penalty([0.5, 0.5, 0.0])
    0.25
    """

    name: ClassVar[str] = "sparse-simplex"
    k0: int = parameter("Kernels at most.", default=3, rule=COUNT)
    lam: float = parameter("λ, of the ridge on the weights.", default=1.0, rule=STRENGTH)

    def penalty(self, weights: ArrayLike) -> float:
        """Return ``λ‖β‖²``."""
        beta = np.asarray(weights, dtype=np.float64)
        return float(self.lam * (beta @ beta))
