"""Frank-Wolfe over positive matrices with an exact line search.

Talitckii, Colbert and Peet (2024), Algorithm 2.

As printed the algorithm takes a minimum singular value, stops on the gap's negative and applies
the labels twice; here: the largest eigenvalue, OPT_A(P) − OPT_P(α), labels once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import Problem, Status, relative_gap
from kernelweave.kernels_core.arrays import RealArray
from kernelweave.kernels_core.formula.learner import Solution
from kernelweave.kernels_core.psd_cone.projection import top_eigenpair
from kernelweave.kernels_core.psd_cone.rank_one import find_root

from .algorithm import SpectahedronSearch
from .apd import PrimalDualPath
from .saddle import SpectahedronOracle
from .settings import FrankWolfe, Hybrid

# Entries of the rows that are mixed at a time: 256 KiB of each matrix in float64, so that the three
# passes over them read the cache and not the memory.
_CACHED = 2**15


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
        self,
        problem: Problem,
        random_state: np.random.RandomState,
        settings: FrankWolfe = settings,
    ) -> None:
        """Start at the best atom for a balanced α.

        `problem`: with a positive-matrix family and a spectahedron; `random_state`: unused: the
        method is deterministic.
        """
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
        target = self.settings.inner_fraction * max(
            self.upper - self.lower, 1e-14 * abs(self.upper)
        )
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


class HybridSearch:
    """``tkl-hybrid``: `tkl-frank-wolfe` until a rule says stop, then `tkl-apd` from its pair.

    Talitckii, Colbert and Peet (2024), Algorithm 6, which switches at a gap; the version of 2021
    switches where the step length has become short.

    `stage`: the search in charge, which answers what is asked.
    """

    settings: Hybrid = Hybrid()

    def __init__(
        self,
        problem: Problem,
        random_state: np.random.RandomState,
        settings: Hybrid = settings,
    ) -> None:
        """Start Frank-Wolfe.

        `problem`: with a positive-matrix family and a spectahedron; `random_state`: unused: the
        method is deterministic.
        """
        self.settings = settings
        first = FrankWolfeSearch(problem, random_state, FrankWolfe(dtype=settings.dtype))
        self.stage: FrankWolfeSearch | PrimalDualPath = first

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stage, name)

    def step(self) -> None:
        """Take a step of the stage in charge; begin the second where that is due."""
        self.stage.step()
        if isinstance(self.stage, FrankWolfeSearch) and self._is_over(self.stage):
            first, every = self.stage, self.settings.certify_every
            self.stage = PrimalDualPath(first.oracle, first.parameters, first.inner, every)
            self.stage.lower = max(first.lower, self.stage.lower)

    def _is_over(self, first: FrankWolfeSearch) -> bool:
        gap = relative_gap(first.lower, first.upper)
        left = first.length if self.settings.switch == "step" else gap
        return first.stalled or left <= self.settings.threshold

    @property
    def counts(self) -> dict[str, int]:
        """Learner solves, inner iterations, Grams and the stage, 1 or 2."""
        return {**self.stage.counts, "stage": 2 - isinstance(self.stage, FrankWolfeSearch)}
