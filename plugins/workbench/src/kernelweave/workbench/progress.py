"""Bars for what takes a while: how much of a fit is done, how many of some things are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kernelweave.kernels_core import Progress, watch

from .console import err, print_message
from .diagnosis import is_compiled

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import ProgressColumn


def fraction(first: float, gap: float, tol: float) -> float:
    """Return log(first / gap) / log(first / tol) within [0, 1]: gaps shrink by factors.

    Examples
    --------
    >>> fraction(1.0, 0.1, 0.01)
    0.5
    >>> fraction(0.5, 0.0, 0.01)
    1.0
    """
    if gap <= tol:
        return 1.0
    if not math.isfinite(first) or first <= gap or tol <= 0.0:
        return 0.0
    return math.log(first / gap) / math.log(first / tol)


# evaluations of the evidence that a part of a fit takes, roughly, before one has been seen
_EVALUATIONS = 100.0
# the last part of an evidence fit, of all rows, in parts that leave a fold out (1 to 2 measured)
_LAST_PART = 1.35
# its evaluations over those of the parts before it: it starts where they ended
_LAST_EVALUATIONS = 0.4
# share of a part from which it is no longer certain that it ends as the parts before it did
_SURE = 0.8
# seconds that the speed is measured over: all of a fit
_WHOLE = 1e6


class Course:
    """How much of a fit is done, from what solves say of themselves.

    A solve with bounds tells its gap, and gaps shrink by factors. The evidence tells which parts
    are done; within a part, evaluations are compared with those that the parts before it took.

    `works`: how much work each of several fits is, in any unit.

    Examples
    --------
    >>> from kernelweave.kernels_core import Progress
    >>> course = Course()
    >>> course.see(Progress("any", 0, 0.0, 1.0, 1.0, 0.01, 0.0))
    >>> course.see(Progress("any", 5, 0.9, 1.0, 0.1, 0.01, 0.2))
    >>> course.done, course.state
    (0.5, 'iteration 5, gap 1.0e-01')
    """

    def __init__(self, works: Sequence[float] = (1.0,)) -> None:
        total = sum(works)
        self._shares = [each / total for each in works]
        self._ended = 0
        self.state = "starting"
        self._begin()

    def _begin(self) -> None:
        self._own = 0.0
        self._first = math.inf
        self._part, self._n_parts = 0.0, 0
        self._step = self._share_of_part(0.25)
        self._seen = 0
        self._expected = _EVALUATIONS

    @property
    def done(self) -> float:
        """The share of all the work that is done."""
        now = self._shares[self._ended] if self._ended < len(self._shares) else 0.0
        return min(1.0, sum(self._shares[: self._ended]) + self._own * now)

    def end_fit(self) -> None:
        """Count one more fit as ended and begin the next."""
        self._ended += 1
        self._begin()

    def see(self, progress: Progress) -> None:
        """Update the share done and the state from a message of a solver."""
        if progress.done is not None:
            self._end_part(progress.done)
        elif math.isfinite(progress.gap):
            if progress.n_iter == 0 or not math.isfinite(self._first):
                self._first = progress.gap
            # a fit of several classes solves several problems
            self._own = max(self._own, fraction(self._first, progress.gap, progress.tol))
            self.state = f"iteration {progress.n_iter}, gap {progress.gap:.1e}"
        else:
            self._seen += 1
            within = _within(self._seen / self._expected)
            self._own = max(self._own, self._part + within * min(self._step, 1.0 - self._part))
            self.state = "optimising the kernel"

    def _end_part(self, done: float) -> None:
        if done > 0.0:
            self._n_parts = self._n_parts or max(1, round(1.0 / done))
        before, self._part = self._part, self._share_of_part(done)
        # the next part is as large as this one
        self._step = self._part - before or self._step
        self._own = max(self._own, self._part)
        if self._seen:
            self._expected, self._seen = float(self._seen), 0
            if done * self._n_parts > self._n_parts - 1.5:
                self._expected *= _LAST_EVALUATIONS
        self.state = f"{done:.0%} of the parts done"

    def _share_of_part(self, done: float) -> float:
        """Return the share of the work, given that of the parts."""
        n_parts = self._n_parts or 4
        return 1.0 if done >= 1.0 else done * n_parts / (n_parts - 1.0 + _LAST_PART)


def _within(ratio: float) -> float:
    """Return how much of a part is done, given evaluations over those expected: never all."""
    if ratio <= _SURE:
        return ratio
    return 1.0 - (1.0 - _SURE) * math.exp(-(ratio - _SURE) / (1.0 - _SURE))


@contextmanager
def fit_bar(title: str, works: Sequence[float] = (1.0,)) -> Iterator[Callable[[], None]]:
    """Show a bar with the time left for the fits in the block, on a terminal only.

    `works`: how much work each fit is, in any unit. Yields what is called when one has ended.
    """
    if not err().is_terminal:
        yield lambda: None
        return
    from rich.progress import SpinnerColumn, TimeRemainingColumn

    if not is_compiled():
        print_message("note", "the first fit compiles code for this computer, once (a few seconds)")
    course = Course(works)
    shown = ("{task.description}", None, TimeRemainingColumn(), "{task.fields[state]}")
    with _bar(SpinnerColumn(), *shown) as bar:
        task = bar.add_task(title, total=1.0, state=course.state)

        def update(progress: Progress) -> None:
            course.see(progress)
            bar.update(task, completed=course.done, state=course.state)

        with watch(update):
            yield course.end_fit


@contextmanager
def count_bar(what: str, total: int) -> Iterator[Callable[[str], None]]:
    """Show how many are done, on a terminal only; yields what is called with each name."""
    if not err().is_terminal or total == 0:
        yield lambda _: None
        return
    from rich.progress import MofNCompleteColumn, TimeRemainingColumn

    with _bar(MofNCompleteColumn(), what, None, TimeRemainingColumn(), "{task.description}") as bar:
        task = bar.add_task("", total=total)
        yield lambda name: bar.update(task, advance=1, description=name)


def _bar(*columns: ProgressColumn | str | None) -> Bar:
    """Return a bar with these columns; ``None`` is the bar itself."""
    from rich.progress import BarColumn
    from rich.progress import Progress as Bar

    shown = [BarColumn(bar_width=24) if each is None else each for each in columns]
    # the time left is by the speed since the start, as `Course` makes it even
    return Bar(*shown, console=err(), transient=True, speed_estimate_period=_WHOLE)
