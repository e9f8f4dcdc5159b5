"""Learners with a squared loss at one kernel: their dual point, both bounds, their curvature.

They maximise uᵀy − ½uᵀ(K + R)u, R diagonal, over a cone of u: everything for ridge without
intercept, Σu = 0 for ridge with one, Σu = 0 and uᵢyᵢ ≥ 0 for the squared hinge. In the signs of the
labels u is α∘y.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import memory
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import STRENGTH
from kernelweave.kernels_core.formula.learner import Solution
from kernelweave.kernels_core.grams import as_gram, check_gram
from kernelweave.kernels_core.interrupts import run_interruptibly
from kernelweave.kernels_core.rounding import (
    UNIT,
    blocked_product,
    entry_bound,
    gamma,
    n_roundings,
    row_sums,
)
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Factorisation:
    """Cholesky factor of (K + R) on some samples, and the intercept's column.

    `rows` of shape (k,): the samples; ``None`` means all; `cholesky`: of `scipy.linalg.cho_factor`,
    lower; `ones` of shape (k,): (K + R)⁻¹ 1, or ``None`` without intercept.
    """

    rows: npt.NDArray[np.intp] | None
    cholesky: tuple[FloatArray, bool]
    ones: FloatArray | None

    def solve(self, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return u of shape (T, k) and b of shape (T,) with (K + R)u = y − b, Σu = 0."""
        from scipy.linalg import cho_solve

        u: FloatArray = np.asarray(cho_solve(self.cholesky, targets.T)).T
        if self.ones is None:
            return u, np.zeros(len(u))
        b = u.sum(axis=1) / self.ones.sum()
        return u - b[:, None] * self.ones, b

    def curvature(self, G: FloatArray) -> FloatArray:
        """Return Σₜ Gₜ M Gₜᵀ, M the inverse of K + R on the cone's subspace.

        G of shape (p, T, k) has one row per kernel and task. Cost: pTk² flops.
        """
        from scipy.linalg import solve_triangular

        p, n_tasks, size = G.shape
        factor, lower = self.cholesky
        Z = solve_triangular(factor, G.reshape(p * n_tasks, size).T, lower=lower)
        Z = np.ascontiguousarray(Z.T).reshape(p, n_tasks * size)
        H: FloatArray = Z @ Z.T
        if self.ones is not None:
            c = G @ self.ones / np.sqrt(self.ones.sum())
            H -= c @ c.T
        return H


def factorize(
    K: FloatArray, noise: FloatArray, intercept: bool, rows: npt.NDArray[np.intp] | None = None
) -> Factorisation:
    """Factor K + R, adding the least power of ten of jitter that rounding calls for.

    R has the diagonal ``noise``; ``rows`` are the samples to keep. Bounds taken from its solutions
    hold with and without jitter.
    """
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    A = K.copy() if rows is None else K[np.ix_(rows, rows)]
    diagonal = np.arange(len(A))
    added = noise if rows is None else noise[rows]
    base = A[diagonal, diagonal] + added
    jitter = 0.0
    while True:
        A[diagonal, diagonal] = base + jitter
        try:
            cholesky = run_interruptibly(cho_factor, A, lower=True, check_finite=False)
            break
        except LinAlgError:
            jitter = max(10.0 * jitter, len(A) * 2.0 * UNIT * float(base.max()))
            if not np.isfinite(jitter) or jitter > float(base.max()):
                raise
    ones = np.asarray(cho_solve(cholesky, np.ones(len(A)))) if intercept else None
    return Factorisation(rows, cholesky, ones)


@dataclass(frozen=True)
class Products:
    """A kernel applied to a dual point, with bounds on the rounding.

    - `f`, `f_error` of shape (T, n): Ku and the error of each entry
    - `q`, `q_error`: Σₜ uₜᵀKuₜ and its error
    - `images` of shape (p, T, n): Kₖuₜ, where K is a sum over kernels
    - `v`, `v_top` of shape (p,): Σₜ uₜᵀKₖuₜ, and the same rounded up
    """

    f: FloatArray
    f_error: FloatArray
    q: float
    q_error: float
    images: FloatArray | None = None
    v: FloatArray | None = None
    v_top: FloatArray | None = None


@dataclass(frozen=True)
class Squares:
    """The details of a solution with a squared loss: what its Hessian needs.

    `objective`: the optimum in plain floating point; `products`: the kernel applied to u;
    `factors`: one per task, or one for all; none where they were not kept.
    """

    objective: float
    products: Products
    factors: tuple[Factorisation, ...] = ()

    def curvature(self, G: FloatArray) -> FloatArray:
        """Return Σₜ Gₜ Mₜ Gₜᵀ, shape (p, p), for G of shape (p, T, n)."""
        if len(self.factors) == 1 and self.factors[0].rows is None:
            return self.factors[0].curvature(G)
        H = np.zeros((len(G), len(G)))
        for t, factor in enumerate(self.factors):
            if factor.rows is None or len(factor.rows):
                rows = slice(None) if factor.rows is None else factor.rows
                H += factor.curvature(np.ascontiguousarray(G[:, t : t + 1, rows]))
        return H


@dataclass(frozen=True)
class BoundedGram:
    """A Gram matrix with what bounds the rounding of products with it.

    - `K` of shape (n, n): symmetric
    - `s` of shape (n,): |Kᵢⱼ| ≤ κ sᵢ sⱼ
    - `kappa`: κ
    - `n_roundings`: roundings behind each entry of K, 0 where K is exact
    """

    K: FloatArray
    s: FloatArray
    kappa: float
    n_roundings: int = 0

    @classmethod
    def exact(cls, K: npt.ArrayLike) -> BoundedGram:
        """Return a matrix that is the problem itself, not the result of a computation."""
        array = np.ascontiguousarray(K, dtype=np.float64)
        return cls(array, *entry_bound(array))

    def products(self, u: FloatArray) -> Products:
        """Return Ku and uᵀKu with bounds on their rounding, for u of shape (T, n)."""
        f = blocked_product(self.K, np.ascontiguousarray(u.T)).T
        rate = gamma(n_roundings(len(self.s)) + self.n_roundings + 4)
        reach = rate * self.kappa * (np.abs(u) @ self.s)
        q = float(row_sums(u * f).sum())
        q_error = float(reach @ (np.abs(u) @ self.s)) + 4.0 * UNIT * float(np.abs(u * f).sum())
        return Products(f, reach[:, None] * self.s[None, :], q, q_error * (1.0 + 1e-12))


def certify(
    kernel: BoundedGram,
    noise: FloatArray,
    targets: FloatArray,
    u: FloatArray,
    intercept: FloatArray,
    *,
    hinge: bool,
    n_iter: int,
    factors: tuple[Factorisation, ...],
) -> Solution:
    """Return the solution at a feasible u with both ends proved.

    With f = Ku, e = y − b, ρ = e − f − Ru and D(u) the dual value: for ridge the primal value at u
    is D(u) + ½ρᵀR⁻¹ρ. For the hinge, with ξ = (1 − y(f + b))₊, primal minus dual is ½ Σ (ξ −
    R|u|)²/R + Σ |u| (y(f + b) − 1)₊. Below, the best multiple of u gives ½ (uᵀy)² / uᵀ(K + R)u.
    ``n_iter`` is how many linear systems were solved.
    """
    applied = kernel.products(u)
    f, f_error, q, q_error = applied.f, applied.f_error, applied.q, applied.q_error
    Ru = noise * u
    e = targets - intercept[:, None]
    error = f_error + 8.0 * UNIT * (np.abs(e) + np.abs(f) + np.abs(Ru))
    size = gamma(u.size + 8)
    a = float(row_sums(u * targets).sum())
    a_error = gamma(len(u) + 4) * float(np.sum(np.abs(u * targets)))
    b = float(row_sums(u * Ru).sum())
    dual = 2.0 * a - b - q
    dual_error = (
        2.0 * a_error + gamma(len(u) + 8) * b + q_error + 4.0 * UNIT * (2.0 * abs(a) + b + abs(q))
    )
    if hinge:
        excess = targets * (f + intercept[:, None]) - 1.0
        error = error + 4.0 * UNIT * (1.0 + np.abs(intercept[:, None]))
        lost = np.maximum(-excess, 0.0)
        residual = lost - np.abs(Ru)
        crossing = 2.0 * np.abs(u) * np.maximum(excess + error, 0.0)
    else:
        lost = np.abs(e - f)
        residual = e - f - Ru
        crossing = np.zeros(1)
    slack = float(np.sum(residual**2 / noise))
    slack_top = float(np.sum((np.abs(residual) + error) ** 2 / noise) + np.sum(crossing))
    top = max(dual, 0.0) + dual_error + slack_top * (1.0 + size)
    bottom = (b + q) * (1.0 + size) + q_error
    low = max(a - a_error, 0.0)
    # half of each: a power of two, so nothing is rounded
    return Solution(
        dual_coef=u,
        intercept=intercept,
        lower_bound=0.5 * (low * low / bottom * (1.0 - 8.0 * UNIT)) if bottom > 0.0 else 0.0,
        upper_bound=0.5 * top * (1.0 + 4.0 * UNIT),
        function_values=f,
        slope=(lost + error) / noise * (1.0 + 4.0 * UNIT),
        bend=0.5 / noise * (1.0 + 4.0 * UNIT),
        linear=a - a_error,
        quadratic=b * (1.0 + gamma(len(u) + 8)),
        longest=math.inf,
        n_iter=n_iter,
        details=Squares(0.5 * (dual + slack), applied, factors),
    )


def noise_diagonal(C: float, n_samples: int, sample_weight: ArrayLike | None) -> FloatArray:
    """Return λ/wᵢ = 1/(C wᵢ), shape (n,).

    Raises ValueError if a weight is not positive.
    """
    if sample_weight is None:
        return np.full(n_samples, 1.0 / C)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_samples,) or not (np.isfinite(weight).all() and (weight > 0).all()):
        raise ValueError(
            f"sample_weight must be {n_samples} finite numbers > 0 (leave out samples of weight "
            f"0), got shape {weight.shape}, smallest {weight.min(initial=np.inf)!r}"
        )
    return 1.0 / (C * weight)


class SquaredLoss(ABC):
    """Base of ridge regression and the squared hinge, which add `noise` and `solve_with_error`.

    An algorithm that finds `solve_with_error` knows that the learner takes a `BoundedGram` and that
    the details of its solutions are `Squares`, with a curvature.
    """

    name: ClassVar[str]
    task: ClassVar[str]
    # the parameter that weighs the loss against the norm
    strength: ClassVar[str] = "C"

    @abstractmethod
    def solve_with_error(
        self,
        kernel: BoundedGram,
        targets: FloatArray,
        noise: FloatArray,
        active: npt.NDArray[np.bool_] | None = None,
    ) -> Solution:
        """Solve for a Gram matrix whose rounding error is known."""

    def validate(self) -> None:
        """Raise ValueError unless the strength, C or lam, is positive."""
        STRENGTH.check(self.strength, getattr(self, self.strength))

    @abstractmethod
    def noise(self, n_samples: int, sample_weight: ArrayLike | None = None) -> FloatArray:
        """Return the diagonal of R, shape (n_samples,)."""

    def solve(
        self,
        K: npt.ArrayLike,
        targets: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        dual0: npt.ArrayLike | None = None,
        tol: float = 0.0,
        check: bool = True,
    ) -> Solution:
        """Solve at one Gram matrix.

        Parameters
        ----------
        K : array-like of shape (n, n)
            Symmetric, positive semidefinite.
        targets : array-like of shape (n,) or (T, n)
        sample_weight : array-like of shape (n,), optional
            Positive; multiplies C per sample.
        dual0 : array-like of shape (T, n), optional
            Its nonzeros are the first guess of the samples with a loss.
        tol : float
            Not used: the solution is exact to rounding.
        check : bool
            Whether to check that K is finite and symmetric.

        Returns
        -------
        Solution
            ``details`` is a `Squares`.

        Raises
        ------
        ValueError
            If a parameter, a shape or a value is out of range.
        MemoryBudgetError
            If a copy of K does not fit in the memory limit.
        """
        self.validate()
        kernel = as_gram(K)
        if check:
            check_gram(kernel)
        n = kernel.shape[0]
        memory.require(
            16 * n * n,
            f"two copies of the Gram matrix of {n} samples with the ridge of a squared loss",
            alternative="use fewer samples, or a loss that needs no copy",
        )
        rows = np.atleast_2d(np.asarray(targets, dtype=np.float64))
        if rows.shape[1:] != (n,):
            raise ValueError(f"y must have shape ({n},) or (t, {n}), got {np.shape(targets)}")
        active = None if dual0 is None else np.atleast_2d(dual0) != 0.0
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if weight is None or weight.shape != (n,) or weight.min() != 0.0 or not weight.any():
            return self.solve_with_error(
                BoundedGram.exact(kernel), rows, self.noise(n, weight), active
            )
        # samples of no weight have u = 0 and no loss
        live = np.flatnonzero(weight)
        solution = self.solve_with_error(
            BoundedGram.exact(kernel[np.ix_(live, live)]),
            rows[:, live],
            self.noise(len(live), weight[live]),
            None if active is None else active[:, live],
        )
        u, slope, bend = np.zeros(rows.shape), np.zeros(rows.shape), np.zeros(len(weight))
        u[:, live], slope[:, live], bend[live] = solution.dual_coef, solution.slope, solution.bend
        values = solution.dual_coef @ kernel[live]
        values[:, live] = solution.function_values
        return replace(
            solution, dual_coef=u, slope=slope, bend=bend, function_values=values, details=None
        )
