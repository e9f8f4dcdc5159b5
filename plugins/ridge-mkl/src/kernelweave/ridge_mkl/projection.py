"""Euclidean projection onto the nonnegative part of an ℓq ball."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import POSITIVE, check_array, number
from scipy.optimize import brentq

EXPONENT = number(least=1.0, finite=False)


def project_lq_ball(z: npt.ArrayLike, q: float, radius: float = 1.0) -> FloatArray:
    """Return argmin ‖t − z‖₂ over {t ≥ 0, ‖t‖_q ≤ Λ}.

    q = 1 by sorting, q = 2 by scaling, q = ∞ by clipping, other q by a root of ‖t(θ)‖_q = Λ where
    tₖ(θ) solves tₖ + θ tₖ^{q−1} = zₖ.

    Parameters
    ----------
    z : array-like of shape (p,)
        Point to project.
    q : float
        At least 1; ``inf`` is the box.
    radius : float, default=1.0
        Λ > 0.

    Returns
    -------
    ndarray of shape (p,)
        The projection.

    Raises
    ------
    ValueError
        If q < 1, Λ ≤ 0 or z is not a vector of finite numbers.

    Examples
    --------
    >>> from kernelweave.ridge_mkl import project_lq_ball
    >>> project_lq_ball([3.0, 4.0, -1.0], q=2)
    array([0.6, 0.8, 0. ])
    """
    EXPONENT.check("q", q)
    POSITIVE.check("radius", radius)
    t: FloatArray = np.maximum(check_array("z", z, 1), 0.0) / radius
    if math.isinf(q):
        return np.minimum(t, 1.0) * radius
    if lq_norm(t, q) <= 1.0:
        return t * radius
    if q == 1.0:
        return _onto_simplex(t) * radius
    if q == 2.0:
        return t * (radius / float(np.linalg.norm(t)))
    return _onto_sphere(t, q) * radius


def lq_norm(t: FloatArray, q: float) -> float:
    """Return ‖t‖_q of t ≥ 0 without overflow, shape of t (p,)."""
    top = float(t.max(initial=0.0))
    if top == 0.0 or math.isinf(q):
        return top
    return float(top * np.sum((t / top) ** q) ** (1.0 / q))


def _onto_simplex(t: FloatArray) -> FloatArray:
    """Project t ≥ 0 with Σt > 1 onto {t ≥ 0, Σt = 1}."""
    ordered = np.sort(t)[::-1]
    shift = (np.cumsum(ordered) - 1.0) / np.arange(1, len(t) + 1)
    last = int(np.flatnonzero(ordered > shift)[-1])
    out: FloatArray = np.maximum(t - shift[last], 0.0)
    return np.asarray(out / out.sum())


def _shrink(t: FloatArray, theta: float, q: float) -> FloatArray:
    """Solve x + θ x^{q−1} = t entrywise by safeguarded Newton on a bracket, 0 ≤ x ≤ t."""
    low, high = np.zeros_like(t), t.copy()
    x = np.minimum(t, (t / theta) ** (1.0 / (q - 1.0)))
    for _ in range(80):
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            value = x + theta * x ** (q - 1.0) - t
            slope = 1.0 + theta * (q - 1.0) * np.where(x > 0, x, 1.0) ** (q - 2.0)
        low, high = np.where(value < 0, x, low), np.where(value >= 0, x, high)
        new = x - value / slope
        outside = ~((new > low) & (new < high))
        new = np.where(outside, 0.5 * (low + high), new)
        if np.abs(new - x).max(initial=0.0) <= 4e-16 * t.max():
            return new
        x = new
    return x


def _onto_sphere(t: FloatArray, q: float) -> FloatArray:
    """Project t ≥ 0 with ‖t‖_q > 1 onto ‖x‖_q = 1, by a root in log θ."""

    def excess(log_theta: float) -> float:
        return lq_norm(_shrink(t, math.exp(log_theta), q), q) - 1.0

    high = 1.0
    while excess(high) > 0.0:
        high += 2.0
    low = high - 2.0
    while excess(low) < 0.0 and low > -600.0:
        low -= 10.0
    root = low if excess(low) < 0.0 else float(brentq(excess, low, high, xtol=1e-14, rtol=1e-15))
    x = _shrink(t, math.exp(root), q)
    return np.asarray(x / max(1.0, lq_norm(x, q)))
