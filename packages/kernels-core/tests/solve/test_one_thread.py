"""Linear algebra is held to one thread for as long as any of several fits asks for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest
import scipy.linalg  # noqa: F401
from kernelweave.kernels_core.config import one_blas_thread
from threadpoolctl import ThreadpoolController, threadpool_limits


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    """Begin with two, whatever the machine and its settings."""
    with threadpool_limits(2, user_api="blas"):
        if threads() != {2}:
            pytest.skip("linear algebra here cannot be set to two threads")
        yield


def threads() -> set[int]:
    """Return the numbers of threads of the libraries that have one number for the process."""
    return {
        pool.num_threads
        for pool in ThreadpoolController().select(user_api="blas").lib_controllers
        if getattr(pool, "threading_layer", "") not in ("openmp", "disabled")
    }


def test_one_inside_the_other() -> None:
    with one_blas_thread():
        with one_blas_thread():
            assert threads() == {1}
        assert threads() == {1}
    assert threads() == {2}


def test_an_error_gives_the_threads_back() -> None:
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        raise ZeroDivisionError
    assert threads() == {2}


def test_the_first_thread_to_end_does_not_give_the_threads_back() -> None:
    begun, end = threading.Event(), threading.Event()

    def first() -> None:
        with one_blas_thread():
            begun.set()
            end.wait()

    worker = threading.Thread(target=first)
    worker.start()
    begun.wait()
    with one_blas_thread():
        end.set()
        worker.join()
        assert threads() == {1}
    assert threads() == {2}


def test_many_threads_leave_what_they_found() -> None:
    seen: list[set[int]] = []
    start = threading.Barrier(8)

    def work() -> None:
        start.wait()
        for _ in range(50):
            with one_blas_thread():
                np.linalg.eigvalsh(np.eye(4))
                seen.append(threads())

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert seen == [{1}] * 400
    assert threads() == {2}
    # and threadpoolctl is heard again
    with threadpool_limits(1, user_api="blas"):
        assert threads() == {1}
    assert threads() == {2}
