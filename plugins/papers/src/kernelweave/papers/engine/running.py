"""Computing cells: those that are not kept, in parallel, one failure costing one cell."""

from __future__ import annotations

import math
import os
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from kernelweave.kernels_core import config_context
from kernelweave.workbench.errors import one_line
from threadpoolctl import threadpool_limits

from ..plan import Cell
from .kept import KeptCells, Outcome

Job = tuple[str, Cell]


def compute(cell: Cell, n_threads: int | None) -> Outcome:
    """Run one cell; what it raises becomes its outcome.

    Parameters
    ----------
    cell : Cell
    n_threads : int or None
        Threads of this cell; None is no limit.

    Returns
    -------
    Outcome
    """
    start = time.perf_counter()
    try:
        # in a thread beside others the limits, which are the process's, are the caller's to set
        alone = threading.current_thread() is threading.main_thread()
        with _limited(n_threads) if alone else nullcontext(), config_context(n_threads=n_threads):
            value = plain(cell.compute(**cell.arguments))
    except Exception as error:  # noqa: BLE001
        what = f"{type(error).__name__}: {one_line(error)}"
        return Outcome(None, time.perf_counter() - start, what)
    return Outcome(value, time.perf_counter() - start)


def plain(value: Any) -> Any:
    """Return the value in types that JSON has.

    Parameters
    ----------
    value : object
        Mappings, sequences, NumPy arrays and scalars, text.

    Returns
    -------
    object
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def compute_all(
    jobs: Sequence[Job], kept: KeptCells, n_jobs: int | None, max_time: float | None = None
) -> Iterator[tuple[str, Cell, Outcome]]:
    """Compute the cells and keep each as it comes.

    Parameters
    ----------
    jobs : sequence of (str, Cell)
        Table and cell.
    kept : KeptCells
    n_jobs : int or None
        Cells at a time, by joblib's loky unless the caller has configured another backend, threads
        and Dask included; None is what that backend takes by itself. Each gets its share of the
        cores as threads.
    max_time : float, optional
        Seconds after which no further cell is started.

    Yields
    ------
    tuple of (str, Cell, Outcome)
        In the order of completion.
    """
    from joblib import Parallel, delayed, effective_n_jobs

    workers = effective_n_jobs(n_jobs)
    started = _until(jobs, max_time)
    if workers == 1:
        for _, (table, cell) in started:
            yield _keep(kept, table, cell, compute(cell, None))
        return
    each = max(1, (os.cpu_count() or 1) // workers)
    tasks = (delayed(_numbered)(i, cell, each) for i, (_, cell) in started)
    # one cell a task: a batch of small ones would keep a worker waiting at the end
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    with _limited(each):
        for i, outcome in parallel(tasks):
            table, cell = jobs[i]
            yield _keep(kept, table, cell, outcome)


@contextmanager
def _limited(n_threads: int | None) -> Iterator[None]:
    """Limit the threads of this process, and let the tables say what did not converge."""
    with warnings.catch_warnings(), threadpool_limits(n_threads):
        warnings.simplefilter("ignore")
        yield


def _until(jobs: Sequence[Job], max_time: float | None) -> Iterator[tuple[int, Job]]:
    """Number the jobs, until the time is over."""
    end = math.inf if max_time is None else time.monotonic() + max_time
    for i, job in enumerate(jobs):
        if time.monotonic() >= end:
            return
        yield i, job


def _numbered(number: int, cell: Cell, n_threads: int) -> tuple[int, Outcome]:
    return number, compute(cell, n_threads)


def _keep(kept: KeptCells, table: str, cell: Cell, outcome: Outcome) -> tuple[str, Cell, Outcome]:
    if not outcome.error:
        kept.put(table, cell, outcome)
    return table, cell, outcome
