"""Sums with a rounding error that is bounded whatever the order the processor takes."""

from __future__ import annotations

import math

import numpy as np

from .arrays import FloatArray, RealArray

UNIT = float(np.finfo(np.float64).eps) / 2.0
_BLOCK = 16


def gamma(n_operations: float) -> float:
    """Return γₖ = k·u / (1 − k·u), the relative error of k roundings; 2⁻⁵³ = u."""
    k = float(n_operations) * UNIT
    return k / (1.0 - k) if k < 1.0 else math.inf


def n_roundings(length: int) -> int:
    """Return the roundings behind one entry of `blocked_product` over ``length`` terms.

    Blocks of 16 terms, added in pairs: 16 + log₂(n/16) instead of n.
    """
    n_blocks = math.ceil(length / _BLOCK)
    return min(length, _BLOCK) + (n_blocks - 1).bit_length() + 1


def blocked_product(A: RealArray, B: FloatArray) -> FloatArray:
    """Return A·B with the inner sum in blocks of 16 terms that are added in pairs.

    |fl(AB) − AB| ≤ γₖ |A||B| with k = `n_roundings` of the inner length.

    `A` of shape (r, n): left factor; `B` of shape (n, c): right factor. Returns shape (r, c):
    In float64, at a cost of 2rnc flops.
    """
    waiting: list[tuple[int, FloatArray]] = []  # partial sums by the power of two they hold
    for start in range(0, A.shape[1], _BLOCK):
        part, level = A[:, start : start + _BLOCK] @ B[start : start + _BLOCK], 0
        while waiting and waiting[-1][0] == level:
            part += waiting.pop()[1]
            level += 1
        waiting.append((level, part))
    total = waiting.pop()[1]
    while waiting:
        total += waiting.pop()[1]
    return total


def row_sums(values: FloatArray) -> FloatArray:
    """Return the sum of each row, exact up to its last rounding; shapes (r, n) and (r,)."""
    return np.array([math.fsum(row) for row in values.tolist()])


def entry_bound(K: RealArray) -> tuple[FloatArray, float]:
    """Return s and κ with |Kᵢⱼ| ≤ κ sᵢ sⱼ, s the roots of the diagonal (κ = 1 if K ⪰ 0).

    `K` of shape (n, n): symmetric. Returns `s` of shape (n,): √Kᵢᵢ, raised to a positive floor
    where the diagonal is not positive; `kappa`: the largest ratio, rounded up.
    """
    diagonal = np.asarray(np.diagonal(K), dtype=np.float64)
    top = float(np.abs(K).max(initial=0.0))
    if top == 0.0:
        return np.zeros(len(diagonal)), 1.0
    s = np.sqrt(np.maximum(diagonal, 1e-30 * top))
    ratio = float((np.abs(K) / s[:, None] / s[None, :]).max())
    return s, ratio * (1.0 + 8.0 * UNIT)


def sums_to_zero(u: FloatArray) -> FloatArray:
    """Return u with a sum that is exactly zero, its signs kept.

    The heavier side is scaled down, all entries are put on one power-of-two grid on which every
    partial sum is exact, and what is left goes to the largest entry of the heavier side.

    `u` of shape (n,): any finite vector. Returns shape (n,): zero where one side is empty.
    """
    positive, negative = float(u[u > 0].sum()), float(-u[u < 0].sum())
    if min(positive, negative) <= 0.0:
        return np.zeros_like(u)
    factor = np.where(u > 0, min(1.0, negative / positive), min(1.0, positive / negative))
    v = u * factor
    size = float(np.abs(v).max()) * len(v)
    grid = 2.0 ** (math.ceil(math.log2(size)) - 51)
    v = np.rint(v / grid) * grid
    rest = float(v.sum())
    if rest != 0.0:
        heavy = int(np.argmax(v * math.copysign(1.0, rest)))
        if abs(v[heavy]) < abs(rest):
            return np.zeros_like(u)
        v[heavy] -= rest
    return v
