"""The exponential of many numbers at once, and sums of kernel values on a grid of two columns.

NumPy's exponential takes 7 ns a number where a processor lacks AVX-512, and most of the kernel's
time; this one, which the compiler turns into vector instructions, 1 to 2 ns.

The grid is of two groups of columns, at fixed values of the others. The Gaussian terms and the
product are products of what the row, either group of columns and a point have; of the Laplacian
there is one exponential for each node and point, in single precision where that is enough. A row's
sums do not depend on the rows beside it, to the last bit.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.compiled import njit

_FAST = {"reassoc", "contract", "nsz", "arcp"}
# no reassociation: adding and taking away _SHIFT rounds to a whole number
_EXACT = {"contract", "nsz", "arcp"}
_LOG2E = 1.4426950408889634
# log 2 in two parts, the first with 33 bits, so that whole multiples of it are exact
_HIGH, _LOW = 0.6931471803691238, 1.9082149292705877e-10
_SHIFT = 6755399441055744.0
# exp of less is not worth a subnormal number
_LEAST = -708.0
# of exp in single precision, where no literal takes part: that would be a double
_LOG2E_1 = np.float32(1.4426950408889634)
_HIGH_1, _LOW_1 = np.float32(0.693145751953125), np.float32(1.428606765330187e-06)
_SHIFT_1, _LEAST_1 = np.float32(12582912.0), np.float32(-87.0)
_BIAS_1, _BITS_1 = np.int32(127), np.int32(23)
_P2, _P3, _P4, _P5, _P6 = (np.float32(1.0 / k) for k in (2, 6, 24, 120, 720))
_ONE_1 = np.float32(1.0)


@njit(cache=True, nogil=True, fastmath=_EXACT, error_model="numpy")
def exp_of_multiples(x, factor, out, spare):
    """Fill ``out`` with exp(factor · x) for factor · x ≤ 0, to two units in the last place.

    All of shape (n,) and double precision; `out` may be `x`; `spare`: any contents.
    """
    bits = spare.view(np.int64)
    for i in range(x.shape[0]):
        y = max(factor * x[i], _LEAST)
        shifted = y * _LOG2E + _SHIFT
        spare[i] = shifted
        whole = shifted - _SHIFT
        r = (y - whole * _HIGH) - whole * _LOW
        p = 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        p = p * r + 1.0
        out[i] = p * r + 1.0
    # the low bits of the shifted number are the power of two
    for i in range(x.shape[0]):
        bits[i] = (bits[i] + 1023) << 52
    for i in range(x.shape[0]):
        out[i] *= spare[i]


@njit(cache=True, nogil=True, fastmath=_EXACT, error_model="numpy")
def _fill_single_exponentials(x, out, spare):
    """Fill ``out`` with exp(x) for x ≤ 0, all in single precision."""
    bits = spare.view(np.int32)
    for i in range(x.shape[0]):
        y = max(x[i], _LEAST_1)
        shifted = y * _LOG2E_1 + _SHIFT_1
        spare[i] = shifted
        whole = shifted - _SHIFT_1
        r = (y - whole * _HIGH_1) - whole * _LOW_1
        p = _P6 * r + _P5
        p = p * r + _P4
        p = p * r + _P3
        p = p * r + _P2
        p = p * r + _ONE_1
        out[i] = p * r + _ONE_1
    for i in range(x.shape[0]):
        bits[i] = (bits[i] + _BIAS_1) << _BITS_1
    for i in range(x.shape[0]):
        out[i] *= spare[i]


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _fill_roots(row, other, out):
    """Fill −√(row + other)."""
    for i in range(row.shape[0]):
        out[i] = -np.sqrt(row[i] + other[i])


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _fill_products(row, left, dual, out):
    """Fill row · left · dual."""
    for i in range(row.shape[0]):
        out[i] = row[i] * left[i] * dual[i]


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _dot(values, other):
    """Return Σ value · other, added up in double precision."""
    total = 0.0
    for i in range(other.shape[0]):
        total += other[i] * values[i]
    return total


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def fill_gaussian(rest, rate, weight, out):
    """Fill weight · exp(rate · rest), for a rate below 0, row by row: shapes (n, n_points)."""
    distance, spare = np.empty(rest.shape[1]), np.empty(rest.shape[1])
    for r in range(rest.shape[0]):
        for i in range(rest.shape[1]):
            distance[i] = rate * rest[r, i]
        exp_of_multiples(distance, 1.0, out[r], spare)
        for i in range(rest.shape[1]):
            out[r, i] *= weight


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def add_products(rows, left, right, dual, out):
    """Add a term that is a product to ``out``, (n, n_left, n_right, n_outputs).

    ``rows`` (n, n_points): the factors of rows; ``left``, ``right`` (n_nodes, n_points): those of
    either group of columns; ``dual`` (n_outputs, n_points).
    """
    products = np.empty(dual.shape[1])
    for r in range(rows.shape[0]):
        for a in range(left.shape[0]):
            for t in range(dual.shape[0]):
                _fill_products(rows[r], left[a], dual[t], products)
                for b in range(right.shape[0]):
                    out[r, a, b, t] += _dot(right[b], products)


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def add_laplacian(rest, left, right, dual, out):
    """Add the Laplacian term in the precision of ``rest``; sums are in double precision.

    ``rest`` (n, n_points), ``left``, ``right`` (n_nodes, n_points): squared distance in the other
    columns and in both groups; ``dual`` (n_outputs, n_points): times the weight.
    """
    n_points = rest.shape[1]
    distance, root = np.empty(n_points, rest.dtype), np.empty(n_points, rest.dtype)
    value, spare = np.empty(n_points, rest.dtype), np.empty(n_points, rest.dtype)
    for r in range(rest.shape[0]):
        for a in range(left.shape[0]):
            for i in range(n_points):
                distance[i] = rest[r, i] + left[a, i]
            for b in range(right.shape[0]):
                # into another array: one that may be the first is not filled by vectors
                _fill_roots(distance, right[b], root)
                if rest.itemsize == 4:
                    _fill_single_exponentials(root, value, spare)
                else:
                    exp_of_multiples(root, 1.0, value, spare)
                for t in range(dual.shape[0]):
                    out[r, a, b, t] += _dot(value, dual[t])


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def add_laplacian_sums(rest, far, weight, out):
    """Add the Laplacian term, summed over rows, to ``out``, (n_nodes, n_points).

    ``rest`` (n, n_points): squared distance in the other columns; ``far`` (n_nodes, n_points): in
    the column that is set; ``weight``: of the term.
    """
    n_points = rest.shape[1]
    root, value, spare = np.empty(n_points), np.empty(n_points), np.empty(n_points)
    for r in range(rest.shape[0]):
        for k in range(far.shape[0]):
            _fill_roots(rest[r], far[k], root)
            exp_of_multiples(root, 1.0, value, spare)
            for i in range(n_points):
                out[k, i] += weight * value[i]
