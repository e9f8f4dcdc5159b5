"""Rows that are copies of one another, wherever they are, and near copies, with little noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index, row_slices
from kernelweave.kernels_core.estimators.copies import Line
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import cdist, pdist

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
# Of more rows than these, some are asked, and the rows that are nearest to each. Of a cluster of 12
# or 20 noisy copies single linkage ends at half of the largest distance from one of them, or more.
_PAIRS, _ASKED, _LARGEST, _GAP = 2000, 256, 512, 1.5
# share of the rows that have a twin in all columns, from which a score is told with twins left in
_TWINS = 0.05
# asked rows whose distances to all are held at once
_AT_ONCE = 32


def alike_groups(numeric: FloatArray, codes: NDArray[np.int64]) -> Index:
    """Return the group of each row; near copies share one, and without any each row is alone.

    Rows are clustered by single linkage, and cut at the distance where most rows are in clusters
    that are far from all other rows. Then all rows that are as near as that share a group. Above
    2,000 rows the clusters of 256 of them are found, and other rows are alone.

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
    line = Line.of(numeric, codes)
    Z = np.arcsinh((numeric - line.centre) / line.spread)
    share = _SHARE if numeric.shape[1] > 1 else _SHARE_OF_ONE
    if n > _PAIRS:
        groups = _of_asked(Z, codes, share)
        return groups if _are_clear(groups, Z) else alone
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
    if held[k] < n * share:
        return alone
    groups = np.unique(fcluster(tree, low[k], "distance"), return_inverse=True)[1].ravel()
    return groups if _are_clear(groups, Z) else alone


def _are_clear(groups: Index, Z: FloatArray) -> bool:
    """Return whether groups of several rows are many, and tight in every column."""
    counts = np.bincount(groups)
    joined = counts[groups] > 1
    if np.sum(counts > 1) < _CLUSTERS:
        return False
    means = np.array([np.bincount(groups, z) / counts for z in Z.T]).reshape(-1, len(counts))
    within = np.mean((Z - means[:, groups].T)[joined] ** 2, axis=0)
    return bool(np.all(within <= _TIGHT * Z.var(axis=0)))


def _of_asked(Z: FloatArray, codes: NDArray[np.int64], share: float) -> Index:
    """Return groups of the rows near some that are asked; all alone if fewer than a share have one.

    The cluster of a row ends at the widest gap of its distances to others.
    """
    n = len(Z)
    asked = np.unique(np.linspace(0, n - 1, _ASKED).astype(np.intp))
    cluster_of, bounds, held = np.full(n, -1), list[tuple[float, float]](), list[int]()
    for some in np.array_split(asked, -(-len(asked) // _AT_ONCE)):
        for row, distances in zip(some, _distances(Z, codes, some), strict=True):
            if cluster_of[row] < 0:
                members = _up_to_the_gap(distances)
                low, high = _low_and_high(Z, codes, members)
                if high < _APART * low:
                    continue
                cluster_of[members] = len(bounds)
                bounds.append((low, high))
                held.append(0)
            held[cluster_of[row]] += 1
    lows, highs = np.array(bounds).reshape(-1, 2).T
    at_once = (lows <= lows[:, None]) & (highs > lows[:, None])
    counts = at_once @ np.array(held)
    alone = np.arange(n)
    if not len(counts) or counts.max() < share * len(asked):
        return alone
    kept = np.flatnonzero(at_once[int(counts.argmax())])
    groups = np.where(np.isin(cluster_of, kept), n + cluster_of, alone)
    return np.unique(groups, return_inverse=True)[1].ravel()


def _up_to_the_gap(distances: FloatArray) -> Index:
    """Return rows within the widest gap of their distances to one, itself among them; or it alone.

    `distances` of shape (n,).
    """
    most = min(len(distances) // _CLUSTERS, _LARGEST)
    near = np.argpartition(distances, most)[: most + 1]
    near = near[np.argsort(distances[near], kind="stable")]
    sizes = np.maximum(distances[near[1:]], _NEAREST)
    gaps = sizes[1:] / sizes[:-1]
    k = int(gaps.argmax())
    return near[: k + 2] if gaps[k] >= _GAP else near[:1]


def _low_and_high(Z: FloatArray, codes: NDArray[np.int64], members: Index) -> tuple[float, float]:
    """Return the distances at which rows are one cluster, and from which it is of a larger one."""
    if len(members) < 2:
        return np.inf, 0.0
    own, high = np.zeros((len(members), len(members))), np.inf
    for part in row_slices(len(members), _AT_ONCE):
        distances = _distances(Z, codes, members[part])
        own[part] = distances[:, members]
        distances[:, members] = np.inf
        high = min(high, float(distances.min()))
    tree = linkage(own[np.triu_indices(len(members), 1)], "single")
    return max(float(tree[-1, 2]), _NEAREST), high


def _distances(Z: FloatArray, codes: NDArray[np.int64], some: Index) -> FloatArray:
    """Return the distances of some rows to all, (n_some, n)."""
    squares = cdist(Z[some], Z, "sqeuclidean") if Z.shape[1] else np.zeros((len(some), len(Z)))
    for column in codes.T:
        squares += column[some, None] != column
    return np.sqrt(squares, out=squares)


def have_twins(copies: Index, counts: Index) -> bool:
    """Return whether so many rows have a twin that new ones will too.

    A table whose rows all come k times, or a multiple of that, is taken as one given k times.

    `copies` of shape (n,): rows of one number are equal in all columns; `counts` of shape (n,): how
    many rows of the table each stands for.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence.copies import have_twins
    >>> copies, ones = np.array([0, 0, *range(1, 19)]), np.ones(20, dtype=np.intp)
    >>> have_twins(copies, ones), have_twins(np.arange(20), ones), have_twins(copies, 2 * ones)
    (True, False, False)
    """
    if np.gcd.reduce(counts) > 1:
        return False
    n_equal = np.bincount(copies, weights=counts)
    return bool(counts[n_equal[copies] > 1].sum() >= _TWINS * counts.sum())


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
