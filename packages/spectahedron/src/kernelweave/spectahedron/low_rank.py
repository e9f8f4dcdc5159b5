"""Low-rank factors with a saddle-free Newton method: ``tkl-low-rank``, the default.

P = n_P U Uᵀ with ‖U‖ = 1 and U of a few columns. Steps come from the second-order model in a
trust region; where U is stationary but the certificate does not close, the top eigenvector of
D joins U as a new column, so that no saddle point holds the method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelweave.kernels_core import Problem, Status

from .curvature import AtomModel, SaddleFreeModel, atom_model, hessian
from .frank_wolfe import balanced_direction, public_solution
from .saddle import Direction, FloatArray, SaddleOracle

Matrix = npt.NDArray[np.float64]
DEBUG = False


@dataclass
class Point:
    """A factor and what the learner and the oracle say there."""

    U: Matrix
    solution: Any
    direction: Direction
    upper: float

    @property
    def stationarity(self) -> float:
        """λ_U = ⟨U, DU⟩: the certificate closes when it meets λ_max(D)."""
        return float(np.sum(self.U * (self.direction.moment @ self.U)))


@dataclass
class LowRankState:
    """The best point, the model there, the trust radius and the bounds."""

    point: Point
    K: FloatArray
    radius: float
    share: float
    lower: float
    model: SaddleFreeModel | None = None
    atom: AtomModel | None = None
    rejected: int = 0


class LowRank:
    """``tkl-low-rank``: see the module."""

    def init(
        self,
        problem: Problem,
        random_state: np.random.RandomState,
        *,
        dtype: str = "float64",
        rank: int = 3,
        inner_fraction: float = 0.1,
    ) -> LowRankState:
        """Start at the leading eigenvectors of D for a balanced α."""
        self.oracle = oracle = SaddleOracle(problem, dtype)
        self.inner_fraction = inner_fraction
        self.rank = max(2, min(rank, oracle.n_P))
        u = balanced_direction(oracle.targets, problem.sample_weight, problem.learner.name)
        D = np.asarray(oracle.prepared.moment(u / np.sqrt(oracle.scale)), dtype=np.float64)
        values, vectors = np.linalg.eigh(D)
        top = slice(-1, -self.rank - 1, -1)
        U = vectors[:, top] * np.sqrt(np.maximum(values[top], 1e-3 * values[-1]))
        U /= np.linalg.norm(U)
        self._buffer = np.empty((problem.n_samples,) * 2, dtype=oracle.dtype)
        K = np.empty_like(self._buffer)
        point = self._evaluate(U, K, None, np.inf)
        return LowRankState(point, K, 0.3, 0.5, point.direction.lower_bound)

    def _evaluate(self, U: Matrix, K: FloatArray, warm: Any, target: float) -> Point:
        oracle = self.oracle
        oracle.gram(oracle.n_P * (U @ U.T), out=K)
        if warm is None:
            warm = oracle.solve(K, None, np.inf)
            target = self.inner_fraction * warm.upper_bound / oracle.scale
        solution = oracle.solve(K, warm, target)
        direction = oracle.direction(solution)
        return Point(U, solution, direction, oracle.upper_bound(K, solution))

    def step(self, state: LowRankState) -> LowRankState:
        """Try the better of two model steps: Newton inside the factor, or a new column."""
        point = state.point
        gap = max(point.upper - state.lower, 1e-14 * abs(point.upper))
        if state.model is None:
            state.model = self._newton_model(state)
            state.atom = atom_model(self.oracle, point, state.K, self._buffer)
        step, decrease = state.model.step(state.radius)
        share, growth = state.atom.step(state.share)
        grow = growth > decrease
        if grow:
            U = np.column_stack(
                [np.sqrt(1.0 - share) * point.U, np.sqrt(share) * point.direction.vector]
            )
        else:
            U = point.U + step.reshape(point.U.shape)
        U = U / np.linalg.norm(U)
        expected = max(growth if grow else decrease, 1e-300) / self.oracle.scale
        target = self.inner_fraction * min(gap, max(expected, 1e-13 * abs(point.upper)))
        trial = self._evaluate(U, self._buffer, point.solution, target)
        lower = max(state.lower, trial.direction.lower_bound)
        ratio = (point.upper - trial.upper) / expected
        if DEBUG:
            print("grow" if grow else "newton", "share %.1e" % share, "exp %.3e" % expected, "ratio %.2f" % ratio, "radius %.1e" % state.radius, "len %.1e" % np.linalg.norm(step), trial.upper, lower, self.oracle.n_solves, U.shape[1])
        return self._judge(state, trial, ratio, lower, share if grow else 0.0)

    def _newton_model(self, state: LowRankState) -> SaddleFreeModel:
        point, oracle = state.point, self.oracle
        D = point.direction.moment
        gradient = -oracle.n_P * (D @ point.U - point.stationarity * point.U)
        return SaddleFreeModel(
            hessian(oracle, point.U, state.K, D, point.solution), gradient.ravel()
        )

    def _judge(
        self, state: LowRankState, trial: Point, ratio: float, lower: float, share: float
    ) -> LowRankState:
        """Accept or reject, and set the limit of the kind of step that was tried."""
        length = float(np.linalg.norm(trial.U[:, : state.point.U.shape[1]] - state.point.U))
        radius, limit = state.radius, state.share
        if share > 0.0:
            limit = resized(limit, share, ratio, 0.5)
        else:
            radius = resized(radius, length, ratio, 1.0)
        if ratio > 1e-4:
            K, self._buffer = self._buffer, state.K
            return LowRankState(trial, K, radius, limit, lower)
        return LowRankState(
            state.point, state.K, radius, limit, lower, state.model, state.atom, state.rejected + 1
        )

    def gap(self, state: LowRankState) -> tuple[float, float]:
        """Return the proved bounds."""
        return state.lower, state.point.upper

    def best(self, state: LowRankState) -> Matrix:
        """Return P."""
        return self.oracle.n_P * (state.point.U @ state.point.U.T)

    def solution(self, state: LowRankState) -> Any:
        """Return the learner's solution in public units."""
        return public_solution(state.point.solution, self.oracle.scale)

    def counts(self, state: LowRankState) -> dict[str, int]:
        """Return learner solves, inner iterations, Grams and the rank."""
        return {**self.oracle.counts(), "rank": state.point.U.shape[1]}

    def outcome(self, state: LowRankState) -> Status | None:
        """Stop where no step of any length succeeds."""
        return Status.STALLED if state.rejected > 12 else None


def resized(limit: float, taken: float, ratio: float, largest: float) -> float:
    """Return the new limit of a step from how well the model predicted the last one."""
    if ratio < 1e-4:
        return float(np.clip(1.0 / (2.0 - ratio), 0.02, 0.5)) * min(limit, taken)
    if ratio < 0.2:
        return 0.5 * taken
    return max(limit, min(largest, 2.5 * taken)) if ratio > 0.7 else limit
