"""The clock: it stops solves and fills reports, and never chooses what is computed.

A solver asks `expired` whether to stop, and nothing else: whatever it does next depends on counts
of work, so that the same data give the same answer on a fast machine, a slow one and a busy one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from . import interrupts

_deadline: ContextVar[float] = ContextVar("kernelweave_deadline", default=math.inf)


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Ask every solve inside the block to stop ``seconds`` from now.

    Nested limits only shorten the time: an inner block never outlives the outer one.

    Raises
    ------
    ValueError
        If ``seconds`` is negative or NaN.
    """
    if seconds is not None and not seconds >= 0.0:
        raise ValueError(f"max_time must be a number of seconds or None, got {seconds!r}")
    new = math.inf if seconds is None else time.monotonic() + seconds
    token = _deadline.set(min(new, _deadline.get()))
    try:
        yield
    finally:
        _deadline.reset(token)


def expired() -> bool:
    """Return whether to stop: the deadline of the running solve has passed, or a Ctrl-C came."""
    return interrupts.asked() or time.monotonic() >= _deadline.get()


def seconds_left() -> float:
    """Return the seconds before the deadline, ``inf`` without one, none after a Ctrl-C.

    Only to be handed to somebody else's solver as its own limit.
    """
    return 0.0 if interrupts.asked() else max(0.0, _deadline.get() - time.monotonic())


class Stopwatch:
    """Seconds since it was made, for reports.

    Examples
    --------
    >>> from kernelweave.kernels_core.clock import Stopwatch
    >>> Stopwatch().seconds >= 0.0
    True
    """

    def __init__(self) -> None:
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Return the seconds so far."""
        return time.monotonic() - self._started
