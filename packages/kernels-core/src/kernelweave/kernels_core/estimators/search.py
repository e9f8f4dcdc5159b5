"""Choice of parameters by cross-validation: folds, candidates, scores, and which of them wins.

A `CrossValidatedEstimator` names the parameters of which a fit may be given several, and has its
search for nothing: `learn_chosen` around `learn_formula`. What is mathematics, such as a path whose
fits begin at each other, is a function that the estimator hands to `score_settings`.
"""

from __future__ import annotations

import inspect
import numbers
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier

from ..arrays import FloatArray, Index, Labels
from ..checks import Rule, check_sample_weight, one_of
from ..clock import LATE_SECONDS, expired, time_limit
from ..config import blas_threads, config_context
from ..exceptions import UnderfitWarning
from ..fit import FitResult
from ..grams.precomputed import PrecomputedGrams
from ..parameters import fitted, parameter
from ..result import SolveInterrupted, Status
from .kernel import Data, KernelEstimator, learn_formula
from .parts import alone, take
from .weights import dictionary_of

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from sklearn.model_selection import BaseCrossValidator

# scikit-learn's ``cv``
Folds: TypeAlias = "int | BaseCrossValidator | Iterable[tuple[ArrayLike, ArrayLike]] | None"
Scoring: TypeAlias = "str | Callable[..., float] | None"
# what `one_or_several` allows
OneOrSeveral: TypeAlias = "float | Sequence[float] | NDArray[np.number] | str"
# a candidate: values of parameters, by name
Setting: TypeAlias = "dict[str, Any]"
# training and held-out places
Fold: TypeAlias = "tuple[Index, Index]"
# from a model, rows as it takes them and their places to the score
FoldScore: TypeAlias = "Callable[[BaseEstimator, Any, Index], float]"
# from a setting and the number of a fold to a model of its training part, and the held-out rows as
# the model takes them
FoldFit: TypeAlias = "Callable[[Setting, int], tuple[BaseEstimator, Any]]"

T = TypeVar("T", bound=float)

CHOICES = ("one-standard-error", "best")
SCORING = Rule(
    "the name of a scorer of scikit-learn or a callable",
    lambda value: isinstance(value, str) or callable(value),
)


def one_or_several(rule: Rule) -> Rule:
    """Return the rule for a number, several to choose among, or ``"cv"``.

    `rule`: of each number. A wrong number is refused in the words of ``rule``.
    """

    def is_several(value: Any) -> bool:
        if isinstance(value, str):
            return value == "cv"
        several = isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value) == 1
        return several and len(value) > 0 and all(rule.holds(each) for each in value)

    return Rule(
        f"{rule.words}, a list of such, or 'cv'",
        lambda value: is_several(value) or (np.ndim(value) == 0 and not isinstance(value, str)),
        then=_of_each(rule),
    )


def _of_each(rule: Rule) -> Rule:
    """Return the rule, and what follows it, for a number or each of several."""

    def holds(value: object) -> bool:
        several = value if isinstance(value, (list, tuple, np.ndarray)) else [value]
        return value == "cv" if isinstance(value, str) else all(map(rule.holds, several))

    return Rule(rule.words, holds, then=None if rule.then is None else _of_each(rule.then))


def candidates(
    given: T | str | list[T] | tuple[T, ...] | NDArray[np.number], usual: Sequence[T]
) -> list[T]:
    """Return the values of a parameter, ascending: one, those of a list, or ``usual`` of "cv"."""
    if isinstance(given, str):
        return list(usual)
    return sorted(set(given)) if isinstance(given, (list, tuple, np.ndarray)) else [given]


def values_of(estimator: BaseEstimator, name: str) -> list[Any]:
    """Return what a parameter may be in the fit: one value, unless folds choose among several."""
    given, grids = getattr(estimator, name), getattr(estimator, "grids", {})
    return candidates(given, grids[name]) if name in grids else [given]


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
    counts, asked = weight > 0, np.arange(len(y))
    place = np.cumsum(counts) - 1
    if cv is None or isinstance(cv, numbers.Integral):
        asked = np.flatnonzero(counts)
    y, groups = y[asked], None if groups is None else groups[asked]
    splitter = _whole_groups(cv, groups, classifier) or check_cv(cv, y, classifier=classifier)
    folds: list[Fold] = []
    least = least or (1 if classifier else 2)
    for split in splitter.split(X[asked], y, groups):
        train, test = (place[rows[counts[rows]]] for rows in (asked[part] for part in split))
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
        known = ~np.isnan(self.scores)
        sums = np.where(known, self.scores, 0.0).sum(axis=1)
        with np.errstate(invalid="ignore"):
            means: FloatArray = sums / known.sum(axis=1)
        return np.where(known.all(axis=1), self.scores.mean(axis=1), means)

    @property
    def cv_results(self) -> dict[str, Any]:
        """The scores as scikit-learn's searches have them, with the gaps of the fits."""
        means = self.scores.mean(axis=1)
        # what was not scored by every fold comes last
        above = np.where(np.isnan(means), -np.inf, means)
        found: dict[str, Any] = {
            f"param_{name}": np.array([each[name] for each in self.settings])
            for name in self.settings[0]
        }
        found["params"] = self.settings
        for fold, (scores, gaps) in enumerate(zip(self.scores.T, self.gaps.T, strict=True)):
            found |= {f"split{fold}_test_score": scores, f"split{fold}_gap": gaps}
        found |= {"mean_test_score": means, "std_test_score": self.scores.std(axis=1)}
        ranks = [1 + int((above > each).sum()) for each in above]
        return {**found, "rank_test_score": np.array(ranks, dtype=np.int32)}

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
    - `further`: from all settings and their means to more of them, none at the end
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
                tried += further(tried, _table(done, len(tried), len(folds))[0].mean(axis=1))
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

    Raises ValueError if there is no such scorer, or samples have weights and it takes none.
    """
    from sklearn.metrics import check_scoring

    if scoring is None:
        return lambda model, rows, at: float(model.score(rows, y[at], weight[at]))
    scorer = check_scoring(estimator, scoring)
    weighted = bool((weight != 1.0).any())
    known = inspect.signature(getattr(scorer, "_score_func", scorer)).parameters.values()
    if weighted and not any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in known):
        raise ValueError(
            f"scoring={scoring!r} takes no sample_weight, and the samples have weights, those of "
            "classes among them: choose another scorer, or give no weights"
        )

    def score(model: BaseEstimator, rows: Any, at: Index) -> float:
        own = {"sample_weight": weight[at]} if weighted else {}
        return float(scorer(model, rows, y[at], **own))

    return score


class CrossValidatedEstimator(KernelEstimator):
    """Base of estimators that choose parameters by folds. Mixed in before others.

    A subclass names them in `grids`, and gives each the rule ``one_or_several(rule)``. The fit
    tells what was chosen: ``lam_`` of ``lam``.
    """

    cv: Folds = parameter(
        "The folds that choose, as in scikit-learn: a number, a splitter or a list of splits. With "
        "``groups`` a number holds whole groups out. Read where there is something to choose.",
        kind="int, splitter or iterable",
        default=5,
    )
    scoring: Scoring = parameter(
        "What held-out rows are scored by, as in scikit-learn; R² or accuracy without it. Rows "
        "count by their weights, those of the classes included.",
        kind="str or callable",
        default=None,
        rule=SCORING,
    )
    choice: str = parameter(
        "Which setting of the folds wins: the best on average, or the simplest within one standard "
        "error of it.",
        default="best",
        rule=one_of(*CHOICES),
    )

    cv_results_: dict[str, Any] | None = fitted(
        "dict or None",
        "Where folds chose: ``params``, ``split0_test_score``, ``mean_test_score`` and so on, as a "
        "search of scikit-learn has them, and the relative gap of each fit in ``split0_gap``. NaN "
        "where ``max_time`` or a Ctrl-C came first.",
    )

    best_params_: dict[str, Any] = fitted("dict", "What was chosen, or given.")
    best_score_: float = fitted("float", "Its mean score; NaN where there was nothing to choose.")

    # what folds may choose, and the values that "cv" means
    grids: ClassVar[Mapping[str, tuple[Any, ...]]] = {}

    def settings(self, data: Data) -> list[Setting]:
        """Return the candidates, neighbours one after the other."""
        names = list(self.grids)
        several = product(*(values_of(self, name) for name in names))
        return [dict(zip(names, values, strict=True)) for values in several]

    @staticmethod
    def complexity(setting: Setting) -> Any:
        """Return what is less for a simpler setting: its values, in the order of ``grids``."""
        return tuple(setting.values())

    def scores(
        self, settings: list[Setting], data: Data, folds: list[Fold], score: FoldScore
    ) -> Scores:
        """Return the scores of candidates, each fitted anew: what paths and warm starts replace.

        `data`: the samples that count.
        """
        return score_settings(settings, folds, fold_fits(self, data, folds), score)

    def take(self, setting: Setting, data: Data) -> None:
        """Make what was chosen the parameters of this draft."""
        self.__dict__.update(setting)

    def _learn(self, data: Data) -> FitResult:
        return learn_chosen(self, data)


def learn_chosen(estimator: CrossValidatedEstimator, data: Data) -> FitResult:
    """Choose by folds where parameters have several values, then learn from all samples.

    After a Ctrl-C or at the end of ``max_time`` the best setting so far is learned, in a second.
    """
    settings, scores, late = estimator.settings(data), None, False
    chosen = settings[0]
    with blas_threads(data.X.shape[0]):
        with time_limit(estimator.max_time):
            if len(settings) > 1:
                with config_context(memory_limit=estimator.memory_limit):
                    scores = _scores_of(estimator, settings, data)
                chosen = scores.settings[scores.choose(estimator.choice, estimator.complexity)]
                late = scores.stopped is not None or expired()
            estimator.take(chosen, data)
            fit = None if late else learn_formula(estimator, data)
        if fit is None:
            with time_limit(LATE_SECONDS):
                fit = learn_formula(estimator, data)
    found = {f"{name}_": getattr(estimator, name) for name in estimator.grids} | fit.attributes
    found |= {"cv_results_": None, "best_params_": chosen, "best_score_": np.nan}
    if scores is not None:
        best = scores.settings.index(chosen)
        found |= {"cv_results_": scores.cv_results, "best_score_": float(scores.means[best])}
    if scores is None or scores.stopped is None:
        return FitResult(found, fit.stopped)
    found["result_"] = replace(found["result_"], status=Status.INTERRUPTED)
    if estimator.on_interrupt == "return":
        return FitResult(found, fit.stopped)
    raised = SolveInterrupted(found["result_"])
    raised.__cause__ = scores.stopped
    return FitResult(found, raised)


def _scores_of(estimator: CrossValidatedEstimator, settings: list[Setting], data: Data) -> Scores:
    """Return the scores of settings on the samples that count."""
    y, kept = data.labels(getattr(estimator, "classes_", None)), np.flatnonzero(data.weight > 0)
    folds = folds_of(
        *(estimator.cv, data.given, y, data.weight, data.groups),
        classifier=is_classifier(estimator),
    )
    counted = data.part(kept)
    score = scorer_of(estimator, estimator.scoring, y[kept], counted.weight)
    return estimator.scores(settings, counted, folds, score)


def fold_fits(
    estimator: CrossValidatedEstimator,
    data: Data,
    folds: Sequence[Fold],
    *,
    grams: PrecomputedGrams | None = None,
    begin: Callable[[BaseEstimator, BaseEstimator], None] | None = None,
) -> FoldFit:
    """Return what fits a clone to the training part of a fold, cut once for all settings.

    - `grams`: of all samples, for estimators with ``kernels="precomputed"``, in place of points
    - `begin`: may make a model begin at the one that the same fold had before
    """
    given, y = grams or data.given, data.labels(getattr(estimator, "classes_", None))
    part = part_of(estimator, **({} if grams is None else {"kernels": "precomputed"}))
    cut: dict[int, list[Any]] = {}

    def fit(setting: Setting, fold: int) -> tuple[BaseEstimator, Any]:
        train, test = folds[fold]
        if fold not in cut:
            cut.clear()
            cut[fold] = [_cut(given, train, train), _cut(given, test, train)]
        own, new, *before = cut[fold]
        model = clone(part).set_params(**setting)
        if begin is not None and before:
            begin(model, before[0])
        with warnings.catch_warnings():
            # others explain more, or the fit to all samples says so
            warnings.simplefilter("ignore", UnderfitWarning)
            model.fit(own, y[train], data.weight[train])
        cut[fold][2:] = [model]
        return model, new

    return fit


def part_of(estimator: CrossValidatedEstimator, **changed: object) -> BaseEstimator:
    """Return an unfitted copy for folds, with probabilities where a scorer may ask for them."""
    part = alone(estimator, on_interrupt="raise", **changed)
    if estimator.scoring is not None and hasattr(part, "probability"):
        part.set_params(probability=estimator.probability)
    return part


def shared_grams(estimator: Any, data: Data) -> PrecomputedGrams:
    """Return the Gram matrices of all samples, for `fold_fits`; of features as they are."""
    if data.grams is not None:
        return data.grams
    return _checked(dictionary_of(estimator).fit_grams(data.X).grams)


def _cut(given: Any, rows: Index, columns: Index) -> Any:
    """Return a part of points or Gram matrices, copied where it is one of matrices."""
    part = take(given, rows, columns)
    return _checked(part.grams) if isinstance(part, PrecomputedGrams) else part


def _checked(grams: NDArray[np.floating]) -> PrecomputedGrams:
    """Return matrices that need no check as samples."""
    checked = PrecomputedGrams.of_checked(grams)
    checked.remember("each matrix")
    return checked
