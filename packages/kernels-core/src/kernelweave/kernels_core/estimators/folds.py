"""Folds, and the scores of settings on them: cross-validation apart from what is fitted."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from ..arrays import FloatArray, Index, Labels
from ..checks import Rule, check_sample_weight
from ..clock import expired

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from sklearn.model_selection import BaseCrossValidator

# scikit-learn's ``cv``
Folds: TypeAlias = "int | BaseCrossValidator | Iterable[tuple[ArrayLike, ArrayLike]] | None"
Scoring: TypeAlias = "str | Callable[..., float] | None"
# a candidate: values of parameters, by name
Setting: TypeAlias = "dict[str, Any]"
# training and held-out places
Fold: TypeAlias = "tuple[Index, Index]"
# from a model, rows as it takes them and their places to the score
FoldScore: TypeAlias = "Callable[[BaseEstimator, Any, Index], float]"
# from a setting and the number of a fold to a model of its training part, and the held-out rows as
# the model takes them
FoldFit: TypeAlias = "Callable[[Setting, int], tuple[BaseEstimator, Any]]"

CHOICES = ("one-standard-error", "best")
SCORING = Rule(
    "the name of a scorer of scikit-learn or a callable",
    lambda value: isinstance(value, str) or callable(value),
)


def folds_of(
    cv: Folds,
    X: Any,
    y: Labels,
    weight: FloatArray,
    groups: Index | None = None,
    *,
    classifier: bool,
    least: int | None = None,
) -> list[Fold]:
    """Return the training and the held-out samples of each fold, as places among those that count.

    - `cv`: as in scikit-learn. A number divides the samples that count, whole groups where there
      are any; a splitter, or a list of splits, speaks of all samples, and those of weight 0 are
      left out of its folds
    - `X`, `y`, `groups`: what a splitter looks at, a row or value a sample
    - `weight` of shape (n_samples,): weights, of which some may be 0
    - `least`: samples that a fold holds out; of regression 2 without it, as one has no R²

    Raises ValueError where there is no fold, or one would train on nothing or hold too few out.
    """
    from sklearn.model_selection import check_cv

    check_sample_weight(weight, len(weight))
    counts, samples = weight > 0, np.arange(len(y))
    place = np.cumsum(counts) - 1
    if cv is None or isinstance(cv, numbers.Integral):
        samples = np.flatnonzero(counts)
    y, groups = y[samples], None if groups is None else groups[samples]
    splitter = _whole_groups(cv, groups, classifier) or check_cv(cv, y, classifier=classifier)
    folds: list[Fold] = []
    least = least or (1 if classifier else 2)
    for split in splitter.split(X[samples], y, groups):
        train, test = (place[rows[counts[rows]]] for rows in (samples[part] for part in split))
        if len(train) < 1 or len(test) < least:
            part = f"{len(test) or 'none'} held out" if len(train) else "none for training"
            raise ValueError(
                "cv must leave samples of positive weight in both parts of each fold, and hold out "
                f"{least} or more, got fold {len(folds) + 1} with {part}"
            )
        folds.append((train, test))
    if not folds:
        raise ValueError("cv must give one split or more, got none: an iterator can be used once")
    return folds


def _whole_groups(cv: Folds, groups: Index | None, classifier: bool) -> Any:
    """Return what a number of folds means where rows have groups, else None."""
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

    if groups is None or not (cv is None or isinstance(cv, numbers.Integral)):
        return None
    n_groups = len(np.unique(groups))
    if n_groups < 2:
        raise ValueError("groups are one and the same in every row: at least 2 are needed")
    kind = StratifiedGroupKFold if classifier else GroupKFold
    return kind(min(5 if cv is None else int(cv), n_groups))


@dataclass(frozen=True, eq=False)
class Scores:
    """Held-out scores of settings, higher is better.

    - `settings`: the candidates
    - `scores` of shape (n_settings, n_folds): NaN where the search had ended
    - `gaps` likewise: the relative gap that each fit is proved to
    - `stopped`: the Ctrl-C that ended the search
    """

    settings: list[Setting]
    scores: FloatArray
    gaps: FloatArray
    stopped: KeyboardInterrupt | None = None

    @property
    def means(self) -> FloatArray:
        """The mean score of each setting over the folds that scored it, shape (n_settings,)."""
        masked = np.ma.masked_invalid(self.scores)
        return np.asarray(masked.mean(axis=1).filled(np.nan))

    @property
    def cv_results(self) -> dict[str, Any]:
        """The scores as scikit-learn's searches have them, with the gaps of the fits."""
        means = self.scores.mean(axis=1)
        # what was not scored by every fold comes last
        above = np.where(np.isnan(means), -np.inf, means)
        results: dict[str, Any] = {
            f"param_{name}": np.array([each[name] for each in self.settings])
            for name in self.settings[0]
        }
        results["params"] = self.settings
        for fold, (scores, gaps) in enumerate(zip(self.scores.T, self.gaps.T, strict=True)):
            results |= {f"split{fold}_test_score": scores, f"split{fold}_gap": gaps}
        results |= {"mean_test_score": means, "std_test_score": self.scores.std(axis=1)}
        return {**results, "rank_test_score": rankdata(-above, method="min").astype(np.int32)}

    def choose(self, choice: str, complexity: Callable[[Setting], Any]) -> int:
        """Return the place of the setting that wins.

        - `choice`: ``"best"``, or ``"one-standard-error"``: the least complex setting whose mean is
          within one standard error of the best one. Where the search was ended, the best so far.
        - `complexity`: of a setting, a number or a tuple; the best of those that share one counts
        """
        means = self.means
        if np.isnan(means).all():
            return min(range(len(means)), key=lambda i: complexity(self.settings[i]))
        best, n_folds = int(np.nanargmax(means)), self.scores.shape[1]
        if choice == "best" or np.isnan(self.scores).any() or n_folds == 1:
            return best
        leaders: dict[Any, int] = {}
        for i, setting in enumerate(self.settings):
            leader = leaders.setdefault(complexity(setting), i)
            if means[i] > means[leader]:
                leaders[complexity(setting)] = i
        least = means[best] - self.scores[best].std(ddof=1) / np.sqrt(n_folds)
        return next(leaders[key] for key in sorted(leaders) if means[leaders[key]] >= least)


def score_settings(
    settings: Sequence[Setting],
    folds: Sequence[Fold],
    fit: FoldFit,
    score: FoldScore,
    *,
    order: Sequence[int] | None = None,
    by_fold: bool = True,
    further: Callable[[list[Setting], FloatArray], list[Setting]] | None = None,
) -> Scores:
    """Fit and score settings on folds until all are done, the time is over, or a Ctrl-C comes.

    - `fit`: of a setting and the number of a fold; it may begin at what it has fitted before
    - `score`: of a model, rows as it takes them, and their places
    - `order`: places of the settings in the order of the fits
    - `by_fold`: whether a fold goes through all settings before the next one, or the other way
    - `further`: from all settings and their scores, shape (n_settings, n_folds), to more settings,
      none at the end
    """
    tried, done = list(settings), dict[tuple[int, int], tuple[float, float]]()
    pending = list(range(len(tried)) if order is None else order)
    stopped: KeyboardInterrupt | None = None
    try:
        while pending:
            steps = [(i, j) for j in range(len(folds)) for i in pending]
            for i, j in steps if by_fold else product(pending, range(len(folds))):
                # one is scored in any case
                if done and expired():
                    break
                model, rows = fit(tried[i], j)
                gap = getattr(getattr(model, "result_", None), "gap", np.nan)
                done[i, j] = score(model, rows, folds[j][1]), gap
            pending = []
            if further is not None and not expired():
                tried += further(tried, _table(done, len(tried), len(folds))[0])
                pending = [i for i in range(len(tried)) if (i, 0) not in done]
    except KeyboardInterrupt as stop:
        stopped = stop
    return Scores(tried, *_table(done, len(tried), len(folds)), stopped)


def _table(
    done: Mapping[tuple[int, int], tuple[float, float]], n_settings: int, n_folds: int
) -> tuple[FloatArray, FloatArray]:
    table = np.full((2, n_settings, n_folds), np.nan)
    for (i, j), values in done.items():
        table[:, i, j] = values
    return table[0], table[1]


def scorer_of(
    estimator: BaseEstimator, scoring: Scoring, y: Labels, weight: FloatArray
) -> FoldScore:
    """Return what scores a model on held-out rows by their weights.

    - `scoring`: as in scikit-learn; the estimator's own score, R² or accuracy, without one
    - `y`: true targets or labels; `weight` of shape (n_samples,)

    Raises ValueError if there is no such scorer, or samples have weights and it takes none; and
    when it scores, if that is NaN.
    """
    from sklearn.metrics import check_scoring

    if scoring is None:
        return lambda model, rows, at: float(model.score(rows, y[at], weight[at]))
    scorer = check_scoring(estimator, scoring)
    weighted = bool((weight != 1.0).any())
    params = inspect.signature(getattr(scorer, "_score_func", scorer)).parameters.values()
    if weighted and not any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in params):
        raise ValueError(
            f"scoring={scoring!r} takes no sample_weight, and the samples have weights, those of "
            "classes among them: choose another scorer, or give no weights"
        )

    def score(model: BaseEstimator, rows: Any, at: Index) -> float:
        keywords = {"sample_weight": weight[at]} if weighted else {}
        value = float(scorer(model, rows, y[at], **keywords))
        if np.isnan(value):
            raise ValueError(
                f"scoring={scoring!r} is NaN on a fold that holds out {len(at)} samples: each must "
                "hold out what the scorer needs, such as samples of every class"
            )
        return value

    return score
