"""Lower triangles as vectors, row by row: at memory's speed in NumPy."""

from __future__ import annotations

from kernelweave.kernels_core.arrays import FloatArray

# Rows that are worked on at a time: enough for a product of matrices, few enough for the cache.
_BLOCK = 64


def unpack(packed: FloatArray, square: FloatArray) -> None:
    """Fill the lower triangle of a square matrix.

    `packed` of shape (n(n + 1)/2,); `square` of shape (n, n).
    """
    start = 0
    for a, row in enumerate(square, start=1):
        row[:a] = packed[start : start + a]
        start += a


def pack_slope(inverse: FloatArray, dual: FloatArray, scale: float, out: FloatArray) -> None:
    """Pack ``scale·S⁻¹ − Σₜ aₜaₜᵀ``, half of it on the diagonal: pairs count once.

    `inverse` of shape (n, n): its lower triangle is read; `dual` of shape (n_outputs, n); `out` of
    shape (n(n + 1)/2,).
    """
    start, n = 0, len(inverse)
    for first in range(0, n, _BLOCK):
        stop = min(first + _BLOCK, n)
        block = scale * inverse[first:stop, :stop]
        block -= dual[:, first:stop].T @ dual[:, :stop]
        block.reshape(-1)[first :: stop + 1] *= 0.5
        for a, row in enumerate(block, start=first + 1):
            out[start : start + a] = row[:a]
            start += a
