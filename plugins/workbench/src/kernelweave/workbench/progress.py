"""A progress bar for solves: how far the certified gap has come towards the one asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kernelweave.kernels_core import Progress, watch

from .console import err


def fraction(first: float, gap: float, tol: float) -> float:
    """Return log(first / gap) / log(first / tol) within [0, 1]: gaps shrink by factors.

    Parameters
    ----------
    first, gap, tol : float
        Relative gap at the start, now, and asked for.

    Returns
    -------
    float
        1 when ``gap`` has reached ``tol``.

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


@contextmanager
def gap_bar(title: str) -> Iterator[None]:
    """Show a bar for the solves in the block, on a terminal only.

    Parameters
    ----------
    title : str
        What is going on.
    """
    console = err()
    if not console.is_terminal:
        yield
        return
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None, state="starting")
        first = [math.inf]

        def update(progress: Progress) -> None:
            if progress.n_iter == 0 or not math.isfinite(first[0]):
                first[0] = progress.gap
            done = fraction(first[0], progress.gap, progress.tol)
            state = f"iteration {progress.n_iter}, gap {progress.gap:.1e}"
            fields: dict[str, Any] = {"total": 1.0, "completed": done, "state": state}
            bar.update(task, **fields)

        with watch(update):
            yield


@contextmanager
def count_bar(what: str, total: int) -> Iterator[Callable[[str], None]]:
    """Show how many of a known number are done, on a terminal only.

    Parameters
    ----------
    what : str
        In the plural.
    total : int

    Yields
    ------
    callable
        Called with the name of each that is done.
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
