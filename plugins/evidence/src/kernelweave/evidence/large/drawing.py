"""One reading of batches: rows drawn from everywhere, and those that show what a draw may miss."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.tables import CellError
from numpy.typing import NDArray

from .batches import Batch
from .keys import row_keys


@dataclass(frozen=True)
class Draw:
    """Rows of a table, in its order.

    - `batch`: each row as likely as any other; behind them, for a column that has one value or no
      gap among them, a row that has another or a gap, if there is one anywhere
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


@dataclass
class _Drawn:
    """The rows with the smallest random keys so far, sorted out when twice as many are kept."""

    size: int
    parts: list[Batch] = field(default_factory=list)
    index: Index = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    keys: FloatArray = field(default_factory=lambda: np.empty(0))
    limit: float = np.inf

    def add(self, batch: Batch, first: int, seed: int) -> None:
        keys = row_keys(seed, first, len(batch))
        near = np.flatnonzero(keys < self.limit)
        if not len(near):
            return
        self.parts.append(batch.take(near))
        self.index = np.concatenate([self.index, first + near])
        self.keys = np.concatenate([self.keys, keys[near]])
        if len(self.keys) >= 2 * self.size:
            self.sort_out()

    def merge(self, other: _Drawn) -> None:
        """Add what was drawn of later rows."""
        self.parts += other.parts
        self.index = np.concatenate([self.index, other.index])
        self.keys = np.concatenate([self.keys, other.keys])
        self.sort_out()

    def sort_out(self) -> None:
        if not self.parts:
            return
        kept = np.sort(np.argsort(self.keys, kind="stable")[: self.size])
        self.parts = [joined(self.parts).take(kept)]
        self.index, self.keys = self.index[kept], self.keys[kept]
        if len(kept) == self.size:
            self.limit = float(self.keys.max())


@dataclass
class _Shown:
    """For each column the first row with a gap, with a value, and with another value."""

    rows: dict[tuple[Hashable, str], tuple[int, Batch]] = field(default_factory=dict)

    def add(self, batch: Batch, begin: int) -> None:
        table = pd.DataFrame(batch.X)
        for name, column in table.items():
            if (name, "gap") in self.rows and (name, "value") in self.rows:
                continue
            gaps = column.isna().to_numpy()
            self._note((name, "gap"), gaps, batch, begin)
            self._note((name, "first"), ~gaps, batch, begin)
            if (name, "first") in self.rows:
                first = pd.DataFrame(self.rows[name, "first"][1].X)[name]
                self._note((name, "value"), _others(column, first.iloc[0]), batch, begin)

    def _note(
        self, key: tuple[Hashable, str], where: NDArray[np.bool_], batch: Batch, begin: int
    ) -> None:
        if key not in self.rows and where.any():
            row = int(np.argmax(where))
            self.rows[key] = (begin + row, batch.take(np.array([row])))

    def merge(self, other: _Shown) -> None:
        """Add what later rows show."""
        for name in {name for name, _ in other.rows}:
            for what in ("gap", "first"):
                if (name, what) in other.rows:
                    self.rows.setdefault((name, what), other.rows[name, what])
            for what in ("first", "value"):
                if (name, what) in other.rows:
                    own = other.rows[name, what]
                    self._note_other(name, own)

    def _note_other(self, name: Hashable, own: tuple[int, Batch]) -> None:
        """Keep a row of a column if its value is another than the first."""
        value = pd.DataFrame(own[1].X)[name]
        first = pd.DataFrame(self.rows[name, "first"][1].X)[name]
        if _others(value, first.iloc[0]).any():
            self.rows.setdefault((name, "value"), own)

    def missing_in(self, table: pd.DataFrame) -> dict[int, Batch]:
        """Return the rows that show what a table does not, by their place."""
        wanted = {}
        for (name, what), (place, row) in self.rows.items():
            values = table[name].dropna()
            one_value = not len(values) or not _others(values, values.iloc[0]).any()
            if one_value if what != "gap" else len(values) == len(table):
                wanted[place] = row
        return wanted


def _others(column: pd.Series, first: object) -> NDArray[np.bool_]:
    """Return where a column has a value that is not ``first``; lists are refused elsewhere."""
    if not pd.api.types.is_scalar(first):
        return np.zeros(len(column), dtype=np.bool_)
    other = (column != first).to_numpy(dtype=np.bool_, na_value=False)
    return np.asarray(other & column.notna().to_numpy())


@dataclass
class PartDraw:
    """Rows drawn of a part of a table; those of later parts can be added."""

    drawn: _Drawn
    shown: _Shown = field(default_factory=_Shown)
    n_rows: int = 0

    @classmethod
    def empty(cls, size: int, limit: float = np.inf) -> PartDraw:
        """Return the draw of no rows; keys above the limit will not be drawn."""
        return cls(_Drawn(size, limit=limit))

    def read(self, batch: Batch, first: int, seed: int) -> None:
        """Draw of a batch too, whose first row stands at ``first``."""
        self.drawn.add(batch, first, seed)
        self.shown.add(batch, first)
        self.n_rows += len(batch)

    def add(self, other: PartDraw) -> None:
        """Add what was drawn of later rows."""
        self.drawn.merge(other.drawn)
        self.shown.merge(other.shown)
        self.n_rows += other.n_rows

    def whole(self, complete: bool = True) -> Draw:
        """Return the draw, these being all rows that there are or that time sufficed for."""
        if not self.n_rows:
            raise ValueError("the batches must hold at least one row, got none")
        self.drawn.sort_out()
        own = joined(self.drawn.parts)
        more = self.shown.missing_in(pd.DataFrame(own.X))
        places = np.array(sorted(more), dtype=np.intp)
        batch = joined([own, *(more[place] for place in places)])
        return Draw(batch, np.concatenate([self.drawn.index, places]), self.n_rows, complete)


def draw(batches: Iterable[Batch], size: int, seed: int) -> Draw:
    """Return rows of all batches for what must read a whole table.

    The draw depends on the order of the rows, not on how they are cut. Where time is up it is one
    of the rows read so far.

    `size`: rows at most; all where there are fewer.
    """
    part = PartDraw.empty(size)
    for batch in batches:
        if not len(batch):
            continue
        if part.n_rows and clock.expired():
            return part.whole(complete=False)
        part.read(batch, part.n_rows, seed)
    return part.whole()


def joined(parts: list[Batch]) -> Batch:
    """Return batches one behind the other."""
    tables = [part.X for part in parts]
    whole = (
        np.concatenate(tables)
        if isinstance(tables[0], np.ndarray)
        else pd.concat(tables, ignore_index=True)
    )
    y = None if parts[0].y is None else np.concatenate([part.y for part in parts])
    has_weight = parts[0].weight is not None
    weight = np.concatenate([part.weight for part in parts]) if has_weight else None
    return Batch(whole, y, weight)
