"""A limit of seconds on what has none of its own."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ended_after(seconds: float | None) -> Iterator[None]:
    """End the block when so many seconds are over, as Ctrl-C would.

    Compiled code ends at its next return to Python. To be used on the main thread, as Ctrl-C is
    heard nowhere else.

    `seconds`: ``None`` is no limit. Raises TimeoutError if the time was over.
    """
    if seconds is None:
        yield
        return
    over = threading.Event()

    def end() -> None:
        over.set()
        _thread.interrupt_main()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    try:
        timer.start()
        try:
            yield
        finally:
            # an interrupt that is on its way arrives while the timer is waited for
            timer.cancel()
            timer.join()
    except KeyboardInterrupt:
        if not over.is_set():
            raise
        raise TimeoutError(f"it was not done after {seconds:g} s") from None
