"""Where all rows are: read here block by block, or on many machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from kernelweave.kernels_core.arrays import Index

from ..copies import Known
from ..rows import Rows, Standardised
from .features import Landmarks
from .plan import Blocks
from .sums import Sums, total_sums
from .survey import Survey, survey


@dataclass(frozen=True)
class HeldApart:
    """Rows that no sum may see: those held out, and their copies wherever they are.

    - `places`: where the rows held out stand among all rows, sorted
    - `known`: finds their copies; ``None`` where rows recur, so that new ones will have copies too
    """

    places: Index
    known: Known | None

    def rest(self, rows: Rows, begin: int) -> Rows:
        """Return the other rows of a block whose first row stands at ``begin``."""
        if self.known is not None:
            return rows.take(np.flatnonzero(self.known.find(rows.numeric, rows.codes) < 0))
        first, last = np.searchsorted(self.places, [begin, begin + len(rows)])
        return rows.take(np.delete(np.arange(len(rows)), self.places[first:last] - begin))


NOTHING = HeldApart(np.empty(0, dtype=np.intp), None)
"""No row is held out."""


class Source(Protocol):
    """What a fit asks of all rows."""

    def survey(self, size: int, seed: int) -> Survey:
        """Return what one reading tells, and so many rows drawn."""

    def sums(
        self,
        landmarks: Landmarks,
        apart: HeldApart,
        targets: Standardised,
        n_rows: int,
        tell: Callable[[int], None],
    ) -> Sums:
        """Return the sums over all rows but some, of a survey of ``n_rows``."""


@dataclass(frozen=True)
class BlockSource:
    """Rows that this process reads in blocks.

    `blocks`: begins to read anew, in the same order; `n_jobs`: threads of the sums.
    """

    blocks: Blocks
    n_jobs: int | None = None

    def survey(self, size: int, seed: int) -> Survey:
        """Return what one reading tells."""
        return survey(self.blocks(), size, seed)

    def sums(
        self,
        landmarks: Landmarks,
        apart: HeldApart,
        targets: Standardised,
        n_rows: int,
        tell: Callable[[int], None],
    ) -> Sums:
        """Return the sums over all rows but some."""
        blocks = self._rest(apart, n_rows)
        return total_sums(landmarks, blocks, targets, n_jobs=self.n_jobs, tell=tell)

    def _rest(self, apart: HeldApart, n_rows: int) -> Iterator[tuple[Rows, int]]:
        begin = 0
        for rows in self.blocks():
            yield apart.rest(rows, begin), len(rows)
            begin += len(rows)
        refuse_other_rows(n_rows, begin)


def refuse_other_rows(at_first: int, later: int) -> None:
    """Raise where a source gives another number of rows than before."""
    if at_first != later:
        raise ValueError(
            f"the source must give the same rows whenever it is read, got {at_first} rows at "
            f"first and {later} later"
        )
