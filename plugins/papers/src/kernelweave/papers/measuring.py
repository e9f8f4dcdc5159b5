"""What the papers share: seconds, growth, intervals, and results by the start of their key."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from kernelweave.kernels_core.arrays import Labels
from kernelweave.workbench.scoring.scores import mean_interval
from numpy.typing import ArrayLike

CLASSES = "classification"
TASKS = (CLASSES, "regression")
T = TypeVar("T")


def class_of(module: str, stem: str, *, classes: bool) -> Any:
    """Return the classifier or regressor of a module whose name begins so."""
    return getattr(import_module(module), f"{stem}{'Classifier' if classes else 'Regressor'}")


def score_of(truth: Labels, predicted: Labels, *, classes: bool) -> float:
    """Return the accuracy of labels, R² of numbers."""
    from sklearn.metrics import accuracy_score, r2_score

    return float((accuracy_score if classes else r2_score)(truth, predicted))


class Method(NamedTuple):
    """A method of a comparison: the module that it needs, CPU seconds of a cell, what runs it."""

    needs: str
    seconds: float
    run: Callable[..., Any]

    @property
    def is_installed(self) -> bool:
        """Whether its module is there."""
        return find_spec(self.needs) is not None

    def shown(self, figures: Sequence[Any]) -> list[Any]:
        """Return figures, or in their place that they are not there yet, or will not be."""
        missing = None if self.is_installed else "not installed"
        return [missing if each is None else each for each in figures]


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """Return what ``work`` returns, and its CPU seconds, those of all threads."""
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def settled(work: Callable[[], T]) -> tuple[T, float]:
    """Return what ``work`` returns, and its processor seconds on one thread once all is loaded.

    What imported a module, or compiled a function or loaded it from numba's cache, is done again.
    """
    from numba.core.event import install_recorder
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1), install_recorder("numba:compiler_lock") as compiled:
        n_modules = len(sys.modules)
        result, seconds = timed(work)
        if compiled.buffer or len(sys.modules) > n_modules:
            result, seconds = timed(work)
    return result, seconds


def peak_of(work: Callable[[], T]) -> tuple[T, float]:
    """Return what ``work`` returns, and the bytes that this process took for it at most.

    Beyond what it held before, its threads included; NaN where the system is not Linux.
    """
    try:
        # what Linux understands as: forget the peak so far
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return work(), float("nan")
    before = _resident("VmRSS")
    result = work()
    return result, max(0.0, _resident("VmHWM") - before)


def _resident(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024.0 * float(next(line for line in lines if line.startswith(name)).split()[1])


def within(results: Mapping[str, T], *start: object) -> dict[str, T]:
    """Return the results whose key begins so, by the rest of the key."""
    head = "".join(f"{part}/" for part in start)
    return {key[len(head) :]: value for key, value in results.items() if key.startswith(head)}


def mean(numbers: Iterable[float]) -> float | None:
    """Return the mean, None of nothing."""
    values = list(numbers)
    return float(np.mean(values)) if values else None


def spread(numbers: Iterable[float]) -> float | None:
    """Return the standard deviation, None of fewer than two."""
    values = list(numbers)
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def interval(numbers: Iterable[float]) -> tuple[float | None, float | None, float | None]:
    """Return the mean between the ends of its 95 % interval; of fewer than two there are no ends.

    Examples
    --------
    >>> [round(end, 3) for end in interval([1.0, 2.0, 3.0])]
    [-0.484, 2.0, 4.484]
    """
    values = list(numbers)
    if len(values) < 2:
        return None, mean(values), None
    middle, low, high = mean_interval(values)
    return low, middle, high


def plus_minus(numbers: Iterable[float]) -> str | None:
    """Return the mean and half of its 95 % interval in words, None of nothing.

    Examples
    --------
    >>> plus_minus([1.0, 2.0, 3.0])
    '2.000 ± 2.484'
    """
    low, middle, _ = interval(numbers)
    if middle is None:
        return None
    return f"{middle:.3f}" if low is None else f"{middle:.3f} ± {middle - low:.3f}"


def exponents(m: ArrayLike, n_P: ArrayLike, seconds: ArrayLike) -> tuple[float, float]:
    """Return a and b of the least-squares fit ``seconds ≈ c·mᵃ·n_Pᵇ`` in logarithms.

    Examples
    --------
    >>> a, b = exponents([1, 2, 1, 2], [1, 1, 2, 2], [3, 12, 6, 24])
    >>> round(a, 6), round(b, 6)
    (2.0, 1.0)
    """
    logs = [np.log(np.asarray(each, dtype=float)) for each in (m, n_P, seconds)]
    design = np.column_stack([np.ones_like(logs[0]), logs[0], logs[1]])
    _, a, b = np.linalg.lstsq(design, logs[2], rcond=None)[0]
    return float(a), float(b)


def in_words(values: Sequence[float]) -> str | None:
    """Return the mean of independent values with its interval, None of nothing.

    Examples
    --------
    >>> in_words([1.0, 2.0, 3.0])
    '+2.0 (-0.5 to +4.5)'
    """
    low, middle, high = interval(values)
    if middle is None:
        return None
    return f"{middle:+.1f}" if low is None else f"{middle:+.1f} ({low:+.1f} to {high:+.1f})"
