"""``tkl-interior-point``: a primal-dual interior point on dual variables and P at once.

Newton steps on all optimality conditions of the saddle, with Mehrotra's predictor and corrector.
No learner is solved: 15 to 40 iterations reach a gap of 1e-6, however ill-conditioned the problem
is, at a cost and a memory that only moderate sizes allow.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import Problem, Status
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.memory import require
from scipy.linalg import LinAlgError

from .algorithm import SpectahedronSearch
from .newton_system import Moves, NewtonSystem, Parts, start
from .saddle import SpectahedronOracle
from .settings import InteriorPoint

# Share of the way to the boundary that is taken. Nearer to 1 the next step begins beside it and is
# short; further from 1 every iteration gains less.
_FRACTION = 0.98
# The path ends where Σ vz + Σ tw + ⟨S, Z⟩ is this small beside the bound: rounding rules from
# there.
_SMALLEST = 1e-13
# Iterations in a row that do not lower the best gap by a tenth, after which the path ends: few near
# the end, where a gap that does not fall is rounding, and more where it is wide, since it may stand
# still for a while and fall again.
_MOST_IDLE = 4
_LONGEST_PAUSE = 20


def work(n_rows: int, n_P: int) -> float:
    """Return the flops of an iteration for ``n_rows`` = tasks · samples."""
    return n_rows**2 * n_P**2 / 2 + 4.0 * n_rows * n_P**3 + n_rows**3 / 3


def required_bytes(n_rows: int, n_P: int) -> int:
    """Return what an iteration allocates: the Aₖ, their scaled halves and two square matrices."""
    return 8 * (n_rows * n_P * (2 * n_P + 1) + 2 * n_rows * n_rows)


class InteriorPath(SpectahedronSearch):
    """The method on an oracle that exists.

    - `at`: the point of the path
    - `S` of shape (n_P, n_P): its share of P, of trace one
    - `K` of shape (n_samples, n_samples): the Gram matrix there
    - `ended`: whether rounding ends the path there
    """

    def __init__(self, oracle: SpectahedronOracle) -> None:
        """Start at P = n_P I, far from the boundary.

        Raises MemoryBudgetError if an iteration does not fit in the memory limit.
        """
        self.oracle = oracle
        m, tasks = oracle.problem.n_samples, len(oracle.targets)
        require(
            required_bytes(m * tasks, oracle.n_P),
            f"an interior point over {m} samples, {tasks} tasks and n_P = {oracle.n_P}",
            alternative="use {algorithm}='tkl-low-rank' or 'tkl-frank-wolfe'",
        )
        self.parts = Parts.of(oracle.learner, oracle.targets, oracle.problem.sample_weight)
        self.K = oracle.matrix_gram(np.eye(oracle.n_P) / oracle.n_P)
        self.at = start(self.parts, self.K, self._half_moment, oracle.n_P)
        self.lower, self._best_gap, self._idle = 0.0, np.inf, 0
        self._certify()

    def _half_moment(self, u: FloatArray) -> FloatArray:
        return 0.5 * self.oracle.spread * self.oracle.moment(u)

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
        # a step is small beside its rounding, of which a Gram matrix takes the symmetric part
        change = self.oracle.matrix_gram(0.5 * (affine.S + affine.S.T), base=False)
        return (du @ change).ravel(), self._half_moment(du)

    def step(self) -> None:
        """Take a predictor-corrector step."""
        at, parts = self.at, self.parts
        u = parts.signed(at.v)
        try:
            A = np.concatenate([self._products(row) for row in u])
            system = NewtonSystem(parts, at, self.K, A, self._half_moment(u))
            affine = system.moves(0.0, None, self._second)
            length = min(1.0, at.longest_step(affine, system.roots))
            before, after = at.total(), at.total(affine, length)
            target = (max(after, 0.0) / before) ** 3 * before / at.count
            moves = system.moves(target, self._shortened(affine, length), self._second)
            length = min(1.0, _FRACTION * at.longest_step(moves, system.roots))
        except LinAlgError:
            self.ended = True
            return
        self.at = at.advance(moves, length)
        self.K = self.oracle.matrix_gram(self.at.S / np.trace(self.at.S))
        self._certify()

    @staticmethod
    def _shortened(affine: Moves, length: float) -> Moves:
        """Return the affine step as the corrector takes it: second-order terms once the length."""
        root = np.sqrt(length)
        pair = (root * affine.scaled[0], root * affine.scaled[1])
        v, z, w, S = (root * each for each in (affine.v, affine.z, affine.w, affine.S))
        return replace(affine, v=v, z=z, w=w, S=S, scaled=pair)

    def _certify(self) -> None:
        """Prove both bounds at an exactly feasible point near the path's."""
        oracle, at = self.oracle, self.at
        self.inner = oracle.evaluate(self.K, self.parts.signed(at.v))
        self.S = at.S / np.trace(at.S)
        self.upper = oracle.upper_bound(self.inner, self.parameters)
        direction = oracle.direction(self.inner)
        self.lower = max(self.lower, direction.lower_bound)
        gap = self.upper - self.lower
        self._idle = 0 if gap < 0.9 * self._best_gap else self._idle + 1
        self._best_gap = min(gap, self._best_gap)
        # a wide gap far from the end may pause; a narrow one that grows is rounding
        near = self._best_gap < 1e-3 * abs(self.upper)
        idle_for_good = self._idle >= (_MOST_IDLE if near else _LONGEST_PAUSE)
        self.ended = idle_for_good or at.total() < _SMALLEST * (1.0 + self.lower)

    @property
    def parameters(self) -> npt.NDArray[np.float64]:
        """P."""
        return self.oracle.shifted(self.S)

    @property
    def outcome(self) -> Status | None:
        """Stop where rounding ends the path."""
        return Status.STALLED if self.ended else None


class InteriorPointSearch(InteriorPath):
    """``tkl-interior-point``: robust where factors and Frank-Wolfe crawl.

    One iteration forms a Gram matrix, two moment matrices, the matrices Φₖ of all samples and a
    Cholesky factor of the size of the Gram matrix (see `work`).
    """

    settings: InteriorPoint = InteriorPoint()

    def __init__(
        self,
        problem: Problem,
        random_state: np.random.RandomState,
        settings: InteriorPoint = settings,
    ) -> None:
        """Start on an oracle of its own."""
        self.settings = settings
        super().__init__(SpectahedronOracle(problem, settings.dtype, n_grams=2))
