"""A compiled pass over a Gram matrix: sub-matrices."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

from kernelweave.kernels_core.compiled import njit


@njit(cache=True, nogil=True, error_model="numpy")
def sub_gram(K, index, out):
    """Copy ``K[index][:, index]`` into ``out``: m² loads."""
    m = index.size
    for r in range(m):
        row = K[index[r]]
        for c in range(m):
            out[r, c] = row[index[c]]
