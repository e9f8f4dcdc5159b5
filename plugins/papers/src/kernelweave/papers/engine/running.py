"""Computing the cells that are not kept, in parallel, one failure costing one, and keeping them."""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from kernelweave.kernels_core import config_context
from kernelweave.tables.errors import one_line
from kernelweave.workbench.errors import CommandError
from kernelweave.workbench.files import replacing
from threadpoolctl import threadpool_limits

from .. import __version__
from ..plan import Cell
from .chosen import Chosen


@dataclass(frozen=True)
class CellOutcome:
    """What a cell gave and its CPU seconds, or why it failed."""

    value: object
    seconds: float
    error: str = ""


@dataclass(frozen=True)
class KeptCells:
    """A folder with one JSON file a cell, named by what the cell computes."""

    folder: Path

    def path(self, cell: Cell) -> Path:
        """Return the file of a cell: the same for the same function, arguments and version.

        Tables that need the same figure share it.
        """
        function = f"{cell.compute.__module__}.{cell.compute.__qualname__}"
        try:
            text = json.dumps([__version__, function, dict(cell.arguments)], sort_keys=True)
        except TypeError as error:
            raise CommandError(f"the cell {cell.key!r} of {function} is broken: {error}") from error
        name = hashlib.sha256(text.encode()).hexdigest()[:24]
        return self.folder / f"{cell.compute.__name__}-{name}.json"

    def get(self, cell: Cell) -> CellOutcome | None:
        """Return the result that is kept, or None; a damaged file counts as none."""
        try:
            record = json.loads(self.path(cell).read_text(encoding="utf-8"))
            return CellOutcome(record["value"], float(record["seconds"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, cell: Cell, outcome: CellOutcome) -> None:
        """Keep the result of a cell, unless it failed."""
        if outcome.error:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        kept = {"key": cell.key, "value": outcome.value, "seconds": outcome.seconds}
        with replacing(self.path(cell)) as stream:
            stream.write(json.dumps(kept).encode())


def compute(cell: Cell, n_threads: int | None) -> CellOutcome:
    """Run one cell on so many threads, None for no limit; what it raises becomes its outcome."""
    # in a thread beside others the limits, which are the process's, are the caller's to set
    alone = threading.current_thread() is threading.main_thread()
    clock = time.process_time if alone else time.thread_time
    start = clock()
    try:
        with _limited(n_threads) if alone else nullcontext(), config_context(n_threads=n_threads):
            result = cell.compute(**cell.arguments)
        # what JSON has: arrays and numbers of NumPy as Python's
        value = json.loads(json.dumps(result, default=lambda each: each.tolist()))
    except Exception as error:  # noqa: BLE001
        what = f"{type(error).__name__}: {one_line(error)}"
        return CellOutcome(None, clock() - start, what)
    return CellOutcome(value, clock() - start)


def compute_all(
    cells: Sequence[Cell], kept: KeptCells, n_jobs: int | None, max_time: float | None = None
) -> Iterator[tuple[Cell, CellOutcome]]:
    """Compute the cells, keep each as it comes, and yield it with its outcome.

    `n_jobs`: cells at a time, by joblib's loky unless the caller has configured another backend,
    threads and Dask included; None is what that backend takes by itself. Each gets its share of the
    cores as threads. `max_time`: seconds after which no further cell is started.
    """
    from joblib import Parallel, delayed, effective_n_jobs

    workers = effective_n_jobs(n_jobs)
    started = _until(cells, max_time)
    if workers == 1:
        for _, cell in started:
            outcome = compute(cell, None)
            kept.put(cell, outcome)
            yield cell, outcome
        return
    each = max(1, (os.cpu_count() or 1) // workers)
    tasks = (delayed(_numbered)(i, cell, each) for i, cell in started)
    # one cell a task: a batch of small ones would keep a worker waiting at the end
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    with _limited(each):
        for i, outcome in parallel(tasks):
            kept.put(cells[i], outcome)
            yield cells[i], outcome


@contextmanager
def _limited(n_threads: int | None) -> Iterator[None]:
    """Limit the threads of this process, and let the tables say what did not converge."""
    with warnings.catch_warnings(), threadpool_limits(n_threads):
        warnings.simplefilter("ignore")
        yield


def _until(cells: Sequence[Cell], max_time: float | None) -> Iterator[tuple[int, Cell]]:
    """Number the cells, until the time is over."""
    end = math.inf if max_time is None else time.monotonic() + max_time
    for i, cell in enumerate(cells):
        if time.monotonic() >= end:
            return
        yield i, cell


def _numbered(number: int, cell: Cell, n_threads: int) -> tuple[int, CellOutcome]:
    return number, compute(cell, n_threads)


class Run:
    """The cells of the chosen tables; those that compute the same thing are computed once.

    `outcomes`: by the file that keeps them.
    """

    def __init__(self, chosen: Sequence[Chosen], kept: KeptCells, *, fresh: bool) -> None:
        self.chosen = chosen
        self.kept = kept
        self._cells = {kept.path(cell): cell for each in chosen for cell in each.plan.cells}
        outcomes = {} if fresh else {path: kept.get(cell) for path, cell in self._cells.items()}
        self.outcomes = {path: each for path, each in outcomes.items() if each is not None}

    @property
    def is_complete(self) -> bool:
        """Whether every cell has an outcome."""
        return len(self.outcomes) == len(self._cells)

    def left(self) -> list[Cell]:
        """Return the cells without an outcome."""
        return [cell for path, cell in self._cells.items() if path not in self.outcomes]

    def outcomes_of(self, table: Chosen) -> dict[str, CellOutcome]:
        """Return the outcomes of one table by the key of the cell."""
        files = {cell.key: self.kept.path(cell) for cell in table.plan.cells}
        return {key: self.outcomes[path] for key, path in files.items() if path in self.outcomes}

    def compute(self, n_jobs: int, max_time: float | None) -> Iterator[Cell]:
        """Compute the cells that are left, and yield each that is done."""
        for cell, outcome in compute_all(self.left(), self.kept, n_jobs, max_time):
            self.outcomes[self.kept.path(cell)] = outcome
            yield cell
