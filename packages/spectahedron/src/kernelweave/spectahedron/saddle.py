"""What every algorithm over positive matrices asks of a problem, with both bounds proved.

The problem is min over P of OPT_A(P), OPT_A(P) = max over α of κ(α) − ½ Σₜ uₜᵀ K(P) uₜ. With
v the volume of the box, everything inside is solved for K/v and C·v, which has the same
solution divided by v and keeps numbers near one; bounds leave this module in public units.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import Problem
from kernelweave.kernels_core.clock import remaining

from .eigen import largest_eigenvalue_bound, top_eigenpair

_EPS = float(np.finfo(np.float64).eps)
FloatArray = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Direction:
    """The linear oracle's answer at one α.

    Attributes
    ----------
    moment : ndarray of shape (n_P, n_P)
        D(α), scaled by 1/v.
    vector : ndarray of shape (n_P,)
        Unit eigenvector of its largest eigenvalue: the best atom is n_P · vector vectorᵀ.
    value : float
        The Ritz value, scaled.
    lower_bound : float
        Proven lower bound on the optimum, public units.
    """

    moment: npt.NDArray[np.float64]
    vector: npt.NDArray[np.float64]
    value: float
    lower_bound: float


class SaddleOracle:
    """Grams, learner solves and moment matrices of one problem, counted.

    Parameters
    ----------
    problem : Problem
        With a positive-matrix family.
    dtype : str, default="float64"
        Precision of the Gram matrices.

    Attributes
    ----------
    n_P : int
        Size of P, and its trace.
    n_solves, n_steps, n_grams : int
        Learner solves, their inner iterations, and Grams formed so far.
    """

    def __init__(self, problem: Problem, dtype: str = "float64") -> None:
        problem.constraint.validate()
        problem.learner.validate()
        self.prepared = problem.family.prepare(
            np.asarray(problem.X, dtype=np.float64), dtype=np.dtype(dtype)
        )
        self.problem = problem
        self.dtype = np.dtype(dtype)
        self.n_P = int(self.prepared.n_P)
        self.scale = float(self.prepared.scale)
        self.learner = replace(problem.learner, C=problem.learner.C * self.scale)
        self.targets = problem.targets
        self.n_solves = self.n_steps = self.n_grams = 0

    @property
    def min_eig(self) -> float:
        """η: P − ηI must stay positive semidefinite."""
        return float(self.problem.constraint.min_eig)

    def counts(self) -> dict[str, int]:
        """Return the cumulative counts, independent of the machine."""
        return {
            "n_solves": self.n_solves,
            "n_inner_iterations": self.n_steps,
            "n_grams": self.n_grams,
        }

    def rank_one(self, vector: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Return the scaled Gram matrix of P = n_P · vector vectorᵀ."""
        self.n_grams += 1
        factor = np.sqrt(self.n_P / self.scale)
        gram: FloatArray = self.prepared.gram_rank_one(factor * vector, out=out)
        return gram

    def gram(self, P: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Return the scaled Gram matrix of P."""
        self.n_grams += 1
        gram: FloatArray = self.prepared.gram(P / self.scale, out=out)
        return gram

    def gram_error(self, K: FloatArray) -> float:
        """Return a bound on the error of any entry of a computed scaled Gram matrix.

        The entries are sums of about n_P products bounded by the largest diagonal entry
        (Cauchy-Schwarz), each with relative error a few units in the last place.
        """
        eps = float(np.finfo(self.dtype).eps)
        return 16.0 * eps * float(np.abs(np.diagonal(K)).max())

    def solve(self, K: FloatArray, warm: Any, target_gap: float) -> Any:
        """Solve the learner at K until its own gap is below ``target_gap`` (public units).

        The tolerance follows the gap asked for: it starts where the last solve left it and is
        divided by ten until the interval closes or the precision of the numbers is reached.
        """
        tol, limit = 1e-2, 1e-11
        solution = warm
        while True:
            dual0 = None if solution is None else solution.dual_coef
            solution = self.learner.solve(
                K,
                self.targets,
                sample_weight=self.problem.sample_weight,
                dual0=dual0,
                tol=tol,
                check=False,
            )
            self.n_steps += int(solution.n_iter)
            inner = (solution.upper_bound - solution.lower_bound) / self.scale
            if inner <= target_gap or tol <= limit or remaining() <= 0.0:
                break
            tol = max(limit, tol * float(np.clip(0.5 * target_gap / inner, 1e-3, 0.1)))
        self.n_solves += 1
        return solution

    def upper_bound(self, K: FloatArray, solution: Any) -> float:
        """Return a proven upper bound on OPT_A at K: primal value plus the Gram's rounding."""
        mass = np.abs(solution.dual_coef).sum(axis=1)
        weight = self.problem.sample_weight
        caps = self.learner.C * float(self.problem.n_samples if weight is None else np.sum(weight))
        slack = self.gram_error(K) * float(np.sum(mass * (0.5 * mass + caps)))
        return float(solution.upper_bound + slack) / self.scale

    def direction(self, solution: Any, start: FloatArray | None = None) -> Direction:
        """Return the linear oracle at the solution's α, with its lower bound.

        OPT_P(α) = κ(α) − ½(η tr D + (1 − η) n_P λ_max(D)); the printed singular value and sign
        are corrected (largest eigenvalue, minus).
        """
        W = np.asarray(solution.dual_coef) / np.sqrt(self.scale)
        D = np.asarray(self.prepared.moment(W), dtype=np.float64)
        error = float(self.prepared.moment_error(W))
        ritz, vector = top_eigenpair(D, start)
        bound = largest_eigenvalue_bound(D, error, ritz)
        eta = self.min_eig
        trace = float(np.trace(D)) + self.n_P * error
        cost = 0.5 * (eta * trace + (1.0 - eta) * self.n_P * bound)
        lower = (solution.kappa - cost) - 8.0 * _EPS * (abs(solution.kappa) + abs(cost))
        return Direction(D, vector, ritz, float(lower) / self.scale)

    def quadratic(self, K: FloatArray, dual_coef: FloatArray) -> float:
        """Return Σₜ uₜᵀ K uₜ over the support only (2 n_s² flops a task)."""
        total = 0.0
        for u in np.atleast_2d(dual_coef):
            support = np.flatnonzero(u)
            total += float(u[support] @ (K[np.ix_(support, support)] @ u[support]))
        return total
