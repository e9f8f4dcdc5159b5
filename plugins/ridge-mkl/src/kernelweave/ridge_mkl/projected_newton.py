"""Projected Newton: the quadratic model minimised over the set itself, then a line search.

Over a ball the model is that of −1/F (see `Oracle.scaled`), which is convex in μ and nearly linear
along rays, so that a full step is right from far away.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.psd_cone import lq_norm
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from .descent import ARMIJO, Descent, DescentState
from .oracle import Evaluation
from .settings import DescentSettings, ProjectedNewton

# 2⁻³⁰ of a step: what fails there too is not a direction of descent in rounding.
_MAX_HALVINGS = 30
# Stands for every larger exponent, ∞ among them: the barrier of the model needs a power, and this
# ball of p weights holds that of ∞ shrunk by p^(−1/1000).
_LARGEST_Q = 1e3

# About 25 steps are usual; this ends what rounding keeps going.
_MAX_STEPS = 100
# Each step aims at this share of the complementarity: less is bolder and may end at the boundary,
# more takes more steps.
_SHRINK = 0.1
# Share of the way to the boundary: nearer to 1 the next step begins beside it and is short.
_TO_BOUNDARY = 0.995


@dataclass
class _Iterate:
    """t > 0 with multipliers z, and the slack w of Σ t^q ≤ 1 with multiplier θ."""

    t: FloatArray
    z: FloatArray
    w: float
    theta: float


def minimize_quadratic(
    H: FloatArray, g: FloatArray, q: float | None, start: FloatArray
) -> FloatArray:
    """Minimise gᵀt + ½ tᵀHt over t ≥ 0 and, unless q is None, ‖t‖_q ≤ 1, from a point of the set.

    H is positive semidefinite up to rounding, definite where q is None. The minimiser is strictly
    inside, complementarity below 1e-14 of the scale. Cost: about 25 solves of size p.
    """
    scale = float(np.abs(g).max() + np.abs(H).max() * max(1e-300, float(np.abs(start).max())))
    if scale == 0.0:
        return start
    H, g = H / scale, g / scale
    p = len(g)
    H = H + 1e-15 * max(float(np.abs(H).max()), 1e-300) * np.eye(p)
    size = max(float(start.max()), 1e-300)
    t = np.maximum(start, 1e-3 * size)
    if q is not None:
        t *= 0.9 / lq_norm(t, q)
    point = _Iterate(t, np.full(p, 0.1) / (t / size), 1.0, 0.1)
    if q is not None:
        point.w = 1.0 - float(np.sum(t**q))
    for _ in range(_MAX_STEPS):
        mu = _complementarity(point, q)
        if mu <= 1e-19:
            break
        new = _step(H, g, q, point, _SHRINK * mu)
        if new is None:
            break
        point = new
    return point.t


def _complementarity(point: _Iterate, q: float | None) -> float:
    total = float(point.t @ point.z) + (0.0 if q is None else point.w * point.theta)
    return total / (len(point.t) + (q is not None))


def _step(
    H: FloatArray, g: FloatArray, q: float | None, x: _Iterate, tau: float
) -> _Iterate | None:
    """Take one damped Newton step on the perturbed optimality conditions."""
    t = x.t
    A = H + np.diag(x.z / t)
    right = -(g + H @ t) + tau / t
    normal = np.zeros(len(t))
    c = 0.0
    if q is not None:
        normal = q * t ** (q - 1.0)
        c = float(np.sum(t**q)) - 1.0
        if q > 1.0:
            A[np.diag_indices_from(A)] += x.theta * q * (q - 1.0) * t ** (q - 2.0)
        A += (x.theta / x.w) * np.outer(normal, normal)
        right -= normal * (x.theta + (x.theta * c + tau) / x.w)
    try:
        dt = cho_solve(cho_factor(A, check_finite=False), right, check_finite=False)
    except (LinAlgError, ValueError):
        return None
    if not np.isfinite(dt).all():
        return None
    dz = tau / t - x.z - x.z / t * dt
    dtheta = dw = 0.0
    if q is not None:
        dtheta = x.theta / x.w * (float(normal @ dt) + c + tau / x.theta)
        dw = tau / x.theta - x.w - x.w / x.theta * dtheta
    primal = min(_reach(t, dt), _reach(np.array([x.w]), np.array([dw])))
    dual = min(_reach(x.z, dz), _reach(np.array([x.theta]), np.array([dtheta])))
    step = min(primal, dual)
    return _Iterate(t + step * dt, x.z + step * dz, x.w + step * dw, x.theta + step * dtheta)


def _reach(x: FloatArray, dx: FloatArray) -> float:
    """Return the longest step ≤ 1 that keeps x > 0."""
    falling = dx < 0.0
    if not falling.any():
        return 1.0
    return min(1.0, _TO_BOUNDARY * float(np.min(-x[falling] / dx[falling])))


def feasible(t: FloatArray, q: float | None) -> FloatArray:
    """Return t scaled onto ‖t‖_q = 1 (t itself where q is None), shape (p,)."""
    if q is None or math.isinf(q):
        return t
    norm = lq_norm(t, q)
    return t / norm if norm > 0.0 else t


class ProjectedNewtonSearch(Descent):
    """``krr-newton``: one Hessian (pn² flops after the factorisation) per iteration."""

    settings: DescentSettings = ProjectedNewton()

    def advance(self, state: DescentState) -> DescentState:
        """Return the next state: the model's minimiser, halved until the objective falls."""
        at = state.at
        value, _, _ = self.oracle.scaled(at)
        center, radius, q = self._geometry()
        t = (at.mu - center) / radius
        g, direction = self._direction(at, t, radius, q)
        slope = float(g @ direction)
        noise = abs(value) * (at.noise / at.value if at.value > 0.0 else 1.0)
        step = 1.0
        for _ in range(_MAX_HALVINGS):
            new = self.oracle.evaluate(center + radius * feasible(t + step * direction, q))
            fallen = self.oracle.scaled(new)[0] - value
            # below the rounding of the objective only the bounds still tell which point is better
            closer = fallen <= noise and new.upper - new.lower < at.upper - at.lower
            if closer or (slope < 0.0 and fallen <= ARMIJO * step * slope):
                return replace(state, at=new)
            if -step * slope <= noise:
                break
            step *= 0.5
        return replace(state, stalled=True)

    def _direction(
        self, at: Evaluation, t: FloatArray, radius: float, q: float | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gradient in t and the step to the model's minimiser, both (p,)."""
        _, gradient, _ = self.oracle.scaled(at)
        H = radius**2 * self.oracle.scaled_hessian(at)
        g = radius * gradient
        return g, minimize_quadratic(H, g - H @ t, q, t) - t

    def _geometry(self) -> tuple[FloatArray, float, float | None]:
        """Return μ₀, Λ and q of μ = μ₀ + Λt; 0, 1 and None for the orthant."""
        p = self.oracle.n_kernels
        if self.constraint.curvature > 0.0:
            return np.zeros(p), 1.0, None
        q = float(self.constraint.q)
        return self.constraint.centers(p), float(self.constraint.radius), min(q, _LARGEST_Q)
