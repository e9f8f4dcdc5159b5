"""The learner: vector-valued regularised least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import Solution
from kernelweave.qp_smo import Ridge
from kernelweave.qp_smo.squares import BoundedGram, SquaredLoss, noise_diagonal
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class VectorLeastSquares(SquaredLoss):
    """min over f of (1/Σsᵢ) Σ sᵢ ‖f(xᵢ) − yᵢ‖² + λ‖f‖², sᵢ the sample weights (V, (1)).

    As a learner its value is that over 2λ: ``max uᵀy − ½uᵀ(K + λΣs S⁻¹)u`` for each output, so
    that it goes with every algorithm over kernel weights. One output makes it scikit-learn's
    ``KernelRidge(alpha=λ Σsᵢ)``; R's objective is the one above over λ, with R's λ equal to ours
    times the number of samples.

    Parameters
    ----------
    lam : float, default=1e-3
        λ > 0.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.vv_rkhs import VectorLeastSquares
    >>> VectorLeastSquares(lam=0.5).solve(np.eye(2), [[2.0, 4.0]]).dual_coef
    array([[1., 2.]])
    """

    lam: float = 1e-3
    name: ClassVar[str] = "vector-least-squares"
    task: ClassVar[str] = "regression"
    strength: ClassVar[str] = "lam"

    def noise(
        self, n_samples: int, sample_weight: ArrayLike | None = None
    ) -> npt.NDArray[np.float64]:
        """Return λ Σs/sᵢ, shape (n_samples,)."""
        total = float(n_samples) if sample_weight is None else float(np.sum(sample_weight))
        return noise_diagonal(1.0 / (self.lam * total), n_samples, sample_weight)

    def solve_with_error(
        self,
        kernel: BoundedGram,
        targets: npt.NDArray[np.float64],
        noise: npt.NDArray[np.float64],
        active: npt.NDArray[np.bool_] | None = None,
    ) -> Solution:
        """Solve for a Gram matrix with a known error: one factorisation for all outputs."""
        return Ridge().solve_with_error(kernel, targets, noise, active)
