"""Where all rows are, and sums over them: block by block here, or on many machines."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Pending
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from joblib import effective_n_jobs
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import Index

from ..rows import Rows
from ..terms import Stopped
from .plan import Blocks

_HEAR = 0.05


class Summand(Protocol):
    """What some rows tell."""

    def add(self, other: Self) -> None:
        """Add what later rows tell."""


P = TypeVar("P", bound=Summand)
# from a block, the place of its first row among all that count, and what says when to give up
Read = Callable[[Rows, int, Callable[[], bool]], P]


class Source(Protocol):
    """All rows of a table that count, as numbers and codes."""

    def fold(
        self, read: Read[P], *, partly: bool = False, tell: Callable[[int], None] | None = None
    ) -> tuple[P | None, bool]:
        """Return the sum of what each block of rows tells, and whether it is of all of them.

        `read`: may be sent to other machines; `partly`: whether the rows read so far are enough
        where time is up; `tell`: called with the rows done. ``None`` where there are no rows.
        Raises Stopped where time is up and parts are not enough.
        """

    @property
    def n_rows(self) -> int | None:
        """All rows that count, where that is known before a reading."""


@dataclass(frozen=True)
class BlockSource:
    """Rows that this process reads in blocks.

    `blocks`: begins to read anew, in the same order; `n_jobs`: threads.
    """

    blocks: Blocks
    n_jobs: int | None = None
    n_rows: int | None = None

    def fold(
        self, read: Read[P], *, partly: bool = False, tell: Callable[[int], None] | None = None
    ) -> tuple[P | None, bool]:
        """Return the sum, added in the order of the blocks whatever the number of threads."""
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
                    if tell is not None:
                        tell(n_rows)
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
            return job.result(timeout=_HEAR)
        except Pending:
            if job.done():
                raise


@dataclass
class Selected:
    """Some of all rows, and their places among them."""

    rows: Rows
    places: Index

    def add(self, other: Selected) -> None:
        """Add later rows."""
        self.rows = self.rows.and_others(other.rows)
        self.places = np.concatenate([self.places, other.places])


@dataclass(frozen=True)
class HeldReading:
    """Reads rows that a rule takes.

    `rule`: says of rows and their places which are left out where a fold is predicted.
    """

    rule: Any

    def __call__(self, rows: Rows, first: int, _: Callable[[], bool]) -> Selected:
        """Return those of a block."""
        places = first + np.arange(len(rows))
        own = np.flatnonzero(self.rule.without(rows, places).any(axis=0))
        return Selected(rows.take(own), places[own])


def refuse_other_rows(at_first: int, later: int) -> None:
    """Raise where a source gives another number of rows than before."""
    if at_first != later:
        raise ValueError(
            f"the source must give the same rows whenever it is read, got {at_first} rows at "
            f"first and {later} later"
        )
