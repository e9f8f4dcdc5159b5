"""First-order methods over positive matrices, each with both bounds proved.

**Frank-Wolfe with an exact line search** (Talitckii, Colbert and Peet 2024, Algorithm 2). As
printed the algorithm takes a minimum singular value, stops on the gap's negative and applies the
labels twice; here: the largest eigenvalue, OPT_A(P) − OPT_P(α), labels once.

**The accelerated primal-dual method with its line search** (the same, Algorithms 4 and 5), with the
step lengths of Hamedani and Aybat, *A primal-dual algorithm with line search for general
convex-concave saddle point problems* (SIAM Journal on Optimization, 2021), Algorithm 2.3.

As printed the step constants are not Lipschitz constants, the strong convexity μ > 0 does not
exist, labels are applied twice, the projection has its bracket upside down and the loop stops on
differences that bound nothing. Here: steps by a test of the local constant, μ = 0, labels once, the
exact projection, and OPT_A(P) − OPT_P(α). Distances of α are measured by K(I): D(α) changes by no
more than that distance says, whatever the spectrum of K(I) is, and the proximal program in α is
that of the learner at P + I/τ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import Problem, Status, relative_gap
from kernelweave.kernels_core.arrays import Matrix, RealArray
from kernelweave.kernels_core.clock import expired
from kernelweave.kernels_core.formula.learner import Solution
from kernelweave.kernels_core.psd_cone import project_spectahedron, top_eigenpair
from kernelweave.qp_smo.engine import solve_box
from kernelweave.qp_smo.problem import Budget

from .algorithm import SpectahedronSearch
from .saddle import SpectahedronOracle
from .settings import AcceleratedPrimalDual, FrankWolfe, Hybrid

# Entries of the rows that are mixed at a time: 256 KiB of each matrix in float64, so that the three
# passes over them read the cache and not the memory.
_CACHED = 2**15
# The proximal program is solved to this fraction of the relative gap, in units of the targets, and
# never tighter than what rounding leaves of a gradient.
_INNER_FRACTION, _LEAST_TOL = 1e-3, 1e-11
_INNER_STEPS = 1_000_000
# (1 − δ)² of the test; τ is multiplied by the second where it fails, unless the constant just
# measured asks for less, down to a tenth.
_SLACK, _SHRINK, _LEAST_SHRINK = 0.99, 0.7, 0.1
# A first τ for the constant measured last: it changes a little from one step to the next.
_CAUTION = 0.97
# How the squared distances of P and α to the optimum compare at first, in units of n_P² and of
# tr D(α): P moves a third of its trace while α moves by its own size.
_FIRST_RATIO = 0.1
# The ratio σ/τ changes by this factor at most from one certificate to the next.
_MOST_CHANGE = 10.0
# Steps between certificates, each of which costs a learner solve.
_CERTIFY_EVERY = 10
# Frank-Wolfe solves the learner to this share of the gap.
_SHARE_OF_GAP = 0.1
# A line search ends where the slope is this share of the first, or after so many trials.
_SLOPE_TOL, _MAX_TRIALS = 1e-2, 12


class FrankWolfeSearch(SpectahedronSearch):
    """``tkl-frank-wolfe``: rank-one atoms n_P vvᵀ, v the top eigenvector of D(α).

    Each iteration forms one rank-one Gram (m² (6n + 10)/2 flops at degree 1), one moment matrix
    and a handful of warm-started learner solves for the line search. It holds three Gram-sized
    arrays: of the iterate, of the atom, and of a trial point between them.

    `parameters`: P; `length`: of the last step, in [0, 1].
    """

    settings: FrankWolfe = FrankWolfe()
    inner: Solution

    def __init__(
        self, problem: Problem, random_state: np.random.RandomState, settings: FrankWolfe = settings
    ) -> None:
        """Start at the best atom for a balanced α."""
        self.settings = settings
        self.oracle = oracle = SpectahedronOracle(problem, settings.dtype)
        u = balanced_direction(oracle.targets, problem.sample_weight, problem.learner.name)
        vector = top_eigenpair(oracle.moment(u))[1][:, None]
        self.K = oracle.balanced_gram(vector)
        self.parameters = oracle.matrix(vector)
        solution = oracle.solve(self.K, None, np.inf, sharpen=True)
        self.inner = oracle.sharpened(solution, self.parameters)
        self.direction = oracle.direction(self.inner, vector[:, 0])
        self.lower = self.direction.lower_bound
        self.upper = oracle.upper_bound(self.inner, self.parameters)
        self.atom, self.trial = np.empty_like(self.K), np.empty_like(self.K)
        self.length, self.stalled = 1.0, False

    def step(self) -> None:
        """Move to the best point of the segment towards the new atom."""
        oracle, v = self.oracle, self.direction.vector
        S = oracle.balanced_gram(v[:, None], self.atom)
        target = _SHARE_OF_GAP * max(self.upper - self.lower, 1e-14 * abs(self.upper))
        solution, step = self._line_search(S, target)
        self.parameters = (1.0 - step) * self.parameters + step * oracle.matrix(v[:, None])
        self.inner = oracle.sharpened(solution, self.parameters)
        upper = oracle.upper_bound(self.inner, self.parameters)
        self.direction = oracle.direction(self.inner, v)
        self.length, self.stalled = step, step == 0.0 and upper >= self.upper
        self.lower, self.upper = max(self.lower, self.direction.lower_bound), upper

    def _line_search(self, S: RealArray, target: float) -> tuple[Solution, float]:
        """Minimise the convex φ(γ) = OPT_A((1 − γ)K + γS) by a bracketing secant on φ′.

        K moves there.
        """
        oracle, K, trial = self.oracle, self.K, self.trial
        last: dict[str, Any] = {"solution": self.inner, "step": 0.0}

        def slope(step: float) -> float:
            mix(K, S, step, trial)
            last["solution"] = oracle.solve(trial, last["solution"], target, sharpen=True)
            last["step"] = step
            return self._slope(S, last["solution"])

        first = self._slope(S, self.inner)
        if first >= 0.0:
            return oracle.solve(K, self.inner, 0.1 * target, sharpen=True), 0.0
        best = find_root(slope, first, guess=min(1.0, 1.5 * self.length))
        if last["step"] != best:
            slope(best)
        self.K, self.trial = trial, K
        return last["solution"], best

    def _slope(self, S: RealArray, solution: Solution) -> float:
        """φ′ = −½ Σₜ uₜᵀ(S − K)uₜ (Danskin)."""
        u = solution.dual_coef
        return -0.5 * (self.oracle.quadratic(S, u) - self.oracle.quadratic(self.K, u))

    @property
    def outcome(self) -> Status | None:
        """Stop where rounding forbids any step."""
        return Status.STALLED if self.stalled else None


def mix(K: RealArray, S: RealArray, step: float, out: RealArray) -> None:
    """Write (1 − step) K + step S into ``out`` (3 m² entries moved), by rows that stay in cache."""
    size = max(1, _CACHED // max(1, K.shape[1]))
    for start in range(0, len(K), size):
        rows = slice(start, start + size)
        part = out[rows]
        np.subtract(S[rows], K[rows], out=part)
        part *= out.dtype.type(step)
        part += K[rows]


def balanced_direction(
    targets: RealArray, sample_weight: RealArray | None, learner: str
) -> npt.NDArray[np.float64]:
    """Return u of shape (n_tasks, n_samples) with zero row sums, to start from.

    Classification spreads the mass evenly within each class; regression uses the centred
    targets. It only fixes the first atom: no bound is taken from it.
    """
    weight = np.ones(targets.shape[1]) if sample_weight is None else np.asarray(sample_weight)
    u = np.empty(targets.shape)
    for row, y in zip(u, targets, strict=True):
        if learner == "svc":
            positive = weight * (y > 0)
            negative = weight * (y <= 0)
            row[:] = positive / positive.sum() - negative / negative.sum()
        else:
            row[:] = weight * (y - np.average(y, weights=weight))
        norm = np.abs(row).max()
        row /= norm if norm > 0 else 1.0
    if not u.any():
        u[:, 0], u[:, -1] = 1.0, -1.0
    return u


def find_root(slope: Callable[[float], float], first: float, guess: float) -> float:
    """Return a step in (0, 1] where an increasing ``slope`` vanishes, 1 if it stays negative.

    Illinois variant of the false position, after expanding from ``guess``; it stops when the
    slope is a hundredth of the first one. ``slope`` is called at the returned step.
    """
    low, f_low, high, f_high = 0.0, first, 1.0, np.nan
    step, side = guess, 0
    for _ in range(_MAX_TRIALS):
        value = slope(step)
        done = abs(value) <= _SLOPE_TOL * abs(first) or (step >= 1.0 and value <= 0.0)
        if done or expired():
            return step
        if value > 0.0:
            high, f_high = step, value
            f_low *= 0.5 if side > 0 else 1.0
            side = 1
        else:
            low, f_low = step, value
            f_high *= 0.5 if side < 0 else 1.0
            side = -1
        if np.isnan(f_high):
            step = min(1.0, 4.0 * step)
        else:
            fraction = float(np.clip(f_low / (f_low - f_high), 0.02, 0.98))
            step = low + fraction * (high - low)
    return step


class PrimalDualPath(SpectahedronSearch):
    """The steps from a feasible pair, on an oracle that exists.

    - `P` of shape (n_P, n_P), `u` of shape (n_tasks, n_samples): the pair
    - `x`, `last_x` of shape (n_P, n_P): ½ D(u), scaled
    - `parameters` of shape (n_P, n_P): the P where ``upper`` was proved
    - `tau`, `ratio`: the next step length in α, and σ/τ
    """

    def __init__(self, oracle: SpectahedronOracle, P: Matrix, solution: Solution) -> None:
        """Begin at a P and the learner's solution there, which prove the first bounds."""
        self.oracle = oracle
        self.metric = oracle.gram(np.eye(oracle.n_P))
        self.P = self.parameters = self._restart_P = P
        self.u = self._restart_u = np.asarray(solution.dual_coef)
        self.inner, self.upper = solution, oracle.upper_bound(solution, P)
        self.lower = oracle.direction(solution).lower_bound
        self.x = self.last_x = 0.5 * oracle.moment(self.u)
        self.n_steps = 0
        size = 2.0 * float(np.trace(self.x))
        self.ratio = _FIRST_RATIO * oracle.n_P**2 / size if size > 0.0 else 1.0
        # ½‖ΔD‖ ≤ ½‖u′ − u‖ ‖u′ + u‖ in the metric, and ‖u‖² = tr D(u)
        self.tau = np.sqrt(_SLACK / (self.ratio * size)) if size > 0.0 else 1.0
        self.last_tau = self.tau

    def step(self) -> None:
        """Project P, solve the proximal program in α, and shorten τ until the test holds."""
        tau, last_sigma = self.tau, self.ratio * self.last_tau
        while True:
            sigma = self.ratio * tau
            theta = last_sigma / sigma
            P = self._projected(self.P + sigma * ((1.0 + theta) * self.x - theta * self.last_x))
            u = self._proximal(P, tau)
            x = 0.5 * self.oracle.moment(u)
            longest = self._longest(u - self.u, x - self.x)
            if tau <= longest:
                break
            tau = max(_LEAST_SHRINK * tau, min(_SHRINK * tau, _CAUTION * longest))
        self.P, self.u, self.last_x, self.x = P, u, self.x, x
        growth = np.sqrt(1.0 + tau / self.last_tau)
        self.tau, self.last_tau = min(growth * tau, max(tau, _CAUTION * longest)), tau
        self.n_steps += 1
        if self.n_steps % _CERTIFY_EVERY == 0:
            self._certify()
            self._restart()

    def _projected(self, ahead: Matrix) -> Matrix:
        oracle = self.oracle
        ahead.flat[:: oracle.n_P + 1] -= oracle.min_eig
        P = project_spectahedron(ahead, oracle.spread)
        P.flat[:: oracle.n_P + 1] += oracle.min_eig
        return P

    def _proximal(self, P: Matrix, tau: float) -> Matrix:
        """Return argmax κ(u′) − ½ u′ᵀ K(P) u′ − (u′ − u)ᵀ K(I) (u′ − u)/(2τ) of each task."""
        oracle, u = self.oracle, self.u
        K = oracle.gram(P + np.eye(oracle.n_P) / tau)
        K.flags.writeable = False
        fraction = _INNER_FRACTION * min(1.0, relative_gap(self.lower, self.upper))
        tol = max(_LEAST_TOL, fraction) * max(1e-300, float(np.abs(oracle.targets).max()))
        u_new = np.empty_like(u)
        for row, target, out in zip(u, oracle.targets, u_new, strict=True):
            problem = oracle.learner.problem(K, target, oracle.problem.sample_weight)
            pull = (self.metric @ row) / tau
            problem = replace(problem, p=problem.p + pull, exact_kappa=False)
            outcome = solve_box(problem, row, Budget(tol, _INNER_STEPS), "auto")
            out[:] = outcome.feasible.point.u
            oracle.n_steps += outcome.n_iter
        oracle.n_solves += 1
        return u_new

    def _longest(self, du: Matrix, dx: Matrix) -> float:
        """Return the largest τ for which σ τ ‖Δx‖² ≤ (1 − δ)² ‖Δu‖² in the metric."""
        moved, change = self._size(du), self.ratio * float(np.sum(dx * dx))
        return float(np.sqrt(_SLACK * moved / change)) if change > 0.0 else np.inf

    def _size(self, du: Matrix) -> float:
        """Return the square of the norm in which α is measured."""
        return float(np.sum((du @ self.metric) * du))

    def _certify(self) -> None:
        """Bound the optimum at the pair, whose P gets a learner solve."""
        oracle = self.oracle
        K = oracle.gram(self.P)
        at_pair = oracle.evaluate(K, self.u)
        target = 0.1 * max(self.upper - self.lower, 1e-12 * abs(self.upper))
        solution = oracle.sharpened(oracle.solve(K, at_pair, target, sharpen=True), self.P)
        bounds = [oracle.direction(at).lower_bound for at in (at_pair, solution)]
        self.lower = max(self.lower, *bounds)
        upper = oracle.upper_bound(solution, self.P)
        if upper < self.upper:
            self.upper, self.parameters, self.inner = upper, self.P, solution

    def _restart(self) -> None:
        """Begin again here, with σ/τ half way (in logarithms) to how P and α have moved."""
        moved = self._size(self.u - self._restart_u)
        change = float(np.sum((self.P - self._restart_P) ** 2))
        self._restart_P, self._restart_u = self.P, self.u
        if moved <= 0.0 or change <= 0.0:
            return
        factor = np.sqrt(change / moved / self.ratio)
        factor = float(np.clip(factor, 1.0 / _MOST_CHANGE, _MOST_CHANGE))
        self.ratio *= factor
        self.tau, self.last_tau = self.tau / np.sqrt(factor), self.last_tau / np.sqrt(factor)
        self.last_x = self.x


class PrimalDualSearch(PrimalDualPath):
    """``tkl-apd``: projected steps in P and proximal ones in α, their lengths by a line search.

    One iteration forms a Gram matrix of a P of full rank, one moment matrix, one projection (an
    eigendecomposition of order n_P) and one learner solve; so does each step that is too long.
    """

    settings: AcceleratedPrimalDual = AcceleratedPrimalDual()

    def __init__(
        self,
        problem: Problem,
        random_state: np.random.RandomState,
        settings: AcceleratedPrimalDual = settings,
    ) -> None:
        """Start at P = I and the learner's solution there."""
        self.settings = settings
        oracle = SpectahedronOracle(problem, settings.dtype, n_grams=2)
        P = np.eye(oracle.n_P)
        solution = oracle.solve(oracle.gram(P), None, np.inf, sharpen=True)
        super().__init__(oracle, P, oracle.sharpened(solution, P))


class HybridSearch:
    """``tkl-hybrid``: `tkl-frank-wolfe` until a rule says stop, then `tkl-apd` from its pair.

    Talitckii, Colbert and Peet (2024), Algorithm 6, which switches at a gap; the version of 2021
    switches where the step length has become short.

    `stage`: the search in charge, which answers what is asked.
    """

    settings: Hybrid = Hybrid()

    def __init__(
        self, problem: Problem, random_state: np.random.RandomState, settings: Hybrid = settings
    ) -> None:
        """Start Frank-Wolfe."""
        self.settings = settings
        first = FrankWolfeSearch(problem, random_state, FrankWolfe(dtype=settings.dtype))
        self.stage: FrankWolfeSearch | PrimalDualPath = first

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stage, name)

    def step(self) -> None:
        """Take a step of the stage in charge; begin the second where that is due."""
        self.stage.step()
        if isinstance(self.stage, FrankWolfeSearch) and self._is_over(self.stage):
            first = self.stage
            self.stage = PrimalDualPath(first.oracle, first.parameters, first.inner)
            self.stage.lower = max(first.lower, self.stage.lower)

    def _is_over(self, first: FrankWolfeSearch) -> bool:
        gap = relative_gap(first.lower, first.upper)
        left = first.length if self.settings.switch == "step" else gap
        return first.stalled or left <= self.settings.threshold

    @property
    def counts(self) -> dict[str, int]:
        """Learner solves, inner iterations, Grams and the stage, 1 or 2."""
        return {**self.stage.counts, "stage": 2 - isinstance(self.stage, FrankWolfeSearch)}
