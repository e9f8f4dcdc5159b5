"""Nodes along a column at which predictions are known, and what they say between these.

Predictions are worked out at a few nodes, told at many by the interpolant of least norm in the
kernel's own space along the column, rearranged there, and piecewise linear between those. All of it
depends on the model alone, so that any two rows that differ in the column have the same nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from numpy.typing import NDArray
from scipy.linalg import solve

from ..terms import FLAT, Scales
from ..views import Points, Views
from .columns import MonotoneColumn

# nodes of a column in the range of training rows, where one column is monotone, two, three, four
N_NODES = (65, 33, 17, 9)
# of these, at how many predictions are worked out
_FEW = (5, 9, 17, 33)
# nodes beyond the range of training, in ranges from its end
_BEYOND = (0.25, 1.0, 4.0)
# of the constant and of rounding, in units of the kernel's largest value on a line
_CONSTANT, _ROUNDING = 10.0, 1e-9


@dataclass(frozen=True, eq=False)
class Axis:
    """Nodes of a column: those in the range of the training rows, and some beyond on either side.

    - `nodes` of shape (n_nodes,): ascending, all of them
    - `inside`: which of them are in the range
    - `known` of shape (n_known,): places of nodes at which predictions are worked out
    - `told` of shape (n_nodes, n_known): from predictions there to those at all nodes
    """

    column: MonotoneColumn
    nodes: FloatArray
    inside: slice
    known: Index
    told: FloatArray

    @cached_property
    def within(self) -> Axis:
        """The axis without what is beyond the range."""
        kept = np.arange(self.inside.start, self.inside.stop)
        among = np.isin(self.known, kept)
        return Axis(
            self.column, self.nodes[kept], slice(0, len(kept)), self.known[among] - kept[0],
            self.told[np.ix_(kept, np.flatnonzero(among))],
        )  # fmt: skip

    @property
    def coarse(self) -> Axis:
        """The axis with the nodes alone at which predictions are worked out."""
        kept = self.known
        first, last = np.searchsorted(kept, [self.inside.start, self.inside.stop])
        return Axis(
            self.column, self.nodes[kept], slice(int(first), int(last)), np.arange(len(kept)),
            np.eye(len(kept)),
        )  # fmt: skip

    def with_fewer(self, n_known: int) -> Axis:
        """Return the axis with values known at the ends of its range and a few between, linear."""
        first, last = self.inside.start, self.inside.stop - 1
        some = np.unique(np.linspace(first, last, n_known).astype(np.intp))
        beyond = np.r_[0:first, last + 1 : len(self.nodes)].astype(np.intp)
        known = np.sort(np.concatenate([some, beyond]))
        told = np.array([np.interp(np.arange(len(self.nodes)), known, row) for row in
                         np.eye(len(known))]).T  # fmt: skip
        return Axis(self.column, self.nodes, self.inside, known, told)

    def is_beyond(self, numeric: FloatArray) -> NDArray[np.bool_]:
        """Return which rows are outside the range, shape (n,)."""
        values = numeric[:, self.column.place]
        low, high = self.nodes[[self.inside.start, self.inside.stop - 1]]
        return np.asarray((values < low) | (values > high))

    def places(self, numeric: FloatArray) -> tuple[Index, FloatArray]:
        """Return the node before each row, and where it is between that and the next, (n,)."""
        values = np.clip(numeric[:, self.column.place], self.nodes[0], self.nodes[-1])
        place = np.searchsorted(self.nodes, values, side="right") - 1
        place = np.clip(place, 0, len(self.nodes) - 2)
        low, high = self.nodes[place], self.nodes[place + 1]
        return place, np.clip((values - low) / (high - low), 0.0, 1.0)


@dataclass(frozen=True)
class AxisMaker:
    """What a column's axis is made of: the kernel along it, the row that it starts from.

    `views`, `scales`: of the predictor; `numeric` of shape (1, p), `codes` of shape (1, q): of any
    row.
    """

    views: Views
    scales: Sequence[Scales]
    numeric: FloatArray
    codes: Index

    def axis(self, column: MonotoneColumn, n_nodes: int, n_known: int) -> Axis:
        """Return the nodes of a column."""
        inside = self._inside(column, n_nodes)
        span = inside[-1] - inside[0]
        steps = np.array(_BEYOND) * span
        nodes = np.concatenate([inside[0] - steps[::-1], inside, inside[-1] + steps])
        n, some = len(inside), np.arange(len(inside))
        if n > n_known:
            some = np.unique(np.linspace(0, n - 1, n_known).astype(np.intp))
        told = self._told(column, inside, some)
        n_beyond = len(steps)
        known = np.concatenate(
            [np.arange(n_beyond), n_beyond + some, n_beyond + n + np.arange(n_beyond)]
        )
        whole = np.zeros((len(nodes), len(known)))
        whole[n_beyond : n_beyond + n, n_beyond : n_beyond + len(some)] = told
        ends = np.arange(n_beyond)
        whole[ends, ends] = 1.0
        whole[n_beyond + n + ends, n_beyond + len(some) + ends] = 1.0
        return Axis(column, nodes, slice(n_beyond, n_beyond + n), known, whole)

    def _points(self, column: MonotoneColumn, values: FloatArray) -> Points:
        """Return the row with values of the column, as the kernel sees it."""
        numeric = np.repeat(self.numeric, len(values), axis=0)
        codes = np.repeat(self.codes, len(values), axis=0)
        column.fill(numeric, codes, values)
        return self.views.points(numeric, codes)

    def _inside(self, column: MonotoneColumn, n_nodes: int) -> FloatArray:
        """Return nodes in the range: all values of few, else half by ranks, half evenly spaced."""
        knots = list(self.views.knots)[column.place]
        if len(knots) <= n_nodes:
            return knots
        points = self._points(column, knots)
        shares = []
        for each in (points.X[column.place], points.U[column.place]):
            size = each[-1] - each[0]
            shares.append((each - each[0]) / size if size > 0.0 else 0.0 * each)
        by = np.maximum.accumulate(0.5 * (shares[0] + shares[1]))
        nodes = np.interp(np.linspace(0.0, by[-1], n_nodes), by, knots)
        nodes[0], nodes[-1] = knots[0], knots[-1]
        return np.unique(nodes)

    def _told(self, column: MonotoneColumn, nodes: FloatArray, some: Index) -> FloatArray:
        """Return what values at some nodes say of those at all, shape (n_nodes, n_some)."""
        if len(some) == len(nodes):
            return np.eye(len(nodes))
        points = self._points(column, nodes)
        K = sum(self._kernel(column, points, each) for each in self.scales)
        K = K + _CONSTANT * np.abs(K).max()
        square = K[np.ix_(some, some)]
        square[np.diag_indices_from(square)] += _ROUNDING * square.diagonal().mean()
        told = solve(square, K[some], assume_a="pos").T
        told[some] = np.eye(len(some))
        return np.asarray(told)

    def _kernel(self, column: MonotoneColumn, points: Points, scales: Scales) -> FloatArray:
        """Return the kernel along the column, of rows as far apart in the others as most are."""
        part, rest, _ = scales.shape(self.views.match_weight)
        n = points.n_points
        far, line, product = np.zeros((n, n)), np.zeros((n, n)), np.ones((n, n))
        for i in column.moving:
            x, u, h = points.X[i], points.U[i], points.H[i]
            far += scales.ell[i] ** 2 * (x[:, None] - x) ** 2
            line += scales.ell[i] ** 2 * np.outer(x, x)
            kappa = h[:, None] + h - 3.0 * np.abs(u[:, None] - u)
            product *= rest[i] + part[i] * kappa
        others = 2.0 * float(np.sum(np.delete(scales.ell, column.moving) ** 2))
        w = scales.weights
        smooth = w[0] * np.exp(-0.5 * far) + w[4] * np.exp(-far / FLAT) + w[2] * line
        return np.asarray(smooth + w[1] * np.exp(-np.sqrt(far + others)) + w[3] * product)


def known_for(lines: FloatArray, axis: Callable[[int], Axis], room: FloatArray) -> int:
    """Return at how few nodes predictions may be known.

    `lines` of shape (n_lines, n_nodes, n_outputs): predictions at all nodes in the range; `axis`:
    makes the axis with so many known; `room` of shape (n_outputs,): root mean square error allowed.
    """
    n_nodes = lines.shape[1]
    for n_known in _FEW:
        if n_known >= n_nodes:
            break
        within = axis(n_known).within
        told = np.einsum("gm,rmt->rgt", within.told, lines[:, within.known])
        if (np.sqrt(np.mean((told - lines) ** 2, axis=(0, 1))) <= room).all():
            return n_known
    return int(n_nodes)
