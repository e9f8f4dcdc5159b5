"""Rows that are copies of one another, wherever they are, and near copies, with little noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.estimators.copies import Line
from kernelweave.kernels_core.memory import require
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist

# Near copies are clusters of rows. Each has at most 1/_CLUSTERS of the rows, and other rows are at
# least _APART times as far away as its own rows are from each other.
_APART, _CLUSTERS = 3.0, 8
# They count if at one distance there are at least _CLUSTERS of them, which hold this share of the
# rows (the second in a table of one column), and if in every column the variance within clusters is
# at most _TIGHT of all. Of independent rows such clusters hold up to 19 % in two columns and 6 % in
# three (40 tables each of 30 to 300 rows), and up to 23 % in one of the study's 49 tables; in one
# column neighbours form them by chance, with 34 % and up to 63 % of the rows.
_SHARE, _SHARE_OF_ONE, _TIGHT = 0.5, 0.7, 0.05
# the least distance of two rows, in units of the spread, so that equal rows have one as well
_NEAREST = 1e-9


def alike_groups(numeric: FloatArray, codes: NDArray[np.int64]) -> Index:
    """Return the group of each row; near copies share one, and without any each row is alone.

    Rows are clustered by single linkage, and cut at the distance where most rows are in clusters
    that are far from all other rows. Then all rows that are as near as that share a group.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence.copies import alike_groups
    >>> visits = np.repeat(np.random.RandomState(0).normal(size=(10, 4)), 3, axis=0)
    >>> visits += 0.01 * np.random.RandomState(1).normal(size=visits.shape)
    >>> np.bincount(alike_groups(visits, np.zeros((30, 0), dtype=np.int64)))
    array([3, 3, 3, 3, 3, 3, 3, 3, 3, 3])
    """
    n, alone, n_codes = len(numeric), np.arange(len(numeric)), codes.shape[1]
    if n < 2 * _CLUSTERS:
        return alone
    require(12 * n * n, f"all pairs of {n} rows", alternative="name a column as groups")
    line = Line.of(numeric, codes)
    Z = np.arcsinh((numeric - line.centre) / line.spread)
    squares = pdist(Z, "sqeuclidean") if numeric.shape[1] else np.zeros(n * (n - 1) // 2)
    if n_codes:
        squares += n_codes * pdist(codes, "hamming")
    tree = linkage(np.sqrt(squares, out=squares), "single")
    # each merge forms a cluster at the distance `low`; at `high` it is merged with others itself
    low = np.maximum(tree[:, 2], _NEAREST)
    merged_at = np.full(2 * n - 1, np.inf)
    merged_at[tree[:, :2].astype(np.intp)] = low[:, None]
    apart = (merged_at[n:] >= _APART * low) & (tree[:, 3] <= n / _CLUSTERS)
    if np.count_nonzero(apart) < _CLUSTERS:
        return alone
    low, high, sizes = low[apart], merged_at[n:][apart], tree[apart, 3]
    # rows in clusters that exist at each distance: of those formed, less of those merged by then
    by = np.argsort(high)
    gone = np.append(0.0, np.cumsum(sizes[by]))[np.searchsorted(high[by], low, side="right")]
    held = np.cumsum(sizes) - gone
    k = int(held.argmax())
    if held[k] < n * (_SHARE if numeric.shape[1] > 1 else _SHARE_OF_ONE):
        return alone
    groups = np.unique(fcluster(tree, low[k], "distance"), return_inverse=True)[1].ravel()
    counts = np.bincount(groups)
    joined = counts[groups] > 1
    means = np.array([np.bincount(groups, z) / counts for z in Z.T]).reshape(-1, len(counts))
    within = np.mean((Z - means[:, groups].T)[joined] ** 2, axis=0)
    is_clear = np.sum(counts > 1) >= _CLUSTERS and np.all(within <= _TIGHT * Z.var(axis=0))
    return groups if is_clear else alone


@dataclass(frozen=True)
class KnownRows:
    """Rows whose copies are searched for in a table that may not fit in memory.

    `numeric`, `codes`: no row a copy of another, in the order of `places`, sorted; `given`: which
    row each of them was.
    """

    line: Line
    numeric: FloatArray
    codes: NDArray[np.int64]
    places: FloatArray
    given: Index

    def __len__(self) -> int:
        return len(self.places)

    @classmethod
    def of(cls, line: Line, numeric: FloatArray, codes: NDArray[np.int64]) -> KnownRows:
        """Sort rows by their places on a line; no row may be a copy of another."""
        places = line.places(numeric, codes)
        order = np.argsort(places, kind="stable")
        return cls(line, numeric[order], codes[order], places[order], order)

    def find(self, numeric: FloatArray, codes: NDArray[np.int64]) -> Index:
        """Return the index of the known row that each row is a copy of, -1 if none, shape (n,)."""
        places, out = self.line.places(numeric, codes), np.full(len(numeric), -1, dtype=np.intp)
        first = np.searchsorted(self.places, places - self.line.max_distance, side="left")
        last = np.searchsorted(self.places, places + self.line.max_distance, side="right")
        open_ = np.flatnonzero(first < last)
        while len(open_):
            at = first[open_]
            same = self.line.copies(
                (numeric[open_], codes[open_]), (self.numeric[at], self.codes[at])
            )
            out[open_[same]] = self.given[at[same]]
            open_ = open_[~same]
            first[open_] += 1
            open_ = open_[first[open_] < last[open_]]
        return out
