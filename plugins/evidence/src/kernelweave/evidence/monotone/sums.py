"""Where predictions on a grid come from: any function of rows, or a sum of kernel values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index, row_slices
from numpy.typing import NDArray

from .._njit_exp import add_laplacian, add_products, fill_gaussian
from ..censored.predicting import ByResiduals
from ..cross import RestOfPairs, pairs_of_dimension
from ..exact import ExactPredictor
from ..last_step import ClassPredictor
from ..terms import FLAT, N_TERMS, Scales
from ..views import Points, Views

if TYPE_CHECKING:
    from ..large.landmarks import LandmarkPredictor
    from .grid import Axis

    Predictor: TypeAlias = ExactPredictor | LandmarkPredictor

Predict: TypeAlias = Callable[[FloatArray, NDArray[np.int64]], FloatArray]
# rows at nodes that are worked on at a time, and numbers of pairs of rows and points
_ROWS, _PAIRS = 2**16, 2**16
# of the kernel at one row: a term of less weight is not worked out, as in `CrossKernel`
_NEGLIGIBLE = 1e-16
# Laplacian terms are worked out in single precision where that changes no sum by more than this, in
# units of the targets' spread; each exponential is right to 2⁻²¹
_SINGLE, _WRONG = 1e-3, 2.0**-21


class SetColumn(Protocol):
    """A column whose values are set."""

    @property
    def moving(self) -> list[int]:
        """The dimensions that its values change."""

    def fill(self, numeric: FloatArray, codes: NDArray[np.int64], values: FloatArray) -> None:
        """Give rows values of the column."""


class Known(Protocol):
    """Nodes of a column, and the places of those at which values are worked out."""

    @property
    def column(self) -> SetColumn:
        """The column that the nodes are of."""

    @property
    def nodes(self) -> FloatArray:
        """Its values, shape (n_nodes,)."""

    @property
    def known(self) -> Index:
        """Which of the nodes, shape (n_known,)."""


def on_known(
    predict: Predict, axes: Sequence[Axis], numeric: FloatArray, codes: NDArray[np.int64]
) -> FloatArray:
    """Return a function's values of each row at the nodes that are known, (n, …, n_outputs)."""
    nodes = nodes_of(axes)
    size, parts = len(nodes), []
    for rows in row_slices(len(numeric), max(1, _ROWS // size)):
        own = np.repeat(numeric[rows], size, axis=0)
        cells = np.repeat(codes[rows], size, axis=0)
        for k, each in enumerate(axes):
            each.column.fill(own, cells, np.tile(nodes[:, k], len(own) // size))
        parts.append(predict(own, cells))
    values = np.concatenate(parts)
    shape = [len(each.known) for each in axes]
    return values.reshape(len(numeric), *shape, values.shape[1])


def nodes_of(axes: Sequence[Known]) -> FloatArray:
    """Return all combinations of the nodes where values are known, (n_nodes, n_axes)."""
    known = [each.nodes[each.known] for each in axes]
    return np.stack(np.meshgrid(*known, indexing="ij"), axis=-1).reshape(-1, len(axes))


@dataclass(frozen=True)
class Summed:
    """A sum of kernel values, whose factors on grids are kept.

    `predict`: what it is of rows; `sums`: makes it; `numeric` of shape (1, p), `codes` of shape
    (1, q): any row; `change`: from predictions (n, n_outputs) to what is returned.
    """

    predict: Predict
    sums: KernelSum
    numeric: FloatArray
    codes: NDArray[np.int64]
    change: Callable[[FloatArray], FloatArray]
    _made: dict[object, OnGrid] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return values of rows, (n, n_outputs)."""
        return self.change(self.predict(numeric, codes))

    def on_known(
        self, axes: Sequence[Axis], numeric: FloatArray, codes: NDArray[np.int64]
    ) -> FloatArray:
        """Return values of each row at the nodes where they are known, (n, …, n_outputs)."""
        key = tuple((each.column.place, each.nodes[each.known].tobytes()) for each in axes)
        if key not in self._made:
            self._made[key] = OnGrid(self.sums, axes, self.numeric, self.codes)
        values = self._made[key](numeric, codes)
        changed = self.change(values.reshape(-1, values.shape[-1]))
        return changed.reshape(*values.shape[:-1], changed.shape[1])


class _NodeFactors(NamedTuple):
    """What nodes of a group of columns have with the points of one kernel.

    - `far` of shape (n_nodes, n_points): squared distance
    - `products` of shape (3, n_nodes, n_points): Gaussian, wide Gaussian and product factors
    - `line` of shape (n_nodes, n_outputs): sums of the linear term
    """

    far: FloatArray
    products: FloatArray
    line: FloatArray


@dataclass(frozen=True)
class KernelSum:
    """Predictions that are a sum of kernel values: on a grid far faster than row by row.

    - `views`, `points`, `scales`, `dual`: as of an `Expansion`
    - `restore`: from sums (n, n_outputs) to predictions
    - `level`: what groups have beside the sum, of points (n, n_outputs), ``None`` where nothing
    """

    views: Views
    points: Points
    scales: Sequence[Scales]
    dual: FloatArray
    restore: Callable[[FloatArray], FloatArray]
    level: Callable[[Points], FloatArray] | None = None


class OnGrid:
    """Sums of a kernel on the grid of some axes.

    `numeric` of shape (1, p), `codes` of shape (1, q): any row; `single`: whether single precision
    may serve where it changes no sum by more than a thousandth.
    """

    def __init__(
        self, sums: KernelSum, axes: Sequence[Known], numeric: FloatArray,
        codes: NDArray[np.int64], *, single: bool = True,
    ) -> None:  # fmt: skip
        self.sums, self.shape = sums, [len(each.known) for each in axes]
        self._single = single
        self.moving = [place for each in axes for place in each.column.moving]
        half = (len(axes) + 1) // 2
        self._dual = np.ascontiguousarray(sums.dual.T)
        match_weight = sums.views.match_weight
        self._rests = [RestOfPairs(sums.points, s, match_weight, self.moving) for s in sums.scales]
        row = numeric[:1], codes[:1]
        self._sides = [self._factors(part, *row) for part in (axes[:half], axes[half:])]

    def _factors(
        self, axes: Sequence[Known], numeric: FloatArray, codes: NDArray[np.int64]
    ) -> list[_NodeFactors]:
        """Return what nodes of some columns have with the points, of each kernel."""
        sums, moving = self.sums, [place for each in axes for place in each.column.moving]
        nodes = nodes_of(axes) if axes else np.empty((1, 0))
        numeric = np.repeat(numeric, len(nodes), axis=0)
        codes = np.repeat(codes, len(nodes), axis=0)
        for k, each in enumerate(axes):
            each.column.fill(numeric, codes, nodes[:, k])
        points = sums.views.points(numeric, codes)
        shape = (len(nodes), sums.points.n_points)
        found = []
        for scales in sums.scales:
            part, rest, _ = scales.shape(sums.views.match_weight)
            far, product = np.zeros(shape), np.ones(shape)
            line = np.zeros((len(nodes), sums.dual.shape[1]))
            for i in moving:
                kappa, apart, linear = pairs_of_dimension(
                    points, sums.points, slice(None), i, sums.views.match_weight
                )
                square = scales.ell[i] ** 2
                far += square * apart
                line += scales.weights[2] * square * (linear @ sums.dual)
                product *= rest[i] + part[i] * kappa
            products = np.array([np.exp(-0.5 * far), np.exp(-far / FLAT), product])
            found.append(_NodeFactors(far, products, line))
        return found

    def __call__(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return predictions of each row at the nodes, (n, …, n_outputs)."""
        sums = self.sums
        points = sums.views.points(numeric, codes)
        n, n_outputs = len(numeric), sums.dual.shape[1]
        sizes = [len(side[0].far) for side in self._sides]
        out = np.zeros((n, *sizes, n_outputs))
        for k, scales in enumerate(sums.scales):
            left, right = self._sides[0][k], self._sides[1][k]
            w = scales.weights
            for rows in row_slices(n, max(1, _PAIRS // sums.points.n_points)):
                rest, product, line = self._rests[k](points.take(rows))
                self._add_terms(w, rest, product, left, right, out[rows])
                base = w[2] * np.array([np.sum(line * own, axis=1) for own in self._dual]).T
                out[rows] += base[:, None, None]
            out += left.line[:, None] + right.line
            for term in np.flatnonzero(scales.of_groups).tolist():
                same = points.group_term(sums.points, term=term)
                of_group = [np.sum(np.where(same, own * same, 0.0), axis=1) for own in self._dual]
                out += w[N_TERMS + term] * np.array(of_group).T[:, None, None]
        if sums.level is not None:
            out += sums.level(points)[:, None, None]
        values = np.asarray(sums.restore(out.reshape(-1, n_outputs)))
        return values.reshape(n, *self.shape, values.shape[1])

    def _add_terms(
        self, weights: FloatArray, rest: FloatArray, product: FloatArray,
        left: _NodeFactors, right: _NodeFactors, out: FloatArray,
    ) -> None:  # fmt: skip
        """Add the terms of one kernel but the linear one to ``out``, (n, n_left, n_right, …).

        `rest`, `product` of shape (n, n_points): what rows have with the points in other columns.
        """
        used = weights > _NEGLIGIBLE * weights[:N_TERMS].sum()
        factors = np.empty_like(rest)
        for k, (term, rate) in enumerate(((0, -0.5), (4, -1.0 / FLAT), (3, 0.0))):
            if not used[term]:
                continue
            if rate:
                fill_gaussian(rest, rate, weights[term], factors)
            else:
                np.multiply(weights[term], product, out=factors)
            add_products(factors, left.products[k], right.products[k], self._dual, out)
        if used[1]:
            dual = weights[1] * self._dual
            is_single = self._single and _WRONG * np.abs(dual).sum(axis=1).max() <= _SINGLE
            dtype = np.float32 if is_single else np.float64
            parts = [each.astype(dtype) for each in (rest, left.far, right.far)]
            add_laplacian(*parts, dual, out)


def sums_of(predictor: Predictor, fold: int | None = None) -> KernelSum:
    """Return predictions by all rows, or without a fold, as a sum of kernel values."""
    if isinstance(predictor, ExactPredictor) and not isinstance(predictor, ByResiduals):
        part = predictor._part(fold)
        views, points, scales = part.views, part.points, part.scales
        if isinstance(predictor, ClassPredictor):
            mode = predictor._fit(fold)
            return KernelSum(views, points, scales, mode.dual, lambda sums: sums + mode.offset)
        restore = partial(part.target.predict, width=part.width)
        return KernelSum(views, points, scales, part.dual, restore)
    told = predictor.expansion(fold)
    level = None if told.levels is None else told.level
    return KernelSum(told.views, told.points, told.scales, told.dual, told.restore, level)
