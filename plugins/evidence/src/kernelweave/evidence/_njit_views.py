"""Numbers as shares of the training rows: all columns of a table in one pass."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import math

import numpy as np
from kernelweave.kernels_core.compiled import njit


@njit(cache=True, nogil=True)
def interpolate(numbers, knots, ranks, ends, out):
    """Fill ranks of numbers between the knots of their columns; those beyond have the last one.

    ``numbers`` (p, n); ``knots`` and ``ranks``: of all columns, one behind the other, ascending,
    each up to its of ``ends`` (p,); ``out`` (p, n). NaN stays NaN. Numbers are scaled by a power of
    two, as slopes between tiny ones would overflow.
    """
    first = 0
    for i in range(ends.size):
        last = ends[i] - 1
        largest = max(abs(knots[first]), abs(knots[last]))
        unit = -math.frexp(largest)[1]
        for a in range(numbers.shape[1]):
            value = numbers[i, a]
            if math.isnan(value):
                out[i, a] = np.nan
            elif value <= knots[first]:
                out[i, a] = ranks[first]
            elif value >= knots[last]:
                out[i, a] = ranks[last]
            else:
                low, rest = first, last - first
                while rest > 1:
                    # without a branch, which would be guessed wrong every second time
                    half = rest // 2
                    low += half * (knots[low + half] <= value)
                    rest -= half
                if knots[low] == value:
                    out[i, a] = ranks[low]
                else:
                    start = math.ldexp(knots[low], unit)
                    width = math.ldexp(knots[low + 1], unit) - start
                    slope = (ranks[low + 1] - ranks[low]) / width
                    out[i, a] = slope * (math.ldexp(value, unit) - start) + ranks[low]
        first = ends[i]


@njit(cache=True, nogil=True)
def mid_ranks(order, numbers, share, knots, ranks, ends):
    """Fill the distinct numbers of each column, and the share below plus half of its own.

    ``numbers`` (p, n); ``order`` (p, n): rows of a column, ascending and stable; ``share`` (n,);
    ``knots`` and ``ranks`` (n·p,): filled, one column behind the other; ``ends`` (p,): where these
    end.
    """
    end, n = 0, order.shape[1]
    for i in range(order.shape[0]):
        below, a = 0.0, 0
        while a < n:
            value, own = numbers[i, order[i, a]], share[order[i, a]]
            a += 1
            while a < n and numbers[i, order[i, a]] == value:
                own += share[order[i, a]]
                a += 1
            below += own
            knots[end], ranks[end] = value, below - 0.5 * own
            end += 1
        ends[i] = end
