"""The Gram matrix of one P: stored in the precision asked for, computed in float64, or both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core.arrays import Index, Matrix, RealArray

if TYPE_CHECKING:
    from kernelweave.kernels_core.grams import UnstoredGram

# Entries of a block of the Gram matrix that is computed for one product: 32 MiB.
_ENTRIES = 2**22


@dataclass
class GramAt:
    """The scaled Gram matrix of one P.

    `array` of shape (m, m): stored, in the oracle's precision; `entries`: computes entries and
    products in float64, where the family can.
    """

    array: RealArray | None
    entries: UnstoredGram | None

    @property
    def eps(self) -> float:
        """Unit of rounding of what `part` returns."""
        dtype = np.float64 if self.entries is not None or self.array is None else self.array.dtype
        return float(np.finfo(dtype).eps)

    def part(self, rows: Index, columns: Index) -> Matrix:
        """Return some rows and columns in float64."""
        stored = self.array is not None and self.array.dtype == np.float64
        if stored or self.entries is None:
            assert self.array is not None
            return np.array(self.array[np.ix_(rows, columns)], dtype=np.float64)
        out = np.empty((len(rows), len(columns)))
        self.entries.block(rows, columns, out)
        return out

    def times(self, rows: Index, w: Matrix) -> Matrix:
        """Return the entries ``rows`` of K w, for w of shape (m,); samples of weight 0 are free."""
        support = np.flatnonzero(w)
        step = max(1, _ENTRIES // max(1, len(support)))
        parts = [
            self.part(rows[start : start + step], support) @ w[support]
            for start in range(0, len(rows), step)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)
