"""The memory budget: refuse work that cannot fit before it starts."""

from __future__ import annotations

import os
from pathlib import Path

from .config import get_config
from .exceptions import MemoryBudgetError

_GIB = 2.0**30


def available_bytes() -> int:
    """Return the bytes of memory that the system can give without swapping."""
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def limit_bytes() -> int:
    """Return the limit in force: the user's, else four fifths of the available memory."""
    limit = get_config().memory_limit
    return int(0.8 * available_bytes()) if limit is None else limit


def require(nbytes: int, what: str, *, alternative: str) -> None:
    """Raise before the work when ``nbytes`` exceed the limit in force.

    Parameters
    ----------
    nbytes : int
        Bytes that the work is about to allocate.
    what : str
        What needs them, for the message, e.g. ``"2 Gram matrices of 30000 samples"``.
    alternative : str
        What the user can do instead, a sentence without a full stop.

    Raises
    ------
    MemoryBudgetError
        If ``nbytes`` is more than the limit.
    """
    limit = limit_bytes()
    if nbytes > limit:
        raise MemoryBudgetError(
            f"{what} need {nbytes / _GIB:.2f} GiB, more than the memory limit of "
            f"{limit / _GIB:.2f} GiB: {alternative}"
        )
