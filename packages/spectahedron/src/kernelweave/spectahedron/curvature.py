"""Second-order models of OPT_A around P = c U Uᵀ (+ ηI), ‖U‖ = 1, c = (1 − η) n_P.

For a step V tangent at U and the retraction (U + V)/‖U + V‖,

    OPT_A ≈ OPT_A(U) − c ⟨DU, V⟩
            + ½ [ (dK u)_Fᵀ M (dK u)_F − c (⟨V, DV⟩ − ‖V‖² ⟨U, DU⟩) ],

dK the Gram of c (UVᵀ + VUᵀ), F the free samples, M the inverse of K_FF on Σ du = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Matrix
from kernelweave.kernels_core.formula.learner import Solution
from kernelweave.kernels_core.memory import limit_bytes
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, qr

from .gram_memory import GramWithEntries
from .saddle import Direction, SpectahedronOracle

# A dual coefficient within this share of an end of its interval is at that end and does not move
# with P: counted as free it makes the model too stiff, and a free one that is held too soft.
_FREE = 1e-9
# measured: half as large a basis as 800 takes no more steps, and an eighth of the time
_ORDER = 400
# More samples than these are thinned out: 4000 take 2e10 flops a Cholesky factor and 128 MB.
_MOST_FREE = 4000
# one float64 matrix of the free samples and its factor, in a quarter of the limit
_SHARE = 64
_TINY = float(np.finfo(np.float64).tiny)
_EPS = float(np.finfo(np.float64).eps)


@dataclass
class FactorPoint:
    """A factor and what the learner and the oracle say there."""

    U: Matrix
    gram: GramWithEntries
    solution: Solution
    direction: Direction
    upper: float

    @property
    def stationarity(self) -> float:
        """λ_U = ⟨U, DU⟩: the certificate closes when it meets λ_max(D)."""
        return float(np.sum(self.U * (self.direction.moment @ self.U)))


def free_samples(oracle: SpectahedronOracle, u: Matrix) -> npt.NDArray[np.intp]:
    """Return the samples whose dual coefficient is strictly inside its interval."""
    weight = oracle.problem.sample_weight
    caps = oracle.learner.C * (np.ones(len(u)) if weight is None else np.asarray(weight))
    size = np.abs(u)
    return np.flatnonzero((size > _FREE * caps) & (size < (1.0 - _FREE) * caps))


class Response:
    """How the free samples of one task answer a change: M, the inverse of K_FF on Σ du = 0.

    Of more than 4000 free samples every so many are taken, about evenly; where Gram matrices are
    not stored, also of more than a quarter of the memory limit holds. The others are held, which
    makes the model a little too soft, and the trust region answers for that. One Cholesky
    factorisation, |F|³/3 flops; a multiple of the identity is added where K_FF is singular to
    working precision.

    `rows` of shape (n_free,).
    """

    def __init__(self, gram: GramWithEntries, rows: npt.NDArray[np.intp]) -> None:
        most = _MOST_FREE
        if gram.array is None:
            most = min(most, int((limit_bytes() / _SHARE) ** 0.5))
        if len(rows) > most:
            rows = rows[np.linspace(0, len(rows) - 1, most).astype(np.intp)]
        self.rows = rows
        K_FF = gram.part(rows, rows)
        ridge = max(1e-12, 4.0 * len(rows) * gram.eps) * np.trace(K_FF)
        while True:
            shifted = K_FF.copy()
            shifted.flat[:: len(rows) + 1] += ridge / len(rows)
            try:
                self._factor = cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
                break
            except LinAlgError:
                ridge = max(10.0 * ridge, _TINY)
        self._ones = cho_solve(self._factor, np.ones(len(rows)), check_finite=False)

    def inverse(self, B: Matrix) -> Matrix:
        """Return Bᵀ M B, |F|² N flops for N columns of B."""
        columns = cho_solve(self._factor, B, check_finite=False)
        sums = B.T @ self._ones
        inverse: Matrix = B.T @ columns - np.outer(sums, sums) / self._ones.sum()
        return inverse


def responses(oracle: SpectahedronOracle, point: FactorPoint) -> list[Response | None]:
    """Return the response of every task, none where fewer than two samples are free."""
    by_task: list[Response | None] = []
    for u in point.solution.dual_coef:
        rows = free_samples(oracle, u)
        by_task.append(Response(point.gram, rows) if len(rows) >= 2 else None)
    return by_task


def step_basis(D: Matrix, U: Matrix) -> Matrix | None:
    """Return orthonormal columns in which a step is sought, ``None`` for all of them.

    Where n_P · r is too large for a dense eigendecomposition: U, DU (which hold the gradient)
    and the leading eigenvectors of D.
    """
    n_P, r = U.shape
    if n_P * r <= _ORDER:
        return None
    size = max(_ORDER // r, 2 * r + 1)
    count = min(size - 2 * r, n_P)
    _, vectors = eigh(D, subset_by_index=[n_P - count, n_P - 1], check_finite=False)
    basis, _ = qr(np.column_stack([U, D @ U, vectors[:, ::-1]]), mode="economic")
    return np.asarray(basis)


def idle_directions(U: Matrix) -> Matrix:
    """Return orthonormal directions in which a step leaves P where it is, to first order.

    U itself, which the normalisation undoes, and UA for skew A: P does not see a rotation of the
    columns. The gradient has no part in them but the Hessian, off the optimum, couples them to the
    others: a minimiser of the whole model takes long steps there whatever the gap.
    """
    left, sizes, right = np.linalg.svd(U, full_matrices=False)
    columns = [U.ravel()]
    for i in range(len(sizes)):
        for j in range(i + 1, len(sizes)):
            first = sizes[i] * np.outer(left[:, i], right[j])
            turn = first - sizes[j] * np.outer(left[:, j], right[i])
            norm = float(np.hypot(sizes[i], sizes[j]))
            if norm > _EPS:
                columns.append(turn.ravel() / norm)
    return np.column_stack(columns)


class FactorModel:
    """The model in V, its eigenvalues replaced by their absolute values.

    Its minimiser leaves saddle points instead of approaching them.
    """

    def __init__(
        self, oracle: SpectahedronOracle, point: FactorPoint, answers: list[Response | None]
    ) -> None:
        D, U, c = point.direction.moment, point.U, oracle.spread
        self._shape = U.shape
        self._basis = step_basis(D, U)
        gradient = -c * (D @ U - point.stationarity * U)
        H = self._hessian(oracle, point, answers)
        values, self._vectors = eigh(H, driver="evd", check_finite=False)
        floor = max(1e-12 * float(np.abs(values).max()), _TINY)
        self._values = np.maximum(np.abs(values), floor)
        self._signed = values
        self._coordinates = self._vectors.T @ self._reduced(gradient).ravel()

    def _reduced(self, V: Matrix) -> Matrix:
        return V if self._basis is None else self._basis.T @ V

    def _hessian(
        self, oracle: SpectahedronOracle, point: FactorPoint, answers: list[Response | None]
    ) -> Matrix:
        """Return the Hessian form over the entries of V, row by row, in the basis."""
        D, U, c = point.direction.moment, point.U, oracle.spread
        r = U.shape[1]
        inner = D if self._basis is None else self._basis.T @ D @ self._basis
        H = np.kron(-c * inner, np.eye(r))
        H.flat[:: len(H) + 1] += c * point.stationarity
        for u, answer in zip(point.solution.dual_coef, answers, strict=True):
            if answer is not None:
                B = oracle.sample_products(u, U, answer.rows)
                if self._basis is not None:
                    B = np.matmul(self._basis.T, B)
                H += answer.inverse(c * B.reshape(len(answer.rows), -1))
        idle = idle_directions(U if self._basis is None else self._basis.T @ U)
        H -= idle @ (idle.T @ H)
        H -= (H @ idle) @ idle.T
        return 0.5 * (H + H.T)

    def step(self, radius: float) -> tuple[Matrix, float]:
        """Return the minimiser within ``radius`` and the decrease that the true model expects."""
        step = -self._coordinates / self._values
        if np.linalg.norm(step) > radius:
            step = -self._coordinates / (self._values + self._shift(radius))
        decrease = -float(self._coordinates @ step + 0.5 * np.sum(self._signed * step**2))
        V = (self._vectors @ step).reshape(-1, self._shape[1])
        return (V if self._basis is None else self._basis @ V), decrease

    def _shift(self, radius: float) -> float:
        """Bisect for the multiplier of the ball."""
        low, high = 0.0, float(np.linalg.norm(self._coordinates)) / radius
        for _ in range(60):
            middle = 0.5 * (low + high)
            if np.linalg.norm(self._coordinates / (self._values + middle)) > radius:
                low = middle
            else:
                high = middle
        return high


class AtomModel:
    """The model along P + t (atom − P), the atom that of the top eigenvector of D.

    OPT_A ≈ OPT_A(P) − slope t + ½ curvature t². Takes the atom's entries at the free samples; the
    whole Gram matrix is ``formed`` only where the family cannot compute them alone.
    """

    def __init__(
        self,
        oracle: SpectahedronOracle,
        point: FactorPoint,
        answers: list[Response | None],
        formed: Callable[[Matrix], GramWithEntries],
    ) -> None:
        slope = 0.5 * oracle.spread * (point.direction.value - point.stationarity)
        self.slope = max(slope, 0.0)
        self.curvature = 0.0
        pairs = zip(point.solution.dual_coef, answers, strict=True)
        free = [(u, answer) for u, answer in pairs if answer is not None]
        here = [point.gram.times(answer.rows, u) for u, answer in free]
        vector = point.direction.vector[:, None]
        atom = oracle.gram_with_entries(vector, None)
        if atom.entries is None:
            atom = formed(vector)
        for (u, answer), now in zip(free, here, strict=True):
            change = atom.times(answer.rows, u) - now
            self.curvature += float(answer.inverse(change[:, None])[0, 0])

    def step(self, limit: float) -> tuple[float, float]:
        """Return the best t in (0, limit] and the decrease expected there."""
        t = limit if self.curvature * limit <= self.slope else self.slope / self.curvature
        return t, t * self.slope - 0.5 * self.curvature * t * t
