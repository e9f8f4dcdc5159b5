"""Settings that hold for a block of code, memory limit and threads, and loops split among these."""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import pairwise, starmap
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from .checks import COUNT, number

if TYPE_CHECKING:
    from threadpoolctl import LibController


# Samples from which several BLAS threads pay for a factorisation, measured on two cores.
ONE_THREAD_BELOW = 2000

Part = TypeVar("Part")

# Blocks of equal work, as many for any number of threads, so that sums have the same bits. More
# would share out better; each holds totals of its own that are added at the end.
_BLOCKS = 16
# Rows of a band of the compiled passes: cuts fall between bands.
_BAND = 32
# Starting a pool costs about 0.2 ms; below this many elementary steps one thread is faster.
_MIN_STEPS = 8_000_000


@dataclass(frozen=True)
class Config:
    """The settings in force.

    Attributes
    ----------
    memory_limit : int or None
        Bytes that one solve may allocate; ``None`` means four fifths of the memory of the
        machine, or of the container that this process runs in.
    n_threads : int or None
        Threads for the compiled kernels; ``None`` means all the cores of this process.
    """

    memory_limit: int | None = None
    n_threads: int | None = None


_current: ContextVar[Config] = ContextVar("kernelweave_config", default=Config())  # noqa: B039


def get_config() -> Config:
    """Return the settings in force.

    Returns
    -------
    Config
        Unchangeable.
    """
    return _current.get()


@contextmanager
def config_context(
    *, memory_limit: float | None = None, n_threads: int | None = None
) -> Iterator[Config]:
    """Change settings inside a ``with`` block; settings not given keep their value.

    Parameters
    ----------
    memory_limit : int, optional
        Bytes that one solve may allocate.
    n_threads : int, optional
        Threads for the compiled kernels.

    Yields
    ------
    Config
        The settings in force inside the block.

    Raises
    ------
    ValueError
        If a setting is not a positive integer.

    Examples
    --------
    >>> from kernelweave.kernels_core import config_context, get_config
    >>> with config_context(memory_limit=2**30, n_threads=1):
    ...     get_config().memory_limit
    1073741824
    """
    new = get_config()
    if memory_limit is not None:
        new = replace(new, memory_limit=int(number(least=1.0).check("memory_limit", memory_limit)))
    if n_threads is not None:
        new = replace(new, n_threads=int(COUNT.check("n_threads", n_threads)))
    token = _current.set(new)
    try:
        yield new
    finally:
        _current.reset(token)


def effective_threads() -> int:
    """Return how many threads a compiled kernel may use now.

    The cores of this process, or ``n_threads`` of the configuration if that is less. Inside a
    parallel loop of joblib (a grid search with ``n_jobs``, a Dask worker) one, or what the loop
    leaves to each of its processes in ``NUMBA_NUM_THREADS``: loops within loops must not use more
    threads than there are cores.
    """
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    cores = available or os.cpu_count() or 1
    limit = get_config().n_threads
    if limit is None and _is_inside_a_loop():
        limit = _threads_left_by_the_loop()
    return cores if limit is None else min(limit, cores)


def blas_threads(n_samples: int) -> AbstractContextManager[object]:
    """Return a context with one BLAS thread for problems that threads would only slow down.

    On a busy machine the spinning waits of two threads cost thirty times a factorisation; and one
    thread sums in one order, whatever the machine has.
    """
    return nullcontext() if n_samples > ONE_THREAD_BELOW else one_blas_thread()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Return a context in which linear algebra uses one thread, also where several fits overlap.

    Were each fit to restore what it found, the first to end would give the others their threads
    back in the middle, and the last would leave the process with one.
    """
    pools = _pools()
    with _HOLDERS.lock:
        limits = [(pool, pool.num_threads) for pool in pools]
        if _HOLDERS.count == 0:
            _HOLDERS.before = limits
        _HOLDERS.count += 1
        _set_threads([(pool, 1) for pool in pools])
    try:
        yield
    finally:
        with _HOLDERS.lock:
            _HOLDERS.count -= 1
            shared = [] if _HOLDERS.count else [p for p in _HOLDERS.before if not _is_own(p[0])]
            _set_threads([p for p in limits if _is_own(p[0])] + shared)


@dataclass
class _Holders:
    """The count of contexts that hold linear algebra to one thread, and the threads before them."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    count: int = 0
    before: list[tuple[LibController, int]] = field(default_factory=list)


_HOLDERS = _Holders()


def _is_own(pool: object) -> bool:
    """Return whether each thread of this process has a number of its own: OpenMP's rule."""
    return getattr(pool, "threading_layer", None) == "openmp"


def _set_threads(numbers: list[tuple[LibController, int]]) -> None:
    for pool, n_threads in numbers:
        # since threadpoolctl 3.8 it hears one thread until that is done; here the last to end
        # restores what the first has set
        release = getattr(pool, "clear_controlling_thread", None)
        if release is not None:
            release(force=True)
        pool.set_num_threads(n_threads)
        if release is not None:
            release(force=True)


@functools.cache
def _pools() -> list[LibController]:
    """Return the pools of linear algebra, kept: a search costs more than a small solve."""
    # its linear algebra is another library than NumPy's
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas").lib_controllers  # type: ignore[no-any-return]


def _is_inside_a_loop() -> bool:
    """Return whether joblib or Dask runs this call beside others; neither is imported for it."""
    parallel = sys.modules.get("joblib.parallel")
    if parallel is not None and (parallel.get_active_backend()[0].nesting_level or 0) > 0:
        return True
    dask = sys.modules.get("distributed.worker")
    if dask is None:
        return False
    try:
        dask.get_worker()
    except ValueError:
        return False
    return True


def _threads_left_by_the_loop() -> int:
    """Return the threads of a worker: its share if it is a process, one if it is a thread."""
    if threading.current_thread() is not threading.main_thread():
        return 1
    share = os.environ.get("NUMBA_NUM_THREADS", "")
    return int(share) if share.isdigit() and int(share) > 0 else 1


def row_bounds(n_rows: int, *, lower: bool) -> list[tuple[int, int]]:
    """Cut rows into blocks of about equal work, in multiples of the kernels' band of rows.

    `n_rows`: number of rows; `lower`: whether row i costs i steps (a lower triangle) or every row
    the same.
    """
    share = np.linspace(0.0, 1.0, _BLOCKS + 1)
    cuts = n_rows * (np.sqrt(share) if lower else share)
    edges = np.unique(np.minimum(n_rows, np.ceil(cuts / _BAND).astype(np.int64) * _BAND))
    return [(int(a), int(b)) for a, b in pairwise(edges)]


def run_blocks(
    work: Callable[[int, int], Part], bounds: list[tuple[int, int]], steps: float
) -> list[Part]:
    """Run ``work(start, stop)`` for every block and return the parts in the order of the blocks.

    The blocks depend on the size of the problem alone, never on the number of threads, and every
    block writes its own part: one and several threads give the same bits.

    `work`: releases the GIL inside; blocks may run at the same time; `bounds`: the blocks; `steps`:
    estimated elementary steps of all blocks together; small work stays on this thread.
    """
    n_threads = min(effective_threads(), len(bounds))
    if n_threads < 2 or steps < _MIN_STEPS:
        return list(starmap(work, bounds))
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(lambda block: work(*block), bounds))
