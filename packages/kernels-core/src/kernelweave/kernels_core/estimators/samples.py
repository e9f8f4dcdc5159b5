"""Training samples in canonical form, so that a weight of 2 is the sample twice.

Zero weights are dropped, equal rows with equal targets merged with their weights summed, and the
rows sorted. A solver then sees one and the same problem whatever the order of the samples and
however a weight was written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import FloatArray, Index, Points, is_sparse
from ..checks import check_sample_weight

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from ..kernels.scaled import Scaling


@dataclass(frozen=True)
class Samples:
    """Merged samples and the way back.

    - `X` of shape (n_merged, n_features): distinct rows, sorted
    - `targets` of shape (n_tasks, n_merged): their targets
    - `weight` of shape (n_merged,): summed weights; ``None`` where all are one
    - `owner` of shape (n_samples,): merged row of each original sample, −1 where the weight is zero
    - `share` of shape (n_samples,): part of the merged weight that each original sample holds
    - `grams`: a `PrecomputedGrams` of all samples; rows of ``X`` are then places in it
    """

    X: Points
    targets: FloatArray
    weight: FloatArray | None
    owner: Index
    share: FloatArray
    grams: Any = None

    @property
    def places(self) -> Index:
        """Positions of the samples in the precomputed matrices, shape (n_merged,)."""
        return np.asarray(self.X)[:, 0].astype(np.intp)

    def scaled(self, scaling: Scaling | None) -> Samples:
        """Return the samples with their features scaled."""
        return self if scaling is None else replace(self, X=scaling(self.X))

    def to_original_rows(self, values: FloatArray) -> FloatArray:
        """Divide values of merged rows among the original samples, in proportion to their weights.

        Samples of weight 0 get 0.
        """
        result = np.zeros((values.shape[0], len(self.owner)))
        kept = self.owner >= 0
        result[:, kept] = values[:, self.owner[kept]] * self.share[kept]
        return result


def merge_samples(X: Points, targets: FloatArray, weight: FloatArray) -> Samples:
    """Return the canonical form of weighted samples: distinct rows with summed weights.

    Raises ValueError if a weight is negative or not finite, or all are zero.
    """
    check_sample_weight(weight, X.shape[0])
    kept = np.flatnonzero(weight > 0)
    distinct, values, inverse = _unique(X[kept], targets[:, kept].T + 0.0)  # no -0.0
    summed: FloatArray = np.bincount(inverse, weights=weight[kept]).astype(np.float64)
    owner = np.full(len(weight), -1, dtype=np.intp)
    owner[kept] = inverse
    share = np.zeros(len(weight))
    share[kept] = weight[kept] / summed[inverse]
    return Samples(
        X=distinct,
        targets=np.ascontiguousarray(values.T),
        weight=None if (summed == 1.0).all() else summed,
        owner=owner,
        share=share,
    )


def standard_deviation(y: FloatArray, weight: FloatArray | None) -> float:
    """Return the standard deviation of targets of shape (n_samples,), 1 if they do not vary."""
    mass = np.ones(len(y)) if weight is None else weight
    # sums over distinct values, so that a weight of 2 and the sample twice give the same bits
    y, place = np.unique(y[mass > 0], return_inverse=True)
    share = np.bincount(place, weights=mass[mass > 0])
    if not len(y):
        # weights that are all 0 raise an error elsewhere
        return 1.0
    # divided first, because the square of a large target may overflow
    unit = float(np.abs(y).max()) or 1.0
    off = y / unit - np.average(y / unit, weights=share)
    spread = unit * float(np.sqrt(np.average(off * off, weights=share)))
    return spread if 0.0 < spread < np.inf else 1.0


def match_sparsity(rows: Points, X: Points) -> Points:
    """Return X as a sparse array if ``rows`` is one, else as a dense array."""
    if is_sparse(rows):
        return X if is_sparse(X) else type(rows)(X)
    return X.toarray() if is_sparse(X) else X


def _unique(X: Points, values: FloatArray) -> tuple[Points, FloatArray, Index]:
    """Return distinct rows of points, their targets, and for each row its distinct row."""
    if is_sparse(X):
        return _unique_sparse(X, values)
    # adding 0.0 turns -0.0 into 0.0, which compares equal but has other bits
    rows = np.hstack([X + 0.0, values])
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    points = np.ascontiguousarray(distinct[:, : X.shape[1]])
    return points, distinct[:, X.shape[1] :], inverse.ravel()


def _unique_sparse(
    X: csr_array[np.floating], values: FloatArray
) -> tuple[csr_array[np.floating], FloatArray, Index]:
    """Return the same for sparse points, sorted by their bytes."""
    X.sum_duplicates()
    X.eliminate_zeros()
    ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    keys = [
        (X.indices[a:b].tobytes(), X.data[a:b].tobytes(), v.tobytes())
        for (a, b), v in zip(ends, values, strict=True)
    ]
    place = {key: i for i, key in enumerate(sorted(set(keys)))}
    inverse = np.array([place[key] for key in keys], dtype=np.intp)
    # assigned from the last row to the first, so that the first occurrence of each key stays
    first = np.empty(len(place), dtype=np.intp)
    first[inverse[::-1]] = np.arange(len(keys))[::-1]
    return X[first], values[first], inverse
