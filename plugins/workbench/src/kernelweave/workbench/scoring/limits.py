"""A limit of seconds on what has none of its own."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


def _interrupt_main() -> None:
    """Interrupt the main thread, also where it waits for a lock, a process or the network."""
    if sys.platform != "win32" and callable(signal.getsignal(signal.SIGINT)):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        # heard by the next line of Python
        _thread.interrupt_main()


@contextmanager
def _hearing_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt where a shell has it ignored, as in jobs started with &."""
    before = signal.getsignal(signal.SIGINT)
    on_main = threading.current_thread() is threading.main_thread()
    # of a handler that is not Python's nothing could put it back
    if callable(before) or before is None or not on_main:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def ended_after(seconds: float | None) -> Iterator[None]:
    """End the block when so many seconds are over, as Ctrl-C would.

    Compiled code ends at its next return to Python, a wait at once. To be used on the main thread,
    as Ctrl-C is heard nowhere else.

    `seconds`: ``None`` is no limit. Raises TimeoutError if the time was over, also where the block
    ended well.
    """
    if seconds is None:
        yield
        return
    over = threading.Event()

    def end() -> None:
        over.set()
        _interrupt_main()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    with _hearing_interrupts():
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
    if over.is_set():
        raise TimeoutError(f"not done after {seconds:g} s")
