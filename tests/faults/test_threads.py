"""A small fit does its linear algebra on one thread, whatever the machine has."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest
from sound_cases import sound
from subjects import Subject, estimators
from threadpoolctl import LibController, ThreadpoolController, threadpool_limits

# where linear algebra is called from Python, and what of ours is nothing but linear algebra
FOLDERS = ("numpy/linalg", "scipy/linalg", "sklearn/metrics/pairwise")
OWN = ("gram", "grams", "cross", "features")


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    """Begin with two, whatever the machine and its settings."""
    with threadpool_limits(2, user_api="blas"):
        if any(pool.num_threads != 2 for pool in pools()):
            pytest.skip("linear algebra here cannot be set to two threads")
        yield


def pools() -> list[LibController]:
    """Return the libraries of linear algebra that have one number of threads for the process."""
    return [
        pool
        for pool in ThreadpoolController().select(user_api="blas").lib_controllers
        if getattr(pool, "threading_layer", "") not in ("openmp", "disabled")
    ]


def is_ours(frame: FrameType | None) -> bool:
    return frame is not None and "kernelweave" in frame.f_code.co_filename


def with_two_threads(work: Callable[[], object]) -> set[str]:
    """Return the functions of ours that reached linear algebra while it had two threads."""
    known, found = pools(), set()

    def watch(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename.replace("\\", "/")
        algebra = any(folder in name for folder in FOLDERS)
        if event != "call" or not (algebra or (is_ours(frame) and frame.f_code.co_name in OWN)):
            return
        caller: FrameType | None = frame
        while caller is not None and not is_ours(caller):
            caller = caller.f_back
        if caller is not None and any(pool.num_threads > 1 for pool in known):
            found.add(f"{caller.f_code.co_filename}: {caller.f_code.co_name}")

    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("subject", estimators(), ids=lambda each: each.name)
def test_a_small_fit_keeps_to_one_thread(subject: Subject) -> None:
    case = sound(subject.task)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert with_two_threads(lambda: subject.make({}).fit(case.X, case.y)) == set()


def test_the_watch_sees_two_threads() -> None:
    """What does not ask for one thread is found."""
    from kernelweave.kernels_core.grams import PrecomputedGrams

    own = PrecomputedGrams.of_checked(np.eye(3)[None])
    assert with_two_threads(lambda: own.grams)
