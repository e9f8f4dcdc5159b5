"""The squared-hinge support vector machine at one kernel, by Newton steps on its active set.

Keerthi and DeCoste, "A modified finite Newton method for fast solution of large scale linear
SVMs", JMLR 6 (2005), in its kernel form: each step is a ridge solve on the samples with a loss,
with an exact line search on the piecewise quadratic primal, so it ends after finitely many.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.clock import expired

from .inner import Factor, factorize
from .rounding import FloatArray, sums_to_zero

_MAX_STEPS = 100


@dataclass
class _Point:
    """A primal point: u outside a cone, f = Ku, the intercept."""

    u: FloatArray
    f: FloatArray
    b: float

    def moved(self, other: _Point, step: float) -> _Point:
        keep = 1.0 - step
        return _Point(
            keep * self.u + step * other.u,
            keep * self.f + step * other.f,
            keep * self.b + step * other.b,
        )


def solve_hinge(
    K: FloatArray, noise: FloatArray, y: FloatArray, active: npt.NDArray[np.bool_] | None = None
) -> tuple[FloatArray, float, Factor, int]:
    """Minimise uᵀKu + Σ (1/Rᵢ) max(0, 1 − yᵢ(f + b)ᵢ)², f = Ku.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Positive semidefinite.
    noise : ndarray of shape (n,)
        R, positive.
    y : ndarray of shape (n,)
        ±1, both present.
    active : ndarray of bool of shape (n,), optional
        Samples expected to have a loss, to start from.

    Returns
    -------
    u : ndarray of shape (n,)
        Feasible dual point: Σu = 0 exactly, u∘y ≥ 0.
    b : float
        Intercept.
    factor : Factor
        Of the last active set.
    n_iter : int
        Linear systems solved.
    """
    n = len(y)
    mask = np.ones(n, dtype=bool) if active is None or not active.any() else active
    point = _Point(np.zeros(n), np.zeros(n), 0.0)
    factor, target = _ridge_on(K, noise, y, mask)
    n_iter = 1
    if active is not None:
        point = target
    for _ in range(_MAX_STEPS):
        point = point.moved(target, _line_search(point, target, noise, y))
        new = y * (point.f + point.b) < 1.0
        if not new.any() or np.array_equal(new, mask) or expired():
            break
        mask = new
        factor, target = _ridge_on(K, noise, y, mask)
        n_iter += 1
    loss = np.maximum(1.0 - y * (point.f + point.b), 0.0)
    return sums_to_zero(y * loss / noise), point.b, factor, n_iter


def _ridge_on(
    K: FloatArray, noise: FloatArray, y: FloatArray, mask: npt.NDArray[np.bool_]
) -> tuple[Factor, _Point]:
    """Solve the ridge problem with intercept on the samples of ``mask``."""
    rows = np.flatnonzero(mask)
    factor = factorize(K, noise, True, rows)
    inside, b = factor.solve(y[None, rows])
    u = np.zeros(len(y))
    u[rows] = inside[0]
    return factor, _Point(u, K[:, rows] @ inside[0], float(b[0]))


def _line_search(point: _Point, target: _Point, noise: FloatArray, y: FloatArray) -> float:
    """Return the minimiser in [0, 1] of the primal between two points, by bisection."""
    du, df, db = target.u - point.u, target.f - point.f, target.b - point.b
    constant, linear = float(point.u @ df), float(du @ df)
    margin, change = 1.0 - y * (point.f + point.b), -y * (df + db)

    def slope(s: float) -> float:
        loss = np.maximum(margin + s * change, 0.0)
        return constant + s * linear + float(np.sum(loss * change / noise))

    if slope(1.0) <= 0.0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if slope(middle) > 0.0:
            high = middle
        else:
            low = middle
    return low if low > 0.0 else high
