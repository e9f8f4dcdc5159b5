"""Several models on the same folds, the best first."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray, Index, Labels
from kernelweave.kernels_core.config import blas_threads

from ..progress import count_bar
from .held_out import HeldOut, cross_predict
from .limits import ended_after
from .ranking import Ranking
from .rbf import rbf_title
from .rivals import Rival
from .scores import Score, lead

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class TriedRival:
    """A model that was fitted without each fold.

    - `rival`: which
    - `held_out`: what it predicted
    - `seconds`: of all its fits
    - `cut`: whether a fit ended before it converged
    """

    rival: Rival
    held_out: HeldOut
    seconds: float
    cut: bool


@dataclass(frozen=True)
class Row:
    """One model in a comparison.

    - `name`, `title`: as on the command line, and as it is shown
    - `score`: on the rows held out
    - `behind`: how much better the model is that the others are set beside, on the same rows
    - `seconds`: of all its fits
    """

    name: str
    title: str
    score: Score
    behind: Score
    seconds: float

    @classmethod
    def of(cls, tried: TriedRival, first: HeldOut) -> Row:
        """Set a model beside another.

        `tried`: the model; `first`: predictions of the same rows by the other. Returns: with the
        paired difference.
        """
        own = tried.held_out
        ahead = lead(first.truth, first.predicted, own.predicted, first.weight, first.task)
        return cls(tried.rival.name, tried.rival.title, own.score, ahead, tried.seconds)

    def as_json(self) -> dict[str, object]:
        """Return plain values, without what depends on the clock."""
        return {
            "name": self.name,
            "title": self.title,
            "score": self.score.value,
            "error": self.score.error,
            "behind": self.behind.value,
            "behind_error": self.behind.error,
        }


def tried(
    models: Sequence[Rival],
    X: pd.DataFrame,
    y: Labels,
    task: str,
    *,
    weight: FloatArray,
    fold: Index,
    seed: int,
    failed: Callable[[Rival, Exception], None],
) -> Iterator[TriedRival]:
    """Fit models without each fold, one after the other.

    - `models`: each learns its columns from the training rows of a fold alone
    - `X` of shape (n_rows, n_columns): the table
    - `y` of shape (n_rows,): targets
    - `task`: ``"classification"`` or ``"regression"``
    - `weight` of shape (n_rows,): what each row counts
    - `fold` of shape (n_rows,): the fold that holds each row out, -1 where none does
    - `seed`: of what is random in them
    - `failed`: called with a model that cannot be fitted, and why; the others go on

    Yields: as each is done.
    """
    learned_from = int(np.count_nonzero((fold != 0) & (weight > 0)))
    with count_bar("models compared", len(models)) as done:
        for each in [_titled(model, task, learned_from) for model in models]:
            watch = clock.Stopwatch()
            try:
                with (
                    warnings.catch_warnings(record=True) as said,
                    ended_after(each.seconds),
                    blas_threads(learned_from),
                ):
                    warnings.simplefilter("always")
                    make = partial(each.make, task, seed)
                    found = cross_predict(make, X, y, task, fold, weight)
            except (ValueError, MemoryError, RuntimeError, TimeoutError) as error:
                failed(each, error)
            else:
                yield TriedRival(each, found, watch.seconds, any(map(_is_cut, said)))
            done(each.title)


def _titled(model: Rival, task: str, n_rows: int) -> Rival:
    """Return a model with the title of what it is for so many rows."""
    return replace(model, title=rbf_title(task, n_rows)) if model.name == "rbf" else model


def _is_cut(said: warnings.WarningMessage) -> bool:
    from sklearn.exceptions import ConvergenceWarning

    return issubclass(said.category, ConvergenceWarning)


def verdict(ours: str, rows: Sequence[Row], measure: str, ranking: Ranking | None = None) -> str:
    """Return who predicts best, in one sentence.

    - `ours`: the title of our model
    - `rows`: others set beside it
    - `measure`: what the scores are
    - `ranking`: how our model tells a rare class, where there are two classes

    A lead within two standard errors is called none; one of others is said plainly.
    """
    if not rows:
        return ""
    told = ranking is not None and ranking.is_rare and ranking.informs
    leads = _who_leads(ours, rows, measure, ranking)
    return f"{leads} {ranking}" if told else leads


def _who_leads(ours: str, rows: Sequence[Row], measure: str, ranking: Ranking | None) -> str:
    ours = _named(ours)
    first = _capital(ours)
    dummy = next((row for row in rows if row.name == "dummy"), None)
    if dummy is not None and not dummy.behind.value > 2.0 * dummy.behind.error:
        if ranking is not None and ranking.is_rare and ranking.informs:
            return (
                f"{first} is no more accurate than the dummy, which answers the frequent class "
                "always: look at what it says of the rare one."
            )
        if ranking is None and dummy.score.value > 0.9:
            return (
                f"{first} is no more accurate than the dummy, which answers the frequent class "
                "always: where the others are so rare, ask for probabilities (the evidence kernel "
                "has them)."
            )
        return (
            f"{first} predicts no better than the dummy: these columns may say nothing about "
            f"the target, or the rows may be too few."
        )
    ranked = sorted(rows, key=lambda row: -row.score.value)
    for row in ranked:
        value, error = row.behind
        if value < -2.0 * error:
            away = Score(-value, error)
            better = _capital(_named(row.title))
            return f"{better} predicts these rows better than {ours}, by {away} of {measure}."
    level = [_named(row.title) for row in ranked if row.behind.value <= 2.0 * row.behind.error]
    if level:
        names = ", ".join([first, *level[:-1]])
        return f"{names} and {level[-1]} cannot be told apart on these rows."
    second = f"{_named(ranked[0].title)}, {ranked[0].behind} behind"
    return f"{first} is ahead of all of them: next comes {second}."


def _named(title: str) -> str:
    """Return a title with an article, unless it is a name."""
    return f"the {title}" if title[:1].islower() else title


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
