"""Samples that are equal but for the rounding of their numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray, Index, Points, is_sparse, row_slices
from ..grams.precomputed import PrecomputedGrams

# Copies differ in no column by more than this share of its spread. Writing a number with eight
# digits, or converting its unit and back, changes it by less.
ROUNDING = 1e-7
# or by more than this share of the number, for columns of values far larger than their spread
_LAST_BITS = 1e-15
# rows of a matrix that are compared with all at a time
_BLOCK = 512
FEW_VALUES = 12
"""Numbers that take more values than these in training will take others elsewhere."""


@dataclass(frozen=True)
class Line:
    """A line onto which rows are projected so that copies are neighbours.

    A row's place is a weighted sum of its columns in units of their spread, the same in every part
    of a table. Rows within `max_distance` are then compared column by column. (A grid of cells
    would separate copies on two sides of a border.)

    `centre`, `spread` of shape (p,): of the numbers; `weights` of shape (p + q,): of the columns.
    """

    centre: FloatArray
    spread: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, numeric: FloatArray, codes: NDArray[np.int64]) -> Line:
        """Learn the spreads from rows: most of a column decides, not its outliers.

        `numeric` of shape (n, p); `codes` of shape (n, q).
        """
        n_columns = numeric.shape[1] + codes.shape[1]
        # any fixed irrational mixture: rows of small whole numbers must not meet by chance
        weights = np.random.RandomState(0).uniform(0.5, 1.0, n_columns)
        if not len(numeric):
            return cls(np.zeros(numeric.shape[1]), np.ones(numeric.shape[1]), weights)
        low, centre, high = np.quantile(numeric, [0.1, 0.5, 0.9], axis=0)
        spread = high - low
        largest = np.abs(numeric - centre).max(axis=0)
        rest = (numeric - centre) / np.where(largest > 0.0, largest, 1.0)
        spread = np.where(spread > 0.0, spread, largest * np.sqrt(np.mean(rest**2, axis=0)))
        return cls(centre, np.where(spread > 0.0, spread, 1.0), weights)

    @property
    def max_distance(self) -> float:
        """Largest distance of two copies on the line."""
        return float(1.01 * ROUNDING * self.weights.sum())

    def places(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return where rows are, shape (n,)."""
        p, out = numeric.shape[1], np.zeros(len(numeric))
        # one column after the other: sums in another order would differ in their last bits
        for i in range(p):
            # a slope of at most 1, so that copies stay near, and outliers do not hide the others
            out += self.weights[i] * np.arcsinh((numeric[:, i] - self.centre[i]) / self.spread[i])
        for j in range(codes.shape[1]):
            out += self.weights[p + j] * codes[:, j]
        return out

    def copies(
        self,
        left: tuple[FloatArray, NDArray[np.int64]],
        right: tuple[FloatArray, NDArray[np.int64]],
    ) -> NDArray[np.bool_]:
        """Return whether each left row is a copy of the right row, shape (n,)."""
        (numeric, codes), (others, other_codes) = left, right
        allowed = ROUNDING * self.spread + _LAST_BITS * np.abs(numeric)
        near = np.abs(numeric - others) <= allowed
        return np.asarray(near.all(axis=1) & (codes == other_codes).all(axis=1))


def copy_groups(numeric: FloatArray, codes: NDArray[np.int64]) -> Index:
    """Return the group of each row; copies, equal up to rounding, share a group.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.estimators.copies import copy_groups
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0 + 1e-9]])
    >>> copy_groups(X, np.zeros((3, 0), dtype=np.int64)).tolist()
    [0, 1, 0]
    """
    line = Line.of(numeric, codes)
    places = line.places(numeric, codes)
    order = np.argsort(places, kind="stable")
    new = np.ones(len(order), dtype=np.bool_)
    near = 1 + np.flatnonzero(np.diff(places[order]) <= line.max_distance)
    left, right = order[near - 1], order[near]
    new[near] = ~line.copies((numeric[left], codes[left]), (numeric[right], codes[right]))
    out = np.empty(len(order), dtype=np.intp)
    out[order] = np.cumsum(new) - 1
    return out


def first_copies(given: Points | PrecomputedGrams) -> Index:
    """Return the place of the first sample that is equal up to rounding, shape (n_samples,).

    Of sparse points each is alone.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.estimators.copies import first_copies
    >>> first_copies(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0 + 1e-9]])).tolist()
    [0, 1, 0]
    """
    n = given.shape[0]
    if not isinstance(given, PrecomputedGrams):
        if is_sparse(given):
            return np.arange(n)
        groups = copy_groups(np.asarray(given), np.empty((n, 0), dtype=np.int64))
        return np.asarray(np.unique(groups, return_index=True)[1][groups])
    out = np.arange(n)
    for rows in row_slices(n, _BLOCK):
        near = np.ones((len(out[rows]), n), dtype=np.bool_)
        for K in given.grams:
            # squared distances under each kernel, and their rounding errors
            size = np.add.outer(K.diagonal()[rows], K.diagonal())
            apart = size - 2.0 * K[rows]
            near &= apart <= ROUNDING**2 * np.median(apart) + 8.0 * np.finfo(K.dtype).eps * size
            if np.count_nonzero(near) <= len(near):
                break
        out[rows] = near.argmax(axis=1)
    return out
