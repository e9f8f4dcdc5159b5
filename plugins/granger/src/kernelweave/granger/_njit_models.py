"""Minima of quadratic models with an elastic net over few weights.

min over x ≥ 0 of gᵀ(x − x₀) + ½(x − x₀)ᵀH(x − x₀) + κ Σ xⱼ/(1 − μxⱼ), H positive semidefinite. A
sweep over single weights finds who is 0, a Newton step on all others takes what they owe each
other: kernels of one history are nearly multiples of one another, and sweeps alone would be many.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.compiled import njit

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

# Sweeps with a Newton step each: the limit is for what rounding keeps going.
_SWEEPS = 200
# A Newton step that still raises the model after so many is left out: the next sweep moves.
_HALVINGS = 8
# Newton from the right of a convex function converges from anywhere; this only ends what rounding
# keeps going.
_ROOT_STEPS = 60


@njit(cache=True, nogil=True)
def minimise_models(
    H: npt.NDArray[np.float64],
    g: Matrix,
    start: Matrix,
    sizes: npt.NDArray[np.int64],
    mu: float,
    tol: float,
    out: Matrix,
) -> None:
    """Write the minimum of each model to out.

    H is (n_models, m, m), g, start and out (n_models, m), sizes (n_models,): how many weights each
    model has, the first ones of its row; the others are not read or written. `tol`: relative change
    of the largest weight at which a search ends. Per sweep m² flops, and m³/3 for the step.
    """
    for k in range(len(sizes)):
        m = sizes[k]
        _minimise(H[k, :m, :m], g[k, :m], start[k, :m], mu, tol, out[k, :m])


@njit(cache=True, nogil=True)
def _minimise(H: Matrix, g: Vector, start: Vector, mu: float, tol: float, x: Vector) -> None:
    m = len(g)
    kappa = 0.25 * (1.0 - mu) ** 2
    s = g.copy()
    x[:] = start
    factor = np.empty((m, m))
    step = np.empty(m)
    trial = np.empty(m)
    free = np.empty(m, dtype=np.int64)
    for _ in range(_SWEEPS):
        moved = 0.0
        for j in range(m):
            new = _root(H[j, j], H[j, j] * x[j] - s[j], kappa, mu)
            change = new - x[j]
            if change != 0.0:
                x[j] = new
                for i in range(m):
                    s[i] += H[j, i] * change
                moved = max(moved, abs(change))
        largest = 0.0
        for j in range(m):
            largest = max(largest, x[j])
        if moved <= tol * largest:
            return
        _newton(H, s, x, kappa, mu, factor, step, trial, free)


@njit(cache=True, nogil=True)
def _root(h: float, b: float, kappa: float, mu: float) -> float:
    """Return x ≥ 0 with hx + κ/(1 − μx)² = b, 0 where b ≤ κ, by Newton from the right."""
    if b <= kappa:
        return 0.0
    if kappa == 0.0:
        return 1.0 if b >= h else b / h
    x = (1.0 - math.sqrt(kappa / b)) / mu
    if h * x > b:
        x = b / h
    for _ in range(_ROOT_STEPS):
        room = 1.0 - mu * x
        move = (h * x + kappa / room**2 - b) / (h + 2.0 * mu * kappa / room**3)
        if move <= 1e-15 * x:
            break
        x -= move
    return max(x, 0.0)


@njit(cache=True, nogil=True)
def _newton(
    H: Matrix,
    s: Vector,
    x: Vector,
    kappa: float,
    mu: float,
    factor: Matrix,
    step: Vector,
    trial: Vector,
    free: npt.NDArray[np.int64],
) -> None:
    """Take the Newton step over the weights that are inside, if it lowers the model; keep s."""
    m = len(x)
    n = 0
    for j in range(m):
        if x[j] > 0.0 and (kappa > 0.0 or x[j] < 1.0):
            free[n] = j
            n += 1
    if n < 2:
        return
    for a in range(n):
        i = free[a]
        for b in range(a + 1):
            factor[a, b] = H[i, free[b]]
        room = 1.0 - mu * x[i]
        if kappa > 0.0:
            factor[a, a] += 2.0 * mu * kappa / room**3
            step[a] = -s[i] - kappa / room**2
        else:
            step[a] = -s[i]
    if not _solve(factor, step, n):
        return
    reach = 1.0
    for a in range(n):
        i = free[a]
        if step[a] < 0.0:
            reach = min(reach, -x[i] / step[a])
        elif kappa > 0.0 and step[a] > 0.0:
            reach = min(reach, 0.9 * (1.0 / mu - x[i]) / step[a])
        elif step[a] > 0.0:
            reach = min(reach, (1.0 - x[i]) / step[a])
    linear = 0.0
    curvature = 0.0
    for a in range(n):
        i = free[a]
        linear += s[i] * step[a]
        for b in range(n):
            curvature += step[a] * H[i, free[b]] * step[b]
    for _ in range(_HALVINGS):
        change = reach * linear + 0.5 * reach * reach * curvature
        for a in range(n):
            i = free[a]
            trial[a] = max(0.0, x[i] + reach * step[a])
            if kappa > 0.0:
                change += kappa * (trial[a] / (1.0 - mu * trial[a]) - x[i] / (1.0 - mu * x[i]))
        if change < 0.0:
            break
        reach *= 0.5
    else:
        return
    for a in range(n):
        i = free[a]
        change = trial[a] - x[i]
        x[i] = trial[a]
        for k in range(m):
            s[k] += H[i, k] * change


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _solve(A: Matrix, b: Vector, n: int) -> bool:
    """Overwrite b by A⁻¹b, A given by its lower half; ``False`` where A is not positive."""
    for i in range(n):
        for j in range(i + 1):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            if i > j:
                A[i, j] = total / A[j, j]
            elif total <= 1e-14 * abs(A[i, i]):
                return False
            else:
                A[i, i] = math.sqrt(total)
    for i in range(n):
        total = b[i]
        for k in range(i):
            total -= A[i, k] * b[k]
        b[i] = total / A[i, i]
    for i in range(n - 1, -1, -1):
        total = b[i]
        for k in range(i + 1, n):
            total -= A[k, i] * b[k]
        b[i] = total / A[i, i]
    return True
