"""A Ctrl-C that a finalizer swallows still ends the solve."""

from __future__ import annotations

import math
import signal
import threading
import time

import numpy as np
import pytest
from kernelweave.kernels_core import clock, interrupts


class Deaf:
    """Raises the signal where Python drops the exception: inside a finalizer."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)
        len(())


def lose_one() -> None:
    deaf = Deaf()
    del deaf


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_check_raises_what_a_finalizer_dropped():
    with interrupts.defer_interrupt():
        lose_one()
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
        interrupts.check()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_end_of_the_block_raises_it_and_the_next_block_does_not():
    with pytest.raises(KeyboardInterrupt), interrupts.defer_interrupt():
        lose_one()
    with interrupts.defer_interrupt():
        interrupts.check()


def test_a_plain_interrupt_is_raised_once():
    with pytest.raises(KeyboardInterrupt), interrupts.defer_interrupt():
        signal.raise_signal(signal.SIGINT)
    interrupts.check()


def test_the_first_makes_the_deadline_pass() -> None:
    with interrupts.defer_interrupt():
        assert not clock.expired()
        signal.raise_signal(signal.SIGINT)
        assert interrupts.interrupt_requested()
        assert clock.seconds_left() == 0.0
        assert clock.expired()
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
    assert not interrupts.interrupt_requested()
    assert clock.seconds_left() == math.inf


def test_the_second_is_raised_at_once() -> None:
    with interrupts.defer_interrupt():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()


def sleep_long() -> None:
    while True:
        time.sleep(0.05)


def test_who_does_not_look_at_the_clock_is_stopped_by_the_second() -> None:
    with interrupts.defer_interrupt():
        signal.raise_signal(signal.SIGINT)
        threading.Timer(0.1, lambda: signal.raise_signal(signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            sleep_long()
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not interrupts.interrupt_requested()


def test_another_thread_is_not_interrupted() -> None:
    seen = []
    with interrupts.defer_interrupt():
        signal.raise_signal(signal.SIGINT)
        thread = threading.Thread(target=lambda: seen.append(clock.seconds_left()))
        thread.start()
        thread.join()
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
    assert seen == [math.inf]


def test_a_handler_of_the_program_stays():
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        with interrupts.defer_interrupt():
            signal.raise_signal(signal.SIGINT)
            interrupts.check()
        assert seen == [1]
    finally:
        signal.signal(signal.SIGINT, before)


def test_threads_are_left_alone():
    failed = []

    def work() -> None:
        try:
            with interrupts.defer_interrupt():
                interrupts.check()
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not failed


def test_the_default_handler_is_back():
    with interrupts.defer_interrupt():
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        with interrupts.defer_interrupt():
            pass
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_long_call_is_left() -> None:
    """A call that does not return to Python, as a factorisation; a lock stands for it."""
    lock = threading.Lock()
    lock.acquire()
    threading.Timer(0.2, lambda: signal.raise_signal(signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt), interrupts.defer_interrupt():
        interrupts.run_interruptibly(lock.acquire)
    lock.release()


def test_a_long_call_returns_and_raises_as_here() -> None:
    def value(array: np.ndarray, *, factor: float) -> tuple[int, float, float]:
        return threading.get_ident(), factor * array.sum(), clock.seconds_left()

    large = np.ones((1000, 1000))
    with interrupts.defer_interrupt(), clock.time_limit(100.0):
        here, total, left = interrupts.run_interruptibly(value, large[:2], factor=2.0)
        there, whole, seen = interrupts.run_interruptibly(value, large, factor=2.0)
        with pytest.raises(np.linalg.LinAlgError):
            interrupts.run_interruptibly(np.linalg.cholesky, -np.eye(1000))
    assert here == threading.get_ident() != there
    assert (total, whole) == (4000.0, 2e6)
    assert 0.0 < seen <= left <= 100.0
    assert interrupts.run_interruptibly(value, large, factor=1.0)[0] == here
