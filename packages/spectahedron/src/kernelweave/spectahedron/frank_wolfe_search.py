"""Frank-Wolfe over positive matrices with an exact line search.

Talitckii, Colbert and Peet (2024), Algorithm 2.

As printed the algorithm takes a minimum singular value, stops on the gap's negative and applies
the labels twice; here: the largest eigenvalue, OPT_A(P) − OPT_P(α), labels once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import Problem, Status
from kernelweave.kernels_core.arrays import RealArray
from kernelweave.kernels_core.formula.learner import Solution
from kernelweave.kernels_core.psd_cone.eigen import top_eigenpair
from kernelweave.kernels_core.psd_cone.rank_one import find_root

from .algorithm import SaddleAlgorithm
from .saddle import Direction, SpectahedronOracle
from .settings import FrankWolfe

_CACHED = 2**15


@dataclass
class FrankWolfeState:
    """The iterate: P, its scaled Gram, the learner's solution there and the oracle's answer."""

    P: npt.NDArray[np.float64]
    K: RealArray
    atom: RealArray
    trial: RealArray
    solution: Solution
    direction: Direction
    upper: float
    lower: float
    step: float = 1.0
    stalled: bool = False


class FrankWolfeSearch(SaddleAlgorithm[FrankWolfeState]):
    """``tkl-frank-wolfe``: rank-one atoms n_P vvᵀ, v the top eigenvector of D(α).

    Each iteration forms one rank-one Gram (m² (6n + 10)/2 flops at degree 1), one moment matrix
    and a handful of warm-started learner solves for the line search. It holds three Gram-sized
    arrays: of the iterate, of the atom, and of a trial point between them.
    """

    settings: FrankWolfe = FrankWolfe()

    def init(self, problem: Problem, random_state: np.random.RandomState) -> FrankWolfeState:
        """Start at the best atom for a balanced α.

        `problem`: with a positive-matrix family and a spectahedron; `random_state`: unused: the
        method is deterministic.
        """
        self.oracle = oracle = SpectahedronOracle(problem, self.settings.dtype)
        u = balanced_direction(oracle.targets, problem.sample_weight, problem.learner.name)
        vector = top_eigenpair(oracle.moment(u))[1][:, None]
        K = oracle.balanced_gram(vector)
        P = oracle.matrix(vector)
        solution = oracle.sharpened(oracle.solve(K, None, np.inf, sharpen=True), P)
        direction = oracle.direction(solution, vector[:, 0])
        upper = oracle.upper_bound(solution)
        return FrankWolfeState(
            P,
            K,
            np.empty_like(K),
            np.empty_like(K),
            solution,
            direction,
            upper,
            direction.lower_bound,
        )

    def step(self, state: FrankWolfeState) -> FrankWolfeState:
        """Move to the best point of the segment towards the new atom."""
        oracle, v = self.oracle, state.direction.vector
        S = oracle.balanced_gram(v[:, None], state.atom)
        target = self.settings.inner_fraction * max(
            state.upper - state.lower, 1e-14 * abs(state.upper)
        )
        K, solution, step = self._line_search(state, S, target)
        P = (1.0 - step) * state.P + step * oracle.matrix(v[:, None])
        solution = oracle.sharpened(solution, P)
        upper = oracle.upper_bound(solution)
        direction = oracle.direction(solution, v)
        return FrankWolfeState(
            P,
            K,
            state.atom,
            state.trial if K is state.K else state.K,
            solution,
            direction,
            upper,
            max(state.lower, direction.lower_bound),
            step,
            stalled=step == 0.0 and upper >= state.upper,
        )

    def _line_search(
        self, state: FrankWolfeState, S: RealArray, target: float
    ) -> tuple[RealArray, Solution, float]:
        """Minimise the convex φ(γ) = OPT_A((1 − γ)K + γS) by a bracketing secant on φ′."""
        oracle = self.oracle
        last: dict[str, Any] = {"solution": state.solution, "step": 0.0}

        def slope(step: float) -> float:
            mix(state.K, S, step, state.trial)
            last["solution"] = oracle.solve(state.trial, last["solution"], target, sharpen=True)
            last["step"] = step
            return self._slope(state.K, S, last["solution"])

        first = self._slope(state.K, S, state.solution)
        if first >= 0.0:
            fresh = oracle.solve(state.K, state.solution, 0.1 * target, sharpen=True)
            return state.K, fresh, 0.0
        best = find_root(slope, first, guess=min(1.0, 1.5 * state.step))
        if last["step"] != best:
            slope(best)
        return state.trial, last["solution"], best

    def _slope(self, K: RealArray, S: RealArray, solution: Solution) -> float:
        """φ′ = −½ Σₜ uₜᵀ(S − K)uₜ (Danskin)."""
        u = solution.dual_coef
        return -0.5 * (self.oracle.quadratic(S, u) - self.oracle.quadratic(K, u))

    def best(self, state: FrankWolfeState) -> npt.NDArray[np.float64]:
        """Return P."""
        return state.P

    def outcome(self, state: FrankWolfeState) -> Status | None:
        """Stop where rounding forbids any step."""
        return Status.STALLED if state.stalled else None


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
