"""Sums with a rounding error that is bounded whatever the order the processor takes."""

from __future__ import annotations

import math

import numpy as np

from .arrays import FloatArray, RealArray

__all__ = [
    "UNIT",
    "blocked_product",
    "entry_bound",
    "gamma",
    "n_roundings",
    "row_sums",
    "sums_to_zero",
]

UNIT = float(np.finfo(np.float64).eps) / 2.0
# Terms of one product: fewer give a tighter bound and more calls, more the opposite.
_BLOCK = 16


def gamma(n_operations: float) -> float:
    """Return γₖ = k·u / (1 − k·u), the relative error of k roundings; u is `UNIT`, 2⁻⁵³.

    Parameters
    ----------
    n_operations : float
        k, at least 0.

    Returns
    -------
    float
        Infinite where k·u is 1 or more.

    References
    ----------
    Higham, Accuracy and Stability of Numerical Algorithms (SIAM 2002), Lemma 3.1.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.rounding import gamma
    >>> total = np.cumsum(np.full(1000, 0.1))[-1]  # one term after the other
    >>> bool(0.0 < abs(total - 100.0) <= 100.0 * gamma(1000))
    True
    """
    k = float(n_operations) * UNIT
    return k / (1.0 - k) if k < 1.0 else math.inf


def n_roundings(length: int) -> int:
    """Return how many roundings one entry of `blocked_product` has behind it.

    About 16 + log₂(n/16) instead of n.

    Parameters
    ----------
    length : int
        Inner length n, the terms of each sum.

    Returns
    -------
    int
        The k of `gamma`.

    Examples
    --------
    >>> from kernelweave.kernels_core.rounding import n_roundings
    >>> n_roundings(16), n_roundings(4096)
    (17, 25)
    """
    n_blocks = math.ceil(length / _BLOCK)
    return min(length, _BLOCK) + (n_blocks - 1).bit_length() + 1


def blocked_product(A: RealArray, B: FloatArray) -> FloatArray:
    """Return A·B with the inner sum in blocks of 16 terms that are added in pairs.

    ``|fl(AB) − AB| ≤ γₖ |A||B|``, entry by entry, with γₖ of `gamma` at k = `n_roundings` of n,
    however the processor adds the terms of a block, and where nothing underflows.

    Parameters
    ----------
    A : ndarray of shape (r, n), float64 or float32
        Left factor, n at least 1.
    B : ndarray of shape (n, c), float64
        Right factor; that it has n rows is not checked.

    Returns
    -------
    ndarray of shape (r, c), float64
        A·B, in 2rnc operations.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.rounding import blocked_product
    >>> A = np.ones((1, 100))
    >>> blocked_product(A, A.T)
    array([[100.]])
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
    """Return the sum of each row, exact up to its last rounding.

    Parameters
    ----------
    values : ndarray of shape (r, n), float64
        Finite terms.

    Returns
    -------
    ndarray of shape (r,), float64
        The sums.

    Raises
    ------
    OverflowError
        If a partial sum is too large for float64.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.rounding import row_sums
    >>> row_sums(np.array([[1e16, 1.0, -1e16]]))
    array([1.])
    """
    return np.array([math.fsum(row) for row in values.tolist()])


def entry_bound(K: RealArray) -> tuple[FloatArray, float]:
    """Return s and κ with ``|Kᵢⱼ| ≤ κ sᵢ sⱼ``, s the roots of the diagonal (κ = 1 if K ⪰ 0).

    Parameters
    ----------
    K : ndarray of shape (n, n), float64 or float32
        Symmetric and finite.

    Returns
    -------
    s : ndarray of shape (n,), float64
        √Kᵢᵢ, raised to a positive floor where the diagonal is not positive; zeros if K is.
    kappa : float
        The largest ratio, rounded up.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.rounding import entry_bound
    >>> s, kappa = entry_bound(np.array([[4.0, 3.0], [3.0, 1.0]]))
    >>> s, round(kappa, 12)
    (array([2., 1.]), 1.5)
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

    Parameters
    ----------
    u : ndarray of shape (n,), float64
        Any finite vector.

    Returns
    -------
    ndarray of shape (n,), float64
        Zeros where that cannot be, as if the positive or the negative side is empty.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.rounding import sums_to_zero
    >>> v = sums_to_zero(np.array([1.0, 2.0, -1.0]))
    >>> v.round(3), float(v.sum())
    (array([ 0.333,  0.667, -1.   ]), 0.0)
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
