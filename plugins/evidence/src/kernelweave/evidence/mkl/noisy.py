"""Kernels and the noise beside them: σ² is the weight of one more matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, RealArray, Rows
from kernelweave.kernels_core.grams.precomputed import PrecomputedKernel, PrecomputedStack
from kernelweave.kernels_core.kernels import FittedDictionary, Kernel

Stored: TypeAlias = FittedDictionary | PrecomputedStack


@dataclass(frozen=True, eq=False)
class NoisyGrams:
    """K₁ … K_q and D = diag(1/weight), which is made when it is read.

    `stack` of shape (q, n, n); `share` of shape (n,): diagonal of D.
    """

    stack: RealArray
    share: FloatArray

    def __len__(self) -> int:
        return len(self.stack) + 1

    def __iter__(self) -> Iterator[RealArray]:
        yield from self.stack
        yield np.diag(self.share)


@dataclass(frozen=True, eq=False)
class NoisyFamily:
    """K(w) + (w₀ + floor) D, the family whose last weight is what the noise has above its floor.

    `stored`: the kernels on the training points; `share` of shape (n,): diagonal of D.
    """

    name: ClassVar[str] = "dictionary"
    degree: ClassVar[int] = 1
    stored: Stored
    share: FloatArray

    @property
    def grams(self) -> NoisyGrams:
        """The matrices, that of the noise last."""
        return NoisyGrams(self.stored.grams, self.share)

    def __len__(self) -> int:
        return len(self.stored) + 1

    def fit_grams(self, X: Rows) -> NoisyFamily:
        """Return itself: ``X`` are the training points."""
        return self

    def gram(self, X: Rows, weights: FloatArray) -> FloatArray:
        """Return K(w) + w₀D of the training points, shape (n, n), for w of shape (q + 1,)."""
        K: FloatArray = np.asarray(self.stored.gram(X, weights[:-1]), dtype=np.float64)
        K[np.diag_indices_from(K)] += weights[-1] * self.share
        return K

    def kernel(self, weights: FloatArray) -> Kernel | PrecomputedKernel:
        """Return the learned kernel, without the noise."""
        return self.stored.kernel(weights[:-1])
