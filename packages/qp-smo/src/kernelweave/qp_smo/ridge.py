"""Kernel ridge regression, with or without intercept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import check_vector
from kernelweave.kernels_core.formula.learner import Solution
from kernelweave.kernels_core.rounding import sums_to_zero
from numpy.typing import ArrayLike

from .squares import BoundedGram, SquaredLoss, certify, factorize, noise_diagonal


@dataclass(frozen=True)
class Ridge(SquaredLoss):
    """``max uᵀy − ½uᵀ(K + λI)u = ½yᵀ(K + λI)⁻¹y`` with ``λ = 1/C``: a value.

    The dual of ``min ½‖f‖² + ½C Σ wᵢ (yᵢ − f(xᵢ))²``; λ is the ``alpha`` of scikit-learn's
    KernelRidge.

    Parameters
    ----------
    C : float
        1/λ. The Ridge-MKL paper's own C is m times this one, its objective twice this one.
    fit_intercept : bool
        Whether to fit f(x) + b with b free, which adds ``Σu = 0``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.qp_smo import Ridge
    >>> solution = Ridge(C=1.0).solve(np.eye(2), np.array([2.0, 0.0]))
    >>> solution.dual_coef
    array([[1., 0.]])
    >>> solution.lower_bound <= 1.0 <= solution.upper_bound
    True
    """

    C: float = 1.0
    fit_intercept: bool = False
    name: ClassVar[str] = "ridge"
    task: ClassVar[str] = "regression"

    def noise(self, n_samples: int, sample_weight: ArrayLike | None = None) -> FloatArray:
        """Return the diagonal of R, 1/(C wᵢ), shape (n_samples,)."""
        return noise_diagonal(self.C, n_samples, sample_weight)

    def at(
        self,
        kernel: BoundedGram,
        targets: FloatArray,
        noise: FloatArray,
        active: npt.NDArray[np.bool_] | None = None,
    ) -> Solution:
        """Solve at a Gram matrix with known rounding: one factorisation, n³/3 flops.

        - `kernel`: K and its rounding
        - `targets` of shape (T, n)
        - `noise` of shape (n,): λ/wᵢ
        - `active` of shape (T, n): not used
        """
        rows = np.stack([check_vector("y", y, len(noise)) for y in targets])
        factor = factorize(kernel.K, noise, self.fit_intercept)
        u, b = factor.solve(rows)
        if self.fit_intercept:
            for t, y in enumerate(rows):
                constant = bool((y == y[0]).all())
                u[t] = 0.0 if constant else sums_to_zero(u[t])
                b[t] = y[0] if constant else b[t]
        return certify(kernel, noise, rows, u, b, hinge=False, n_iter=1, factors=(factor,))
