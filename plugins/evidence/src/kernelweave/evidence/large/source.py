"""Where all rows are: read here block by block, or on many machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from kernelweave.kernels_core.arrays import Index

from ..rows import Rows, Standardised
from .features import Landmarks
from .plan import Blocks
from .sums import Sums, total_sums
from .survey import Survey, survey


class Source(Protocol):
    """What a fit asks of all rows."""

    def survey(self, size: int, seed: int) -> Survey:
        """Return what one reading tells, and so many rows drawn."""

    def sums(
        self,
        landmarks: Landmarks,
        without: Index,
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
        without: Index,
        targets: Standardised,
        n_rows: int,
        tell: Callable[[int], None],
    ) -> Sums:
        """Return the sums over all rows but some."""
        blocks = self._without(np.sort(without), n_rows)
        return total_sums(landmarks, blocks, targets, n_jobs=self.n_jobs, tell=tell)

    def _without(self, places: Index, n_rows: int) -> Iterator[Rows]:
        begin = 0
        for rows in self.blocks():
            yield rows_without(rows, begin, places)
            begin += len(rows)
        refuse_other_rows(n_rows, begin)


def rows_without(rows: Rows, begin: int, places: Index) -> Rows:
    """Return the rows, the first of which stands at ``begin``, but those at sorted places."""
    first, last = np.searchsorted(places, [begin, begin + len(rows)])
    return rows.take(np.delete(np.arange(len(rows)), places[first:last] - begin))


def refuse_other_rows(at_first: int, later: int) -> None:
    """Raise where a source gives another number of rows than before."""
    if at_first != later:
        raise ValueError(
            f"the source must give the same rows whenever it is read, got {at_first} rows at "
            f"first and {later} later"
        )
