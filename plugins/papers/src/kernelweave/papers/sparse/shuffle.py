"""The generator behind the published splits: xoshiro256++ as Julia 1.10 seeds and uses it."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_MASK = (1 << 64) - 1


def xoshiro(seed: int) -> Iterator[int]:
    """Yield 64-bit integers; the state is the SHA-256 digest of the seed as a 32-bit word.

    `seed`: below 2³².
    """
    a, b, c, d = struct.unpack("<4Q", hashlib.sha256(struct.pack("<I", seed)).digest())
    while True:
        yield (_rotated((a + d) & _MASK, 23) + a) & _MASK
        shifted = (b << 17) & _MASK
        c ^= a
        d ^= b
        b ^= c
        a ^= d
        c ^= shifted
        d = _rotated(d, 45)


def _rotated(x: int, by: int) -> int:
    return ((x << by) | (x >> (64 - by))) & _MASK


def shuffled(n: int, seed: int = 123) -> NDArray[np.intp]:
    """Return 0 … n − 1 in the order of Julia's ``shuffle(1:n)`` after ``seed!``, shape (n,).

    Examples
    --------
    >>> from kernelweave.papers.sparse.shuffle import shuffled
    >>> shuffled(10) + 1
    array([ 8,  9,  3,  4,  1,  6,  5,  7,  2, 10])
    """
    draws = xoshiro(seed)
    order = np.arange(n)
    mask = (1 << max(n - 1, 1).bit_length()) - 1
    for i in range(n, 1, -1):
        if mask >> 1 == i:
            mask >>= 1
        j = next((x >> 12) & mask for x in draws if (x >> 12) & mask < i)
        order[i - 1], order[j] = order[j], order[i - 1]
    return order


def split_of(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the training rows, the first ⌊0.8 n⌋, and the test rows."""
    order = shuffled(n)
    n_train = int(0.8 * n)
    return order[:n_train], order[n_train:]
