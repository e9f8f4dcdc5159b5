"""Where all rows are, and sums over them: block by block here, or on many machines."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Pending
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, TypeVar

from joblib import effective_n_jobs
from kernelweave.kernels_core import clock

from ..rows import Rows
from ..terms import Stopped

if TYPE_CHECKING:
    from .dask_parts import DaskParts

# seconds between two looks at the clock
HEAR = 0.05


Source: TypeAlias = "BlockSource | DaskParts"


class Summand(Protocol):
    """What is read of some rows, to be added up block by block."""

    def add(self, other: Self) -> None:
        """Add what later rows tell."""


P = TypeVar("P", bound=Summand)
# from a block, the place of its first row among all that count, and what says when to give up
Read = Callable[[Any, int, Callable[[], bool]], P]
# from a batch, the place of its first row and whether it was read before, to rows that count
Encode = Callable[..., Rows]


@dataclass(frozen=True)
class BlockSource:
    """All rows of a table, as batches of cells or as numbers and codes, that this process reads.

    `blocks`: begins to read anew, in the same order; `n_jobs`: threads; `n_rows`: all rows, where
    that is known before a reading.
    """

    blocks: Callable[[], Iterable[Sized]]
    n_jobs: int | None = None
    n_rows: int | None = None

    def encoded(self, encode: Encode, n_jobs: int | None = None) -> BlockSource:
        """Return the rows that batches become; `n_jobs`: threads."""
        readings = 0

        def blocks() -> Iterator[Rows]:
            nonlocal readings
            readings += 1
            n = 0
            for batch in self.blocks():
                if len(batch):
                    yield encode(batch, n, again=readings > 1)
                n += len(batch)

        return BlockSource(blocks, n_jobs)

    def fold(
        self, read: Read[P], *, partly: bool = False, report: Callable[[int], None] | None = None
    ) -> tuple[P | None, bool]:
        """Return the sum of what each block of rows tells, and whether it is of all of them.

        It is added in the order of the blocks whatever the number of threads.

        `read`: may be sent to other machines; `partly`: whether the rows read so far are enough
        where time is up; `report`: called with the rows done. ``None`` where there are no rows.
        Raises Stopped where time is up and parts are not enough.
        """
        total: P | None = None
        halt = threading.Event()
        threads = effective_n_jobs(self.n_jobs)
        # what is read ahead would be lost where time is up
        ahead = 1 if partly else threads + 1
        with ThreadPoolExecutor(threads) as pool:
            try:
                for job, n_rows in _in_order(self._jobs(pool, read, halt), ahead):
                    if partly and total is not None and clock.expired():
                        return total, False
                    part = job.result() if partly else _result(job)
                    if total is None:
                        total = part
                    else:
                        total.add(part)
                    if report is not None:
                        report(n_rows)
            finally:
                halt.set()
        return total, True

    def _jobs(
        self, pool: ThreadPoolExecutor, read: Read[P], halt: threading.Event
    ) -> Iterator[tuple[Future[P], int]]:
        """Yield a job for each block that has rows, and the rows up to its end."""
        n = 0
        for rows in self.blocks():
            if len(rows):
                n += len(rows)
                yield pool.submit(read, rows, n - len(rows), halt.is_set), n


def _in_order(jobs: Iterator[tuple[Future[P], int]], ahead: int) -> Iterator[tuple[Future[P], int]]:
    """Yield jobs in their order, a few of which run meanwhile."""
    waiting: deque[tuple[Future[P], int]] = deque()
    for job in jobs:
        waiting.append(job)
        if len(waiting) >= ahead:
            yield waiting.popleft()
    yield from waiting


def _result(job: Future[P]) -> P:
    while True:
        if clock.expired():
            raise Stopped
        try:
            return job.result(timeout=HEAR)
        except Pending:
            if job.done():
                raise


def refuse_other_rows(at_first: int, later: int) -> None:
    """Raise where a source gives another number of rows than before."""
    if at_first != later:
        raise ValueError(
            f"the source must give the same rows whenever it is read, got {at_first} rows at "
            f"first and {later} later"
        )
