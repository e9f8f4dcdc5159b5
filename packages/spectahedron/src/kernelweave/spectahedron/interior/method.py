"""``tkl-interior-point``: a primal-dual interior point on dual variables and P at once.

Newton steps on all optimality conditions of the saddle, with Mehrotra's predictor and corrector.
No learner is solved: 15 to 40 iterations reach a gap of 1e-6, however ill-conditioned the problem
is, at a cost and a memory that only moderate sizes allow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import Problem, Status
from kernelweave.kernels_core.arrays import FloatArray, RealArray
from kernelweave.kernels_core.formula.learner import Solution
from kernelweave.kernels_core.memory import require
from scipy.linalg import LinAlgError

from ..algorithm import SaddleAlgorithm
from ..saddle import Direction, SpectahedronOracle
from ..settings import InteriorPoint
from .system import NewtonSystem
from .variables import Moves, Parts, Variables, start

_FRACTION = 0.98
_SMALLEST = 1e-13
_MOST_IDLE = 4
_LONGEST_PAUSE = 20


def work(n_rows: int, n_P: int) -> float:
    """Return the flops of an iteration for ``n_rows`` = tasks · samples."""
    return n_rows**2 * n_P**2 / 2 + 4.0 * n_rows * n_P**3 + n_rows**3 / 3


def required_bytes(n_rows: int, n_P: int) -> int:
    """Return what an iteration allocates: the Aₖ, their scaled halves and two square matrices."""
    return 8 * (n_rows * n_P * (2 * n_P + 1) + 2 * n_rows * n_rows)


@dataclass
class InteriorState:
    """A point of the path, the certificate there and the best lower bound so far."""

    at: Variables
    K: RealArray
    S: FloatArray
    solution: Solution
    direction: Direction
    upper: float
    lower: float
    best_gap: float
    idle: int = 0
    ended: bool = False


class InteriorPointSearch(SaddleAlgorithm[InteriorState]):
    """``tkl-interior-point``: robust where factors and Frank-Wolfe crawl.

    One iteration forms a Gram matrix, two moment matrices, the matrices Φₖ of all samples and a
    Cholesky factor of the size of the Gram matrix (see `work`).
    """

    settings: InteriorPoint = InteriorPoint()

    def init(self, problem: Problem, random_state: np.random.RandomState) -> InteriorState:
        """Start at P = n_P I, far from the boundary.

        `problem`: with a positive-matrix family and a spectahedron; `random_state`: unused: the
        method is deterministic.
        """
        return self.begin(SpectahedronOracle(problem, self.settings.dtype, n_grams=2))

    def begin(self, oracle: SpectahedronOracle) -> InteriorState:
        """Start on an oracle that exists.

        Raises MemoryBudgetError if an iteration does not fit in the memory limit.
        """
        self.oracle = oracle
        m, tasks = oracle.problem.n_samples, len(oracle.targets)
        require(
            required_bytes(m * tasks, oracle.n_P),
            f"an interior point over {m} samples, {tasks} tasks and n_P = {oracle.n_P}",
            alternative="use algorithm='tkl-low-rank' or 'tkl-frank-wolfe'",
        )
        self.parts = Parts.of(oracle.learner, oracle.targets, oracle.problem.sample_weight)
        S = np.eye(oracle.n_P) / oracle.n_P
        K = oracle.matrix_gram(S)
        at = start(self.parts, K, self._half_moment, oracle.n_P)
        return self._certified(at, K, 0.0, np.inf, 0)

    def _half_moment(self, u: FloatArray) -> FloatArray:
        half: FloatArray = 0.5 * self.oracle.spread * self.oracle.moment(u)
        return half

    def _products(self, u: FloatArray) -> FloatArray:
        """Return Aₖ for the samples of one task, shape (n_samples, p, p)."""
        oracle = self.oracle
        A = np.zeros((len(u), oracle.n_P, oracle.n_P))
        rows = np.flatnonzero(u)
        if len(rows):
            whole = np.eye(oracle.n_P)
            A[rows] = oracle.sample_products(u, whole, rows)
            A *= 0.5 * oracle.spread
        return A

    def _second(self, affine: Moves) -> tuple[FloatArray, FloatArray]:
        """Return what an affine step leaves: dK du of all tasks, and ½ c D(du)."""
        du = self.parts.signed(affine.v)
        change = self.oracle.matrix_gram(affine.S, base=False)
        return (du @ change).ravel(), self._half_moment(du)

    def step(self, state: InteriorState) -> InteriorState:
        """Take a predictor-corrector step."""
        at, parts = state.at, self.parts
        u = parts.signed(at.v)
        try:
            A = np.concatenate([self._products(row) for row in u])
            system = NewtonSystem(parts, at, state.K, A, self._half_moment(u))
            affine = system.moves(0.0, None, self._second)
            length = min(1.0, at.longest_step(affine, system.roots))
            before, after = at.total(), at.total(affine, length)
            target = (max(after, 0.0) / before) ** 3 * before / at.count
            moves = system.moves(target, self._shortened(affine, length), self._second)
            length = min(1.0, _FRACTION * at.longest_step(moves, system.roots))
        except LinAlgError:
            state.ended = True
            return state
        at = at.advance(moves, length)
        K = self.oracle.matrix_gram(at.S / np.trace(at.S))
        return self._certified(at, K, state.lower, state.best_gap, state.idle)

    @staticmethod
    def _shortened(affine: Moves, length: float) -> Moves:
        """Return the affine step as the corrector takes it: second-order terms once the length."""
        root = np.sqrt(length)
        pair = (root * affine.scaled[0], root * affine.scaled[1])
        return Moves(
            root * affine.v,
            root * affine.z,
            root * affine.w,
            affine.b,
            root * affine.S,
            affine.Z,
            affine.multiplier,
            pair,
        )

    def _certified(
        self, at: Variables, K: RealArray, lower: float, best_gap: float, idle: int
    ) -> InteriorState:
        """Prove both bounds at an exactly feasible point near the path's."""
        oracle = self.oracle
        solution = oracle.evaluate(K, self.parts.signed(at.v))
        direction = oracle.direction(solution)
        upper = oracle.upper_bound(solution)
        lower = max(lower, direction.lower_bound)
        gap = upper - lower
        idle = 0 if gap < 0.9 * best_gap else idle + 1
        best_gap = min(gap, best_gap)
        # a wide gap far from the end may pause; a narrow one that grows is rounding
        near = gap < 1e-3 * abs(upper) or best_gap < 1e-3 * abs(upper)
        idle_for_good = idle >= (_MOST_IDLE if near else _LONGEST_PAUSE)
        done = idle_for_good or at.total() < _SMALLEST * (1.0 + lower)
        S = at.S / np.trace(at.S)
        return InteriorState(at, K, S, solution, direction, upper, lower, best_gap, idle, done)

    def best(self, state: InteriorState) -> npt.NDArray[np.float64]:
        """Return P."""
        return self.oracle.shifted(state.S)

    def outcome(self, state: InteriorState) -> Status | None:
        """Stop where rounding ends the path."""
        return Status.STALLED if state.ended else None
