"""The squared ℓp norm of the norms, 1 ≤ p ≤ 2."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import Vector
from kernelweave.kernels_core.checks import number

from .base import smooth
from .lq_ball import lq_norm, project_lq_ball

# A projection ends in the ball up to rounding; without this slack its penalty would be infinite.
_FEASIBLE = 1.0 + 1e-12


EXPONENT = number(least=1.0, most=2.0)


def weight_exponent(p: float) -> float:
    """Return q = p / (2 − p), the exponent of the ball of weights."""
    return math.inf if p == 2.0 else p / (2.0 - p)


def dual_exponent(p: float) -> float:
    """Return q′ with 1/q + 1/q′ = 1: p / (2p − 2)."""
    return math.inf if p == 1.0 else p / (2.0 * p - 2.0)


def ball_update(norms: Vector, p: float) -> Vector:
    """Return ηⱼ = αⱼ^{2−p} / (Σᵢ αᵢᵖ)^{(2−p)/p}, the minimiser of Σ αⱼ²/ηⱼ over the ball."""
    total = lq_norm(norms, p)
    if total == 0.0:
        return np.full(len(norms), len(norms) ** -(1.0 / weight_exponent(p)))
    result: Vector = (norms / total) ** (2.0 - p)
    return result


@dataclass(frozen=True)
class SquaredLpNorm:
    """Ω(f) = (Σ ‖fⱼ‖ᵖ)^{2/p}: ω is 0 on {η ≥ 0, Σ ηⱼ^q ≤ 1}, q = p/(2 − p) (V, (8)).

    ω*(w) = ‖w‖_{q′} with 1/q + 1/q′ = 1.

    Parameters
    ----------
    p : float, default=1.0
        In [1, 2]. 1 makes few weights nonzero; 2 gives every kernel the weight 1.

    Raises
    ------
    ValueError
        If p is outside [1, 2].

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.vv_rkhs import SquaredLpNorm
    >>> SquaredLpNorm(1.0).update(np.array([1.0, 3.0]))
    array([0.25, 0.75])
    >>> SquaredLpNorm(1.0).conjugate(np.array([1.0, 3.0]))
    3.0
    """

    p: float = 1.0

    def __post_init__(self) -> None:
        EXPONENT.check("p", self.p)

    def start(self, n_kernels: int) -> Vector:
        """Return equal weights on the surface of the ball, shape (n_kernels,)."""
        return np.full(n_kernels, n_kernels ** -(1.0 / weight_exponent(self.p)))

    def value(self, weights: Vector) -> float:
        """Return 0 in the ball (up to a relative 1e-12), infinity outside."""
        outside = (weights < 0).any() or lq_norm(weights, weight_exponent(self.p)) > _FEASIBLE
        return math.inf if outside else 0.0

    def update(self, alpha: Vector) -> Vector:
        """Return the minimiser of Σ αⱼ²/ηⱼ over the ball, with α smoothed."""
        return ball_update(smooth(alpha), self.p)

    def conjugate(self, w: Vector) -> float:
        """Return ‖max(w, 0)‖_{q′}."""
        return lq_norm(np.maximum(w, 0.0), dual_exponent(self.p))

    def prox(self, weights: Vector, step: float) -> Vector:
        """Return the projection onto the ball, whatever the step."""
        return project_lq_ball(weights, weight_exponent(self.p))
