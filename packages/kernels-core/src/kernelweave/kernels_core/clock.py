"""The deadline of the running solve, visible to every solver below it."""

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
    """Let no solve inside the block plan past ``seconds`` from now.

    Nested limits only shorten the time: an inner block never outlives the outer one.
    """
    new = math.inf if seconds is None else time.monotonic() + seconds
    token = _deadline.set(min(new, _deadline.get()))
    try:
        yield
    finally:
        _deadline.reset(token)


def remaining() -> float:
    """Return the seconds left before the deadline (``inf`` without one, never negative).

    None are left after a Ctrl-C.
    """
    return 0.0 if interrupts.asked() else max(0.0, _deadline.get() - time.monotonic())


def passed(moment: float) -> bool:
    """Return whether a moment in ``time.monotonic`` has passed, or a Ctrl-C asks to end."""
    return interrupts.asked() or time.monotonic() >= moment
