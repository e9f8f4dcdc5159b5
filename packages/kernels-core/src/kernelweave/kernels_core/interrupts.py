"""A Ctrl-C that ends a solve where its best point can be kept, and that cannot get lost.

Python raises KeyboardInterrupt at whatever bytecode comes next: amid a solver that holds a point
worth keeping, or in a finalizer or a callback, which compilers run by the thousand, where the
exception is printed or dropped and the program goes on. Inside a solve the first Ctrl-C therefore
only makes the deadline pass (`asked`): every inner solve returns its best point, as at a time
limit, and the outer loop stores it and raises. Whoever presses twice gets the plain
KeyboardInterrupt. One call into a numerical library that takes long runs in a thread of its own
(`aside`), for Python hears nothing before such a call returns.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from types import FrameType
from typing import Any, TypeVar

# Seconds between two looks whether a long call has ended, which are also how late a Ctrl-C is
# heard, and the looks that the call then has left to return: many take less than that.
_HEAR, _GRACE = 0.05, 14
# Entries of an array below which a call is too short to deserve a thread: 1000 by 1000.
_LARGE = 1_000_000
_pending = threading.Event()
T = TypeVar("T")


def _remember(signum: int, frame: FrameType | None) -> None:
    if _pending.is_set():
        signal.default_int_handler(signum, frame)
    _pending.set()


@contextmanager
def kept() -> Iterator[None]:
    """Keep a Ctrl-C that arrives inside the block until `check`, or the block's end, raises it.

    Changes nothing in a thread, inside another such block, or where the program handles SIGINT
    in its own way.
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
        # one that comes now changes nothing
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _pending.clear()
        signal.signal(signal.SIGINT, signal.default_int_handler)


def asked() -> bool:
    """Return whether the solve of this thread was asked to end by a Ctrl-C.

    Only the main thread is: it is the one that Python interrupts.
    """
    return _pending.is_set() and threading.current_thread() is threading.main_thread()


def check() -> None:
    """Raise the Ctrl-C that came, if one did, in the main thread."""
    if asked():
        _pending.clear()
        raise KeyboardInterrupt


def aside(work: Callable[..., T], *arguments: object, **settings: object) -> T:
    """Return ``work(*arguments, **settings)``, and hear a Ctrl-C meanwhile.

    For one long call that gives the interpreter free, an eigendecomposition or a conic solver. Only
    inside `kept`, and not on an array that is small, does it run in another thread; after a Ctrl-C
    it is left to end there by itself.

    `work`: does not touch what the caller goes on to change; `*arguments`, `**settings`: of
    ``work``.

    Examples
    --------
    >>> from kernelweave.kernels_core.interrupts import aside
    >>> aside(max, 2, 3)
    3
    """
    listening = signal.getsignal(signal.SIGINT) is _remember
    small = bool(arguments) and getattr(arguments[0], "size", _LARGE) < _LARGE
    if small or not listening or threading.current_thread() is not threading.main_thread():
        return work(*arguments, **settings)
    context, ends = copy_context(), list[tuple[bool, Any]]()

    def run() -> None:
        try:
            ends.append((True, context.run(work, *arguments, **settings)))
        except BaseException as error:  # noqa: BLE001
            ends.append((False, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    looks = _GRACE
    while thread.is_alive():
        thread.join(_HEAR)
        looks -= _pending.is_set()
        if looks < 0:
            check()
    done, value = ends.pop()
    if not done:
        raise value
    result: T = value
    return result
