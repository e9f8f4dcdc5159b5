"""Where all rows are: read here block by block, or on many machines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ..copies import Known
from ..rows import Standardised
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
        known: Known | None,
        targets: Standardised,
        n_rows: int,
        tell: Callable[[int], None],
    ) -> Sums:
        """Return the sums over all rows, of a survey of ``n_rows``."""


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
        known: Known | None,
        targets: Standardised,
        n_rows: int,
        tell: Callable[[int], None],
    ) -> Sums:
        """Return the sums over all rows."""
        total = total_sums(landmarks, self.blocks(), targets, known, n_jobs=self.n_jobs, tell=tell)
        refuse_other_rows(n_rows, total.n_rows)
        return total


def refuse_other_rows(at_first: int, later: int) -> None:
    """Raise where a source gives another number of rows than before."""
    if at_first != later:
        raise ValueError(
            f"the source must give the same rows whenever it is read, got {at_first} rows at "
            f"first and {later} later"
        )
