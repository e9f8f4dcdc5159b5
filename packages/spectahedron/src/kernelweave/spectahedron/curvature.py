"""The second-order model of OPT_A on the sphere of factors, P = n_P U Uᵀ, ‖U‖ = 1.

For a step V tangent at U and the retraction (U + V)/‖U + V‖,

    OPT_A ≈ OPT_A(U) − n_P ⟨DU, V⟩
            + ½ [ (dK u)_Fᵀ M (dK u)_F − n_P (⟨V, DV⟩ − ‖V‖² ⟨U, DU⟩) ],

dK the Gram of n_P (UVᵀ + VUᵀ), F the free samples, M the inverse of K_FF on Σ du = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve, eigh

from .saddle import FloatArray, SaddleOracle

Matrix = npt.NDArray[np.float64]
_FREE = 1e-9
_RIDGE = 1e-12


def free_samples(oracle: SaddleOracle, task: int, u: Matrix) -> npt.NDArray[np.intp]:
    """Return the samples whose dual coefficient is strictly inside its interval."""
    weight = oracle.problem.sample_weight
    caps = oracle.learner.C * (np.ones(len(u)) if weight is None else np.asarray(weight))
    size = np.abs(u)
    return np.flatnonzero((size > _FREE * caps) & (size < (1.0 - _FREE) * caps))


def reduced_inverse(K: FloatArray, rows: npt.NDArray[np.intp], B: Matrix) -> Matrix:
    """Return Bᵀ M B, M the inverse of K_FF on the subspace Σ du = 0.

    One Cholesky factorisation (|F|³/3 flops) and |F|² N for N columns of B.
    """
    K_FF = np.array(K[np.ix_(rows, rows)], dtype=np.float64)
    K_FF.flat[:: len(rows) + 1] += _RIDGE * np.trace(K_FF)
    factor = cho_factor(K_FF, lower=True, overwrite_a=True, check_finite=False)
    ones = cho_solve(factor, np.ones(len(rows)), check_finite=False)
    columns = cho_solve(factor, B, check_finite=False)
    sums = B.T @ ones
    return B.T @ columns - np.outer(sums, sums) / ones.sum()


def hessian(oracle: SaddleOracle, U: Matrix, K: FloatArray, D: Matrix, solution: Any) -> Matrix:
    """Return the Hessian form as a matrix of order n_P · r over vec(V), row-major.

    Costs what r moment matrices cost per task, plus (n_P r)² |F| flops.
    """
    n_P, r = U.shape
    H = np.kron(-n_P * D, np.eye(r))
    H.flat[:: n_P * r + 1] += n_P * float(np.sum(U * (D @ U)))
    for task, u in enumerate(solution.dual_coef):
        rows = free_samples(oracle, task, u)
        if len(rows) < 2:
            continue
        B = oracle.sample_products(u, U, rows).reshape(len(rows), n_P * r)
        H += reduced_inverse(K, rows, n_P * B)
    project_out(H, U.ravel())
    return 0.5 * (H + H.T)


def project_out(H: Matrix, direction: Matrix) -> None:
    """Replace H by (I − ddᵀ) H (I − ddᵀ) in place, ‖d‖ = 1."""
    H -= np.outer(direction, direction @ H)
    H -= np.outer(H @ direction, direction)


class SaddleFreeModel:
    """The quadratic model with its eigenvalues replaced by their absolute values.

    Its minimiser leaves saddle points instead of approaching them.
    """

    def __init__(self, H: Matrix, gradient: Matrix) -> None:
        values, self._vectors = eigh(H, check_finite=False)
        self._values = np.maximum(np.abs(values), 1e-12 * np.abs(values).max())
        self._signed = values
        self._coordinates = self._vectors.T @ gradient

    def step(self, radius: float) -> tuple[Matrix, float]:
        """Return the minimiser within ``radius`` and the decrease that the true model expects."""
        step = -self._coordinates / self._values
        if np.linalg.norm(step) > radius:
            step = -self._coordinates / (self._values + self._shift(radius))
        decrease = -float(self._coordinates @ step + 0.5 * np.sum(self._signed * step**2))
        return self._vectors @ step, decrease

    def _shift(self, radius: float) -> float:
        """Bisect for the multiplier of the ball (log scale, 60 halvings at most)."""
        low, high = 0.0, float(np.linalg.norm(self._coordinates)) / radius
        for _ in range(60):
            middle = 0.5 * (low + high)
            if np.linalg.norm(self._coordinates / (self._values + middle)) > radius:
                low = middle
            else:
                high = middle
        return high


@dataclass(frozen=True)
class AtomModel:
    """OPT_A along P + t (n_P vvᵀ − P), to second order: − slope t + ½ curvature t²."""

    slope: float
    curvature: float

    def step(self, limit: float) -> tuple[float, float]:
        """Return the best t in (0, limit] and the decrease expected there."""
        t = limit if self.curvature * limit <= self.slope else self.slope / self.curvature
        return t, t * self.slope - 0.5 * self.curvature * t * t


def atom_model(oracle: SaddleOracle, point: Any, K: FloatArray, buffer: FloatArray) -> AtomModel:
    """Return the model towards the top eigenvector of D; forms one rank-one Gram in ``buffer``."""
    slope = 0.5 * oracle.n_P * (point.direction.value - point.stationarity)
    S = oracle.rank_one(point.direction.vector, out=buffer)
    curvature = 0.0
    for task, u in enumerate(point.solution.dual_coef):
        rows = free_samples(oracle, task, u)
        if len(rows) >= 2:
            support = np.flatnonzero(u)
            change = (S[np.ix_(rows, support)] - K[np.ix_(rows, support)]) @ u[support]
            curvature += float(reduced_inverse(K, rows, change[:, None])[0, 0])
    return AtomModel(max(slope, 0.0), curvature)
