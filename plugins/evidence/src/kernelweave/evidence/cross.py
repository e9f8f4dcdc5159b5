"""The kernel between two sets of points, a few rows at a time, in single or double precision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, RealArray, row_slices
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import blas

from ._njit_cross import scaled_pairs
from ._njit_exp import exp_of_multiples
from .terms import FLAT, N_TERMS, Scales
from .views import Points

# of the kernel at one row: a term of less weight is not worked out
_NEGLIGIBLE = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-16}
# bytes of the buffers of a block: they stay in a core's own cache
_CACHE = 2**18
# numbers of a table whose distances are one product of matrices where no product term asks for them
# one by one
_MANY = 64
# rows of a piece of a symmetric kernel, of which the triangle alone is worked out
_PIECE = 256


class _Side(NamedTuple):
    """Points, as the compiled pass takes them, and their part of the linear term."""

    x: RealArray
    v: RealArray
    g: RealArray
    c: NDArray[np.int64]
    linear: RealArray


@dataclass(frozen=True, eq=False)
class CrossKernel:
    """Σ K(scales) between any points and these.

    `match_weight`: as `Views` has it; `dtype`: of the values and of all that is done for them.
    """

    points: Points
    scales: tuple[Scales, ...]
    match_weight: FloatArray
    dtype: DTypeLike = np.float64

    def __getstate__(self) -> dict[str, object]:
        # what is cached follows from the points
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    @property
    def of_groups(self) -> FloatArray:
        """The weights of the terms that groups have, shape (n_terms,)."""
        return np.asarray(np.sum([each.of_groups for each in self.scales], axis=0))

    def __call__(self, left: Points, rows: slice = slice(None)) -> RealArray:
        """Return the kernel between some rows of other points and these."""
        first, last, _ = rows.indices(left.n_points)
        out = np.empty((last - first, self.points.n_points), dtype=self.dtype)
        for piece, values in self.pieces(left, slice(first, last)):
            out[piece.start - first : piece.stop - first] = values
        return out

    def gram(self, *, whole: bool = True) -> RealArray:
        """Return the kernel of the points, symmetric to the last bit.

        `whole`: whether what is above the diagonal is asked for; else it means nothing.
        """
        n = self.points.n_points
        out = np.empty((n, n), dtype=self.dtype)
        starts = [*range(0, n, _PIECE), n]
        for low, high in pairwise(starts):
            before = replace(self, points=self.points.first(high))
            out[low:high, :high] = before(self.points, slice(low, high))
            if not whole:
                continue
            out[:low, low:high] = out[low:high, :low].T
            corner = out[low:high, low:high]
            upper = np.triu_indices(high - low, 1)
            corner[upper] = corner.T[upper]
        return out

    def pieces(self, left: Points, rows: slice) -> Iterator[tuple[slice, RealArray]]:
        """Yield the values of a few rows at a time, in a buffer that is used again."""
        n, first, last = self.points.n_points, rows.start, rows.stop
        size = max(1, _CACHE // (n * np.dtype(self.dtype).itemsize))
        buffers = np.empty((5, min(size, last - first), n), dtype=self.dtype)
        sides = [_side(left, parts, self.dtype, own=False) for parts in self._parts]
        for piece in row_slices(last - first, size):
            total, rest, d2, *spare = buffers[:, : piece.stop - piece.start]
            start = first + piece.start
            for k, (mine, side, parts) in enumerate(
                zip(self._sides, sides, self._parts, strict=True)
            ):
                kernel = rest if k else total
                _fill(side, mine, parts, start, d2, kernel)
                _add_exponentials(d2, kernel, spare, parts.weights)
                if k:
                    total += kernel
            where = slice(start, first + piece.stop)
            for k in np.flatnonzero(self.of_groups).tolist():
                _add_group_term(total, left, self.points, where, k, self.of_groups[k])
            yield where, total

    @cached_property
    def _parts(self) -> list[_Part]:
        return [_Part.of(each, self.points, self.match_weight) for each in self.scales]

    @cached_property
    def _sides(self) -> list[_Side]:
        return [_side(self.points, parts, self.dtype, own=True) for parts in self._parts]


def _add_group_term(
    total: RealArray, left: Points, right: Points, rows: slice, term: int, weight: float
) -> None:
    """Add a term of groups between some rows of ``left`` and all of ``right``."""
    same = left.same_group(right, rows, term)
    if left.Z is None or right.Z is None:
        total[same] += total.dtype.type(weight)
        return
    at = np.nonzero(same)
    factors = left.Z[term, rows][at[0]] * right.Z[term][at[1]]
    total[at] += (weight * factors).astype(total.dtype)


class _Part(NamedTuple):
    """One kernel of the sum.

    `used`: the dimensions that have a scale; `ell`, `part`, `rest`: ℓ, s/(1 + s) and 1/(1 + s) of
    these; `match_weight`: of the columns of categories among them; `n_numbers`: how many of these
    are numbers; `by_product`: whether their distances are one product of matrices.
    """

    used: NDArray[np.intp]
    ell: FloatArray
    part: FloatArray
    rest: FloatArray
    match_weight: FloatArray
    weights: FloatArray
    n_numbers: int
    by_product: bool

    @classmethod
    def of(cls, scales: Scales, points: Points, match_weight: FloatArray) -> _Part:
        used = np.flatnonzero((scales.ell > 0.0) | (scales.strength > 0.0))
        part, rest, match_weight = scales.shape(match_weight)[:, used]
        p, w = int(np.searchsorted(used, len(points.X))), scales.weights[:N_TERMS]
        by_product = p > _MANY and w[3] <= _NEGLIGIBLE[np.dtype(np.float64)] * w.sum()
        return cls(used, scales.ell[used], part, rest, match_weight[p:], w, p, by_product)


class RestOfPairs:
    """What points have with others in all dimensions but some, of one kernel.

    Whatever rows are asked for together, each has the same values to the last bit.
    """

    def __init__(
        self, points: Points, scales: Scales, match_weight: FloatArray, without: Sequence[int]
    ) -> None:
        ell, strength = scales.ell.copy(), scales.strength.copy()
        ell[list(without)] = strength[list(without)] = 0.0
        rest = replace(scales, ell=ell, strength=strength)
        self._parts = _Part.of(rest, points, match_weight)._replace(by_product=False)
        self._side = _side(points, self._parts, np.float64, own=True)

    def __call__(self, left: Points) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return squared distances, products and linear terms, shape (n, n_points) each."""
        side = _side(left, self._parts, np.float64, own=False)
        shape = (left.n_points, self._side.linear.shape[0])
        d2, product = np.empty(shape), np.empty(shape)
        parts = self._parts._replace(weights=np.array([0.0, 0.0, 0.0, 1.0, 0.0]))
        _fill(side, self._side, parts, 0, d2, product)
        line = (side.linear[:, None] + self._side.linear) - 0.5 * d2
        return d2, product, line


def cross_kernel(
    left: Points,
    right: Points,
    scales: Sequence[Scales],
    match_weight: FloatArray,
    rows: slice = slice(None),
) -> FloatArray:
    """Return Σ K(scales) between some rows of ``left`` and all of ``right``."""
    return np.asarray(CrossKernel(right, tuple(scales), match_weight)(left, rows), np.float64)


def gram_of(
    points: Points, scales: Sequence[Scales], match_weight: FloatArray, *, whole: bool = True
) -> FloatArray:
    """Return Σ K(scales) of points; `whole`: as `CrossKernel.gram` has it."""
    return np.asarray(
        CrossKernel(points, tuple(scales), match_weight).gram(whole=whole), np.float64
    )


def pairs_of_dimension(
    left: Points, right: Points, rows: slice, i: int, match_weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return κ, the squared difference and the product of one dimension, (n_rows, n_points)."""
    kappa = left.H[i, rows, None] + right.H[i]
    p = len(left.X)
    if i < p:
        kappa -= 3.0 * np.abs(left.U[i, rows, None] - right.U[i])
        x, z = left.X[i, rows, None], right.X[i]
        return kappa, (x - z) ** 2, x * z
    same = left.C[i - p, rows, None] == right.C[i - p]
    kappa += match_weight[i] * same
    return kappa, 1.0 - same, kappa / (2.0 * match_weight[i])


def own_kernel(points: Points, scales: Scales, match_weight: FloatArray) -> FloatArray:
    """Return k(x, x) of every point, shape (n,)."""
    p, strength = len(points.X), scales.shape(match_weight)
    kappa = 2.0 * points.H + strength[2][:, None]
    square = np.vstack([points.X**2, 0.5 * kappa[p:] / np.maximum(match_weight[p:], 1.0)[:, None]])
    product = np.prod(strength[1][:, None] + strength[0][:, None] * kappa, axis=0)
    w = scales.weights
    values: FloatArray = w[0] + w[1] + w[4] + w[2] * (scales.ell**2 @ square) + w[3] * product
    own = scales.of_groups
    return np.asarray(values + own @ points.own_terms()[: len(own)])


def _side(points: Points, parts: _Part, dtype: DTypeLike, *, own: bool) -> _Side:
    """Return points for the pass; `own`: whether they are those of the kernel, at its right."""
    p, used, ell = parts.n_numbers, parts.used, parts.ell[:, None]
    numbers, codes = used[:p], used[p:] - len(points.X)
    x = ell[:p] * points.X[numbers]
    g = parts.part[:, None] * points.H[used]
    # Σ ℓ²xy is what d² leaves of the sum of both rows' squares
    half = points.H[used[p:]] / (2.0 * parts.match_weight[:, None]) + 0.25
    linear = 0.5 * np.einsum("ij,ij->j", x, x) + np.sum(ell[p:] ** 2 * half, axis=0)
    g = g if own else g + parts.rest[:, None]
    v = 3.0 * parts.part[:p, None] * points.U[numbers]
    if p % 2:
        # the pass takes numbers in pairs: one that has no part in anything
        blank = np.zeros((1, points.n_points))
        x, v = np.vstack([x, blank]), np.vstack([v, blank])
        g = np.vstack([g[:p], blank if own else blank + 1.0, g[p:]])
    x, v, g = (np.ascontiguousarray(each, dtype=dtype) for each in (x, v, g))
    return _Side(x, v, g, np.ascontiguousarray(points.C[codes]), linear.astype(dtype))


def _fill(
    left: _Side, right: _Side, parts: _Part, first: int, d2: RealArray, out: RealArray
) -> None:
    """Fill d², and the linear and the product term, of some rows of ``left``."""
    levels = np.vstack([parts.ell[parts.n_numbers :] ** 2, parts.part[parts.n_numbers :]])
    levels[1] *= parts.match_weight
    weights = parts.weights[[3, 2, 2]] * (1.0, 1.0, 0.5)
    dtype = out.dtype
    if not parts.by_product:
        scaled_pairs(left, right, levels.astype(dtype), weights.astype(dtype), first, d2, out)
        return
    p, rows = len(left.x), slice(first, first + len(d2))
    x = left.x[:, rows]
    without = [_Side(s.x[:0], s.v[:0], s.g[p:], s.c, s.linear) for s in (left, right)]
    scaled_pairs(*without, levels.astype(dtype), weights.astype(dtype), first, d2, out)
    squares = [np.einsum("ij,ij->j", each, each) for each in (x, right.x)]
    gemm = blas.sgemm if dtype == np.float32 else blas.dgemm
    far = gemm(-2.0, right.x.T, x.T, trans_b=1).T
    far += squares[0][:, None]
    far += squares[1]
    np.maximum(far, 0.0, out=far)
    d2 += far
    far *= weights[2]
    out -= far


def _add_exponentials(
    d2: RealArray, out: RealArray, spare: Sequence[RealArray], weights: FloatArray
) -> None:
    """Add the three terms that fall off with the distance; ``d2`` is lost."""
    least = _NEGLIGIBLE[out.dtype] * float(weights.sum())
    value, other = spare
    for weight, factor in ((weights[0], -0.5), (weights[4], -1.0 / FLAT), (weights[1], -1.0)):
        if weight <= least:
            continue
        if factor == -1.0:
            np.sqrt(d2, out=d2)
        if out.dtype == np.float64:
            exp_of_multiples(d2.ravel(), factor, value.ravel(), other.ravel())
        else:
            np.multiply(d2, d2.dtype.type(factor), out=value)
            np.exp(value, out=value)
        value *= value.dtype.type(weight)
        out += value
