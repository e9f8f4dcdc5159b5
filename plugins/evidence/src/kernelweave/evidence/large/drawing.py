"""One reading of batches: rows drawn from everywhere, and those that show what a draw may miss."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from kernelweave.kernels_core import clock
from numpy.typing import NDArray

from ..columns import CellError
from ..rows import FloatArray
from .batches import Batch

IndexArray = NDArray[np.intp]


@dataclass(frozen=True)
class Draw:
    """Rows of a table, in its order.

    Attributes
    ----------
    batch : Batch
        Each row as likely as any other; behind them, for a column that has one value or no gap
        among them, a row that has another or a gap, if there is one anywhere.
    index : ndarray of int
        Where each row stands in the whole table.
    n_rows : int
        Of the whole table, or of what was read of it.
    complete : bool
        Whether all rows were read.
    """

    batch: Batch
    index: IndexArray
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
    index: IndexArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    keys: FloatArray = field(default_factory=lambda: np.empty(0))
    limit: float = np.inf

    def add(self, batch: Batch, first: int, keys: FloatArray) -> None:
        near = np.flatnonzero(keys < self.limit)
        if not len(near):
            return
        self.parts.append(batch.take(near))
        self.index = np.concatenate([self.index, first + near])
        self.keys = np.concatenate([self.keys, keys[near]])
        if len(self.keys) >= 2 * self.size:
            self.sort_out()

    def sort_out(self) -> None:
        kept = np.sort(np.argsort(self.keys, kind="stable")[: self.size])
        self.parts = [joined(self.parts).take(kept)]
        self.index, self.keys = self.index[kept], self.keys[kept]
        if len(kept) == self.size:
            self.limit = float(self.keys.max())


@dataclass
class _Shown:
    """For each column the first row with a gap, with a value, and with another value."""

    rows: dict[tuple[Any, str], tuple[int, Batch]] = field(default_factory=dict)

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
        self, key: tuple[Any, str], where: NDArray[np.bool_], batch: Batch, begin: int
    ) -> None:
        if key not in self.rows and where.any():
            row = int(np.argmax(where))
            self.rows[key] = (begin + row, batch.take(np.array([row])))

    def missing_in(self, table: pd.DataFrame) -> dict[int, Batch]:
        """Return the rows that show what a table does not, by their place."""
        wanted = {}
        for (name, what), (place, row) in self.rows.items():
            values = table[name].dropna()
            one_value = not len(values) or not _others(values, values.iloc[0]).any()
            if one_value if what != "gap" else len(values) == len(table):
                wanted[place] = row
        return wanted


def _others(column: pd.Series[Any], first: Any) -> NDArray[np.bool_]:
    """Return where a column has a value that is not ``first``; lists are refused elsewhere."""
    if not pd.api.types.is_scalar(first):
        return np.zeros(len(column), dtype=np.bool_)
    other = (column != first).to_numpy(dtype=np.bool_, na_value=False)
    return np.asarray(other & column.notna().to_numpy())


def draw(batches: Iterable[Batch], size: int, random_state: np.random.RandomState) -> Draw:
    """Return rows of all batches for what must read a whole table.

    The draw depends on the order of the rows, not on how they are cut. Where time is up it is one
    of the rows read so far.

    Parameters
    ----------
    batches : iterable of Batch
    size : int
        Rows at most; all where there are fewer.
    random_state : RandomState
    """
    drawn, shown, n, complete = _Drawn(size), _Shown(), 0, True
    for batch in batches:
        if not len(batch):
            continue
        if n and clock.expired():
            complete = False
            break
        drawn.add(batch, n, random_state.random_sample(len(batch)))
        shown.add(batch, n)
        n += len(batch)
    if not n:
        raise ValueError("the batches must hold at least one row, got none")
    drawn.sort_out()
    own = joined(drawn.parts)
    more = shown.missing_in(pd.DataFrame(own.X))
    places = np.array(sorted(more), dtype=np.intp)
    batch = joined([own, *(more[place] for place in places)])
    return Draw(batch, np.concatenate([drawn.index, places]), n, complete)


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
