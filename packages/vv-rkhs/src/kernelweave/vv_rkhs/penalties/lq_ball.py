"""Projection onto {x ≥ 0, Σ dᵢ xᵢ^q ≤ 1} in the norm weighted by d, any 1 ≤ q ≤ ∞."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from kernelweave.kernels_core.arrays import Vector
from scipy.optimize import brentq

# As in `elastic_net.py`: convergence is certain, and this only ends what rounding keeps going.
_NEWTON_STEPS = 60


def lq_norm(x: Vector, q: float) -> float:
    """Return ‖x‖_q of a nonnegative vector, without overflow; 0 for an empty one."""
    largest = float(np.max(x, initial=0.0))
    if largest == 0.0 or math.isinf(q):
        return largest
    return largest * math.pow(float(((x / largest) ** q).sum()), 1.0 / q)


def project_lq_ball(v: Vector, q: float, mass: Vector | None = None) -> Vector:
    """Return the x that minimises ½ Σ dᵢ (xᵢ − vᵢ)² over x ≥ 0, Σ xᵢ^q ≤ 1.

    Stationarity is dᵢ(xᵢ − vᵢ) + θ xᵢ^{q−1} = 0 where xᵢ > 0. q = 1 is solved by sorting the
    breakpoints, q = ∞ by clipping, any other q by a root search on θ with a Newton method for x.

    `v` of shape (m,): point to project; `q`: exponent, 1 to infinity; `mass` of shape (m,): d > 0;
    ones by default. Returns shape (m,): the projection; its norm exceeds 1 by rounding at most.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.vv_rkhs.penalties.lq_ball import project_lq_ball
    >>> project_lq_ball(np.array([2.0, 1.0, -1.0]), 1.0)
    array([1., 0., 0.])
    """
    x = np.maximum(v, 0.0)
    if math.isinf(q):
        return np.minimum(x, 1.0)
    if lq_norm(x, q) <= 1.0:
        return x
    d = np.ones_like(x) if mass is None else mass
    if q == 1.0:
        return _project_simplex(x, d)
    curve = _squared_curve if q == 2.0 else (_steep_curve if q < 2.0 else _flat_curve)

    def excess(log_theta: float) -> float:
        return lq_norm(curve(x, math.exp(log_theta) / d, q), q) - 1.0

    low, high = _bracket(excess, math.log(float(d.max())))
    theta = math.exp(brentq(excess, low, high, xtol=1e-15, rtol=1e-15, maxiter=200))
    x = curve(x, theta / d, q)
    projected: Vector = x / max(1.0, lq_norm(x, q))
    return projected


def _project_simplex(v: Vector, d: Vector) -> Vector:
    """Return max(v − θ/d, 0) with sum 1, for v ≥ 0 of larger sum."""
    order = np.argsort(-v * d)
    excess = np.cumsum(v[order]) - 1.0
    theta = excess / np.cumsum(1.0 / d[order])
    last = int(np.flatnonzero((v * d)[order] >= theta)[-1])
    x: Vector = np.maximum(v - theta[last] / d, 0.0)
    if not x.any():  # 1 is lost beside the largest entry
        x[order[0]] = 1.0
    return x / max(1.0, float(x.sum()))


def _bracket(excess: Callable[[float], float], start: float) -> tuple[float, float]:
    """Return log θ on either side of the root of a decreasing function."""
    low = high = start
    while excess(low) < 0.0:
        low -= 4.0
    while excess(high) > 0.0:
        high += 4.0
    return low, high


def _squared_curve(v: Vector, a: Vector, q: float) -> Vector:
    """Return x with x + a x = v."""
    return v / (1.0 + a)


def _flat_curve(v: Vector, a: Vector, q: float) -> Vector:
    """Return x with x + a x^{q−1} = v for q > 2: Newton from the right of a convex function."""
    r = q - 1.0
    with np.errstate(divide="ignore"):
        x = np.minimum(v, (v / a) ** (1.0 / r))
    for _ in range(_NEWTON_STEPS):
        step = (x + a * x**r - v) / (1.0 + a * r * x ** (r - 1.0))
        x = x - np.maximum(step, 0.0)
        if not (step > 1e-16 * x).any():
            break
    return x


def _steep_curve(v: Vector, a: Vector, q: float) -> Vector:
    """Return x with x + a x^{q−1} = v for 1 < q < 2, through u = x^{q−1}: convex in u."""
    r = q - 1.0
    u = np.minimum(v**r, v / a)
    for _ in range(_NEWTON_STEPS):
        slope = u ** (1.0 / r - 1.0) / r + a
        step = (u ** (1.0 / r) + a * u - v) / slope
        u = u - np.maximum(step, 0.0)
        if not (step > 1e-16 * u).any():
            break
    x: Vector = u ** (1.0 / r)
    return x
