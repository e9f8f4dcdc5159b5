"""Rearrangement of values on a grid, and interpolation that keeps their order to the last bit.

Sorted along a column, the values of a function are never further from a function that rises with it
than before, in any Lᵖ of the grid (Chernozhukov, Fernández-Val and Galichon 2009). Values sorted
along one axis of a grid stay so where the others are sorted after it: so it is with every map of
lines that keeps the order of two lines, as those here do.

Interpolation that rounds may turn two neighbours round. Here values have 34 bits and shares of a
step 18, so that products of both are exact, and a sum of two products is rounded once: a rounded
sum is never less than that of a smaller one. What a value is rounded to depends on it alone, not on
the grid that it is on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index

# bits of values and of shares of a step: 52 together
_VALUE_BITS, _SHARE_BITS = 34, 18


def rearranged(values: FloatArray, inside: Sequence[slice]) -> FloatArray:
    """Return values that rise along each axis of a grid, axes 1, 2, … of shape (n, …, n_outputs).

    Along each axis those inside are sorted. Beyond, a value is the largest up to it, or the least
    from it on, so that none inside is moved by what is beyond. Of several axes the mean of sorting
    in this order and in the other.

    `inside`: places of an axis that are in the range of training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence.monotone.rearrangement import rearranged
    >>> values = np.array([5.0, 1.0, 3.0, 2.0, 0.0])[None, :, None]
    >>> rearranged(values, [slice(1, 4)])[0, :, 0].tolist()
    [1.0, 1.0, 2.0, 3.0, 3.0]
    """
    axes = range(1, 1 + len(inside))
    forth = _in_order(values, inside, axes)
    if len(inside) == 1:
        return forth
    return np.asarray(0.5 * (forth + _in_order(values, inside, axes[::-1])))


def _in_order(values: FloatArray, inside: Sequence[slice], axes: Sequence[int]) -> FloatArray:
    """Return values rearranged along one axis after the other."""
    out = np.array(values)
    for axis in axes:
        line, where = np.moveaxis(out, axis, 0), inside[axis - 1]
        line[where] = np.sort(line[where], axis=0)
        first, last = where.start, where.stop
        line[last - 1 :] = np.maximum.accumulate(line[last - 1 :], axis=0)
        line[: first + 1] = np.minimum.accumulate(line[first::-1], axis=0)[::-1]
    return out


def on_lattice(values: FloatArray) -> FloatArray:
    """Return values rounded to 34 bits each, in their order.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence.monotone.rearrangement import on_lattice
    >>> on_lattice(np.array([1.0 + 2.0**-40, 3.0, -0.5])).tolist()
    [1.0, 3.0, -0.5]
    """
    parts, exponents = np.frexp(values)
    rounded = np.rint(np.ldexp(parts, _VALUE_BITS))
    return np.asarray(np.ldexp(rounded, exponents - _VALUE_BITS))


def interpolated(
    values: FloatArray, grid: Index, places: Sequence[Index], shares: Sequence[FloatArray],
    chosen: tuple[Index, ...] = (),
) -> FloatArray:  # fmt: skip
    """Return values between the nodes of grids, piecewise linear along each axis, (n, n_outputs).

    What rises along an axis rises with the place and the share, to the last bit.

    `values` of shape (n_grids, …, n_outputs): as `on_lattice` returns; `grid` of shape (n,): which
    grid each row has; `places`, `shares` of shape (n,) for each axis: the node before a row, and
    where it is between that and the next, from 0 to 1; `chosen`: nodes along the first axes, where
    values are wanted at these.
    """
    axis = len(chosen)
    if axis == len(places):
        return np.asarray(values[(grid, *chosen)])
    low, high = (
        interpolated(values, grid, places, shares, (*chosen, places[axis] + step))
        for step in (0, 1)
    )
    share = np.ldexp(np.rint(np.ldexp(shares[axis], _SHARE_BITS)), -_SHARE_BITS)[:, None]
    return on_lattice((1.0 - share) * low + share * high)
