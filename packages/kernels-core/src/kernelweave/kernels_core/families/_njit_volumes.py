"""Compiled mean volumes of the parts of sub-boxes above two points."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import numpy as np

from ..compiled import njit

_FAST = {"reassoc", "contract", "nsz"}
# Columns at a time: what is computed of them stays in the cache.
_RUN = 64


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def mean_volumes(left, right, steps, factors, n_registers, out):
    """Write the mean over groups of ``Πⱼ min(left[j, k], right[j, l])`` to out[k, l].

    left (n, rows), right (n, columns), steps (n_steps, 3) and factors (n_steps, 2) as a `Program`
    has them, out (rows, columns), all float64 or int64. n + 3 n_steps flops a pair.
    """
    n = left.shape[0]
    D, r = np.empty((n, _RUN)), np.empty((n_registers, _RUN))
    for k in range(left.shape[1]):
        for c in range(0, right.shape[1], _RUN):
            width = min(_RUN, right.shape[1] - c)
            for j in range(n):
                own = left[j, k]
                for l in range(width):
                    other = right[j, np.uint64(c + l)]
                    D[j, l] = other if other < own else own
            for i in range(n_registers):
                for l in range(width):
                    r[i, l] = 0.0 if i else 1.0
            for i in range(steps.shape[0]):
                target, source, column = steps[i, 0], steps[i, 1], steps[i, 2]
                a, b = factors[i, 0], factors[i, 1]
                into, of, by = r[target], r[source], D[column]
                for l in range(width):
                    into[l] = a * into[l] + b * of[l] * by[l]
            last = r[n_registers - 1]
            for l in range(width):
                out[k, np.uint64(c + l)] = last[l]
