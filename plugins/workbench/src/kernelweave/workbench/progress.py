"""Bars for what takes a while: how much of a fit is done, how many of some things are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kernelweave.kernels_core import Progress, watch

from .console import err, say
from .diagnosis.caches import is_compiled


def fraction(first: float, gap: float, tol: float) -> float:
    """Return log(first / gap) / log(first / tol) within [0, 1]: gaps shrink by factors.

    `first`, `gap`, `tol`: relative gap at the start, now, and asked for. 1 when ``gap`` has reached
    ``tol``.

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
_EVALUATIONS = 200.0


class Course:
    """How much of a fit is done, from what solves say of themselves.

    A solve with bounds tells its gap, and gaps shrink by factors. The evidence tells which parts
    are done; within a part, evaluations are set against those that the parts before it took. Of
    several fits, such as those without each fold, each is an equal share.

    `fits`: how many there are.

    Examples
    --------
    >>> from kernelweave.kernels_core import Progress
    >>> course = Course()
    >>> course.see(Progress("any", 0, 0.0, 1.0, 1.0, 0.01, 0.0))
    >>> course.see(Progress("any", 5, 0.9, 1.0, 0.1, 0.01, 0.2))
    >>> course.done, course.state
    (0.5, 'iteration 5, gap 1.0e-01')
    """

    def __init__(self, fits: int = 1) -> None:
        self._fits, self._ended = fits, 0
        self.state = "starting"
        self._begin()

    def _begin(self) -> None:
        self._own = 0.0
        self._first = math.inf
        self._part = 0.0
        self._seen = 0
        self._expected = _EVALUATIONS

    @property
    def done(self) -> float:
        """The share of all the work that is done."""
        return min(1.0, (self._ended + self._own) / self._fits)

    def end_fit(self) -> None:
        """Take in that one of the fits has ended."""
        self._ended += 1
        self._begin()

    def see(self, progress: Progress) -> None:
        """Take in one message."""
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
            within = 1.0 - math.exp(-self._seen / self._expected)
            self._own = max(self._own, self._part + within * min(0.25, 1.0 - self._part))
            self.state = "choosing the kernel by the evidence"

    def _end_part(self, done: float) -> None:
        self._own, self._part = max(self._own, done), done
        if self._seen:
            self._expected, self._seen = max(1.0, self._seen / 2.0), 0
        self.state = f"{done:.0%} of the parts done"


@contextmanager
def fit_bar(title: str, fits: int = 1) -> Iterator[Callable[[], None]]:
    """Show a bar with the time left for the fits in the block, on a terminal only.

    `title`: what is going on; `fits`: how many there are. Yields: called when one has ended.
    """
    console = err()
    if not console.is_terminal:
        yield lambda: None
        return
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[state]}"),
    )
    if not is_compiled():
        say("note", "the first fit compiles for this machine, once: about half a minute")
    course = Course(fits)
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=1.0, state=course.state)

        def update(progress: Progress) -> None:
            course.see(progress)
            bar.update(task, completed=course.done, state=course.state)

        with watch(update):
            yield course.end_fit


@contextmanager
def count_bar(what: str, total: int) -> Iterator[Callable[[str], None]]:
    """Show how many of a known number are done, on a terminal only.

    `what`: in the plural. Yields: called with the name of each that is done.
    """
    console = err()
    if not console.is_terminal or total == 0:
        yield lambda _: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        MofNCompleteColumn(),
        TextColumn(what),
        BarColumn(bar_width=24),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda name: bar.update(task, advance=1, description=name)
