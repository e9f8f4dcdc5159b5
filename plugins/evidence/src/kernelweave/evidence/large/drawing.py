"""Rows drawn from everywhere in one reading, and those that show what a draw may miss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.tables import CellError
from numpy.typing import NDArray

from ..rows import Rows
from .batches import Batch
from .reading import Targets, checked_batch
from .source import Source

# Philox gives so many numbers a count
_EACH = 4


def row_keys(seed: int, first: int, n: int) -> FloatArray:
    """Return a random number for each of the rows ``first, first + 1, …``.

    Returns shape (n,): the same for a row whatever the rows around it, so that machines that read
    parts of a table draw as one that reads it whole.

    Examples
    --------
    >>> from kernelweave.evidence.large.drawing import row_keys
    >>> bool((row_keys(0, 7, 3) == row_keys(0, 0, 10)[7:]).all())
    True
    """
    bits = np.random.Philox(key=seed)
    bits.advance(first // _EACH)
    skipped = first % _EACH
    return np.asarray(np.random.Generator(bits).random(skipped + n)[skipped:])


R = TypeVar("R", Batch, Rows)


@dataclass
class Drawn(Generic[R]):
    """The rows with the smallest random keys so far: a fair draw whatever the order of rows.

    `places` of shape (n,): where they stand in the whole table; `keys`: ascending.
    """

    size: int
    rows: R
    places: Index
    keys: FloatArray

    @classmethod
    def of(cls, rows: R, n: int, first: int, size: int, seed: int, source: int | None) -> Drawn[R]:
        """Draw of n rows that begin at ``first``; `source`: rows of the whole table, if known."""
        keys = row_keys(seed, first, n)
        # so many are below it, but for twelve standard deviations
        limit = np.inf if source is None else (size + 12.0 * np.sqrt(size)) / max(1, source)
        near = np.flatnonzero(keys < limit)
        near = near[np.argsort(keys[near], kind="stable")[:size]]
        return cls(size, rows.take(near), first + near, keys[near])

    def add(self, other: Drawn[R]) -> None:
        """Add what was drawn of later rows."""
        if len(self.keys) == self.size:
            near = np.flatnonzero(other.keys < self.keys[-1])
            other = Drawn(self.size, other.rows.take(near), other.places[near], other.keys[near])
        if not len(other.keys):
            return
        joined = np.concatenate([self.keys, other.keys])
        kept = np.argsort(joined, kind="stable")[: self.size]
        self.rows = self.rows.and_others(other.rows).take(kept)
        self.places = np.concatenate([self.places, other.places])[kept]
        self.keys = joined[kept]


@dataclass(frozen=True)
class Draw:
    """Rows of a table, in its order.

    - `batch`: each row as likely as any other; behind them, for a column that has one value or no
      missing one among them, a row that has another or lacks it, if there is one anywhere
    - `index`: where each row stands in the whole table
    - `n_rows`: of the whole table, or of what was read of it
    - `complete`: whether all rows were read
    """

    batch: Batch
    index: Index
    n_rows: int
    complete: bool

    @contextmanager
    def place_errors(self) -> Iterator[None]:
        """Let errors on a cell say where it stands in the whole table."""
        try:
            yield
        except CellError as error:
            place = int(self.index[error.row])
            raise CellError(error.column, place, error.what) from None
        except TypeError as error:
            raise TypeError(
                f"among {len(self.batch)} rows drawn from {self.n_rows}, in their order: {error}"
            ) from error


def _showing(batch: Batch) -> Index:
    """Return the rows that show, column by column, a missing value, a value, and another value.

    They are the first that do, so that those of a whole table are among those of its parts.
    """
    masks = []
    for _, column in pd.DataFrame(batch.X).items():
        present = column.notna().to_numpy()
        masks += [~present, present]
        if present.any():
            masks.append(_others(column, column.iloc[int(present.argmax())]))
    return np.unique(np.array([each.argmax() for each in masks if each.any()], dtype=np.intp))


def _others(column: pd.Series, first: object) -> NDArray[np.bool_]:
    """Return where a column has a value that is not ``first``; lists are refused elsewhere."""
    if not pd.api.types.is_scalar(first):
        return np.zeros(len(column), dtype=np.bool_)
    other = (column != first).to_numpy(dtype=np.bool_, na_value=False)
    return np.asarray(other & column.notna().to_numpy())


@dataclass
class _FirstReading:
    """Rows drawn, those that show what the draw may miss and their places, and all targets."""

    drawn: Drawn[Batch]
    shown: Batch
    places: Index
    targets: Any
    n_rows: int

    @classmethod
    def of(
        cls, batch: Batch, first: int, _: Callable[[], bool], *,
        targets: Callable[..., Targets], size: int, seed: int, n_rows: int | None,
    ) -> _FirstReading:  # fmt: skip
        """Return what a batch tells, the first of whose rows is the table's ``first``."""
        batch, summary = checked_batch(batch, targets, first)
        drawn, rows = Drawn.of(batch, len(batch), first, size, seed, n_rows), _showing(batch)
        return cls(drawn, batch.take(rows), first + rows, summary, len(batch))

    def add(self, other: _FirstReading) -> None:
        """Add what later rows tell."""
        self.drawn.add(other.drawn)
        both = self.shown.and_others(other.shown)
        kept = _showing(both)
        self.shown, self.places = both.take(kept), np.append(self.places, other.places)[kept]
        self.targets.add(other.targets)
        self.n_rows += other.n_rows


def first_reading(
    source: Source, targets: Callable[..., Targets], size: int, seed: int
) -> tuple[Draw, Targets]:
    """Return rows of all batches for what must read a whole table, and what all targets tell.

    The draw depends on the order of the rows, not on how they are cut. Where time is up it is one
    of the rows read so far.

    `targets`: what reads those of a batch; `size`: rows at most; all where there are fewer.
    """
    read = partial(_FirstReading.of, targets=targets, size=size, seed=seed, n_rows=source.n_rows)
    seen, complete = source.fold(read, partly=True)
    if seen is None:
        raise ValueError("the batches must hold at least one row, got none")
    drawn, by = seen.drawn, np.argsort(seen.drawn.places)
    every = drawn.rows.take(by).and_others(seen.shown)
    more = _showing(every)
    kept = np.append(np.arange(len(by)), more[more >= len(by)])
    index = np.append(drawn.places[by], seen.places)[kept]
    return Draw(every.take(kept), index, seen.n_rows, complete), seen.targets
