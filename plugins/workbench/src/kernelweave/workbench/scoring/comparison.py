"""Cross-validate several models on the same folds and compare their scores."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.evidence.scores import margin_of_error
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray, Labels
from kernelweave.kernels_core.config import blas_threads
from sklearn.exceptions import ConvergenceWarning

from ..console import message_text
from ..progress import count_bar
from .held_out import Folds, HeldOut, cross_predict
from .metrics import Metric, Ranking, also_scored
from .other_models import ComparedModel
from .rbf import rbf_title
from .scores import Score

if TYPE_CHECKING:
    import pandas as pd


# area under the ROC curve from which a model has learned something; chance has 0.5
_RANKS = 0.6


@dataclass(frozen=True, eq=False)
class CrossValidatedModel:
    """A model with its cross-validated predictions.

    - `model`: the model
    - `held_out`: its predictions of the held-out rows
    - `seconds`: of all its fits
    - `cut`: whether a fit ended before it converged
    """

    model: ComparedModel
    held_out: HeldOut
    seconds: float
    cut: bool


@dataclass(frozen=True)
class Row:
    """One model in a comparison.

    - `name`, `title`: as on the command line, and as it is shown
    - `score`, `error`: on the rows held out
    - `behind`, `behind_error`: score of the model that all are compared with, less this one, with
      its error over rows, or over groups
    - `n_parts`: over how many rows or groups the errors are
    - `behind_low`, `behind_high`: its interval over the folds, which share training rows; ``None``
      of groups and of fewer than three folds
    - `also`: further scores by name
    - `learned`: whether it is surely better than one constant prediction; if not, a lead over it
      means nothing
    - `seconds`: of all its fits
    - `two_folds`: whether rows alone are counted, as two folds do not tell how fits vary
    """

    name: str
    title: str
    score: float
    error: float
    behind: float
    behind_error: float
    n_parts: int
    behind_low: float | None = None
    behind_high: float | None = None
    also: dict[str, float] = field(default_factory=dict)
    learned: bool = True
    seconds: float = 0.0
    two_folds: bool = False

    @classmethod
    def of(cls, fitted: CrossValidatedModel, first: HeldOut, metric: Metric | None = None) -> Row:
        """Compare a model with another, the first, by R² or accuracy if no metric is given.

        Raises ValueError if the metric needs probabilities that the model does not have.
        """
        rows, metric = fitted.held_out, metric or Metric()
        also = also_scored(rows)
        learned = has_learned(metric.lead(rows, rows.of_one_answer), rows.n_parts, also)
        low, high = metric.lead_over_folds(first, rows) or (None, None)
        return cls(
            fitted.model.name, fitted.model.title, *metric.score(rows), *metric.lead(first, rows),
            rows.n_parts, low, high, also, learned or fitted.model.name == "baseline",
            fitted.seconds, rows.groups is None and len(np.unique(rows.fold)) == 2,
        )  # fmt: skip

    @property
    def margin(self) -> float:
        """How much rows, or groups, leave to chance."""
        return margin_of_error((self.behind_error, self.n_parts))

    @property
    def is_behind(self) -> bool:
        """Whether the other model is ahead by more than rows leave to chance."""
        return self.behind > self.margin

    @property
    def is_significantly_behind(self) -> bool:
        """Whether it is ahead by more than rows and folds leave to chance."""
        return self.is_behind and (self.behind_low is None or self.behind_low > 0.0)

    @property
    def lead(self) -> str:
        """The lead of the other model, and its error."""
        return Score(self.behind, self.behind_error).formatted(3)

    def as_json(self) -> dict[str, object]:
        """Return plain values, without what depends on the clock."""
        return {name: value for name, value in vars(self).items() if name != "seconds"}


def skipped_models(refused: Sequence[tuple[ComparedModel, Exception]]) -> list[str]:
    """Return a sentence for each reason why models are skipped, with the models that it is for."""
    titles: dict[str, list[str]] = {}
    for model, error in refused:
        titles.setdefault(message_text(error), []).append(model.title)
    return [
        f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} skipped: {why}"
        for why, names in titles.items()
    ]


def has_learned(over_one: Score, n_parts: int, also: Mapping[str, float]) -> bool:
    """Whether predictions are surely better than one constant, or rank rows.

    - `over_one`: the lead over the constant; `n_parts`: rows, or groups, that its error is over
    - `also`: further scores: where one class is frequent, what is no more accurate may still rank
    """
    beyond = margin_of_error((over_one.error, n_parts))
    return over_one.value > beyond or also.get("AUC", 0.0) > _RANKS


def cross_validate_models(
    models: Sequence[ComparedModel],
    X: pd.DataFrame,
    y: Labels,
    task: str,
    *,
    weight: FloatArray,
    folds: Folds,
    seed: int,
    on_failure: Callable[[ComparedModel, Exception], None],
) -> Iterator[CrossValidatedModel]:
    """Cross-validate models, one after the other, and yield each as it is done.

    Each learns its columns from the training rows of a fold alone. `on_failure`: called with a
    model that cannot be fitted, and why; the others go on.
    """
    own_rows = [folds.training(k) & (weight > 0) for k in range(int(folds.fold.max()) + 1)]
    one_class = task == "classification" and any(len(np.unique(y[rows])) < 2 for rows in own_rows)
    learned_from = int(np.count_nonzero(own_rows[0]))
    with count_bar("models compared", len(models)) as done:
        for each in [_titled(model, task, learned_from) for model in models]:
            if one_class and each.name != "baseline":
                on_failure(each, ValueError("the training rows of a fold have only one class"))
                continue
            watch = clock.Stopwatch()
            try:
                with (
                    warnings.catch_warnings(record=True) as caught,
                    ended_after(each.seconds),
                    blas_threads(learned_from),
                ):
                    warnings.simplefilter("always")
                    make = partial(each.make, task, seed)
                    held_out = cross_predict(make, X, y, task, folds, weight)
            except (ValueError, MemoryError, RuntimeError, TimeoutError) as error:
                on_failure(each, error)
            else:
                cut = any(issubclass(one.category, ConvergenceWarning) for one in caught)
                yield CrossValidatedModel(each, held_out, watch.seconds, cut)
            done(each.title)


@contextmanager
def ended_after(seconds: float | None) -> Iterator[None]:
    """End the block when so many seconds are over, if any, as Ctrl-C would.

    Compiled code ends at its next return to Python, a wait at once. Off the main thread, and on
    systems without this alarm, the block runs to its end. Raises TimeoutError if the time was over,
    also where the block ended well.
    """
    if seconds is None:
        yield
        return
    watch = clock.Stopwatch()
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        if watch.seconds > seconds:
            raise TimeoutError(f"not done after {seconds:g} s")
        return
    over: list[int] = []

    def end(signum: int, frame: object) -> None:
        over.append(signum)
        # other errors are caught by libraries that try again
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, end)
    try:
        # infinity is no time of an alarm
        signal.setitimer(signal.ITIMER_REAL, min(seconds, threading.TIMEOUT_MAX))
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    except KeyboardInterrupt:
        if not over:
            raise
    finally:
        signal.signal(signal.SIGALRM, before)
    if over:
        raise TimeoutError(f"not done after {seconds:g} s")


def _titled(model: ComparedModel, task: str, n_rows: int) -> ComparedModel:
    """Return a model with the title of what it is for a task and so many rows."""
    if model.name == "baseline":
        return replace(model, title="mean" if task == "regression" else "most frequent class")
    return replace(model, title=rbf_title(task, n_rows)) if model.name == "rbf" else model


def verdict(ours: str, rows: Sequence[Row], measure: str, ranking: Ranking | None = None) -> str:
    """Return in one sentence which model predicts best: ours, of that title, or one of the rows.

    `ranking`: how our model tells a rare class, where there are two classes. A lead within its
    95 % interval over rows is called none; one that is not larger than what folds leave to chance
    (Nadeau and Bengio 2003) may be chance; one of others is said plainly.
    """
    if not rows:
        return ""
    informs = ranking is not None and ranking.is_rare and ranking.informs
    leads = _who_leads(ours, rows, measure, ranking)
    return f"{leads} {ranking}" if informs else leads


def _who_leads(ours: str, rows: Sequence[Row], measure: str, ranking: Ranking | None) -> str:
    ours = _named(ours)
    first = _capital(ours)
    baseline = next((row for row in rows if row.name == "baseline"), None)
    if baseline is not None and not baseline.is_behind:
        return _no_better(first, baseline, ranking)
    counting = (row for row in rows if row.learned or row.behind <= 0.0)
    ranked = sorted(counting, key=lambda row: -row.score)
    for row in ranked:
        if row.behind < -row.margin:
            away = Score(-row.behind, row.behind_error).formatted(3)
            better = _capital(_named(row.title))
            return f"{better} is better than {ours} by {away} in {measure}."
    level = [_named(row.title) for row in ranked if row.behind <= row.margin]
    if level:
        names = ", ".join([ours, *level[:-1]])
        return f"There is no significant difference between {names} and {level[-1]}."
    unsure = next((row for row in ranked if not row.is_significantly_behind), None)
    if unsure is not None and unsure.behind_low is not None:
        return (
            f"{first} has the best score, but its lead of {unsure.lead} over "
            f"{_named(unsure.title)} is not significant (95 % interval over folds "
            f"{unsure.behind_low:+.3f} to {unsure.behind_high:+.3f})."
        )
    if not any(row.name != "baseline" for row in ranked):
        return "No other model is significantly better than a constant prediction."
    second = f"{_named(ranked[0].title)}, by {ranked[0].lead}"
    better = f"{first} is significantly better than all others (the next is {second})."
    if any(row.two_folds for row in ranked):
        better += " Only rows are counted: two folds do not tell how fits vary."
    return better


def _no_better(first: str, baseline: Row, ranking: Ranking | None) -> str:
    """Return the verdict where our model, ``first``, is not ahead of the baseline for certain."""
    answer = _named(baseline.title)
    text = f"{first} is not significantly more accurate than {answer}"
    if ranking is not None and ranking.is_rare and ranking.informs:
        return f"{text}, but it ranks the rare class:"
    if ranking is None and baseline.score > 0.9:
        return f"{text}: with a class this rare, use probabilities (the evidence kernel has them)."
    return (
        f"{first} is not significantly better than always predicting {answer}: the columns may not "
        "be informative, or there may be too few rows."
    )


def _named(title: str) -> str:
    """Return a title with an article, unless it is a name."""
    return f"the {title}" if title[:1].islower() else title


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
