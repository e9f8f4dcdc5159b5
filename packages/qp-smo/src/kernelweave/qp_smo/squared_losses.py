"""Learners with squared losses for one kernel: ridge regression and the squared-hinge SVM.

The SVM is solved by Newton steps on its active set: Keerthi and DeCoste, "A modified finite Newton
method for fast solution of large scale linear SVMs", JMLR 6 (2005), in its kernel form. Each step
is a ridge solve on the samples with a loss, followed by an exact line search on the piecewise
quadratic primal, so the method ends after finitely many steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import check_vector
from kernelweave.kernels_core.clock import expired
from kernelweave.kernels_core.formula.learner import Solution
from kernelweave.kernels_core.rounding import sums_to_zero
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve

from .problem import check_labels
from .squares import BoundedGram, Factorisation, SquaredLoss, certify, factorize, noise_diagonal

# The method ends after finitely many steps, unless rounding makes a sample enter and leave the
# active set again and again.
_MAX_STEPS = 100
F = TypeVar("F")
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Ridge(SquaredLoss):
    """``max uᵀy − ½uᵀ(K + λI)u = ½yᵀ(K + λI)⁻¹y`` with ``λ = 1/C``.

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

    def solve_with_error(
        self,
        kernel: BoundedGram,
        targets: FloatArray,
        noise: FloatArray,
        active: npt.NDArray[np.bool_] | None = None,
    ) -> Solution:
        """Solve for a Gram matrix whose rounding error is known: one factorisation, n³/3 flops."""
        rows = np.stack([check_vector("y", y, len(noise)) for y in targets])
        factor = factorize(kernel.K, noise, self.fit_intercept)
        u, b = factor.solve(rows)
        if self.fit_intercept:
            for t, y in enumerate(rows):
                constant = bool((y == y[0]).all())
                u[t] = 0.0 if constant else sums_to_zero(u[t])
                b[t] = y[0] if constant else b[t]
        return certify(kernel, noise, rows, u, b, hinge=False, n_iter=1, factors=(factor,))


@dataclass
class _Point:
    """A primal point: u, not necessarily dual feasible, f = Ku, and the intercept b."""

    u: FloatArray
    f: FloatArray
    b: float

    def step_towards(self, other: _Point, step: float) -> _Point:
        keep = 1.0 - step
        return _Point(
            keep * self.u + step * other.u,
            keep * self.f + step * other.f,
            keep * self.b + step * other.b,
        )


def _newton(
    ridge_on: Callable[[Mask], tuple[F, _Point]],
    noise: FloatArray,
    y: FloatArray,
    active: Mask | None = None,
) -> tuple[FloatArray, float, F, int]:
    """Minimise ½uᵀKu + ½ Σ (1/Rᵢ) max(0, 1 − yᵢ(f + b)ᵢ)², f = Ku, by ridge solves.

    ``ridge_on`` solves the ridge problem on some samples; ``active`` are those to start from.

    Returns u of shape (n,), feasible: Σu = 0 exactly, u∘y ≥ 0; b; the factorisation of the last
    active set; the number of ridge solves.
    """
    n = len(y)
    mask = np.ones(n, dtype=bool) if active is None or not active.any() else active
    point = _Point(np.zeros(n), np.zeros(n), 0.0)
    factor, target = ridge_on(mask)
    n_iter = 1
    if active is not None:
        point = target
    for _ in range(_MAX_STEPS):
        point = point.step_towards(target, _line_search(point, target, noise, y))
        new = y * (point.f + point.b) < 1.0
        if not new.any() or np.array_equal(new, mask) or expired():
            break
        mask = new
        factor, target = ridge_on(mask)
        n_iter += 1
    loss = np.maximum(1.0 - y * (point.f + point.b), 0.0)
    return sums_to_zero(y * loss / noise), point.b, factor, n_iter


def _ridge_on(
    K: FloatArray, noise: FloatArray, y: FloatArray, mask: Mask
) -> tuple[Factorisation, _Point]:
    """Solve the ridge problem with intercept on the samples of ``mask``."""
    rows = np.flatnonzero(mask)
    factor = factorize(K, noise, True, rows)
    inside, b = factor.solve(y[None, rows])
    u = np.zeros(len(y))
    u[rows] = inside[0]
    return factor, _Point(u, K[:, rows] @ inside[0], float(b[0]))


def _ridge_of_factors(
    Z: FloatArray, noise: FloatArray, y: FloatArray, mask: Mask
) -> tuple[None, _Point]:
    """Solve the same for K = ZZᵀ: with w = Zᵀu it has as many unknowns as Z has columns."""
    rows = np.flatnonzero(mask)
    design = np.column_stack([Z[rows], np.ones(len(rows))])
    weighted = design / noise[rows, None]
    normal = design.T @ weighted
    normal[np.arange(Z.shape[1]), np.arange(Z.shape[1])] += 1.0
    w = cho_solve(cho_factor(normal, lower=True, overwrite_a=True), weighted.T @ y[rows])
    u = np.zeros(len(y))
    u[rows] = (y[rows] - design @ w) / noise[rows]
    return None, _Point(u, Z @ w[:-1], float(w[-1]))


def _line_search(point: _Point, target: _Point, noise: FloatArray, y: FloatArray) -> float:
    """Return the minimiser in [0, 1] of the primal between two points, by bisection."""
    du, df, db = target.u - point.u, target.f - point.f, target.b - point.b
    constant, linear = float(point.u @ df), float(du @ df)
    margin, change = 1.0 - y * (point.f + point.b), -y * (df + db)

    def slope(s: float) -> float:
        loss = np.maximum(margin + s * change, 0.0)
        return constant + s * linear + float(np.sum(loss * change / noise))

    if slope(1.0) <= 0.0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if slope(middle) > 0.0:
            high = middle
        else:
            low = middle
    return low if low > 0.0 else high


@dataclass(frozen=True)
class SquaredHingeSVC(SquaredLoss):
    """``max 1ᵀα − ½(y∘α)ᵀK(y∘α) − Σ αᵢ²/(4Cᵢ)`` over ``α ≥ 0``, ``yᵀα = 0``.

    The dual of ``min ½‖f‖² + Σ Cᵢ max(0, 1 − yᵢ(f(xᵢ) + b))²`` with ``Cᵢ = C·wᵢ``: the C of
    scikit-learn's ``LinearSVC`` (which penalises b). With ``½C Σ max(…)²`` instead, pass C/2; the
    form ``max 2·1ᵀα − αᵀY(K + λI)Yα`` is twice this one at ``C = 1/(2λ)``, with the same α.

    Parameters
    ----------
    C : float
        Checked by `validate`, and so by `solve`, not here.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.qp_smo import SquaredHingeSVC
    >>> SquaredHingeSVC(C=0.5).solve(np.eye(2), np.array([1.0, -1.0])).dual_coef
    array([[ 0.5, -0.5]])
    """

    C: float = 1.0
    name: ClassVar[str] = "squared-hinge-svc"
    task: ClassVar[str] = "classification"

    def noise(self, n_samples: int, sample_weight: ArrayLike | None = None) -> FloatArray:
        """Return the diagonal of R, 1/(2 C wᵢ), shape (n_samples,)."""
        return noise_diagonal(2.0 * self.C, n_samples, sample_weight)

    def dual_of_factors(
        self, Z: FloatArray, y: FloatArray, sample_weight: ArrayLike | None = None
    ) -> FloatArray:
        """Return y∘α for K = ZZᵀ without forming K: r² operations per sample and step.

        Parameters
        ----------
        Z : ndarray of shape (n, r)
        y : ndarray of shape (n,)
            ±1, both present.
        sample_weight : ndarray of shape (n,), optional

        Returns
        -------
        ndarray of shape (n,)
            Feasible: its sum is 0, and the sign of each is that of its label.
        """
        noise = self.noise(len(y), sample_weight)
        rows = check_labels(y, noise)
        return _newton(partial(_ridge_of_factors, Z, noise, rows), noise, rows)[0]

    def solve_with_error(
        self,
        kernel: BoundedGram,
        targets: FloatArray,
        noise: FloatArray,
        active: npt.NDArray[np.bool_] | None = None,
    ) -> Solution:
        """Solve for a Gram matrix whose rounding error is known: a few factorisations.

        ``active`` of shape (T, n) are samples that are expected to have a loss, such as those of
        the solution for a similar kernel.
        """
        rows = np.stack([check_labels(y, noise) for y in targets])
        u, b = np.empty_like(rows), np.empty(len(rows))
        factors: list[Factorisation] = []
        n_iter = 0
        for t, y in enumerate(rows):
            guess = None if active is None else active[t]
            solve = partial(_ridge_on, kernel.K, noise, y)
            u[t], b[t], factor, steps = _newton(solve, noise, y, guess)
            factors.append(factor)
            n_iter += steps
        return certify(kernel, noise, rows, u, b, hinge=True, n_iter=n_iter, factors=tuple(factors))
