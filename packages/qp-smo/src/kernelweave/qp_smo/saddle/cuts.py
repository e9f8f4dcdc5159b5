"""The saddle function of kernel weights: its value by a learner solve, and the cuts of all solves.

Every feasible dual point bounds it from below, for all weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.formula import Learner, Solution
from kernelweave.kernels_core.grams import Stack
from kernelweave.kernels_core.rounding import UNIT
from numpy.typing import NDArray

from .penalties import WeightPenalty


class CutPool:
    """Cuts ``G(β) ≥ κᵢ − ½ dᵢᵀβ``, each from an exactly feasible dual point.

    With ``dᵢⱼ = Σₜ uₜᵀKⱼuₜ`` rounded up and κ rounded down a cut holds for all ``β ≥ 0``, whatever
    the tolerance of the solve it came from: pools are shared between penalties, between the
    branches of a search, and along a path in λ and k₀. At another C the duals must be scaled, see
    `rescaled`.

    Parameters
    ----------
    n_kernels : int

    Attributes
    ----------
    dual_coef : list of ndarray of shape (t, n)
        The dual points, for warm starts and other values of C.

    Examples
    --------
    >>> pool = CutPool(2)
    >>> pool.add(1.0, np.array([1.0, 4.0]), np.zeros((1, 3)))
    >>> float(pool.model(np.array([1.0, 0.0])))
    0.5
    """

    def __init__(self, n_kernels: int) -> None:
        self.n_kernels = n_kernels
        self.dual_coef: list[FloatArray] = []
        self._kappa = np.empty(32)
        self._half = np.empty((32, n_kernels))
        self._partial: dict[int, NDArray[np.bool_]] = {}

    def __len__(self) -> int:
        return len(self.dual_coef)

    @property
    def kappa(self) -> FloatArray:
        """Return κ of each cut, shape (m,)."""
        return self._kappa[: len(self)]

    @property
    def half_forms(self) -> FloatArray:
        """Return ``½d`` of each cut, shape (m, q)."""
        return self._half[: len(self)]

    def add(
        self,
        kappa: float,
        forms: FloatArray,
        dual_coef: FloatArray,
        known: NDArray[np.bool_] | None = None,
    ) -> None:
        """Add a cut.

        `kappa`: rounded down; `forms` of shape (q,): d, rounded up; `dual_coef` of shape (t, n);
        `known` of shape (q,): where ``forms`` is d itself, and not a bound that is far above it.
        """
        m = len(self)
        if known is not None and not known.all():
            self._partial[m] = known
        if m == self._kappa.size:
            self._kappa = np.concatenate([self._kappa, np.empty(m)])
            self._half = np.concatenate([self._half, np.empty((m, self.n_kernels))])
        self._kappa[m] = kappa
        self._half[m] = 0.5 * forms
        self.dual_coef.append(dual_coef)

    @property
    def unknown(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return which cuts are known of a part of the kernels, and which kernels they lack."""
        missing = np.zeros(self.n_kernels, dtype=bool)
        for mask in self._partial.values():
            missing |= ~mask
        return np.array(list(self._partial), dtype=np.intp), np.flatnonzero(missing)

    def complete(
        self, cuts: NDArray[np.intp], kernels: NDArray[np.intp], forms: FloatArray
    ) -> None:
        """Write the forms of cuts, shape (cuts, kernels), rounded up, at all kernels they lack."""
        at = np.ix_(cuts, kernels)
        self._half[at] = np.minimum(self._half[at], 0.5 * forms)
        for i in cuts:
            del self._partial[i]

    def values(self, weights: FloatArray) -> FloatArray:
        """Return ``κᵢ − ½dᵢᵀβ`` of each cut, shape (m,), in plain floating point."""
        return self.kappa - self.half_forms @ weights

    def model(self, weights: FloatArray) -> float:
        """Return the largest cut at β of shape (q,), in plain floating point; -inf if none."""
        return float(self.values(weights).max()) if len(self) else -np.inf

    def nearest(self, weights: FloatArray) -> FloatArray | None:
        """Return the dual point of the largest cut at β: a warm start, shape (t, n)."""
        return self.dual_coef[int(np.argmax(self.values(weights)))] if len(self) else None

    def relevant(self, weights: FloatArray, limit: int) -> NDArray[np.intp]:
        """Return the positions of at most ``limit`` cuts: the largest ones at β."""
        if len(self) <= limit:
            return np.arange(len(self))
        return np.argpartition(-self.values(weights), limit)[:limit]

    def rescaled(self, factor: float) -> CutPool:
        """Return the pool of the problem whose C is ``factor`` times as large.

        κ is homogeneous, so that ``s·u`` is feasible for ``s·C`` with ``sκ`` and ``s²d``. Each is
        rounded outwards; ``s·u`` itself is a warm start and need not be exactly feasible.
        """
        pool = CutPool(self.n_kernels)
        pool._partial = dict(self._partial)
        for kappa, half, u in zip(self.kappa, self.half_forms, self.dual_coef, strict=True):
            lowered = kappa * factor - 4.0 * UNIT * abs(kappa * factor)
            forms = 2.0 * half * (factor * factor)
            pool.add(float(lowered), forms + 8.0 * UNIT * np.abs(forms), u * factor)
        return pool


def mixed_cut(
    kappa: FloatArray, half_forms: FloatArray, multipliers: FloatArray
) -> tuple[float, FloatArray]:
    """Return ``κᵀμ`` rounded down and ``½Dᵀμ`` rounded up, shape (q,), with ``μ/Σμ`` for μ.

    Of any nonnegative multipliers, not all 0, this is a cut.
    """
    used = np.flatnonzero(multipliers > 0.0)
    mu = multipliers[used] / multipliers[used].sum()
    # μ/Σμ as computed is off by at most (m + 2) roundings in every component
    rounding = 2.0 * (2 * used.size + 6) * UNIT
    top = float(mu @ kappa[used]) - rounding * float(mu @ np.abs(kappa[used]))
    return top, mu @ half_forms[used] + rounding * (mu @ np.abs(half_forms[used]))


def lower_bound_from(
    kappa: FloatArray, half_forms: FloatArray, multipliers: FloatArray, penalty: WeightPenalty
) -> float:
    """Return ``κᵀμ + min over β of penalty(β) − (½Dᵀμ)ᵀβ``, rounded down, with ``μ/Σμ`` for μ.

    Any nonnegative multipliers, not all 0, give a lower bound of the saddle value.
    """
    return least_over(*mixed_cut(kappa, half_forms, multipliers), penalty)


def least_over(top: float, half: FloatArray, penalty: WeightPenalty) -> float:
    """Return ``top + min over β of penalty(β) − halfᵀβ``, rounded down, for half of shape (q,)."""
    low = penalty.best_response(half)[1]
    return top + low - 4.0 * UNIT * (abs(top) + abs(low))


# Tolerances of the learner. Looser ones give cuts that say little; tighter ones rounding may not
# let it reach.
_LOOSEST, _TIGHTEST = 0.1, 1e-9


@dataclass(frozen=True)
class SaddleEvaluation:
    """The saddle function at one point.

    `upper_bound`: proven, of ``G(β)`` without the penalty; `lower_bound`: the dual value, of which
    the solve made a cut; `forms` (q,): ``Σₜ uₜᵀKⱼuₜ``, rounded up, of no length where no cut was
    made; `is_new`: whether the cut was not in the pool already.
    """

    weights: FloatArray
    upper_bound: float
    lower_bound: float
    solution: Solution
    forms: FloatArray
    is_new: bool = True


@dataclass
class SolveCounts:
    """What was done."""

    n_svm_solves: int = 0
    n_master_solves: int = 0


class SaddleOracle:
    """Evaluates ``G(β) = Σₜ max κ(uₜ) − ½uₜᵀK(β)uₜ`` and keeps what it learns in a pool of cuts.

    A pool that is given holds cuts of the same Grams, targets and learner.
    """

    def __init__(
        self,
        grams: Stack,
        targets: FloatArray,
        learner: Learner,
        sample_weight: FloatArray | None = None,
        pool: CutPool | None = None,
    ) -> None:
        self.grams = grams
        self.targets = targets
        self.learner = learner
        self.sample_weight = sample_weight
        self.pool = CutPool(len(grams)) if pool is None else pool
        if not len(self.pool):
            # u = 0 is feasible: the saddle function is at least 0
            self.pool.add(0.0, np.zeros(len(grams)), np.zeros(targets.shape))
        self.counts = SolveCounts()
        self._tol = 1e-2
        self._gap_per_tol: float | None = None

    def evaluate(
        self,
        weights: FloatArray,
        want: float,
        *,
        start: FloatArray | None = None,
        cuts: bool = True,
        kernels: NDArray[np.bool_] | None = None,
    ) -> SaddleEvaluation:
        """Solve the learner at β until its own gap is about ``want``; add the cut to the pool.

        `weights` of shape (q,): at least 0; its sum differs from 1 by rounding at most. `want`:
        absolute gap of the learner's duals. Where rounding forbids it, the gap reached. `start`: a
        dual point in place of that of the pool's highest cut. `cuts`: whether one is made, which
        reads every matrix; the evaluation has no forms without. `kernels` of shape (q,): those of
        which the cut is known; of the others it holds, but says little.
        """
        K = self.grams.combine(weights)
        start = self.pool.nearest(weights) if start is None else start
        solution = self._solve(K, start, want)
        forms = self._forms(solution, kernels) if cuts else np.zeros(0)
        is_new = start is None or not np.array_equal(start, solution.dual_coef)
        if is_new and cuts:
            self.pool.add(solution.kappa, forms, solution.dual_coef, kernels)
        upper = self._upper_bound(weights, solution)
        return SaddleEvaluation(weights, upper, solution.lower_bound, solution, forms, is_new)

    def _solve(self, K: FloatArray, dual0: FloatArray | None, want: float) -> Solution:
        """Solve with ever smaller tolerances until the learner's gap is about ``want``."""
        tol = self._tolerance(want)
        while True:
            solution = self.learner.solve(
                K, self.targets, sample_weight=self.sample_weight, dual0=dual0, tol=tol, check=False
            )
            self.counts.n_svm_solves += 1
            gap = solution.upper_bound - solution.lower_bound
            violation = solution.violation
            # a solve that ended far below its tolerance says nothing about the next one
            if violation > 0.05 * tol:
                self._gap_per_tol = gap / violation
            if gap <= 3.0 * want or solution.status.value != "converged" or violation <= _TIGHTEST:
                return solution
            if self._gap_per_tol is None:
                self._gap_per_tol = gap / violation
            # a warm start may meet a tolerance as it is: ask for less than it has
            tol = max(_TIGHTEST, min(0.1 * tol, 0.3 * violation, self._tolerance(want)))
            dual0 = solution.dual_coef

    def complete(self) -> None:
        """Compute the forms that cuts lack, of all of them in one pass through the matrices."""
        cuts, kernels = self.pool.unknown
        if cuts.size and kernels.size:
            points = np.stack([self.pool.dual_coef[i] for i in cuts], axis=1)
            forms = sum(self.grams.forms_of(each, kernels) for each in points)
            self.pool.complete(cuts, kernels, self._raised(np.asarray(forms)))

    def _forms(self, solution: Solution, kernels: NDArray[np.bool_] | None) -> FloatArray:
        forms, stack = np.zeros(len(self.grams)), self.grams
        for u in solution.dual_coef:
            if kernels is None:
                forms += stack.quadratic_forms(u)
            else:
                each = stack.largest_forms(u)
                each[kernels] = stack.forms_of(u[None], np.flatnonzero(kernels))[0]
                forms += each
        return self._raised(forms)

    def _raised(self, forms: FloatArray) -> FloatArray:
        """Return sums over the tasks, rounded up."""
        return np.asarray(forms + 2.0 * len(self.targets) * UNIT * np.abs(forms))

    def _tolerance(self, want: float) -> float:
        if self._gap_per_tol is None or self._gap_per_tol <= 0.0:
            return self._tol
        guess = 0.5 * want / self._gap_per_tol
        self._tol = float(np.clip(guess, max(_TIGHTEST, 0.01 * self._tol), _LOOSEST))
        return self._tol

    def _upper_bound(self, weights: FloatArray, solution: Solution) -> float:
        """Return the primal value, with margins for the rounding of ``Σ βK`` and of ``Σ β``.

        In a positive semidefinite matrix ``|Kᵢₖ| ≤ √(KᵢᵢKₖₖ)``, so that an entry of the sum is off
        by ``γ√(DᵢDₖ)``, D its diagonal, and ``Ku`` by ``γ√Dᵢ Σ √Dₖ|uₖ|``. Scaling β by s changes G
        by at most ``max(1, 1/s)``.
        """
        gamma = 1.01 * (len(self.grams) + 4) * UNIT
        spread = np.sqrt(gamma * np.abs(self.grams.diagonals.T @ weights))
        upper = solution.upper_bound + solution.margin(spread)
        off = abs(float(weights.sum()) - 1.0) + 2.0 * weights.size * UNIT
        return upper + (abs(upper) + 1e-300) * (2.0 * off + 4.0 * UNIT)


def objective_upper(evaluation: SaddleEvaluation, penalty: WeightPenalty) -> float:
    """Return the upper bound of ``G(β)`` plus the penalty, rounded up."""
    pen = penalty.value(evaluation.weights)
    total = evaluation.upper_bound + pen
    off = 2.0 * (abs(float(evaluation.weights.sum()) - 1.0) + evaluation.weights.size * UNIT)
    return total + 4.0 * UNIT * abs(total) + 2.0 * off * abs(pen)
