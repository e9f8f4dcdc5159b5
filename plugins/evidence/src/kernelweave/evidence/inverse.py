"""Columns of the inverse of a factored matrix, worked out as they are asked for."""

from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from scipy.linalg import cho_solve

from .objective import inverse_of

# to solve for more than this share of the columns takes as long as the whole inverse
_MOST_OF = 4
# rows that are copied from one half of a symmetric matrix to the other at a time
_BLOCK = 256


class Inverse:
    """S⁻¹ by columns, from the lower Cholesky factor of S, shape (n, n).

    Columns are kept until others are asked for; once many were, all of them.
    """

    def __init__(self, factor: FloatArray) -> None:
        self.factor = factor
        # columns that were asked for, and which of them each row is
        self._columns, self._at = np.empty((len(factor), 0)), np.full(len(factor), -1, np.intp)

    def ask(self, rows: Index) -> None:
        """Work out the columns of some rows: far faster than a few at a time."""
        rows = np.unique(rows)
        if (self._at[rows] >= 0).all():
            return
        n = len(self.factor)
        self._at[:] = -1
        if _MOST_OF * len(rows) > n:
            rows, self._columns = np.arange(n), _whole(self.factor)
        else:
            unit = np.zeros((n, len(rows)))
            unit[rows, np.arange(len(rows))] = 1.0
            self._columns = cho_solve((self.factor, True), unit, check_finite=False)
        self._at[rows] = np.arange(len(rows))

    def columns(self, rows: Index) -> FloatArray:
        """Return those of some rows, shape (n, n_rows)."""
        self.ask(rows)
        at = self._at[rows]
        if np.array_equal(at, np.arange(self._columns.shape[1])):
            return self._columns
        return self._columns[:, at]

    def diagonal(self, rows: Index) -> FloatArray:
        """Return (S⁻¹)ᵢᵢ of some rows, shape (n_rows,)."""
        self.ask(rows)
        return np.asarray(self._columns[rows, self._at[rows]])

    def square(self, rows: Index) -> FloatArray:
        """Return S⁻¹_gg of rows g, shape (n_rows, n_rows), a copy in column order."""
        self.ask(rows)
        return np.array(self._columns[np.ix_(rows, self._at[rows])], order="F")


def _whole(factor: FloatArray) -> FloatArray:
    inverse = inverse_of(np.array(factor.T, order="F"))
    for begin in range(0, len(inverse), _BLOCK):
        end = begin + _BLOCK
        inverse[end:, begin:end] = inverse[begin:end, end:].T
        block = inverse[begin:end, begin:end]
        block[:] = np.triu(block) + np.triu(block, 1).T
    return inverse
