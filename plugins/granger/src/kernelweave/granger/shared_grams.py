"""Gram matrices that several problems share, as those problems use them at a time.

One product serves all problems: the matrices are read once, where problems one by one read them
once each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from kernelweave.kernels_core.arrays import Index, Matrix, RealArray


@dataclass(frozen=True, eq=False)
class SharedGrams:
    """K₁ … K_m of one set of samples, the same for every problem.

    `grams` of shape (n_kernels, n_samples, n_samples): contiguous, float64 or float32; what comes
    out has their precision.
    """

    grams: RealArray

    @property
    def n_kernels(self) -> int:
        """m."""
        return int(self.grams.shape[0])

    @property
    def n_samples(self) -> int:
        """l."""
        return int(self.grams.shape[1])

    @property
    def dtype(self) -> Any:
        """Of the matrices."""
        return self.grams.dtype

    def combine(self, weights: Matrix, problems: Index) -> RealArray:
        """Return Σ ηⱼ Kⱼ for the weights of each problem, shape (n_problems, l, l)."""
        return _combined(self.grams, weights)

    def images(self, C: RealArray, problems: Index) -> RealArray:
        """Return Kⱼ c for the c of each problem, shape (n_problems, n_kernels, l)."""
        return _images(self.grams, C)


@dataclass(frozen=True, eq=False)
class MovedGrams(SharedGrams):
    """The same where each problem has the samples of some kernels in an order of its own.

    - `still`: kernels whose samples move
    - `back` of shape (n_problems, n_samples): sample of the matrices at each place
    - `mixed`: kernels that change otherwise, their matrices here being unused
    - `features`: for each problem and each of them Z, K = Z Zᵀ
    """

    still: Index
    back: Index
    mixed: Index
    features: list[list[RealArray]]

    def combine(self, weights: Matrix, problems: Index) -> RealArray:
        """Return Σ ηⱼ Kⱼ for the weights of each problem, shape (n_problems, l, l)."""
        rest = weights.copy()
        rest[:, self.still] = 0.0
        rest[:, self.mixed] = 0.0
        whole = _combined(self.grams, rest)
        moved = _combined(self.grams[self.still], weights[:, self.still])
        for K, own, order in zip(whole, moved, self.back[problems], strict=True):
            _add_moved(K, own, order)
        for K, w, problem in zip(whole, weights[:, self.mixed], problems, strict=True):
            used = [np.sqrt(v) * Z for v, Z in zip(w, self.features[problem], strict=True) if v > 0]
            if used:
                Z = np.hstack(used).astype(K.dtype, copy=False)
                K += Z @ Z.T
        return whole

    def images(self, C: RealArray, problems: Index) -> RealArray:
        """Return Kⱼ c for the c of each problem, shape (n_problems, n_kernels, l)."""
        found = _images(self.grams, C)
        back = self.back[problems]
        placed = np.empty_like(C)
        np.put_along_axis(placed, back, C, axis=1)
        moved = _images(self.grams[self.still], placed)
        found[:, self.still] = np.take_along_axis(moved, back[:, None, :], axis=2)
        for rows, c, problem in zip(found, C, problems, strict=True):
            for j, Z in zip(self.mixed, self.features[problem], strict=True):
                rows[j] = Z @ (Z.T @ c)
        return found


def _add_moved(K: RealArray, own: RealArray, order: Index) -> None:
    """Add a matrix whose samples are in another order; moved round in a circle, by its blocks."""
    first, l = int(order[0]), len(order)
    if not np.array_equal(order, (np.arange(l) + first) % l):
        K += own.take(order, axis=0).take(order, axis=1)
        return
    ends = (slice(0, l - first), slice(first, l)), (slice(l - first, l), slice(0, first))
    for rows, from_rows in ends:
        for columns, from_columns in ends:
            K[rows, columns] += own[from_rows, from_columns]


def _combined(grams: RealArray, weights: Matrix) -> RealArray:
    m, l, _ = grams.shape
    found: RealArray = weights.astype(grams.dtype, copy=False) @ grams.reshape(m, l * l)
    return found.reshape(len(weights), l, l)


def _images(grams: RealArray, C: RealArray) -> RealArray:
    m, l, _ = grams.shape
    found: RealArray = C @ grams.reshape(m * l, l).T
    return found.reshape(len(C), m, l)
