"""The learner: vector-valued regularised least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.checks import STRENGTH

from .parameters import VectorSolution


@dataclass(frozen=True)
class VectorLeastSquares:
    """min over f of (1/Σsᵢ) Σ sᵢ ‖f(xᵢ) − yᵢ‖² + λ‖f‖², sᵢ the sample weights (V, (1)).

    One output and one kernel make it scikit-learn's ``KernelRidge(alpha=λ Σsᵢ)``; R's objective
    is this one over λ, with R's λ equal to ours times the number of samples.

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

    name: ClassVar[str] = "vector-least-squares"
    task: ClassVar[str] = "regression"
    lam: float = 1e-3

    def validate(self) -> None:
        """Raise unless λ is positive.

        Raises
        ------
        ValueError
            Naming the value seen.
        """
        STRENGTH.check("lam", self.lam)

    def solve(
        self,
        K: npt.ArrayLike,
        targets: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        output_kernel: npt.ArrayLike | None = None,
        tol: float = 1e-8,
    ) -> VectorSolution:
        """Solve K C L + λ (Σs) S⁻¹ C = Y for one Gram matrix.

        Parameters
        ----------
        K : array-like of shape (n_samples, n_samples)
            Symmetric positive semidefinite.
        targets : array-like of shape (n_outputs, n_samples)
            Yᵀ.
        sample_weight : array-like of shape (n_samples,), optional
            s, all positive.
        output_kernel : array-like of shape (n_outputs, n_outputs), optional
            L; the identity by default.
        tol : float, default=1e-8
            Relative residual to reach.

        Returns
        -------
        VectorSolution
            C, and bounds that differ by its residual.
        """
        from .grams import GramStack
        from .objective import Objective

        Y = np.atleast_2d(np.asarray(targets, dtype=np.float64)).T
        objective = Objective.of_arrays(
            lambda root: GramStack(np.asarray(K)[None], root), Y, self.lam, sample_weight
        )
        L = np.eye(Y.shape[1]) if output_kernel is None else np.asarray(output_kernel, float)
        point: Any = objective.evaluate(np.ones(1), L, tol=tol)
        return objective.solution(point)
