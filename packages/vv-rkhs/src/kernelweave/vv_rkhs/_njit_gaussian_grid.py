"""Weighted sums and inner products of Gaussian kernels on a grid of widths, never stored.

exp(−2ᵏγ₀d²) is the square of exp(−2ᵏ⁻¹γ₀d²): one exponential per pair and column, then one product
per width. Rows are processed in strips that fit in the first-level cache.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.compiled import njit

Matrix = npt.NDArray[np.float64]

# Pairs of a row at a time: 4 KiB each for the exponentials and the sums.
_STRIP = 512


@njit(cache=True, nogil=True)
def combine_rows(
    X: Matrix, gamma: float, weights: Matrix, start: int, stop: int, out: Matrix
) -> None:
    """Write Σ_{c,k} w_{c,k} exp(−2ᵏγ₀(x_c − z_c)²) to the lower half of rows start … stop − 1.

    X is (l, d), weights (d, n_widths), out (l, l), all float64. Per pair: an exponential for each
    column that has weight, 2 flops for each width up to the last with weight; no allocation beyond
    one strip.
    """
    n_columns, n_widths = weights.shape
    e = np.empty(_STRIP)
    acc = np.empty(_STRIP)
    for i in range(start, stop):
        for first in range(0, i + 1, _STRIP):
            size = min(_STRIP, i + 1 - first)
            acc[:size] = 0.0
            for c in range(n_columns):
                last = n_widths - 1
                while last >= 0 and weights[c, last] == 0.0:
                    last -= 1
                if last < 0:
                    continue
                x = X[i, c]
                for k in range(size):
                    d = x - X[first + k, c]
                    e[k] = math.exp(-gamma * d * d)
                for s in range(last + 1):
                    w = weights[c, s]
                    if w != 0.0:
                        for k in range(size):
                            acc[k] += w * e[k]
                    if s < last:
                        for k in range(size):
                            e[k] *= e[k]
            out[i, first : first + size] = acc[:size]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def inner_rows(X: Matrix, gamma: float, M: Matrix, start: int, stop: int, out: Matrix) -> None:
    """Add ⟨K_{c,k}, M⟩ over rows start … stop − 1 of the lower half to out, M symmetric.

    X is (l, d), M (l, l), out (d, n_widths), all float64; pairs off the diagonal count twice. Per
    pair: d exponentials and 3 flops per kernel. Sums are taken strip by strip, row by row.
    """
    n_columns, n_widths = out.shape
    e = np.empty(_STRIP)
    row = np.empty((n_columns, n_widths))
    for i in range(start, stop):
        row[:] = 0.0
        for first in range(0, i, _STRIP):
            size = min(_STRIP, i - first)
            for c in range(n_columns):
                x = X[i, c]
                for k in range(size):
                    d = x - X[first + k, c]
                    e[k] = math.exp(-gamma * d * d)
                for s in range(n_widths):
                    # in a loop without a store: in one with a store the compiler sums in an order
                    # that depends on how the arrays are aligned in memory
                    total = 0.0
                    for k in range(size):
                        total += M[i, first + k] * e[k]
                    row[c, s] += total
                    for k in range(size):
                        e[k] *= e[k]
        for c in range(n_columns):
            for s in range(n_widths):
                out[c, s] += 2.0 * row[c, s] + M[i, i]
