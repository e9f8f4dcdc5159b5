"""Ctrl-C inside a solve: the best point so far is kept, and the interruption is never lost.

Python raises KeyboardInterrupt at whatever bytecode comes next. That may be in the middle of a
solver that holds a useful point, or in a finalizer or a callback (compilers run thousands of
them), where the exception is printed or dropped and the program goes on. Inside `defer_interrupt`
the first Ctrl-C therefore only makes the deadline pass (`interrupt_requested`): every inner solve
returns its best point, as at a time limit, and the outer loop stores it and raises. A second
Ctrl-C raises KeyboardInterrupt at once. One long call into a numerical library runs in a thread of
its own (`run_interruptibly`), because Python handles no signal before such a call returns.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from types import FrameType
from typing import Any, TypeVar

# Seconds between two polls of a long call, which is also the delay of a Ctrl-C, and the number of
# polls for which the call may still return after a Ctrl-C: most calls end within that time.
_POLL_SECONDS, _GRACE_POLLS = 0.05, 14
# Calls with a smaller array, 1000 by 1000, are so short that they run without a thread.
_LARGE = 1_000_000
_pending = threading.Event()
T = TypeVar("T")


def _remember(signum: int, frame: FrameType | None) -> None:
    """Handle SIGINT: note the first one, and raise KeyboardInterrupt at the second."""
    if _pending.is_set():
        signal.default_int_handler(signum, frame)
    _pending.set()


@contextmanager
def defer_interrupt() -> Iterator[None]:
    """Hold back a Ctrl-C that arrives inside the block until `check` or the end of the block.

    Does nothing outside the main thread, inside another such block, or where the program has a
    SIGINT handler of its own.
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
        # a Ctrl-C between these lines would otherwise leave our handler installed
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _pending.clear()
        signal.signal(signal.SIGINT, signal.default_int_handler)


def interrupt_requested() -> bool:
    """Return whether a deferred Ctrl-C asks the solve in this thread to end.

    Always False outside the main thread, which is the only one that Python interrupts.
    """
    return _pending.is_set() and threading.current_thread() is threading.main_thread()


def check() -> None:
    """Raise KeyboardInterrupt if a deferred Ctrl-C is pending, in the main thread."""
    if interrupt_requested():
        _pending.clear()
        raise KeyboardInterrupt


def run_interruptibly(work: Callable[..., T], *arguments: object, **settings: object) -> T:
    """Return ``work(*arguments, **settings)``, and let a Ctrl-C end the wait for it.

    For one long call that releases the interpreter lock, such as an eigendecomposition or a conic
    solver. It runs in another thread only inside `defer_interrupt` and if its first argument is a
    large array; after a Ctrl-C that thread is left to finish by itself.

    ``work`` must not read what the caller changes afterwards.
    """
    is_deferred = signal.getsignal(signal.SIGINT) is _remember
    small = bool(arguments) and getattr(arguments[0], "size", _LARGE) < _LARGE
    if small or not is_deferred or threading.current_thread() is not threading.main_thread():
        return work(*arguments, **settings)
    context, outcomes = copy_context(), list[tuple[bool, Any]]()

    def run() -> None:
        try:
            outcomes.append((True, context.run(work, *arguments, **settings)))
        except BaseException as error:  # noqa: BLE001
            outcomes.append((False, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    polls_left = _GRACE_POLLS
    while thread.is_alive():
        thread.join(_POLL_SECONDS)
        polls_left -= _pending.is_set()
        if polls_left < 0:
            check()
    succeeded, value = outcomes.pop()
    if not succeeded:
        raise value
    result: T = value
    return result
