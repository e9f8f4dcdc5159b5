"""Split a compiled loop over rows into blocks and run them on a few threads.

The blocks depend on the size of the problem alone, never on the number of threads, and every
block writes its own part: one and several threads give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, starmap
from typing import TypeVar

import numpy as np

from .config import effective_threads

Part = TypeVar("Part")

# Blocks of equal work, as many for any number of threads, so that sums have the same bits. More
# would share out better; each holds totals of its own that are added at the end.
_BLOCKS = 16
# Rows of a band of the compiled passes: cuts fall between bands.
_BAND = 32
# Starting a pool costs about 0.2 ms; below this many elementary steps one thread is faster.
_MIN_STEPS = 8_000_000


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

    `work`: releases the GIL inside; blocks may run at the same time; `bounds`: the blocks; `steps`:
    estimated elementary steps of all blocks together; small work stays on this thread.
    """
    n_threads = min(effective_threads(), len(bounds))
    if n_threads < 2 or steps < _MIN_STEPS:
        return list(starmap(work, bounds))
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(lambda block: work(*block), bounds))
