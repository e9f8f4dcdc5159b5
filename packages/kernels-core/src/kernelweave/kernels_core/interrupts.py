"""A Ctrl-C that cannot get lost.

Python raises KeyboardInterrupt at whatever bytecode comes next. Where that is a finalizer or a
callback, which compilers run by the thousand, the exception is printed or dropped and the program
goes on. A solve therefore remembers that the signal came, and raises it again at its next check.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_pending = threading.Event()


def _remember(signum: int, frame: FrameType | None) -> None:
    _pending.set()
    signal.default_int_handler(signum, frame)


@contextmanager
def kept() -> Iterator[None]:
    """Keep a Ctrl-C that arrives inside the block until `check`, or the block's end, raises it.

    Changes nothing in a thread, inside another such block, or where the program handles SIGINT
    in its own way.

    Raises
    ------
    KeyboardInterrupt
        At the end of the block, if the signal came and nothing has raised it.
    """
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    _pending.clear()
    signal.signal(signal.SIGINT, _remember)
    try:
        yield
        check()
    finally:
        _pending.clear()
        signal.signal(signal.SIGINT, signal.default_int_handler)


def check() -> None:
    """Raise the Ctrl-C that was lost, if one was.

    Only the main thread raises: it is the one that Python interrupts.
    """
    if _pending.is_set() and threading.current_thread() is threading.main_thread():
        _pending.clear()
        raise KeyboardInterrupt
