"""Newton steps on the free variables, one Cholesky factor kept as far as it goes."""

from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray
from scipy.linalg import lapack

from .problem import BoxProblem


def newton_steps(
    problem: BoxProblem, u: FloatArray, f: FloatArray, work: float, max_free: int
) -> tuple[int, int]:
    """Maximise the dual over the free variables, dropping one at each bound that is met.

    `u`, `f` of shape (n,): a feasible point and ``f = Ku``; both are changed in place; `work`:
    Multiply-adds after which no further step starts; `max_free`: with more free variables nothing
    is done. Returns: the number of steps, and of free variables m.

    ``m³/6`` multiply-adds for the first factor, the part behind the dropped row for each later
    one, and nm at the end for f.
    """
    lower, upper, eps = problem.lower, problem.upper, problem.epsilon
    inside = (lower < u) & (u < upper)
    free = np.flatnonzero(inside & (u != 0.0) if eps > 0.0 else inside)
    if not 2 <= free.size <= max_free:
        return 0, 0
    gram = problem.K[np.ix_(free, free)].astype(np.float64)
    x, low, high = u[free], lower[free], upper[free]
    g = problem.p[free] - f[free]
    if eps > 0.0:
        g -= np.where(x > 0.0, eps, -eps)
        low[x > 0.0] = 0.0
        high[x < 0.0] = 0.0
    trace = float(gram.trace())
    ridge = 1e-13 * trace if trace > 1e-287 else 1e-300
    steps = _climb(gram, x, g, low, high, ridge, work)
    moved = np.flatnonzero(x != u[free])
    chosen = free[moved]
    if moved.size:
        f += (x[moved] - u[chosen]) @ problem.K[chosen].astype(np.float64, copy=False)
        u[chosen] = x[moved]
    return steps, free.size


def _extend(
    gram: FloatArray, keep: NDArray[np.intp], first: int, ridge: float, factor: FloatArray
) -> bool:
    """Write the rows from ``first`` on of the Cholesky factor of ``gram[keep, keep] + ridge·I``."""
    left = factor[first:, :first]
    corner = gram[np.ix_(keep[first:], keep[first:])] - left @ left.T
    corner.flat[:: corner.shape[0] + 1] += ridge
    lower, info = lapack.dpotrf(corner, lower=1, clean=1)
    factor[first:, first:] = lower
    return bool(info == 0)


def _direction(factor: FloatArray, g: FloatArray) -> tuple[FloatArray, float]:
    """Return the Newton direction δ with ``Σδ = 0`` for the gradient g, and ``gᵀδ``."""
    solved, _ = lapack.dpotrs(factor, np.stack([g, np.ones_like(g)], axis=1), lower=1)
    delta = solved[:, 0] - solved[:, 0].sum() / solved[:, 1].sum() * solved[:, 1]
    delta -= delta.mean()
    return delta, float(g @ delta)


def _climb(
    gram: FloatArray,
    x: FloatArray,
    g: FloatArray,
    low: FloatArray,
    high: FloatArray,
    ridge: float,
    work: float,
) -> int:
    """Climb on all variables of a small problem, dropping each that meets its bound.

    Changes x and the gradient g; returns the number of steps.
    """
    keep = np.arange(x.size)
    factor = np.zeros_like(gram)
    first = steps = 0
    spent = 0.0
    while keep.size >= 2 and spent < work:
        m = keep.size
        spent += (m**3 - first**3) / 6.0 + 4.0 * m * m
        if not _extend(gram, keep, first, ridge, factor):
            break
        delta, slope = _direction(factor, g[keep])
        if not 0.0 < slope < np.inf:
            break
        bound = np.where(delta > 0.0, high[keep], low[keep])
        room = np.full(m, np.inf)
        with np.errstate(over="ignore"):  # a bound that far away stops no step
            np.divide(bound - x[keep], delta, out=room, where=delta != 0.0)
        at = int(np.abs(room, out=room).argmin())
        blocked = bool(room[at] < 1.0)
        step = min(float(room[at]), 1.0) * delta
        x[keep] += step
        g -= step @ gram[keep]
        steps += 1
        if not blocked:
            break
        x[keep[at]] = bound[at]
        keep, first = np.delete(keep, at), at
        rows = np.delete(factor[:, :at], at, axis=0)
        factor = np.zeros((m - 1, m - 1))
        factor[:, :at] = rows
    return steps
