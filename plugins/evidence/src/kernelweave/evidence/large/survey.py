"""One pass over blocks of rows: moments, shares of levels, and rows drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index

from ..rows import Rows, Standardised, natural_range
from ..views import Ragged, Views
from .drawing import Drawn
from .source import Source

# values of a column whose ranks are kept: of so many rows all
_KNOTS = 8192


@dataclass(frozen=True)
class Survey:
    """What is known of all rows, and some of them.

    - `complete`: whether time sufficed for all rows
    - `sample`: drawn without replacement, each row as likely as any other, in random order
    - `index` of shape (n_sample,): their positions among all rows
    - `targets`: centre, spread and range of all targets; ``values`` are those of the sample
    - `views`: means, scales and shares of all rows, ranks of the sample
    - `mass`: weight of all rows; `least`, `most` of shape (n_outputs,): range of their targets
    """

    n_rows: int
    complete: bool
    sample: Rows
    index: Index
    targets: Standardised
    views: Views
    mass: float
    least: FloatArray
    most: FloatArray

    def with_transformed_columns(self) -> Survey:
        """Return the survey with skewed columns transformed; their moments are the sample's."""
        sample = replace(self.sample, transform_columns=True)
        return replace(
            self, sample=sample, views=replace(_thinned(sample.views()), shares=self.views.shares)
        )


@dataclass
class _Moments:
    """Weighted mean and sum of squared deviations of columns, merged block by block.

    `unit`: powers of two near the largest numbers, in which `mean` and `squares` are: squares of
    tiny numbers would underflow, and those of huge ones overflow.
    """

    mass: float
    unit: FloatArray
    mean: FloatArray
    squares: FloatArray

    @classmethod
    def of(cls, values: FloatArray, weight: FloatArray) -> _Moments:
        unit = np.ldexp(1.0, np.frexp(np.abs(values).max(axis=0))[1] - 1)
        mass, values = float(weight.sum()), values / unit
        mean = weight @ values / mass
        return cls(mass, unit, mean, weight @ (values - mean) ** 2)

    def add(self, other: _Moments) -> None:
        mass, unit = self.mass + other.mass, np.maximum(self.unit, other.unit)
        old, new = self.unit / unit, other.unit / unit
        step = other.mean * new - self.mean * old
        self.mean = self.mean * old + step * (other.mass / mass)
        between = step**2 * (self.mass * other.mass / mass)
        self.squares = self.squares * old**2 + other.squares * new**2 + between
        self.mass, self.unit = mass, unit

    @property
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation."""
        return self.unit * self.mean, np.asarray(self.unit * np.sqrt(self.squares / self.mass))


@dataclass
class PartSurvey:
    """What some rows tell; those of other rows can be added.

    `levels`: the mass of each category; `low`, `high` of shape (n_outputs,): range of the targets.
    """

    n_rows: int
    numbers: _Moments
    targets: _Moments
    levels: list[FloatArray]
    low: FloatArray
    high: FloatArray
    drawn: Drawn[Rows]

    @classmethod
    def of(
        cls, rows: Rows, first: int, _: Callable[[], bool], *, size: int, seed: int,
        n_rows: int | None,
    ) -> PartSurvey:  # fmt: skip
        """Return what a block tells, the first of whose rows is the table's ``first``."""
        weight = rows.mass
        return cls(
            len(rows),
            _Moments.of(rows.numeric, weight),
            _Moments.of(rows.targets.T, rows.precision),
            [np.bincount(column, weights=weight).astype(np.float64) for column in rows.codes.T],
            rows.targets.min(axis=1),
            rows.targets.max(axis=1),
            Drawn.of(rows, len(rows), first, size, seed, n_rows),
        )

    def add(self, other: PartSurvey) -> None:
        """Add what other rows tell."""
        self.n_rows += other.n_rows
        self.numbers.add(other.numbers)
        self.targets.add(other.targets)
        pairs = zip(self.levels, other.levels, strict=True)
        self.levels = [_padded_sum(old, new) for old, new in pairs]
        self.low = np.minimum(self.low, other.low)
        self.high = np.maximum(self.high, other.high)
        self.drawn.add(other.drawn)

    def standardised(self) -> Standardised:
        """Return the targets of the sample in the units of all targets."""
        centre, spread = self.targets.moments
        spread[spread == 0] = 1.0
        values = (self.drawn.rows.targets - centre[:, None]) / spread[:, None]
        low, high = natural_range(self.drawn.rows.targets, self.low, self.high, spread)
        if self.drawn.rows.ends is not None:
            # these targets are a likelihood's, and say nothing of what others never leave
            low, high = np.full(len(spread), -np.inf), np.full(len(spread), np.inf)
        return Standardised(values, centre, spread, low, high)

    def views(self) -> Views:
        """Return the sample's ranks beside everybody's moments: a rare value is not a far one."""
        mean, scale = self.numbers.moments
        scale[~(scale > 1e-12 * np.abs(mean))] = 1.0
        shares = Ragged.of([count / count.sum() for count in self.levels])
        sample = _thinned(self.drawn.rows.views())
        return replace(sample, mean=mean, scale=scale, shares=shares)


def survey(source: Source, size: int, seed: int) -> Survey:
    """Return what one reading of all rows tells; where time is up, of those read so far.

    The draw depends on the order of the rows, not on how they are cut.

    `size`: rows to draw; all where there are fewer; `seed`: of the draw.
    """
    read = partial(PartSurvey.of, size=size, seed=seed, n_rows=source.n_rows)
    seen, complete = source.fold(read, partly=True)
    if seen is None:
        raise ValueError("the blocks must hold at least one row, got none")
    drawn = seen.drawn
    return Survey(
        seen.n_rows, complete, drawn.rows, drawn.places, seen.standardised(), seen.views(),
        seen.numbers.mass, seen.low, seen.high,
    )  # fmt: skip


def _padded_sum(old: FloatArray, new: FloatArray) -> FloatArray:
    out = np.zeros(max(len(old), len(new)))
    out[: len(old)] = old
    out[: len(new)] += new
    return out


def _thinned(views: Views) -> Views:
    """Return views with some thousand knots a column at most; ranks between them are on a line."""
    pairs = [_some_knots(*pair) for pair in zip(views.knots, views.ranks, strict=True)]
    knots, ranks = (Ragged.of([pair[k] for pair in pairs]) for k in (0, 1))
    return replace(views, knots=knots, ranks=ranks)


def _some_knots(knots: FloatArray, ranks: FloatArray) -> tuple[FloatArray, FloatArray]:
    if len(knots) <= _KNOTS:
        return knots, ranks
    kept = np.zeros(len(knots), dtype=np.bool_)
    kept[np.searchsorted(ranks, np.linspace(ranks[0], ranks[-1], _KNOTS))] = True
    # both sides of a value that many rows have
    far = np.diff(ranks) > 1.0 / _KNOTS
    kept[:-1] |= far
    kept[1:] |= far
    return knots[kept], ranks[kept]
