"""One pass over blocks of rows: moments, shares of levels, and rows drawn at random."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from kernelweave.kernels_core import clock
from numpy.typing import NDArray

from ..rows import FloatArray, Rows, Standardised
from ..views import Views

IndexArray = NDArray[np.intp]


@dataclass(frozen=True)
class Survey:
    """What is known of all rows, and some of them.

    Attributes
    ----------
    n_rows : int
    complete : bool
        Whether time sufficed for all rows.
    sample : Rows
        Drawn without replacement, each row as likely as any other, in random order.
    index : ndarray of shape (n_sample,)
        Their positions among all rows.
    targets : Standardised
        Centre, spread and range of all targets; ``values`` are those of the sample.
    views : Views
        Means, scales and shares of all rows, ranks of the sample.
    """

    n_rows: int
    complete: bool
    sample: Rows
    index: IndexArray
    targets: Standardised
    views: Views


@dataclass
class _Moments:
    """Weighted mean and sum of squared deviations of columns, merged block by block."""

    mass: float
    mean: FloatArray
    squares: FloatArray

    @classmethod
    def of(cls, values: FloatArray, weight: FloatArray) -> _Moments:
        mass = float(weight.sum())
        mean = weight @ values / mass
        return cls(mass, mean, weight @ (values - mean) ** 2)

    def add(self, other: _Moments) -> None:
        mass = self.mass + other.mass
        step = other.mean - self.mean
        self.mean = self.mean + step * (other.mass / mass)
        self.squares = self.squares + other.squares + step**2 * (self.mass * other.mass / mass)
        self.mass = mass

    @property
    def spread(self) -> FloatArray:
        return np.asarray(np.sqrt(self.squares / self.mass))


@dataclass
class _Totals:
    """What a block adds to the knowledge of all rows."""

    columns: _Moments
    targets: _Moments
    levels: list[FloatArray]
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, rows: Rows) -> _Totals:
        weight = rows.mass
        return cls(
            _Moments.of(rows.numeric, weight),
            _Moments.of(rows.targets.T, weight),
            [np.bincount(column, weights=weight).astype(np.float64) for column in rows.codes.T],
            rows.targets.min(axis=1),
            rows.targets.max(axis=1),
        )

    def add(self, other: _Totals) -> None:
        self.columns.add(other.columns)
        self.targets.add(other.targets)
        pairs = zip(self.levels, other.levels, strict=True)
        self.levels = [_padded_sum(old, new) for old, new in pairs]
        self.low = np.minimum(self.low, other.low)
        self.high = np.maximum(self.high, other.high)


@dataclass
class _Drawn:
    """The rows with the smallest random keys so far: a fair draw whatever the order of rows."""

    size: int
    rows: Rows
    index: IndexArray
    keys: FloatArray

    def add(self, rows: Rows, index: IndexArray, keys: FloatArray) -> None:
        if len(self.keys) == self.size:
            near = np.flatnonzero(keys < self.keys[-1])
            rows, index, keys = rows.take(near), index[near], keys[near]
        joined = np.concatenate([self.keys, keys])
        kept = np.argsort(joined, kind="stable")[: self.size]
        self.rows = _joined(self.rows, rows).take(kept)
        self.index = np.concatenate([self.index, index])[kept]
        self.keys = joined[kept]


def survey(blocks: Iterable[Rows], size: int, random_state: np.random.RandomState) -> Survey:
    """Return what one reading of all rows tells; where time is up, of those read so far.

    Parameters
    ----------
    blocks : iterable of Rows
        The draw depends on the order of the rows, not on how they are cut.
    size : int
        Rows to draw; all where there are fewer.
    random_state : RandomState
    """
    drawn: _Drawn | None = None
    totals: _Totals | None = None
    n, complete = 0, True
    for rows in blocks:
        if not len(rows):
            continue
        if n and clock.expired():
            complete = False
            break
        index, keys = np.arange(n, n + len(rows)), random_state.random_sample(len(rows))
        n += len(rows)
        if drawn is None or totals is None:
            drawn = _Drawn(size, rows.take(index[:0]), index[:0], keys[:0])
            totals = _Totals.of(rows)
        else:
            totals.add(_Totals.of(rows))
        drawn.add(rows, index, keys)
    if drawn is None or totals is None:
        raise ValueError("the blocks must hold at least one row, got none")
    targets, views = _standardised(drawn.rows, totals), _views(drawn.rows, totals)
    return Survey(n, complete, drawn.rows, drawn.index, targets, views)


def _padded_sum(old: FloatArray, new: FloatArray) -> FloatArray:
    out = np.zeros(max(len(old), len(new)))
    out[: len(old)] = old
    out[: len(new)] += new
    return out


def _joined(first: Rows, second: Rows) -> Rows:
    has_weight = first.weight is not None or second.weight is not None
    return Rows(
        np.concatenate([first.numeric, second.numeric]),
        np.concatenate([first.codes, second.codes]),
        np.concatenate([first.targets, second.targets], axis=1),
        np.concatenate([first.mass, second.mass]) if has_weight else None,
    )


def _standardised(sample: Rows, totals: _Totals) -> Standardised:
    centre, spread = totals.targets.mean, totals.targets.spread
    spread[spread == 0] = 1.0
    values = (sample.targets - centre[:, None]) / spread[:, None]
    margin = 0.3 * spread
    return Standardised(values, centre, spread, totals.low - margin, totals.high + margin)


def _views(sample: Rows, totals: _Totals) -> Views:
    """Return the sample's ranks beside everybody's moments: a rare value is not a far one."""
    mean, scale = totals.columns.mean, totals.columns.spread
    scale[~(scale > 1e-12 * np.abs(mean))] = 1.0
    shares = tuple(count / count.sum() for count in totals.levels)
    views = Views.of(sample.numeric, sample.codes, sample.weight)
    return replace(views, mean=mean, scale=scale, shares=shares)
