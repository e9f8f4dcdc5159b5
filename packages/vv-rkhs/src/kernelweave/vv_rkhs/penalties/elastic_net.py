"""The elastic net of the norms."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import RealArray, Vector
from kernelweave.kernels_core.checks import number

from .base import smooth

# Newton from the right of a convex function converges from anywhere, in the end quadratically; this
# only ends what rounding keeps going.
_NEWTON_STEPS = 100
_ROUNDING = 1e-15  # relative: Newton steps that are no longer steps
_MU = number(above=0.0, most=1.0)


@dataclass(frozen=True)
class ElasticNet:
    """Ω(f) = (1 − μ) Σ ‖fⱼ‖ + μ Σ ‖fⱼ‖²: ω(η) = Σ (1 − μ)² ηⱼ / (4(1 − μηⱼ)), 0 ≤ ηⱼ < 1/μ.

    V prints the update α/(1 − μ + μα); the minimiser is 2α/(1 − μ + 2μα). The conjugate is
    ω*(w) = Σ max(0, √wⱼ − (1 − μ)/2)² / μ.

    Parameters
    ----------
    mu : float, default=0.5
        Share of the squared norm, in (0, 1]; 1 gives every kernel the weight 1.

    Raises
    ------
    ValueError
        If mu is outside (0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.vv_rkhs import ElasticNet
    >>> ElasticNet(0.5).update(np.array([0.5, 1.5]))
    array([1. , 1.5])
    """

    mu: float = 0.5

    def __post_init__(self) -> None:
        _MU.check("mu", self.mu)

    def start(self, n_kernels: int) -> Vector:
        """Return equal weights 1/m, shape (n_kernels,)."""
        return np.full(n_kernels, 1.0 / n_kernels)

    def value(self, weights: Vector) -> float:
        """Return ω(η), infinite where a weight is negative or reaches 1/μ."""
        return float(self.values(weights))

    def values(self, weights: RealArray) -> Vector:
        """Return ω of each row of a matrix of weights."""
        room = 1.0 - self.mu * weights
        inside = (weights >= 0).all(axis=-1)
        if self.mu == 1.0:
            inside &= (room >= -1e-12).all(axis=-1)
            return np.where(inside, 0.0, math.inf)
        inside &= (room > 0).all(axis=-1)
        shares = weights / np.where(room > 0, room, 1.0)
        return np.where(inside, 0.25 * (1.0 - self.mu) ** 2 * shares.sum(axis=-1), math.inf)

    def update(self, alpha: Vector) -> Vector:
        """Return 2αⱼ/(1 − μ + 2μαⱼ), with α smoothed."""
        norms = smooth(alpha)
        if self.mu == 1.0:
            return np.ones_like(norms)
        result: Vector = 2.0 * norms / (1.0 - self.mu + 2.0 * self.mu * norms)
        return result

    def conjugate(self, w: Vector) -> float:
        """Return Σ max(0, √wⱼ − (1 − μ)/2)²/μ."""
        return float(self.conjugates(w))

    def conjugates(self, w: RealArray) -> Vector:
        """Return ω* of each row of a matrix."""
        roots = np.sqrt(np.maximum(w, 0.0))
        excess = np.maximum(roots - 0.5 * (1.0 - self.mu), 0.0)
        conjugate: Vector = (excess**2).sum(axis=-1) / self.mu
        return conjugate

    def prox(self, weights: RealArray, step: float | RealArray) -> Vector:
        """Return the minimiser of ½‖η − v‖² + step · ω(η), a root of a cubic per kernel.

        Newton from the right of the convex increasing η − v + t/(1 − μη)², t = step(1 − μ)²/4.
        Any shape; a step for all entries, or one each.
        """
        v, mu = np.asarray(weights, dtype=np.float64), self.mu
        if mu == 1.0:
            return np.clip(v, 0.0, 1.0)
        t = np.broadcast_to(0.25 * (1.0 - mu) ** 2 * np.asarray(step), v.shape)
        result: Vector = np.clip(v, 0.0, np.where(t > 0.0, 0.0, 1.0 / mu))
        inside = (v > t) & (t > 0.0)
        if not inside.any():
            return result
        v, t = v[inside], t[inside]
        right = (1.0 - np.sqrt(t / v)) / mu
        x = np.where(v < right, v, right)
        for _ in range(_NEWTON_STEPS):
            room = 1.0 - mu * x
            move = (x - v + t / room**2) / (1.0 + 2.0 * mu * t / room**3)
            x = x - np.maximum(move, 0.0)
            if not (move > _ROUNDING * np.abs(x)).any():
                break
        result[inside] = np.maximum(x, 0.0)
        return result
