"""``tkl-sdp``: kernel learning over positive matrices as one semidefinite program.

The method that the papers compare with (Lanckriet et al. 2004; Colbert and Peet 2020): its matrix
inequality has the size of the Gram matrix, so that a hundred samples are its limit. Here for
comparison; the bounds are proved by the same code as those of the other methods.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core import Problem, Status
from kernelweave.kernels_core.arrays import FloatArray, RealArray
from kernelweave.kernels_core.memory import require
from kernelweave.kernels_core.psd_cone import project_spectahedron
from kernelweave.spectahedron.algorithm import SpectahedronSearch
from kernelweave.spectahedron.saddle import SpectahedronOracle
from numpy.typing import NDArray

from .conic import CLOSE, Epigraph, attempts, cvxpy, epigraph, report, schur
from .settings import SemidefiniteProgram

if TYPE_CHECKING:
    from cvxpy import Expression, Variable
    from cvxpy import Problem as Program

# The learner at the solver's P is solved to this share of the value, so that the gap shown is that
# of the semidefinite program and not of the learner.
_INNER_GAP = 1e-9


class SemidefiniteSearch(SpectahedronSearch):
    """``min Σ losses + ½Σθ`` over ``[θ fᵀ; f K(P)] ⪰ 0``, P ⪰ ηI, tr P = n_P, by cvxpy.

    One step solves it; there is no second. An interior point takes about 25 iterations, whose
    m⁶/24 flops leave m⁴ to be seen up to the hundred samples that it is registered for.

    `parameters` of shape (n_P, n_P): the best P; `is_solved`: whether the program was solved.
    """

    settings: SemidefiniteProgram = SemidefiniteProgram()

    def __init__(
        self,
        problem: Problem,
        random_state: np.random.RandomState,
        settings: SemidefiniteProgram = settings,
    ) -> None:
        """Start at P = I, where nothing is learned.

        `problem`: with a positive-matrix family and a spectahedron; `random_state`: unused: the
        method is deterministic. Raises ImportError if cvxpy is not installed.
        """
        cvxpy()
        self.settings = settings
        self.oracle = SpectahedronOracle(problem, settings.dtype)
        self.lower, self.upper, self.is_solved = 0.0, np.inf, False
        self.parameters = np.eye(self.oracle.n_P)
        self._certify(self.parameters, self.oracle.gram(self.parameters), None)

    def step(self) -> None:
        """Solve the program, and certify its P by its multipliers and by the learner."""
        oracle = self.oracle
        entries = Entries.of(oracle.n_P)
        program, S, learner, unit = self._program(entries)
        tried = []
        for attempt in attempts(program, self.settings.solver):
            tried.append(attempt)
            if not attempt.is_usable:
                continue
            matrix = entries.unpack(np.asarray(S.value, dtype=np.float64))
            P = project_spectahedron(matrix, oracle.spread)
            P.flat[:: oracle.n_P + 1] += oracle.min_eig
            multipliers = unit * np.array(learner.dual_points())
            self._certify(P, oracle.gram(P), multipliers)
            if self._is_close:
                break
        report(tried, is_close=self._is_close, otherwise="nothing was learned, P = I stays")
        self.is_solved = True

    @property
    def _is_close(self) -> bool:
        return self.upper - self.lower <= CLOSE * abs(self.upper)

    def _program(self, entries: Entries) -> tuple[Program, Variable, Epigraph, float]:
        """Return the program, its variable, the learner's part, and the unit of its multipliers.

        Losses are in units of the largest C, and Gram matrices of the largest entry for P = I. In
        the problem's own units Clarabel broke off on 25 rows of 8 columns, and SCS took 100,000
        iterations and 130 seconds after it, where Clarabel now ends in three.
        """
        cp = cvxpy()
        oracle = self.oracle
        samples = Entries.of(oracle.problem.n_samples)
        kernels = self._map(entries, samples)
        S = cp.Variable(len(entries))
        even = oracle.gram(np.eye(oracle.n_P))
        combined = kernels @ S
        if oracle.min_eig > 0.0:
            combined = combined + oracle.min_eig * even[samples.rows, samples.columns]
        boxes = [
            oracle.learner.problem(np.eye(samples.side), y, oracle.problem.sample_weight)
            for y in oracle.targets
        ]
        size = float(even.max())
        unit = max(float(max(box.upper.max(), -box.lower.min())) for box in boxes)
        K = samples.square(combined / size)
        boxes = [replace(box, lower=box.lower / unit, upper=box.upper / unit) for box in boxes]
        learner = epigraph(boxes, lambda theta, f: [schur(unit * size * theta, f, K)])
        matrix = entries.square(S)
        constraints = [matrix >> 0, cp.trace(matrix) == oracle.spread, *learner.constraints]
        return cp.Problem(cp.Minimize(learner.cost), constraints), S, learner, unit

    def _map(self, entries: Entries, samples: Entries) -> FloatArray:
        """Return the Gram entries of each entry of P, one column each."""
        # the dense map, its sparse copy, and what the solver makes of both
        require(
            6 * 8 * len(samples) * len(entries),
            f"a semidefinite program over {samples.side} samples and n_P = {entries.side}",
            alternative="use algorithm='tkl-low-rank'",
        )
        kernels = np.empty((len(samples), len(entries)))
        for column, (i, j) in enumerate(zip(entries.rows, entries.columns, strict=True)):
            E = np.zeros((entries.side, entries.side))
            E[i, j] = E[j, i] = 1.0
            kernels[:, column] = self.oracle.gram(E)[samples.rows, samples.columns]
        return kernels

    def _certify(self, P: FloatArray, K: RealArray, multipliers: FloatArray | None) -> None:
        """Prove both bounds at P: the learner's primal value, and the better of two duals."""
        oracle, warm = self.oracle, None
        if multipliers is not None:
            warm = oracle.evaluate(K, multipliers)
            self.lower = max(self.lower, oracle.direction(warm).lower_bound)
        size = abs(self.lower) if multipliers is not None else oracle.constant_cost
        solution = oracle.solve(K, warm, _INNER_GAP * size)
        self.lower = max(self.lower, oracle.direction(solution).lower_bound)
        upper = oracle.upper_bound(solution, P)
        if upper < self.upper:
            self.parameters, self.inner, self.upper = P, solution, upper

    @property
    def outcome(self) -> Status | None:
        """Stop after the one step there is."""
        return Status.STALLED if self.is_solved else None


@dataclass(frozen=True)
class Entries:
    """The entries on and above the diagonal of a symmetric matrix, as a vector.

    `rows`, `columns` of shape (side (side + 1)/2,).
    """

    side: int
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]

    @classmethod
    def of(cls, side: int) -> Entries:
        """Return the upper triangle of ``side`` rows."""
        rows, columns = np.triu_indices(side)
        return cls(side, rows, columns)

    def __len__(self) -> int:
        return len(self.rows)

    def square(self, vector: Expression) -> Expression:
        """Return a cvxpy vector as a symmetric cvxpy matrix."""
        from scipy.sparse import csr_array

        index = np.arange(len(self))
        off = self.rows != self.columns
        place = np.concatenate(
            [self.rows * self.side + self.columns, (self.columns * self.side + self.rows)[off]]
        )
        spread = csr_array(
            (np.ones(len(place)), (place, np.concatenate([index, index[off]]))),
            shape=(self.side**2, len(self)),
        )
        return cvxpy().reshape(spread @ vector, (self.side, self.side), order="C")

    def unpack(self, vector: FloatArray) -> FloatArray:
        """Return a vector as a symmetric matrix."""
        matrix = np.zeros((self.side, self.side))
        matrix[self.rows, self.columns] = vector
        matrix[self.columns, self.rows] = vector
        return matrix
