"""Low-rank factors with a saddle-free Newton method: ``tkl-low-rank``, the default.

P = n_P U Uᵀ with ‖U‖ = 1 and U of a few columns. Steps come from the second-order model in a
trust region; where U is stationary but the certificate does not close, the top eigenvector of
D joins U as a new column, so that no saddle point holds the method. Where that crawls (dual points
that jump with U, kinks of OPT_A), an interior point over the whole saddle takes over.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from kernelweave.kernels_core import KernelWeaveWarning, Problem, Status, relative_gap
from kernelweave.kernels_core.arrays import Matrix
from kernelweave.kernels_core.clock import expired
from kernelweave.kernels_core.formula.learner import Solution

from .algorithm import SaddleAlgorithm
from .coarse import coarse_factor
from .curvature import AtomModel, FactorModel, responses
from .factor_point import FactorPoint
from .frank_wolfe_search import balanced_direction
from .gram import GramAt
from .gram_memory import grams_are_stored
from .interior import InteriorPointSearch, InteriorState
from .rescue import BoundHistory, affordable
from .saddle import SpectahedronOracle
from .settings import LowRank
from .start import Start

_FLOOR = 1e-13
_MOST_REJECTIONS = 12
_SHORTEST = 1e-14
_MOST_RESTARTS = 4
_WORTH = 0.5
_NEGLIGIBLE = 1e-6
_NEAR = 0.1
_CLOSE = 0.01
_FINE = 1e-5
_LARGE = 1000
_ROUGH_STEPS = 8
_ROUGH_GAP = 0.02


@dataclass
class LowRankState:
    """The best point, the model there, the trust radius and the bounds."""

    point: FactorPoint
    radius: float
    share: float
    lower: float
    models: tuple[FactorModel, AtomModel] | None = None
    rejected: int = 0

    @property
    def upper(self) -> float:
        """The proved upper bound."""
        return self.point.upper

    @property
    def solution(self) -> Solution:
        """The learner's solution."""
        return self.point.solution

    @property
    def S(self) -> Matrix:
        """U Uᵀ, of trace one."""
        return self.point.U @ self.point.U.T


class LowRankSearch(SaddleAlgorithm[LowRankState | InteriorState]):
    """``tkl-low-rank``: a saddle-free Newton method on the factor, certified by λ_max(D(α)).

    Where it is slow, `tkl-interior-point` runs once, if the problem is small enough for it, and
    hands its P back. One iteration forms the Gram of r rank-one atoms, one moment matrix, the
    second-order model (what r moment matrices cost, plus a Cholesky factorisation on the free
    samples and an eigendecomposition of order ≤ 400) and one warm-started learner solve. It
    holds one Gram-sized array and the learner's copy of half of another, or none (``gram``).
    """

    settings: LowRank = LowRank()

    def init(self, problem: Problem, random_state: np.random.RandomState) -> LowRankState:
        """Start at the leading eigenvectors of D for a balanced α.

        `problem`: with a positive-matrix family and a spectahedron; `random_state`: unused: the
        method is deterministic.
        """
        asked = self.settings
        stored = grams_are_stored(problem, asked.dtype, asked.gram)
        self.oracle = oracle = SpectahedronOracle(problem, asked.dtype, n_grams=1, stored=stored)
        self._n_interior = 0
        self._progress = BoundHistory()
        self._rescue = InteriorPointSearch() if asked.rescue else None
        shape = (problem.n_samples,) * 2
        self._array = np.empty(shape, dtype=oracle.dtype) if stored else None
        rank = max(2, asked.rank)
        if asked.start is not None:
            return self._continued(asked.start)
        if asked.coarse and problem.n_samples >= _LARGE:
            U = coarse_factor(roughly_solved, problem, replace(asked, rank=rank))
            point = self._evaluate(U, None, np.inf, relative=_CLOSE)
            return LowRankState(point, _NEAR, _NEAR, point.direction.lower_bound)
        u = balanced_direction(oracle.targets, problem.sample_weight, problem.learner.name)
        U = leading_factor(oracle.moment(u), rank)
        return self._restarted(self._evaluate(U, None, np.inf), rank)

    def _continued(self, start: Start) -> LowRankState:
        """Begin at a neighbour's P, with its dual point as the learner's start."""
        oracle = self.oracle
        for name, value, wanted in (
            ("P", start.P, (oracle.n_P, oracle.n_P)),
            ("dual_coef", start.dual_coef, oracle.targets.shape),
        ):
            if np.shape(value) != wanted:
                raise ValueError(f"start.{name} must have shape {wanted}, got {np.shape(value)}")
        U = start.factor(oracle.min_eig)
        gram = self._formed(U)
        kernel = oracle.kernel(gram)
        near = oracle.evaluate(kernel, start.dual_coef * oracle.scale, entries=gram.entries)
        target = _CLOSE * oracle.upper_bound(near)
        point = self._solved(U, gram, near, target)
        return LowRankState(point, _NEAR, _NEAR, point.direction.lower_bound)

    def _restarted(self, point: FactorPoint, rank: int) -> LowRankState:
        """Replace the factor by the leading eigenvectors of D(α) while that pays well."""
        lower = point.direction.lower_bound
        for _ in range(_MOST_RESTARTS):
            U = leading_factor(point.direction.moment, rank)
            trial = self._evaluate(U, point.solution, 0.1 * point.upper)
            lower = max(lower, trial.direction.lower_bound)
            if trial.upper > _WORTH * point.upper:
                break
            point = trial
        return LowRankState(point, 0.3, 0.5, lower)

    def _formed(self, U: Matrix) -> GramAt:
        """Return the Gram matrix at U, written over the last one."""
        self._gram = self.oracle.at(U, self._array)
        return self._gram

    def _models(self, point: FactorPoint) -> tuple[FactorModel, AtomModel]:
        """Return the models there; its Gram matrix is formed again where another took its place.

        Nothing asks for that matrix afterwards: a rejected trial may be written over it.
        """
        if self._array is not None and point.gram is not self._gram:
            point.gram = self._formed(point.U)
        answers = responses(self.oracle, point)
        factor = FactorModel(self.oracle, point, answers)
        return factor, AtomModel(self.oracle, point, answers, self._formed)

    def _evaluate(
        self, U: Matrix, warm: Solution | None, target: float, *, relative: float = 0.1
    ) -> FactorPoint:
        return self._solved(U, self._formed(U), warm, target, relative=relative)

    def _solved(
        self,
        U: Matrix,
        gram: GramAt,
        warm: Solution | None,
        target: float,
        *,
        relative: float = 0.1,
    ) -> FactorPoint:
        oracle = self.oracle
        solution = oracle.solve(
            oracle.kernel(gram), warm, target, entries=gram.entries, relative=relative
        )
        direction = oracle.direction(solution)
        upper = oracle.upper_bound(solution)
        if upper - direction.lower_bound <= _FINE * abs(upper):
            solution = oracle.refined(solution, U)
            upper = oracle.upper_bound(solution)
        return FactorPoint(U, gram, solution, direction, upper)

    def step(self, state: LowRankState | InteriorState) -> LowRankState | InteriorState:
        """Take one step of the method in charge; hand over where that is due."""
        if isinstance(state, InteriorState):
            return self._interior_step(state)
        following = self._newton_step(state)
        self._progress.observe(following.lower, following.point.upper)
        slow = self._progress.slow or self._exhausted(following)
        if slow and self._rescue is not None and affordable(self.oracle):
            self._resting = following
            method, self._rescue = self._rescue, None
            self._interior = method
            return method.begin(self.oracle)
        return following

    def _interior_step(self, state: InteriorState) -> LowRankState | InteriorState:
        """Go on with the interior point; at its end return to the factor of its P."""
        following = self._interior.step(state)
        if not following.ended:
            return following
        rest = self._resting
        values, vectors = np.linalg.eigh(following.S)
        kept = values > _NEGLIGIBLE * values[-1]
        U = vectors[:, kept] * np.sqrt(values[kept])
        point = rest.point
        target = max(following.upper - following.lower, _FLOOR * following.upper)
        trial = self._evaluate(U / np.linalg.norm(U), following.solution, target)
        lower = max(rest.lower, following.lower, trial.direction.lower_bound)
        self._progress = BoundHistory()
        if trial.upper < point.upper:
            return LowRankState(trial, 0.1, 0.1, lower)
        return LowRankState(point, rest.radius, rest.share, lower, rest.models)

    def _newton_step(self, state: LowRankState) -> LowRankState:
        """Try the better of two model steps: Newton inside the factor, or a new column."""
        point, oracle = state.point, self.oracle
        gap = max(point.upper - state.lower, _FLOOR * abs(point.upper))
        if state.models is None:
            state.models = self._models(point)
        factor, atom = state.models
        step, decrease = factor.step(state.radius)
        share, growth = atom.step(state.share)
        grows = growth > decrease
        U = grown(point.U, point.direction.vector, share) if grows else point.U + step
        U = U / np.linalg.norm(U)
        expected = max(growth, decrease) / oracle.scale
        noise = self.settings.inner_fraction * max(expected, _FLOOR * abs(point.upper))
        trial = self._evaluate(U, point.solution, min(noise, gap))
        lower = max(state.lower, trial.direction.lower_bound)
        ratio = (point.upper - trial.upper) / max(expected, np.finfo(float).tiny)
        return self._judge(state, trial, ratio, lower, share if grows else 0.0)

    def _judge(
        self, state: LowRankState, trial: FactorPoint, ratio: float, lower: float, share: float
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
            return LowRankState(trial, radius, limit, lower)
        return LowRankState(state.point, radius, limit, lower, state.models, state.rejected + 1)

    def best(self, state: LowRankState | InteriorState) -> Matrix:
        """Return P."""
        return self.oracle.shifted(state.S)

    def counts(self, state: LowRankState | InteriorState) -> dict[str, int]:
        """Return learner solves, inner iterations, Grams, interior iterations and the rank."""
        interior = isinstance(state, InteriorState)
        self._n_interior += interior
        rank = self.oracle.n_P if isinstance(state, InteriorState) else state.point.U.shape[1]
        return {**self.oracle.counts(), "n_interior": self._n_interior, "rank": rank}

    @staticmethod
    def _exhausted(state: LowRankState) -> bool:
        return state.rejected > _MOST_REJECTIONS or state.radius < _SHORTEST

    def outcome(self, state: LowRankState | InteriorState) -> Status | None:
        """Stop where no step of any length succeeds."""
        if isinstance(state, InteriorState):
            return None
        return Status.STALLED if self._exhausted(state) else None


def roughly_solved(problem: Problem, settings: LowRank) -> Start:
    """Return P and α after eight steps at most, uncertified: a start need not be good."""
    method = LowRankSearch()
    with warnings.catch_warnings():
        # the whole problem has said that its Gram matrices are not stored
        warnings.simplefilter("ignore", KernelWeaveWarning)
        method.settings = settings
        state: LowRankState | InteriorState = method.init(problem, np.random.RandomState(0))
    for _ in range(_ROUGH_STEPS):
        close = relative_gap(*method.gap(state)) <= _ROUGH_GAP
        if close or expired() or method.outcome(state) is not None:
            break
        state = method.step(state)
    return Start(method.best(state), method.solution(state).dual_coef)


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
