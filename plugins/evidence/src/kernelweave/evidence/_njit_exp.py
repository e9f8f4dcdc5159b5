"""The exponential of many numbers at once.

NumPy's takes 7 ns a number where a processor lacks AVX-512, and most of the kernel's time; this
one, which the compiler turns into vector instructions, 1 to 2 ns.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.compiled import njit

# no reassociation: adding and taking away _SHIFT rounds to a whole number
_FAST = {"contract", "nsz", "arcp"}
_LOG2E = 1.4426950408889634
# log 2 in two parts, the first with 33 bits, so that whole multiples of it are exact
_HIGH, _LOW = 0.6931471803691238, 1.9082149292705877e-10
_SHIFT = 6755399441055744.0
# exp of less is not worth a subnormal number
_LEAST = -708.0


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
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
