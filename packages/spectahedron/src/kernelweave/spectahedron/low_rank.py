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

from .curvature import AtomModel, FactorModel
from .frank_wolfe import balanced_direction, public_solution
from .saddle import Direction, FloatArray, SaddleOracle

Matrix = npt.NDArray[np.float64]
_FLOOR = 1e-13
_MOST_REJECTIONS = 12
_SHORTEST = 1e-14
_MOST_RESTARTS = 4
_WORTH = 0.5


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
    models: tuple[FactorModel, AtomModel] | None = None
    rejected: int = 0


class LowRank:
    """``tkl-low-rank``: a saddle-free Newton method on the factor, certified by λ_max(D(α)).

    One iteration forms the Gram of r rank-one atoms, one moment matrix, the second-order model
    (what r moment matrices cost, plus a Cholesky factorisation on the free samples and an
    eigendecomposition of order ≤ 1600) and one warm-started learner solve. It holds three
    Gram-sized arrays with the family's own.
    """

    def init(
        self,
        problem: Problem,
        random_state: np.random.RandomState,
        *,
        dtype: str = "float64",
        rank: int = 5,
        inner_fraction: float = 0.3,
    ) -> LowRankState:
        """Start at the leading eigenvectors of D for a balanced α.

        Parameters
        ----------
        problem : Problem
            With a positive-matrix family and a spectahedron.
        random_state : RandomState
            Unused: the method is deterministic.
        dtype : {"float64", "float32"}, default="float64"
            Precision of the Gram matrices.
        rank : int, default=5
            Columns of the first factor, 2 at least: a single column can stop at a point that is
            not optimal.
        inner_fraction : float, default=0.3
            The learner is solved to this fraction of the decrease that a step promises.
        """
        self.oracle = oracle = SaddleOracle(problem, dtype, n_grams=2)
        self.inner_fraction = inner_fraction
        u = balanced_direction(oracle.targets, problem.sample_weight, problem.learner.name)
        U = leading_factor(oracle.moment(u), max(2, rank))
        self._buffer = np.empty((problem.n_samples,) * 2, dtype=oracle.dtype)
        K = np.empty_like(self._buffer)
        self._scale = oracle.constant_cost(K)
        return self._restarted(self._evaluate(U, K, None, np.inf), K, max(2, rank))

    def _restarted(self, point: Point, K: FloatArray, rank: int) -> LowRankState:
        """Replace the factor by the leading eigenvectors of D(α) while that pays well."""
        lower = point.direction.lower_bound
        for _ in range(_MOST_RESTARTS):
            U = leading_factor(point.direction.moment, rank)
            trial = self._evaluate(U, self._buffer, point.solution, 0.1 * point.upper)
            lower = max(lower, trial.direction.lower_bound)
            if trial.upper > _WORTH * point.upper:
                break
            point, K, self._buffer = trial, self._buffer, K
        return LowRankState(point, K, 0.3, 0.5, lower)

    def _evaluate(self, U: Matrix, K: FloatArray, warm: Any, target: float) -> Point:
        oracle = self.oracle
        oracle.factor_gram(U, out=K)
        solution = oracle.solve(K, warm, target)
        direction = oracle.direction(solution)
        return Point(U, solution, direction, oracle.upper_bound(K, solution))

    def step(self, state: LowRankState) -> LowRankState:
        """Try the better of two model steps: Newton inside the factor, or a new column."""
        point, oracle = state.point, self.oracle
        gap = max(point.upper - state.lower, _FLOOR * abs(point.upper))
        if state.models is None:
            atom = AtomModel(oracle, point, state.K, self._buffer)
            state.models = FactorModel(oracle, point, state.K), atom
        factor, atom = state.models
        step, decrease = factor.step(state.radius)
        share, growth = atom.step(state.share)
        grows = growth > decrease
        U = grown(point.U, point.direction.vector, share) if grows else point.U + step
        U = U / np.linalg.norm(U)
        expected = max(growth, decrease) / oracle.scale
        noise = self.inner_fraction * max(expected, _FLOOR * abs(point.upper))
        trial = self._evaluate(U, self._buffer, point.solution, min(noise, gap))
        lower = max(state.lower, trial.direction.lower_bound)
        ratio = (point.upper - trial.upper) / max(expected, np.finfo(float).tiny)
        return self._judge(state, trial, ratio, lower, share if grows else 0.0)

    def _judge(
        self, state: LowRankState, trial: Point, ratio: float, lower: float, share: float
    ) -> LowRankState:
        """Accept or reject, and set the limit of the kind of step that was tried."""
        radius, limit = state.radius, state.share
        if share > 0.0:
            limit = resized(limit, share, ratio, 0.5)
            trial.U = compressed(trial.U)
        else:
            length = float(np.linalg.norm(trial.U - state.point.U))
            radius = resized(radius, length, ratio, 1.0)
        if ratio > 1e-4:
            K, self._buffer = self._buffer, state.K
            return LowRankState(trial, K, radius, limit, lower)
        return LowRankState(
            state.point, state.K, radius, limit, lower, state.models, state.rejected + 1
        )

    def gap(self, state: LowRankState) -> tuple[float, float]:
        """Return the proved bounds."""
        return state.lower, state.point.upper

    def best(self, state: LowRankState) -> Matrix:
        """Return P."""
        return self.oracle.matrix(state.point.U)

    def solution(self, state: LowRankState) -> Any:
        """Return the learner's solution in public units."""
        return public_solution(state.point.solution, self.oracle.scale)

    def counts(self, state: LowRankState) -> dict[str, int]:
        """Return learner solves, inner iterations, Grams and the rank."""
        return {**self.oracle.counts(), "rank": state.point.U.shape[1]}

    def scale(self, state: LowRankState) -> float:
        """Return what the best constant prediction costs."""
        return self._scale

    def outcome(self, state: LowRankState) -> Status | None:
        """Stop where no step of any length succeeds."""
        exhausted = state.rejected > _MOST_REJECTIONS or state.radius < _SHORTEST
        return Status.STALLED if exhausted else None


def leading_factor(D: Matrix, rank: int) -> Matrix:
    """Return U of norm one from the ``rank`` leading eigenvectors of D, weighted by their roots."""
    values, vectors = np.linalg.eigh(D)
    top = slice(-1, -min(rank, len(D)) - 1, -1)
    floor = 1e-3 * max(float(values[-1]), np.finfo(float).tiny)
    U = vectors[:, top] * np.sqrt(np.maximum(values[top], floor))
    factor: Matrix = U / np.linalg.norm(U)
    return factor


def grown(U: Matrix, v: Matrix, share: float) -> Matrix:
    """Return a factor of (1 − share) UUᵀ + share vvᵀ."""
    return np.column_stack([np.sqrt(1.0 - share) * U, np.sqrt(share) * v])


def compressed(U: Matrix) -> Matrix:
    """Return a factor of the same UUᵀ with as few columns as its rank, two at least."""
    left, sizes, _ = np.linalg.svd(U, full_matrices=False)
    kept = max(min(2, len(sizes)), int(np.sum(sizes > 1e-7 * sizes[0])))
    factor: Matrix = left[:, :kept] * sizes[:kept]
    return factor / np.linalg.norm(factor)


def resized(limit: float, taken: float, ratio: float, largest: float) -> float:
    """Return the new limit of a step from how well the model predicted the last one."""
    if ratio < 1e-4:
        return float(np.clip(1.0 / (2.0 - ratio), 0.02, 0.5)) * min(limit, taken)
    if ratio < 0.2:
        return 0.5 * taken
    growth = 4.0 if abs(ratio - 1.0) < 0.1 else 2.0
    return max(limit, min(largest, growth * taken)) if ratio > 0.7 else limit
