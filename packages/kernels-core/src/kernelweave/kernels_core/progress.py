"""Watching a solve from outside, e.g. to draw a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """What a callback sees after each iteration.

    Attributes
    ----------
    algorithm : str
        Name of the algorithm that runs.
    n_iter : int
        Iterations made so far.
    lower_bound, upper_bound, gap : float
        Best bounds and their relative gap.
    tol : float
        The gap asked for.
    seconds : float
        Since the start.
    done : float or None, default=None
        The share of the work that is done, where the algorithm knows it.
    """

    algorithm: str
    n_iter: int
    lower_bound: float
    upper_bound: float
    gap: float
    tol: float
    seconds: float
    done: float | None = None

    def __str__(self) -> str:
        return (
            f"[{self.algorithm}] {self.n_iter:5d}  lower {self.lower_bound:.8g}  "
            f"upper {self.upper_bound:.8g}  gap {self.gap:.2e}  {self.seconds:.1f} s"
        )


Callback = Callable[[Progress], "bool | None"]
_watchers: ContextVar[tuple[Callback, ...]] = ContextVar("kernelweave_watchers", default=())


@contextmanager
def watch(callback: Callback) -> Iterator[None]:
    """Call ``callback`` with a `Progress` after each iteration of every solve in the block.

    Parameters
    ----------
    callback : callable
        Returning ``True`` stops the solve with `Status.STOPPED`.

    Yields
    ------
    None

    Examples
    --------
    >>> from kernelweave.kernels_core import watch
    >>> seen = []
    >>> with watch(seen.append):
    ...     pass
    """
    token = _watchers.set((*_watchers.get(), callback))
    try:
        yield
    finally:
        _watchers.reset(token)


def notify(progress: Progress, last: Callback | None, verbose: int) -> bool:
    """Print and pass on one iteration; return whether somebody asks to stop."""
    if verbose > 0:
        print(progress)  # noqa: T201
    callbacks = _watchers.get() if last is None else (*_watchers.get(), last)
    answers = [callback(progress) for callback in callbacks]
    return any(answer is True for answer in answers)
