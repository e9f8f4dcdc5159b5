"""The kernel between rows of a table and landmarks: single precision where that is safe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, RealArray, row_slices
from numpy.typing import DTypeLike, NDArray

from ..cross import CrossKernel, gram_of
from ..terms import Scales
from ..views import Points, Views

# rows whose views are made at once
_CHUNK = 8192


def level_of(scales: Sequence[Scales]) -> float:
    """Return the weight of the groups' first term in a sum of kernels, 0 where there is none."""
    return float(sum(each.of_groups[:1].sum() for each in scales))


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Rows that the features of any other row are measured by.

    `points`: the landmarks; `scales`: of a sum of kernels; `dtype`: of the features: single or
    double precision.
    """

    views: Views
    points: Points
    scales: tuple[Scales, ...]
    dtype: DTypeLike = np.float32

    def __len__(self) -> int:
        return self.points.n_points

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_kernel"}

    def gram(self) -> FloatArray:
        """Return the kernel of the landmarks, in double precision."""
        return gram_of(self.points, self.scales, self.views.match_weight)

    def first(self, size: int, dtype: DTypeLike) -> Landmarks:
        """Return the first landmarks, their features in some precision."""
        return Landmarks(self.views, self.points.first(size), self.scales, dtype)

    def features(
        self, numeric: FloatArray, codes: NDArray[np.int64], out: RealArray | None = None
    ) -> RealArray:
        """Return the kernel between rows and landmarks, shape (n, n_landmarks)."""
        out = np.empty((len(numeric), len(self)), dtype=self.dtype) if out is None else out
        for rows, features in self._pieces(numeric, codes):
            out[rows] = features
        return out

    def products(
        self, numeric: FloatArray, codes: NDArray[np.int64], dual: FloatArray
    ) -> FloatArray:
        """Return the features times coefficients, in double precision, shape (n, n_outputs)."""
        out = np.empty((len(numeric), dual.shape[1]))
        for rows, features in self._pieces(numeric, codes):
            np.matmul(features.astype(np.float64), dual, out=out[rows])
        return out

    def _pieces(
        self, numeric: FloatArray, codes: NDArray[np.int64]
    ) -> Iterator[tuple[slice, RealArray]]:
        """Yield the features of a few rows at a time, in a buffer that is used again."""
        for chunk in row_slices(len(numeric), _CHUNK):
            points = self.views.points(numeric[chunk], codes[chunk])
            for rows, values in self._kernel.pieces(points, slice(0, points.n_points)):
                yield slice(chunk.start + rows.start, chunk.start + rows.stop), values

    @cached_property
    def _kernel(self) -> CrossKernel:
        return CrossKernel(self.points, self.scales, self.views.match_weight, self.dtype)
