"""What every algorithm over positive matrices asks of a problem, with both bounds proved.

The problem is min over P of OPT_A(P), OPT_A(P) = max over α of κ(α) − ½ Σₜ uₜᵀ K(P) uₜ. With
v the volume of the box, everything inside is solved for K/v and C·v, which has the same
solution divided by v and keeps numbers near one; bounds leave this module in public units.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core import Problem
from kernelweave.kernels_core.arrays import FloatArray, Index, RealArray
from kernelweave.kernels_core.checks import LARGEST, SMALLEST
from kernelweave.kernels_core.clock import expired
from kernelweave.kernels_core.exceptions import Message
from kernelweave.kernels_core.formula.learner import Solution
from kernelweave.kernels_core.grams import Gram, UnstoredKernel
from kernelweave.kernels_core.memory import limit_bytes
from kernelweave.kernels_core.psd_cone import largest_eigenvalue_bound, top_eigenpair
from numpy.typing import DTypeLike

from .gram_memory import GramWithEntries, require_grams

if TYPE_CHECKING:
    from kernelweave.kernels_core.grams import Operator

_EPS = float(np.finfo(np.float64).eps)
# The trace of a matrix that is summed from its factor is off by a few units.
_TRACE_ERROR = 64.0 * _EPS
# Tolerance of the first learner solve and the loosest of any: looser, its dual point says too
# little of P.
_FIRST_TOL = 1e-2
# The tightest that is tried: below it rounding decides.
_LAST_TOL = 1e-11
# A tolerance that every point meets, for a learner that shall value a point and not move it.
_ANYTHING = 1e300


@dataclass(frozen=True)
class Direction:
    """The linear oracle's answer at one α.

    `moment` (n_P, n_P): D(α), scaled by 1/v; `vector` (n_P,): unit eigenvector of its largest
    eigenvalue, so that the best atom is n_P · vector vectorᵀ; `value`: the Ritz value, scaled;
    `lower_bound`: proven, of the optimum, in public units.
    """

    moment: FloatArray
    vector: FloatArray
    value: float
    lower_bound: float


class SpectahedronOracle:
    """Grams, learner solves and moment matrices of one problem, counted.

    `n_grams`: Gram-sized arrays that the algorithm will hold, for the memory budget; without
    `stored` it holds none, and learners are solved in blocks of samples. `n_P`: size of P, and its
    trace; `min_eig`, `spread`: η, and the trace (1 − η) n_P of P − ηI; `n_solves`, `n_steps`,
    `n_grams`: learner solves, their inner iterations, and Grams formed so far.
    """

    def __init__(
        self, problem: Problem, dtype: str = "float64", *, n_grams: int = 3, stored: bool = True
    ) -> None:
        problem.constraint.validate()
        problem.learner.validate()
        if stored:
            require_grams(problem.n_samples, dtype, n_grams)
        X = np.asarray(problem.X, dtype=np.float64)
        self.prepared = problem.family.prepare(X, dtype=np.dtype(dtype))
        self.problem = problem
        self.stored = stored
        self.dtype = np.dtype(dtype)
        self.n_P = int(self.prepared.n_P)
        with np.errstate(over="ignore"):
            self.scale = float(self.prepared.scale)
        if not SMALLEST <= self.scale <= LARGEST:
            raise ValueError(
                f"the kernels have values of about {self.scale:.3g} on these samples, which "
                "overflow or underflow: scale the features"
            )
        C = float(problem.learner.C) * self.scale
        if not np.isfinite(C):
            raise ValueError(
                f"C={problem.learner.C!r} overflows with kernels that have values of about "
                f"{self.scale:.3g}: lower C or scale the features"
            )
        self.learner = replace(problem.learner, C=C)
        self.targets = problem.targets
        self.n_solves = self.n_steps = self.n_grams = 0
        self.min_eig = float(problem.constraint.min_eig)
        self.spread = (1.0 - self.min_eig) * self.n_P
        self._tol = _FIRST_TOL

    def counts(self) -> dict[str, int]:
        """Return the cumulative counts, independent of the machine."""
        return {
            "n_solves": self.n_solves,
            "n_inner_iterations": self.n_steps,
            "n_grams": self.n_grams,
        }

    @cached_property
    def constant_cost(self) -> float:
        """The primal objective of the best constant predictor."""
        nothing, weight = np.zeros(self.targets.shape), self.problem.sample_weight
        errors = np.zeros(len(nothing))
        cost, _ = self.problem.learner.primal_at(
            self.targets, nothing, nothing, errors, sample_weight=weight
        )
        return float(cost)

    def gram(self, P: RealArray, out: RealArray | None = None) -> RealArray:
        """Return the scaled Gram matrix of a whole P."""
        self.n_grams += 1
        gram: RealArray = self.prepared.gram(P / self.scale, out=out)
        return gram

    def factor_gram(self, U: RealArray, out: RealArray | None = None) -> RealArray:
        """Return the scaled Gram matrix of `matrix` (U)."""
        if U.shape[1] == 1 and self.min_eig == 0.0:
            self.n_grams += 1
            factor = np.sqrt(self.spread / self.scale)
            K: RealArray = self.prepared.gram_rank_one(factor * U[:, 0], out=out)
            return K
        return self.gram(self.matrix(U), out=out)

    def gram_with_entries(self, U: RealArray, out: RealArray | None) -> GramWithEntries:
        """Return the scaled Gram matrix of `matrix` (U), stored in ``out`` if that is given.

        Unless it is stored in float64, it can also compute its entries in float64. A float32 matrix
        is stored centred if the family can do that: the constants would drown the differences
        between samples in float32, and to a learner whose coefficients sum to 0 they do not matter.
        """
        if out is not None and self.dtype == np.float64:
            return GramWithEntries(self.factor_gram(U, out=out), None)
        unstored = getattr(self.prepared, "unstored", None)
        entries = None if unstored is None else unstored(self.matrix(U) / self.scale)
        if out is None:
            return GramWithEntries(None, entries)
        if entries is None or not hasattr(entries, "fill_centred"):
            return GramWithEntries(self.factor_gram(U, out=out), entries)
        entries.fill_centred(out)
        self.n_grams += 1
        return GramWithEntries(out, entries)

    def balanced_gram(self, U: RealArray, out: RealArray | None = None) -> RealArray:
        """Return the stored matrix of `gram_with_entries`.

        In float32 it is valid only for coefficients that sum to 0.
        """
        m = self.problem.n_samples
        array = self.gram_with_entries(
            U, np.empty((m, m), dtype=self.dtype) if out is None else out
        ).array
        assert array is not None
        return array

    def matrix_gram(self, S: RealArray, *, base: bool = True) -> RealArray:
        """Return the scaled Gram matrix of `shifted` (S), without the part of ηI on request."""
        return self.gram(self.shifted(S) if base else self.spread * S)

    def shifted(self, S: RealArray) -> FloatArray:
        """Return P = (1 − η) n_P S + η I, for S ⪰ 0 of trace one."""
        P = self.spread * np.asarray(S, dtype=np.float64)
        P.flat[:: self.n_P + 1] += self.min_eig
        return P

    def matrix(self, U: RealArray) -> FloatArray:
        """Return P = (1 − η) n_P U Uᵀ + η I, for ‖U‖ = 1."""
        return self.shifted(U @ U.T)

    def moment(self, dual_coef: RealArray) -> FloatArray:
        """Return the scaled moment matrix D."""
        W = np.asarray(dual_coef) / np.sqrt(self.scale)
        return np.asarray(self.prepared.moment(W), dtype=np.float64)

    def gram_error(self, K: Gram) -> float:
        """Return a bound on the error of any entry of a computed scaled Gram matrix.

        The entries are sums of about n_P products bounded by the largest diagonal entry
        (Cauchy-Schwarz); each carries the volume, a product over the features, and so a relative
        error that grows with their number. The constants are several times the worst error seen
        against 40-digit arithmetic (85 units in the last place for 250 features).
        """
        return self._entry_error(float(np.abs(K.diagonal()).max()), self.dtype)

    def _entry_error(self, diagonal: float, dtype: DTypeLike) -> float:
        units = 16.0 + 2.0 * np.shape(self.problem.X)[1]
        return float(units * np.finfo(dtype).eps * diagonal)

    def kernel(self, gram: GramWithEntries) -> Gram:
        """Return what a learner takes: the stored array, or what computes its blocks."""
        if gram.array is not None:
            return gram.array
        assert gram.entries is not None
        return UnstoredKernel(gram.entries, limit_bytes() // 2, self.dtype.name)

    def solve(
        self,
        K: Gram,
        warm: Solution | None,
        target_gap: float,
        *,
        entries: Operator | None = None,
        relative: float = 0.1,
        sharpen: bool = False,
    ) -> Solution:
        """Solve the learner at K until its own gap is below ``target_gap`` (public units).

        The tolerance follows the gap asked for: it starts near where the last solve left it and
        falls until the interval closes or the precision of the numbers is reached. Without a
        warm start the fraction ``relative`` of the value found is good enough.

        With ``entries``, the same matrix computed in float64, a K in float32 only steers: the
        upper bound is the primal value of what float64 says. With ``sharpen`` that is left to a
        call of `sharpened`, and no bound of the answer may be used before.
        """
        exact = self._exact(K, entries)
        certified = exact is not None or (sharpen and self._sharpens())
        error = 0.0 if certified else self.gram_error(K)
        tol, limit = self._tol, _LAST_TOL
        solution = warm
        while True:
            dual0 = None if solution is None else solution.dual_coef
            solution = self._learn(K, dual0, tol, error)
            self.n_steps += int(solution.n_iter)
            inner = (solution.upper_bound - solution.lower_bound) / self.scale
            if warm is None:
                target_gap = min(target_gap, relative * abs(solution.upper_bound) / self.scale)
            reachable = max(target_gap, self._floor(solution, error))
            if inner <= reachable or tol <= limit or expired():
                break
            tol = max(limit, tol * float(np.clip(0.5 * target_gap / inner, 1e-3, 0.1)))
        self.n_solves += 1
        self._tol = min(_FIRST_TOL, 10.0 * tol)
        return solution if exact is None else self._certified(solution, exact, K)

    def _exact(self, K: Gram, entries: Operator | None) -> Operator | None:
        """Return the operator that certifies solutions in float64, None if K does."""
        return entries if isinstance(K, UnstoredKernel) or self.dtype != np.float64 else None

    def _learn(self, K: Gram, dual0: RealArray | None, tol: float, error: float) -> Solution:
        solution: Solution = self.learner.solve(
            K,
            self.targets,
            sample_weight=self.problem.sample_weight,
            dual0=dual0,
            tol=tol,
            check=False,
            gram_error=error,
        )
        return solution

    def _floor(self, solution: Solution, error: float) -> float:
        """Return the inner gap that no tolerance closes, public units: 0 in float64.

        Entries in float32 that are wrong by ``error`` add this much to the primal value.
        """
        if self.dtype == np.float64 or error == 0.0:
            return 0.0
        weight = self.problem.sample_weight
        mass = self.problem.n_samples if weight is None else float(np.sum(weight))
        size = float(np.abs(solution.dual_coef).sum())
        return 4.0 * error * float(self.learner.C) * mass * size / self.scale

    def _certified(self, solution: Solution, entries: Operator, K: Gram | None = None) -> Solution:
        """Replace the upper bound and the intercept by those of the float64 values of K u."""
        u = np.asarray(solution.dual_coef)
        is_unstored = isinstance(K, UnstoredKernel)
        values = solution.function_values if is_unstored else entries.product(u)
        diagonal = float(np.abs(entries.diagonal()).max())
        errors = entries.product_error(u)
        errors = errors + 1.01 * self._entry_error(diagonal, np.float64) * np.abs(u).sum(axis=1)
        upper, intercept = self.learner.primal_at(
            self.targets, u, values, errors, sample_weight=self.problem.sample_weight
        )
        return replace(solution, upper_bound=upper, intercept=intercept)

    def sharpened(self, solution: Solution, P: RealArray) -> Solution:
        """Return the solution with an upper bound at P from float64, where K is in float32."""
        if not self._sharpens():
            return solution
        return self._certified(solution, self.prepared.unstored(P / self.scale))

    def _sharpens(self) -> bool:
        return self.dtype != np.float64 and hasattr(self.prepared, "unstored")

    def refined(self, solution: Solution, U: RealArray) -> Solution:
        """Return the solution at `matrix` (U) with an upper bound that the box does not spoil.

        The margin for the rounding of stored entries carries the volume of the box; decision
        values that are summed without it leave a thousandth of that margin.
        """
        values = getattr(self.prepared, "decision_values", None)
        if values is None or self.min_eig > 0.0:
            return solution
        u = np.asarray(solution.dual_coef)
        sums = values(np.sqrt(self.spread / self.scale) * U.T, u)
        upper, _ = self.learner.primal_at(
            self.targets, u, sums.values, sums.error, sample_weight=self.problem.sample_weight
        )
        upper *= 1.0 + _TRACE_ERROR
        better = upper < solution.upper_bound
        return replace(solution, upper_bound=upper) if better else solution

    def evaluate(
        self, K: Gram, dual_coef: RealArray, *, entries: Operator | None = None
    ) -> Solution:
        """Return the solution object of an exactly feasible point near ``dual_coef``: no solve."""
        exact = self._exact(K, entries)
        if exact is not None:
            return self._certified(self._learn(K, dual_coef, _ANYTHING, 0.0), exact, K)
        return self._learn(K, dual_coef, _ANYTHING, self.gram_error(K))

    def upper_bound(self, solution: Solution, P: RealArray) -> float:
        """Return a proven upper bound on OPT_A at P, where ``solution`` was found, public units.

        The primal value there, for any matrix within the Gram matrix's own rounding error; where
        the family sums integrals over nodes, for decision values as far away as they may be.
        """
        integral = getattr(self.prepared, "integral_values", None)
        if integral is None:
            return float(solution.upper_bound) / self.scale
        u = np.asarray(solution.dual_coef)
        upper, _ = self.learner.primal_at(
            self.targets, u, *integral(P / self.scale, u), sample_weight=self.problem.sample_weight
        )
        return float(upper) * (1.0 + _TRACE_ERROR) / self.scale

    def direction(self, solution: Solution, start: FloatArray | None = None) -> Direction:
        """Return the linear oracle at the solution's α, with its lower bound.

        OPT_P(α) = κ(α) − ½(η tr D + (1 − η) n_P λ_max(D)); the printed singular value and sign
        are corrected (largest eigenvalue, minus). Every tα with 0 ≤ t ≤ 1 is feasible too, and
        the best of them is taken: far from the optimum it is the better bound by orders of
        magnitude, and never negative.
        """
        W = np.asarray(solution.dual_coef) / np.sqrt(self.scale)
        D = self.moment(solution.dual_coef)
        error = float(self.prepared.moment_error(W))
        ritz, vector = top_eigenpair(D, start)
        bound = largest_eigenvalue_bound(D, error, ritz)
        eta = self.min_eig
        trace = float(np.trace(D)) + self.n_P * error
        cost = 0.5 * (eta * trace + (1.0 - eta) * self.n_P * bound)
        lower = best_multiple(float(solution.kappa), cost)
        return Direction(D, vector, ritz, lower / self.scale)

    def remark(self, solution: Solution, P: RealArray, gap: float) -> str:
        """Return why the ``gap``, public units, stays open if by quadrature, else ""."""
        if not getattr(self.prepared, "integral_remedy", ""):
            return ""
        W = np.asarray(solution.dual_coef) / np.sqrt(self.scale)
        error = 0.5 * self.n_P * float(self.prepared.moment_error(W))
        error += self.scale * self.upper_bound(solution, P) - float(solution.upper_bound)
        if error / self.scale < 0.5 * gap:
            return ""
        return Message(
            "the error of the integrals by quadrature holds the gap open, and no step lowers it: "
            f"the bounds hold; {self.prepared.integral_remedy}, or raise {{tol}}"
        )

    def sample_products(self, u: RealArray, U: RealArray, rows: Index) -> FloatArray:
        """Return the derivative of the scaled (K(UUᵀ) u)ₖ in U, k in ``rows``: (s, n_P, r)."""
        products: FloatArray = self.prepared.sample_products(u, U, rows)
        return products / self.scale

    def quadratic(self, K: RealArray, dual_coef: RealArray) -> float:
        """Return Σₜ uₜᵀ K uₜ over the support only (2 n_s² flops a task)."""
        total = 0.0
        for u in np.atleast_2d(dual_coef):
            support = np.flatnonzero(u)
            if K.dtype == np.float64 and 2 * len(support) > len(u):
                total += float(u @ (K @ u))
            else:
                total += float(u[support] @ (K[np.ix_(support, support)] @ u[support]))
        return total


def best_multiple(kappa: float, cost: float) -> float:
    """Return max over 0 ≤ t ≤ 1 of t κ − t² cost, rounded down; cost ≥ 0."""
    if kappa <= 0.0:
        return 0.0
    t = 1.0 if cost <= 0.5 * kappa else 0.5 * kappa / cost
    value = t * kappa - t * t * cost
    return max(0.0, value - 8.0 * _EPS * (t * kappa + t * t * abs(cost)))
