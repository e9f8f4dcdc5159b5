"""The inner maximisation: kernel ridge regression and the squared-hinge classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.checks import STRENGTH

from .hinge import solve_hinge
from .inner import Factor, Kernel, LearnerSolution, certify, factorize, noise_diagonal
from .rounding import FloatArray, sums_to_zero

__all__ = ["LearnerSolution", "Ridge", "SquaredHingeSVC"]


@dataclass(frozen=True)
class Ridge:
    """max over u of 2uᵀy − uᵀ(K + λI)u = yᵀ(K + λI)⁻¹y, λ = 1/C.

    The dual of min ‖f‖² + C Σ wᵢ (yᵢ − f(xᵢ))²; λ is the ``alpha`` of scikit-learn's KernelRidge.

    Parameters
    ----------
    C : float, default=1.0
        1/λ. The Ridge-MKL paper's own C is m times this one.
    fit_intercept : bool, default=False
        Whether to fit f(x) + b with b free, which adds Σu = 0.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.ridge_mkl import Ridge
    >>> solution = Ridge(C=1.0).solve(np.eye(2), np.array([2.0, 0.0]))
    >>> solution.dual_coef
    array([[1., 0.]])
    >>> solution.lower_bound <= 2.0 <= solution.upper_bound
    True
    """

    name: ClassVar[str] = "ridge"
    task: ClassVar[str] = "regression"
    C: float = 1.0
    fit_intercept: bool = False

    def validate(self) -> None:
        """Raise unless C is positive.

        Raises
        ------
        ValueError
            Naming the value seen.
        """
        STRENGTH.check("C", self.C)

    def solve(
        self,
        K: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        dual0: npt.ArrayLike | None = None,
        tol: float = 0.0,
        check: bool = True,
    ) -> LearnerSolution:
        """Solve at one Gram matrix.

        Parameters
        ----------
        K : array-like of shape (n, n)
            Symmetric, positive semidefinite.
        y : array-like of shape (n,) or (T, n)
            Targets.
        sample_weight : array-like of shape (n,), optional
            Positive; multiplies C per sample.
        dual0 : array-like of shape (T, n), optional
            Not used: the solution is closed form.
        tol : float
            Not used: the solution is exact to rounding.
        check : bool
            Not used.

        Returns
        -------
        LearnerSolution
            Dual point and proved ends.
        """
        kernel = Kernel.exact(K)
        targets = np.atleast_2d(np.asarray(y, dtype=np.float64))
        noise = noise_diagonal(self.C, targets.shape[1], sample_weight)
        return self.at(kernel, targets, noise, None)

    def at(
        self, kernel: Kernel, targets: FloatArray, noise: FloatArray, warm: LearnerSolution | None
    ) -> LearnerSolution:
        """Solve at a Gram matrix with known rounding.

        Parameters
        ----------
        kernel : Kernel
            K and its rounding.
        targets : ndarray of shape (T, n)
            Targets.
        noise : ndarray of shape (n,)
            λ/wᵢ.
        warm : LearnerSolution, optional
            Not used.

        Returns
        -------
        LearnerSolution
            One factorisation, n³/3 flops.
        """
        factor = factorize(kernel.K, noise, self.fit_intercept)
        u, b = factor.solve(targets)
        if self.fit_intercept:
            for t, y in enumerate(targets):
                constant = bool((y == y[0]).all())
                u[t] = 0.0 if constant else sums_to_zero(u[t])
                b[t] = y[0] if constant else b[t]
        return certify(kernel, noise, targets, u, b, hinge=False, n_iter=1, factors=[factor])


@dataclass(frozen=True)
class SquaredHingeSVC:
    """max over α ≥ 0, yᵀα = 0 of 2αᵀ1 − αᵀ(YKY + λI)α, λ = 1/C.

    The dual of min ‖f‖² + C Σ wᵢ max(0, 1 − yᵢ(f(xᵢ) + b))². Half of this C is the C of
    scikit-learn's ``LinearSVC``, which puts ½ before the norm (and penalises b).

    Parameters
    ----------
    C : float, default=1.0
        1/λ.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.ridge_mkl import SquaredHingeSVC
    >>> SquaredHingeSVC(C=1.0).solve(np.eye(2), np.array([1.0, -1.0])).dual_coef
    array([[ 0.5, -0.5]])
    """

    name: ClassVar[str] = "squared-hinge-svc"
    task: ClassVar[str] = "classification"
    C: float = 1.0

    def validate(self) -> None:
        """Raise unless C is positive.

        Raises
        ------
        ValueError
            Naming the value seen.
        """
        STRENGTH.check("C", self.C)

    def solve(
        self,
        K: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        dual0: npt.ArrayLike | None = None,
        tol: float = 0.0,
        check: bool = True,
    ) -> LearnerSolution:
        """Solve at one Gram matrix.

        Parameters
        ----------
        K : array-like of shape (n, n)
            Symmetric, positive semidefinite.
        y : array-like of shape (n,) or (T, n)
            ±1, both present in each task.
        sample_weight : array-like of shape (n,), optional
            Positive; multiplies C per sample.
        dual0 : array-like of shape (T, n), optional
            Its nonzeros are the first guess of the samples with a loss.
        tol : float
            Not used: Newton ends at the solution.
        check : bool
            Not used.

        Returns
        -------
        LearnerSolution
            Dual point and proved ends.

        Raises
        ------
        ValueError
            If a target is not ±1 or a task has one class only.
        """
        kernel = Kernel.exact(K)
        targets = np.atleast_2d(np.asarray(y, dtype=np.float64))
        noise = noise_diagonal(self.C, targets.shape[1], sample_weight)
        active = None if dual0 is None else np.atleast_2d(dual0) != 0.0
        return self._solve(kernel, targets, noise, active)

    def at(
        self, kernel: Kernel, targets: FloatArray, noise: FloatArray, warm: LearnerSolution | None
    ) -> LearnerSolution:
        """Solve at a Gram matrix with known rounding.

        Parameters
        ----------
        kernel : Kernel
            K and its rounding.
        targets : ndarray of shape (T, n)
            ±1.
        noise : ndarray of shape (n,)
            λ/wᵢ.
        warm : LearnerSolution, optional
            A solution nearby, whose samples with a loss are tried first.

        Returns
        -------
        LearnerSolution
            A few factorisations of the samples with a loss.
        """
        return self._solve(kernel, targets, noise, None if warm is None else warm.dual_coef != 0.0)

    def _solve(
        self,
        kernel: Kernel,
        targets: FloatArray,
        noise: FloatArray,
        active: npt.NDArray[np.bool_] | None,
    ) -> LearnerSolution:
        for row in targets:
            if not ((row == 1.0) | (row == -1.0)).all() or abs(row.sum()) == len(row):
                raise ValueError("y must hold the labels -1 and +1, both present in every task")
        u, b = np.empty_like(targets), np.empty(len(targets))
        factors: list[Factor] = []
        n_iter = 0
        for t, y in enumerate(targets):
            guess = None if active is None else active[t]
            u[t], b[t], factor, steps = solve_hinge(kernel.K, noise, y, guess)
            factors.append(factor)
            n_iter += steps
        return certify(kernel, noise, targets, u, b, hinge=True, n_iter=n_iter, factors=factors)
