"""Passes over one dual point: its product with K and a majorant, violation, sums, loss.

They run once or twice a solve, at memory's speed in NumPy: compiled they were half of what the
first solve in an environment waited for.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.grams import KernelArray
from kernelweave.kernels_core.rounding import UNIT

# The fewest rows of a block: with fewer, calls outweigh work.
_BLOCK = 32


class GramProduct(NamedTuple):
    """``f = Σ uₖ K[k]`` and ``majorant = Σ |uₖ| |K[k]|``.

    `f`, `majorant` of shape (n,); `n_rows`: rows of K that were read: those with u ≠ 0;
    `n_roundings`: the most that a term of either sum passes through.
    """

    f: FloatArray
    majorant: FloatArray
    n_rows: int
    n_roundings: int


def product(K: KernelArray, u: FloatArray) -> GramProduct:
    """Multiply in float64, whatever K is: 4mn flops with m nonzeros in u.

    Blocks of about √m rows are summed before they are added, so a term passes through at most
    ``√m + m / √m`` roundings, in whatever order a block is summed.

    `K` of shape (n, n); `u` of shape (n,).
    """
    rows = np.flatnonzero(u)
    m = rows.size
    block = min(max(_BLOCK, math.isqrt(m)), max(m, 1))
    f, majorant = np.zeros((2, K.shape[1]))
    for first in range(0, m, block):
        chosen = rows[first : first + block]
        part = K[chosen].astype(np.float64, copy=False)
        weights = u[chosen]
        f += weights @ part
        majorant += np.abs(weights) @ np.abs(part, out=part)
    return GramProduct(f, majorant, m, block + -(-m // block) + 1)


def values_with_error(
    K: KernelArray, u: FloatArray, asymmetry: float
) -> tuple[FloatArray, FloatArray, int]:
    """Return ``f = Ku``, a bound of the error of each entry, and the rows read."""
    f, error, n_rows, n_roundings = product(K, u)
    error *= 1.01 * UNIT * (n_roundings + 11.0)
    error += 0.51 * asymmetry * float(np.abs(u).sum())
    return f, error, n_rows


def violation(
    p: FloatArray, f: FloatArray, u: FloatArray, lower: FloatArray, upper: FloatArray, eps: float
) -> float:
    """Return the maximal violating pair of ``p − f``, at least 0."""
    g = p - f
    up = down = g
    if eps > 0.0:
        up = np.where(u >= 0.0, g - eps, g + eps)
        down = np.where(u > 0.0, g - eps, g + eps)
    top = up.max(where=u < upper, initial=-np.inf)
    bottom = down.min(where=u > lower, initial=np.inf)
    return float(top - bottom) if top > bottom else 0.0


class DualSums(NamedTuple):
    """``Σ pu − ε|u|``, ``Σ |pu| + ε|u|``, ``Σ uf``, ``Σ |uf|`` and ``Σ |u| error``."""

    kappa: float
    size: float
    quadratic: float
    quadratic_size: float
    margin: float


def dual_sums(
    p: FloatArray, f: FloatArray, error: FloatArray, u: FloatArray, eps: float
) -> DualSums:
    """Return the sums of the dual value."""
    absolute, linear, square = np.abs(u), p * u, u * f
    penalty = eps * float(absolute.sum())
    return DualSums(
        float(linear.sum()) - penalty,
        float(np.abs(linear).sum()) + penalty,
        float(square.sum()),
        float(np.abs(square).sum()),
        float((absolute * error).sum()),
    )


def loss_above(
    p: FloatArray,
    f: FloatArray,
    error: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    eps: float,
    b: float,
) -> float:
    """Return the loss terms of the primal at any f within ``error``, each one rounded up."""
    # values of a damaged Gram matrix may be infinite: the sum says so
    with np.errstate(invalid="ignore", over="ignore"):
        residual = p - f - b
        widen = error + 4.5 * UNIT * (np.abs(p) + np.abs(f) + (abs(b) + eps))
        above = residual - eps + widen
        below = -residual - eps + widen
        # a zero weight times an infinite residual would be NaN
        over = (upper > 0.0) & ~(above <= 0.0)
        under = (lower < 0.0) & ~(below <= 0.0)
        total = (upper[over] * above[over]).sum() - (lower[under] * below[under]).sum()
    return float(total)
