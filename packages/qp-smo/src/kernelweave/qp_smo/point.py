"""Passes over one dual point: its product with K and a majorant, violation, a grid.

They run once or twice a solve, at memory's speed in NumPy: compiled they were half of what the
first solve in an environment waited for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.grams import KernelArray

# The fewest rows of a block: with fewer, calls outweigh work.
_BLOCK = 32

# A grid no finer than this, however small the point: its steps stay normal numbers.
_SMALLEST_EXPONENT = -1000
# Integers up to here, and their sums, are exact.
_MOST = 2.0**53


def product(
    K: KernelArray, u: FloatArray, *, bounded: bool = True
) -> tuple[FloatArray, FloatArray, int, int]:
    """Return ``f = Ku`` and ``Σ |uₖ| |K[k]|`` in float64: 4mn flops with m nonzeros in u.

    Beside them stand the rows of K that were read, and the most roundings of a term of either sum.

    Blocks of about √m rows are summed before they are added, so a term passes through at most
    ``√m + m / √m`` roundings, in whatever order a block is summed. Without ``bounded`` the second
    sum, which takes most of the time, is left at 0.
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
        if bounded:
            majorant += np.abs(weights) @ np.abs(part, out=part)
    return f, majorant, m, block + -(-m // block) + 1


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


@dataclass(frozen=True)
class GridPoint:
    """A point whose entries are multiples of one power of two.

    `u` of shape (n,): every sum of entries, in any order, is exact in float64; the sum of all is 0;
    `lower`, `upper` of shape (n,): the box with its ends moved inwards onto the grid.
    """

    u: FloatArray
    lower: FloatArray
    upper: FloatArray


def _step(total: float, wider: int = 0) -> float:
    """Return the grid step for points with ``Σ|u|`` about ``total``, times ``2^wider``."""
    exponent = math.frexp(total * 1.0000001)[1] - 52 if total > 0.0 else _SMALLEST_EXPONENT
    return math.ldexp(1.0, max(exponent, _SMALLEST_EXPONENT) + wider)


def starting_point(u: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Repair a warm start: clip, balance, and put on a bound what is within rounding of it.

    Balancing scales the heavier sign down until ``Σu`` is 0 up to rounding; zeros stay zeros, so
    a start keeps its support. An exactly feasible optimum has its bounded samples a step inside
    the box; without the last part each would cost an iteration.
    """
    start = np.minimum(np.maximum(u, lower), upper)
    is_positive = start > 0.0
    positive = float(start.sum(where=is_positive))
    negative = -float(start.sum(where=~is_positive))
    if positive > negative:
        start[is_positive] *= negative / positive
    elif negative > positive:
        start[~is_positive] *= positive / negative
    tiny = _step(2.0 * min(positive, negative), wider=3)
    start[np.abs(start) <= tiny] = 0.0
    np.copyto(start, lower, where=start - lower <= tiny)
    np.copyto(start, upper, where=upper - start <= tiny)
    return start


def _take(k: FloatArray, low: FloatArray, high: FloatArray, excess: float, inner: bool) -> float:
    """Move ``excess`` (signed, an integer) off the entries with the most room; return the rest.

    With ``inner`` no entry comes to a bound or to 0.
    """
    sign = 1.0 if excess > 0.0 else -1.0
    left = abs(excess)
    while left > 0.0:
        room = k - low if sign > 0.0 else high - k
        if inner:
            room = np.minimum(np.minimum(k - low, high - k), np.abs(k) - 1.0)
        at = int(room.argmax())
        take = min(left, math.floor(room[at]))
        if take < 1.0:
            break
        k[at] -= sign * take
        left -= take
    return sign * left


def to_grid(u: FloatArray, lower: FloatArray, upper: FloatArray) -> GridPoint:
    """Move a nearly feasible point onto a power-of-two grid where it is exactly feasible.

    The step is ``2^(⌈log₂ Σ|u|⌉ − 52)``, at least 2⁻¹⁰⁰⁰: entries are integers times the step, and
    no partial sum of them passes 2⁵³. The ends of the box are moved inwards onto the grid, and what
    rounding leaves of ``Σu`` goes to the samples that are farthest from a bound.

    `u` of shape (n,): inside the box up to rounding, with ``Σu ≈ 0``; `lower`, `upper` of shape
    (n,): ``lower ≤ 0 ≤ upper``; infinite ends are allowed.
    """
    step = _step(float(np.abs(u).sum()))
    with np.errstate(over="ignore"):
        low = np.maximum(np.ceil(lower / step), -_MOST)
        high = np.minimum(np.floor(upper / step), _MOST)
    k = np.minimum(np.maximum(np.rint(u / step), low), high)
    excess = float(k.sum())
    for inner in (True, False):
        excess = _take(k, low, high, excess, inner)
    return GridPoint(
        k * step,
        np.where(low <= -_MOST, lower, low * step),
        np.where(high >= _MOST, upper, high * step),
    )
