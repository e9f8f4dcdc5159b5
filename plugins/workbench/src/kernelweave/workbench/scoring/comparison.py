"""Several models on the same folds, the best first."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy.typing as npt
from kernelweave.kernels_core import KernelWeaveWarning, clock

from ..progress import count_bar
from .held_out import HeldOut, Rows, cross_predict
from .rivals import Rival
from .scores import FloatArray, Score, lead


@dataclass(frozen=True)
class Row:
    """One model in a comparison.

    Attributes
    ----------
    name, title : str
        As on the command line, and as it is shown.
    score : Score
        On the rows held out.
    behind : Score or None
        How much better the first model is on the same rows; ``None`` for that model.
    seconds : float
        Of all its fits.
    """

    name: str
    title: str
    score: Score
    behind: Score | None
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """Return plain values, without what depends on the clock."""
        found = {"name": self.name, "title": self.title, "score": self.score.value}
        found |= {"error": self.score.error}
        if self.behind is not None:
            found |= {"behind": self.behind.value, "behind_error": self.behind.error}
        return found


def compare(
    ours: HeldOut,
    others: Sequence[Rival],
    X: Any,
    y: npt.NDArray[Any],
    *,
    weight: FloatArray,
    fold: Rows,
    seed: int,
    into: list[Row],
    failed: Callable[[Rival, Exception], None],
) -> None:
    """Score other models on the folds of ours.

    Parameters
    ----------
    ours : HeldOut
        Predictions to set them beside.
    others : sequence of Rival
        Each is fitted without each fold, columns encoded from the training rows alone.
    X : DataFrame of shape (n_rows, n_columns)
        The table.
    y : ndarray of shape (n_rows,)
        Targets.
    weight : ndarray of shape (n_rows,)
        What each row counts.
    fold : ndarray of shape (n_rows,)
        The fold that holds each row out, -1 where none does.
    seed : int
        Of what is random in them.
    into : list of Row
        Takes a row for each, as it is made: those before a Ctrl-C are known.
    failed : callable
        Called with a model that cannot be fitted, and why; the others go on.
    """
    with count_bar("models compared", len(others)) as done:
        for each in others:
            watch = clock.Stopwatch()
            try:
                with warnings.catch_warnings():
                    # on what each does with columns: ours has said it already
                    warnings.simplefilter("ignore", KernelWeaveWarning)
                    make = partial(each.make, ours.task, seed)
                    found = cross_predict(make, X, y, ours.task, fold, weight)
            except (ValueError, MemoryError, RuntimeError) as error:
                failed(each, error)
            else:
                ahead = lead(ours.truth, ours.predicted, found.predicted, ours.weight, ours.task)
                seconds = watch.seconds
                into.append(Row(each.name, each.title, found.score, ahead, seconds))
            done(each.title)


def verdict(ours: str, rows: Sequence[Row], measure: str) -> str:
    """Return who predicts best, in one sentence.

    Parameters
    ----------
    ours : str
        The title of our model.
    rows : sequence of Row
        The others.
    measure : str
        What the scores are.

    Returns
    -------
    str
        A lead within two standard errors is called none; one of others is said plainly.
    """
    if not rows:
        return ""
    dummy = next((row for row in rows if row.name == "dummy"), None)
    if dummy is not None and dummy.behind is not None:
        value, error = dummy.behind
        if not value > 2.0 * error:
            return (
                f"The {ours} predicts no better than the dummy: these columns may say nothing of "
                f"the target, or the rows may be too few."
            )
    best = max(rows, key=lambda row: row.score.value)
    value, error = best.behind or Score(0.0, 0.0)
    if value > 2.0 * error:
        return f"The {ours} is ahead of all of them, of {best.title} by {value:.4f} ± {error:.4f}."
    if value < -2.0 * error:
        return (
            f"{best.title} predicts these rows better than the {ours}, by {-value:.4f} ± "
            f"{error:.4f} of {measure}."
        )
    return f"The {ours} and {best.title} cannot be told apart on these rows."
