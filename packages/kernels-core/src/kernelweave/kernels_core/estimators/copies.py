"""Copies: samples that are equal up to the rounding of their numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ..arrays import FloatArray, Index, Points, is_sparse, row_slices
from ..grams.precomputed import PrecomputedGrams

# Copies differ by at most this share of a column's spread, in every column. Writing a number with
# eight digits, or converting its unit and back, changes it by less.
ROUNDING = 1e-7
# This share of the number itself is added, for columns of numbers far larger than their spread.
_LAST_BITS = 1e-15
# rows of a Gram matrix that are compared with all others at once
_BLOCK = 512
FEW_VALUES = 12
"""A numeric column of more distinct values counts as continuous: new rows will not repeat them."""


@dataclass(frozen=True)
class Line:
    """A projection of rows onto a line, on which copies are close to each other.

    A row consists of p numbers and q integer codes of categories. Its place on the line is a
    weighted sum of its columns, numbers in `units`, and does not depend on the other rows. Only
    rows within `max_distance` of each other need to be compared column by column. (Rounding to a
    grid instead would separate copies on the two sides of a cell border.)

    `centre`, `spread` of shape (p,): median and spread of each numeric column; `weights` of shape
    (p + q,): weight of each column in the sum, numeric columns first.
    """

    centre: FloatArray
    spread: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, numeric: FloatArray, codes: NDArray[np.int64]) -> Line:
        """Return the line for rows, `numeric` of shape (n, p) and `codes` of shape (n, q).

        The spread of a column is the distance between its 10 % and 90 % quantiles, which outliers
        do not change; if that is 0, its root mean square distance from the median; if that is 0
        too, 1.
        """
        n_columns = numeric.shape[1] + codes.shape[1]
        # Fixed random weights: with simple ones, different rows of small integers would often have
        # the same place.
        weights = np.random.RandomState(0).uniform(0.5, 1.0, n_columns)
        if not len(numeric):
            return cls(np.zeros(numeric.shape[1]), np.ones(numeric.shape[1]), weights)
        low, centre, high = np.quantile(numeric, [0.1, 0.5, 0.9], axis=0)
        spread = high - low
        # scaled by the largest distance, so that squares do not overflow
        largest = np.abs(numeric - centre).max(axis=0)
        rest = (numeric - centre) / np.where(largest > 0.0, largest, 1.0)
        spread = np.where(spread > 0.0, spread, largest * np.sqrt(np.mean(rest**2, axis=0)))
        return cls(centre, np.where(spread > 0.0, spread, 1.0), weights)

    @property
    def units(self) -> FloatArray:
        """The unit of each numeric column on the line, shape (p,): as a rule its spread.

        It is larger where the numbers differ by little more than their last bits, as those of a
        constant column. In units of the spread the rounding of such a column alone would be longer
        than the rest of the line, and every row would be compared with every other.
        """
        return np.maximum(self.spread, np.abs(self.centre) * (_LAST_BITS / ROUNDING))

    @property
    def max_distance(self) -> float:
        """Largest distance on the line of two rows that `copies` joins."""
        # a number x is at most |centre| plus its unit times sinh of its place, whose slope there is
        # the inverse of cosh: the share of x itself moves it by less than this
        last_bits = _LAST_BITS * (1.0 + np.abs(self.centre) / self.units)
        own = last_bits @ self.weights[: len(last_bits)]
        return float(1.01 * (ROUNDING * self.weights.sum() + own))

    def places(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return the place of each row on the line, shape (n,)."""
        p, out, units = numeric.shape[1], np.zeros(len(numeric)), self.units
        # one column after the other: sums in another order would differ in their last bits
        for i in range(p):
            # arcsinh has a slope of at most 1, so that copies stay close, and keeps an outlier from
            # being so large that the other columns are lost in its rounding
            out += self.weights[i] * np.arcsinh((numeric[:, i] - self.centre[i]) / units[i])
        for j in range(codes.shape[1]):
            out += self.weights[p + j] * codes[:, j]
        return out

    def copies(
        self,
        left: tuple[FloatArray, NDArray[np.int64]],
        right: tuple[FloatArray, NDArray[np.int64]],
    ) -> NDArray[np.bool_]:
        """Return whether each left row is a copy of that right row, shape (n,), as `places`."""
        (numeric, codes), (others, other_codes) = left, right
        allowed = ROUNDING * self.spread + _LAST_BITS * np.abs(numeric)
        near = np.abs(numeric - others) <= allowed
        return np.asarray(near.all(axis=1) & (codes == other_codes).all(axis=1))


def copy_groups(numeric: FloatArray, codes: NDArray[np.int64]) -> Index:
    """Return the group of each row, shape (n,), numbered from 0; copies share a group.

    `numeric` of shape (n, p): numbers; `codes` of shape (n, q): integer codes of categories, which
    must be equal. Only rows near each other on a `Line` are compared.

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
    numeric, codes, places = numeric[order], codes[order], places[order]

    def copies(left: Index, right: Index) -> NDArray[np.bool_]:
        return line.copies((numeric[left], codes[left]), (numeric[right], codes[right]))

    # whether a row, in this order, begins a new run of copies
    new = np.ones(len(order), dtype=np.bool_)
    near = 1 + np.flatnonzero(np.diff(places) <= line.max_distance)
    new[near] = ~copies(near - 1, near)
    run = np.cumsum(new) - 1
    # another row may lie between two copies: each is compared with the near rows of later runs
    last = np.searchsorted(places, places + line.max_distance, side="right")
    rows = np.flatnonzero(run[last - 1] > run)
    at = np.searchsorted(run, run[rows], side="right")
    pairs = [(run[:0], run[:0])]
    while len(rows):
        same = copies(rows, at)
        pairs.append((run[rows[same]], run[at[same]]))
        at += 1
        inside = at < last[rows]
        rows, at = rows[inside], at[inside]
    left, right = map(np.concatenate, zip(*pairs, strict=True))
    n_runs = int(new.sum())
    graph = coo_array((np.ones(len(left)), (left, right)), shape=(n_runs, n_runs))
    out = np.empty(len(order), dtype=np.intp)
    out[order] = connected_components(graph, directed=False)[1][run]
    return out


def first_copies(given: Points | PrecomputedGrams) -> Index:
    """Return for each sample the position of its first copy, shape (n_samples,).

    Without an earlier copy that is its own position. Precomputed samples are copies if their
    distance is 0 up to rounding under every kernel. Copies of sparse samples are not looked for.

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
        # which samples may be copies of each of these rows, given the kernels seen so far
        near = np.ones((len(out[rows]), n), dtype=np.bool_)
        for K in given.grams:
            # squared distance K[i, i] + K[j, j] − 2 K[i, j]; its rounding error is relative to size
            size = np.add.outer(K.diagonal()[rows], K.diagonal())
            apart = size - 2.0 * K[rows]
            near &= apart <= ROUNDING**2 * np.median(apart) + 8.0 * np.finfo(K.dtype).eps * size
            # each row is left with itself alone
            if np.count_nonzero(near) <= len(near):
                break
        out[rows] = near.argmax(axis=1)
    return out
