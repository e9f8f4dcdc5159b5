"""A predictor whose predictions rise or fall with some columns: another's, rearranged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray, Index, row_slices
from numpy.typing import NDArray

from .columns import MonotoneColumn, monotone_columns, signs_of
from .grid import N_NODES, Axis, AxisMaker, known_for
from .rearrangement import interpolated, on_lattice, rearranged
from .response import MonotoneResponse, refuse_without_order, response_of
from .sums import Predict, Summed, on_known, sums_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..columns import ColumnEncoder
    from ..columns.encoded import GroupColumn
    from ..exact import ExactPredictor
    from ..large.landmarks import LandmarkPredictor
    from ..tasks import Task

    Fitted: TypeAlias = ExactPredictor | LandmarkPredictor

# training rows that tell at how few nodes predictions may be known, and of the deviation of
# residuals what is allowed between them
_LINES, _ROOM = 30, 0.02
# nodes at which ends and members are known beside the mean
_ENDS = 3
# rows held out that are rearranged before the clock is looked at
_AT_ONCE = 200
# numbers of grids that are worked on at a time
_CELLS = 2**22


@dataclass(frozen=True)
class Surfaces:
    """Predictions on a grid of the monotone columns, at fixed values of the others, rearranged.

    `source`: of values that rise with what is asked; `axes`: of all monotone columns.
    """

    source: Summed
    axes: tuple[Axis, ...]

    def __call__(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return values of rows, (n, n_outputs); one without a value of a column is free in it."""
        known = np.column_stack([each.column.known(numeric) for each in self.axes])
        out = None
        for pattern, rows in groups_of(known.astype(np.int64)):
            axes = [each for each, there in zip(self.axes, pattern, strict=True) if there]
            own = numeric[rows], codes[rows]
            values = self._along(axes, *own) if axes else self.free(*own)
            out = np.empty((len(numeric), values.shape[1])) if out is None else out
            out[rows] = values
        return self.free(numeric, codes) if out is None else out

    @property
    def n_values(self) -> int:
        """About how many values a row has."""
        return 1

    def free(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return values as they are, (n, n_outputs)."""
        return self.source(numeric, codes)

    def _along(
        self, axes: Sequence[Axis], numeric: FloatArray, codes: NDArray[np.int64]
    ) -> FloatArray:
        """Return values of rows that have all of some columns."""
        moving = [place for each in axes for place in each.column.moving]
        first, owner = first_of_each(np.delete(numeric, moving, axis=1), codes)
        beyond = np.any([each.is_beyond(numeric) for each in axes], axis=0)
        is_wide = np.zeros(len(first), dtype=np.bool_)
        is_wide[owner[beyond]] = True
        out = None
        for wide in (False, True):
            grids = [each if wide else each.within for each in axes]
            chosen = np.flatnonzero(is_wide == wide)
            size = self.n_values * int(np.prod([len(each.nodes) for each in grids]))
            for block in row_slices(len(chosen), max(1, _CELLS // (4 * size))):
                which = chosen[block]
                at = np.full(len(first), -1)
                at[which] = np.arange(len(which))
                rows = np.flatnonzero(at[owner] >= 0)
                values = self.on_grid(grids, numeric[first[which]], codes[first[which]])
                places, shares = zip(*(each.places(numeric[rows]) for each in grids), strict=True)
                told = interpolated(values, at[owner[rows]], places, shares)
                out = np.empty((len(numeric), told.shape[1])) if out is None else out
                out[rows] = told
        assert out is not None
        return out

    def on_grid(
        self, axes: Sequence[Axis], numeric: FloatArray, codes: NDArray[np.int64]
    ) -> FloatArray:
        """Return rearranged values on a grid for each row, shape (n, …, n_outputs)."""
        values = told_on_grid(self.source, axes, numeric, codes)
        return on_lattice(in_order(values, axes))


def in_order(values: FloatArray, axes: Sequence[Axis]) -> FloatArray:
    """Return values (n, …, n_outputs) on a grid, rearranged."""
    falling = tuple(1 + k for k, each in enumerate(axes) if each.column.sign < 0)
    inside = []
    for each in axes:
        first, last, n = each.inside.start, each.inside.stop, len(each.nodes)
        inside.append(slice(n - last, n - first) if each.column.sign < 0 else each.inside)
    return np.asarray(np.flip(rearranged(np.flip(values, falling), inside), falling))


def told_on_grid(
    source: Summed, axes: Sequence[Axis], numeric: FloatArray, codes: NDArray[np.int64]
) -> FloatArray:
    """Return values on a grid for each row, told by those at a few of its nodes.

    Those in the range of all axes are the same, to the last bit, with nodes beyond and without.
    """
    values = source.on_known(axes, numeric, codes)
    told = _within(spread_out(values, axes), values)
    inside = tuple(each.inside for each in axes)
    known = tuple(
        slice(*np.searchsorted(each.known, [each.inside.start, each.inside.stop])) for each in axes
    )
    core = (slice(None), *inside)
    told[core] = _within(told[core], values[(slice(None), *known)])
    return told


def _within(told: FloatArray, values: FloatArray) -> FloatArray:
    """Return what is told no further than the values go: the range of targets stays what it is."""
    grid = tuple(range(1, values.ndim - 1))
    low, high = values.min(axis=grid, keepdims=True), values.max(axis=grid, keepdims=True)
    return np.asarray(np.clip(told, low, high))


def spread_out(values: FloatArray, axes: Sequence[Axis]) -> FloatArray:
    """Return values at all nodes from those at known ones, axis by axis.

    Added up one node after the other: a product of matrices would round a row by those beside it.
    """
    for k, each in enumerate(axes, start=1):
        known = np.moveaxis(values, k, -1)
        out = np.zeros((*known.shape[:-1], len(each.nodes)))
        for i, share in enumerate(each.told.T):
            where = np.flatnonzero(share)
            # most nodes beyond the range tell of themselves alone
            part = slice(where[0], where[-1] + 1)
            out[..., part] += known[..., i, None] * share[part]
        values = np.moveaxis(out, -1, k)
    return values


def groups_of(keys: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], Index]]:
    """Yield each of the rows of keys (n, n_keys), and where it is."""
    if not len(keys):
        return
    found, owner = np.unique(keys, axis=0, return_inverse=True)
    for k, key in enumerate(found):
        yield key, np.flatnonzero(owner.ravel() == k)


def first_of_each(numeric: FloatArray, codes: NDArray[np.int64]) -> tuple[Index, Index]:
    """Return the first of rows that are equal, and which of these each row is."""
    both = np.ascontiguousarray(np.hstack([numeric + 0.0, codes.astype(np.float64)]))
    if not both.shape[1]:
        return np.zeros(min(1, len(both)), dtype=np.intp), np.zeros(len(both), dtype=np.intp)
    cells = both.view(np.dtype((np.void, both.dtype.itemsize * both.shape[1]))).ravel()
    _, first, owner = np.unique(cells, return_index=True, return_inverse=True)
    return first, owner.ravel()


@dataclass(frozen=True)
class MonotonePredictor:
    """A predictor whose values rise or fall with some columns at fixed values of the others.

    Means, ends of intervals and members of distributions are rearranged. Deviations are the
    predictor's own. Grids follow from the predictor and no file has them.

    `predictor`: what was fitted; `columns`: one or more; `response`: what rises.
    """

    predictor: Fitted
    columns: tuple[MonotoneColumn, ...]
    response: MonotoneResponse = field(default_factory=MonotoneResponse)

    def __getstate__(self) -> dict[str, object]:
        return {
            name: value for name, value in vars(self).items() if name not in ("axes", "_source")
        }

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """Nodes of each column."""
        predictor, rows = self.predictor, self.predictor.rows
        line = AxisMaker(predictor.views, predictor.scales, rows.numeric[:1], rows.codes[:1])
        n_nodes = N_NODES[len(self.columns) - 1]
        some = np.unique(np.linspace(0, len(rows) - 1, min(_LINES, len(rows))).astype(np.intp))
        lines = rows.take(some)
        axes = []
        for column in self.columns:
            axis = partial(line.axis, column, n_nodes)
            whole = axis(n_nodes).within
            values = told_on_grid(self._source, [whole], lines.numeric, lines.codes)
            axes.append(axis(known_for(values, axis, self._room)))
        return tuple(axes)

    @property
    def _room(self) -> FloatArray:
        """What may be lost between nodes, beside the residuals of rows held out."""
        rows, held_out = self.predictor.rows, self.predictor.held_out
        seen = np.flatnonzero(~np.isnan(held_out[:, 0])) if len(held_out) else np.empty(0, np.intp)
        if len(rows.targets) != held_out.shape[1] or not len(seen):
            return np.array([_ROOM])
        if type(self.response) is not MonotoneResponse:
            # of probabilities
            return np.array([_ROOM / 2.0])
        rest = rows.targets.T[seen] - held_out[seen]
        return np.asarray(_ROOM * np.sqrt(np.mean(rest**2, axis=0)))

    @cached_property
    def _source(self) -> Summed:
        return self._summed(self.predictor.mean, None)

    def _summed(self, predict: Predict, fold: int | None) -> Summed:
        """Return what rises, by all rows or without a fold, whose predictions of rows are given."""
        rows, sums = self.predictor.rows, sums_of(self.predictor, fold)
        return Summed(predict, sums, rows.numeric[:1], rows.codes[:1], self.response.of)

    def mean(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return the rearranged mean, shape (n, n_outputs)."""
        return self.response.back(Surfaces(self._source, self.axes)(numeric, codes))

    def both(
        self, numeric: FloatArray, codes: NDArray[np.int64], fold: int | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return predictions by all rows or without a fold: as they were fitted, and rearranged."""
        source = self._source
        if fold is not None:
            source = self._summed(self.predictor.fold_predictors()[fold][1], fold)
        after = Surfaces(source, self.axes)(numeric, codes)
        return self.response.back(source(numeric, codes)), self.response.back(after)

    def deviation(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return the standard deviation of a new observation, shape (n, n_outputs)."""
        return self.predictor.deviation(numeric, codes)

    def held_out(self) -> tuple[FloatArray, bool]:
        """Return predictions of rows held out, by the fold that did not see them, rearranged.

        NaN where no fold held a row out, shape (n_rows, n_outputs). And whether there was time for
        all: without it they are as the folds predict them.
        """
        out = np.array(self.predictor.held_out)
        rows = self.predictor.rows
        for k, (which, predict) in enumerate(self.predictor.fold_predictors()):
            source = self._summed(predict, k)
            found = Surfaces(source, self.axes)
            for some in row_slices(len(which), _AT_ONCE):
                if clock.expired():
                    return self.predictor.held_out, False
                subset = rows.take(which[some])
                own = subset.numeric, subset.codes
                # a row held out is predicted by the mean of the path's fits: it moves as theirs
                out[which[some]] += self.response.back(found(*own)) - self.response.back(
                    source(*own)
                )
        return out, True

    def interval(
        self, numeric: FloatArray, codes: NDArray[np.int64], confidence: float
    ) -> FloatArray:
        """Return both ends of intervals, rearranged, shape (2, n, n_outputs)."""

        def ends(numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
            return self.predictor.interval(numeric, codes, confidence)

        return self._with_steps(ends, numeric, codes)

    def members(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return members of the distributions of new targets, rearranged; see `ExactPredictor`."""
        return self._with_steps(self.predictor.members, numeric, codes)

    def _with_steps(
        self, members: Predict, numeric: FloatArray, codes: NDArray[np.int64]
    ) -> FloatArray:
        """Return rearranged sums of means and steps from these, which are known at fewer nodes.

        `members`: from rows to values (n_members, n, n_outputs), as what is returned.
        """
        few = tuple(each.coarse for each in self.axes)
        found = _Stepped(self._source, few, members, len(self.predictor.rows))
        flat = found(numeric, codes)
        n_outputs = self.predictor.held_out.shape[1]
        return np.moveaxis(flat.reshape(len(flat), -1, n_outputs), 1, 0)


@dataclass(frozen=True)
class _Stepped(Surfaces):
    """Members of distributions: means at all nodes, and steps from these, told by a few nodes.

    `members`: from rows to values (n_members, n, n_outputs); `n_values`: about how many a row has.
    """

    members: Predict
    n_values: int = 1

    def free(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return members as they are, (n, n_members · n_outputs)."""
        return np.moveaxis(self.members(numeric, codes), 0, 1).reshape(len(numeric), -1)

    def on_grid(
        self, axes: Sequence[Axis], numeric: FloatArray, codes: NDArray[np.int64]
    ) -> FloatArray:
        """Return rearranged members on a grid for each row, (n, …, n_members · n_outputs)."""
        mean = told_on_grid(self.source, axes, numeric, codes)
        fewer = [each.with_fewer(_ENDS) for each in axes]
        steps = on_known(self._steps, fewer, numeric, codes)
        finite = np.isfinite(steps).all(axis=tuple(range(1, steps.ndim - 1)), keepdims=True)
        told = spread_out(np.where(finite, steps, 0.0), fewer)
        values = on_lattice(in_order(told + np.tile(mean, steps.shape[-1] // mean.shape[-1]), axes))
        # rows too few for an end are so at every node
        first = steps[(slice(None), *[slice(0, 1)] * len(axes))]
        return np.where(finite, values, first)

    def _steps(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return members less means, (n, n_members · n_outputs)."""
        members = self.free(numeric, codes)
        mean = self.source(numeric, codes)
        return members - np.tile(mean, members.shape[1] // mean.shape[1])


@dataclass(frozen=True)
class Monotone:
    """The columns that a model's predictions rise or fall with, whatever its predictor.

    `signs`: as the user asked, by name, those left out of the fit too; `columns`: those that are
    used.
    """

    signs: tuple[tuple[str, int], ...]
    columns: tuple[MonotoneColumn, ...]

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_made"}

    def of(self, predictor: Fitted, task: Task) -> Fitted | MonotonePredictor:
        """Return a predictor rearranged; the last one is kept, for its grids take time."""
        if not self.columns:
            return predictor
        made = vars(self).get("_made")
        if made is None or made[0] is not predictor or made[1] is not task:
            made = predictor, task, MonotonePredictor(predictor, self.columns, response_of(task))
            vars(self)["_made"] = made
        return made[2]

    def held_out(self, predictor: Fitted, task: Task) -> tuple[FloatArray, bool]:
        """Return predictions of rows held out, rearranged, and whether there was time for all."""
        found = self.of(predictor, task)
        if not isinstance(found, MonotonePredictor):
            return predictor.held_out, True
        return found.held_out()


def monotone_of(
    signs: Mapping[str | int, int] | None,
    encoder: ColumnEncoder,
    task: Task,
    group: GroupColumn | None = None,
) -> Monotone | None:
    """Return what predictions are to rise or fall with, ``None`` where that is nothing.

    Raises ValueError where a column, or classes without an order, cannot be so.

    `group`: the column that names groups, where there is one.
    """
    asked = signs_of(signs, encoder)
    if not asked:
        return None
    refuse_without_order(task)
    return Monotone(asked, monotone_columns(dict(asked), encoder, group))
