"""The clock: it stops solves and fills reports, and never chooses what is computed.

A solver asks `expired` whether to stop, and nothing else: whatever it does next depends on counts
of work, so that the same data give the same answer on a fast machine, a slow one and a busy one.

It stands still while functions compile, which happens once in an environment: a first fit has as
much time to solve as any other.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from . import interrupts
from .checks import number

_LIMIT = number(least=0.0, finite=False).or_none()

# what must still be done after a limit or a Ctrl-C has this long
LATE_SECONDS = 1.0

_deadline: ContextVar[float] = ContextVar("kernelweave_deadline", default=math.inf)


class _Still:
    """How long the clock has stood still; pauses may be nested and come from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._since = 0.0
        self._seconds = 0.0

    def now(self) -> float:
        """Return the seconds of a clock without its pauses."""
        with self._lock:
            return (self._since if self._depth else time.monotonic()) - self._seconds

    def change(self, by: int) -> None:
        """Begin (1) or end (-1) a pause."""
        with self._lock:
            if self._depth == 0:
                self._since = time.monotonic()
            self._depth += by
            if self._depth == 0:
                self._seconds += time.monotonic() - self._since


_still = _Still()


def pause() -> None:
    """Stop the clock of every deadline, until as many calls of `resume`."""
    _still.change(1)


def resume() -> None:
    """Let the clock of deadlines go on."""
    _still.change(-1)


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Ask every solve inside the block to stop ``seconds`` from now.

    Nested limits only shorten the time: an inner block never outlives the outer one.

    Raises ValueError if ``seconds`` is negative or NaN.
    """
    _LIMIT.check("max_time", seconds)
    new = math.inf if seconds is None else _still.now() + seconds
    token = _deadline.set(min(new, _deadline.get()))
    try:
        yield
    finally:
        _deadline.reset(token)


def expired() -> bool:
    """Return whether to stop: the deadline of the running solve has passed, or a Ctrl-C came."""
    return interrupts.interrupt_requested() or _still.now() >= _deadline.get()


def limited() -> bool:
    """Return whether the running solve has a deadline, for saying what ended it."""
    return _deadline.get() < math.inf


def seconds_left() -> float:
    """Return the seconds before the deadline, ``inf`` without one, none after a Ctrl-C.

    Only to be handed to somebody else's solver as its own limit.
    """
    return 0.0 if interrupts.interrupt_requested() else max(0.0, _deadline.get() - _still.now())


class Stopwatch:
    """Seconds since it was made, for reports."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Return the seconds so far."""
        return time.monotonic() - self._started
