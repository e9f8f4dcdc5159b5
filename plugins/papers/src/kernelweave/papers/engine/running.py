"""Computing cells: those that are not kept, in parallel, one failure costing one cell."""

from __future__ import annotations

import math
import os
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

import numpy as np
from kernelweave.kernels_core import config_context
from kernelweave.tables.errors import one_line
from threadpoolctl import threadpool_limits

from ..plan import Cell
from .kept import CellOutcome, KeptCells


def compute(cell: Cell, n_threads: int | None) -> CellOutcome:
    """Run one cell on so many threads, None for no limit; what it raises becomes its outcome."""
    start = time.perf_counter()
    try:
        # in a thread beside others the limits, which are the process's, are the caller's to set
        alone = threading.current_thread() is threading.main_thread()
        with _limited(n_threads) if alone else nullcontext(), config_context(n_threads=n_threads):
            value = plain(cell.compute(**cell.arguments))
    except Exception as error:  # noqa: BLE001
        what = f"{type(error).__name__}: {one_line(error)}"
        return CellOutcome(None, time.perf_counter() - start, what)
    return CellOutcome(value, time.perf_counter() - start)


def plain(value: object) -> object:
    """Return mappings, sequences, NumPy arrays and scalars in types that JSON has."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


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
