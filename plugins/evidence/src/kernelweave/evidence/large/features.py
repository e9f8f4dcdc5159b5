"""The kernel between rows and landmarks, fast: single precision where that is safe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, RealArray, row_slices
from numpy.typing import DTypeLike, NDArray

from ..terms import FLAT, N_TERMS, Scales, mixed_kernel
from ..views import Points, Views
from ._njit_features import scaled_pairs

# of the kernel at one row: an exponential of less weight is not worked out
_NEGLIGIBLE = 1e-6
# bytes of the buffers of a block: they stay in a core's own cache
_CACHE = 2**18
# rows whose views are made at once
_CHUNK = 8192


class _Side(NamedTuple):
    """Rows, as the compiled pass takes them, and their part of the linear term."""

    x: RealArray
    v: RealArray
    g: RealArray
    c: NDArray[np.int64]
    linear: RealArray


def level_of(scales: Sequence[Scales]) -> float:
    """Return the weight of the groups' term in a sum of kernels, 0 where there is none."""
    return float(sum(each.weights[N_TERMS:].sum() for each in scales))


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
        # the sides follow from the points
        return {name: value for name, value in vars(self).items() if name != "_sides"}

    @property
    def level(self) -> float:
        """The weight of the groups' term, 0 where there is none."""
        return level_of(self.scales)

    def gram(self) -> FloatArray:
        """Return the kernel of the landmarks, in double precision."""
        return mixed_kernel(self.points, self.points, self.scales, self.views.match_weight)

    def first(self, size: int, dtype: DTypeLike) -> Landmarks:
        """Return the first landmarks, their features in some precision."""
        X, U, H = (np.ascontiguousarray(each[:, :size]) for each in self.points[:3])
        C, G = np.ascontiguousarray(self.points.C[:, :size]), self.points.G[:, :size]
        points = Points(X, U, H, C, G)
        return Landmarks(self.views, points, self.scales, dtype)

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
        size = max(1, _CACHE // (len(self) * np.dtype(self.dtype).itemsize))
        buffers = np.empty((4, size, len(self)), dtype=self.dtype)
        levels = [self._of_dimensions(each) for each in self.scales]
        for chunk in row_slices(len(numeric), _CHUNK):
            points = self.views.points(numeric[chunk], codes[chunk])
            left = [self._side(points, each, landmark=False) for each in self.scales]
            for rows in row_slices(points.n_points, size):
                total, rest, d2, spare = buffers[:, : rows.stop - rows.start]
                for k, scales in enumerate(self.scales):
                    kernel = rest if k else total
                    scaled_pairs(left[k], self._sides[k], *levels[k], rows.start, d2, kernel)
                    _add_exponentials(d2, kernel, spare, scales.weights)
                    if k:
                        total += kernel
                if self.level:
                    total[points.same_group(self.points, rows)] += total.dtype.type(self.level)
                yield slice(chunk.start + rows.start, chunk.start + rows.stop), total

    @cached_property
    def _sides(self) -> list[_Side]:
        return [self._side(self.points, each, landmark=True) for each in self.scales]

    def _of_dimensions(self, scales: Scales) -> tuple[RealArray, RealArray]:
        p, match_weight = len(self.points.X), self.views.match_weight
        part = scales.shape(match_weight)[0, p:] * match_weight[p:]
        levels = np.vstack([scales.ell[p:] ** 2, part])
        weights = scales.weights[[3, 2, 2]] * (1.0, 1.0, 0.5)
        return levels.astype(self.dtype), weights.astype(self.dtype)

    def _side(self, points: Points, scales: Scales, *, landmark: bool) -> _Side:
        p, match_weight = len(points.X), self.views.match_weight
        part, rest, _ = scales.shape(match_weight)[:, :, None]
        x = scales.ell[:p, None] * points.X
        g = part * points.H
        ell2 = scales.ell[p:, None] ** 2
        # Σ ℓ²xy is what d² leaves of the sum of both rows' squares
        linear = 0.5 * np.sum(x * x, axis=0)
        linear += np.sum(ell2 * (points.H[p:] / (2.0 * match_weight[p:, None]) + 0.25), axis=0)
        g = g if landmark else g + rest
        v = 3.0 * part[:p] * points.U
        if p % 2:
            # the pass takes numbers in pairs: one that has no part in anything
            blank = np.zeros((1, points.n_points))
            x, v = np.vstack([x, blank]), np.vstack([v, blank])
            g = np.vstack([g[:p], blank if landmark else blank + 1.0, g[p:]])
        x, v, g = (np.ascontiguousarray(each, dtype=self.dtype) for each in (x, v, g))
        return _Side(x, v, g, points.C, linear.astype(self.dtype))


def _add_exponentials(d2: RealArray, out: RealArray, spare: RealArray, weights: FloatArray) -> None:
    """Add the three terms that fall off with the distance; ``d2`` is lost."""
    w = weights.astype(out.dtype)
    least = _NEGLIGIBLE * float(weights[:N_TERMS].sum())
    for weight, factor in ((w[0], -0.5), (w[4], -1.0 / FLAT)):
        if weight > least:
            np.multiply(d2, d2.dtype.type(factor), out=spare)
            np.exp(spare, out=spare)
            spare *= weight
            out += spare
    if w[1] > least:
        np.sqrt(d2, out=d2)
        np.negative(d2, out=d2)
        np.exp(d2, out=d2)
        d2 *= w[1]
        out += d2
