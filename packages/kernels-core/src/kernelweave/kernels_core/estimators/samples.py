"""Training samples in canonical form, so that a weight of 2 is the sample twice.

Zero weights are dropped, equal rows with equal targets merged with their weights summed, and the
rows sorted. A solver then sees one and the same problem whatever the order of the samples and
however a weight was written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..checks import check_sample_weight

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Samples:
    """Merged samples and the way back.

    Attributes
    ----------
    X : ndarray of shape (n_merged, n_features)
        Distinct rows, sorted.
    targets : ndarray of shape (n_tasks, n_merged)
        Their targets.
    weight : ndarray of shape (n_merged,) or None
        Summed weights; ``None`` where all are one.
    owner : ndarray of shape (n_samples,)
        Merged row of each original sample, −1 where the weight is zero.
    share : ndarray of shape (n_samples,)
        Part of the merged weight that each original sample holds.
    grams : ndarray of shape (n_kernels, n_samples, n_samples), optional
        Precomputed Gram matrices; rows of ``X`` are then places in them.
    """

    X: FloatArray
    targets: FloatArray
    weight: FloatArray | None
    owner: npt.NDArray[np.intp]
    share: FloatArray
    grams: npt.NDArray[Any] | None = None

    def spread(self, values: FloatArray) -> FloatArray:
        """Return merged values (n_tasks, n_merged) as shares of the original samples."""
        result = np.zeros((values.shape[0], len(self.owner)))
        kept = self.owner >= 0
        result[:, kept] = values[:, self.owner[kept]] * self.share[kept]
        return result


def merge_samples(X: FloatArray, targets: FloatArray, weight: FloatArray) -> Samples:
    """Return the canonical form of weighted samples.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Finite features.
    targets : ndarray of shape (n_tasks, n_samples)
        Finite targets.
    weight : ndarray of shape (n_samples,)
        Nonnegative weights, not all zero.

    Returns
    -------
    Samples
        Distinct rows with summed weights.

    Raises
    ------
    ValueError
        If a weight is negative or not finite, or all are zero.
    """
    check_sample_weight(weight, len(X))
    kept = np.flatnonzero(weight > 0)
    rows = np.hstack([X[kept], targets[:, kept].T]) + 0.0
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    inverse = inverse.ravel()
    summed: FloatArray = np.bincount(inverse, weights=weight[kept]).astype(np.float64)
    owner = np.full(len(weight), -1, dtype=np.intp)
    owner[kept] = inverse
    share = np.zeros(len(weight))
    share[kept] = weight[kept] / summed[inverse]
    return Samples(
        X=np.ascontiguousarray(distinct[:, : X.shape[1]]),
        targets=np.ascontiguousarray(distinct[:, X.shape[1] :].T),
        weight=None if (summed == 1.0).all() else summed,
        owner=owner,
        share=share,
    )
