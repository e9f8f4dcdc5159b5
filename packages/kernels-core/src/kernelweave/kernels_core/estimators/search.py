"""Estimators that choose parameters by cross-validation: candidates, fits of folds, the last fit.

A `CrossValidatedEstimator` names the parameters of which a fit may be given several, and has its
search for nothing. What is mathematics, such as a path whose fits begin at each other, is a
function that the estimator hands to `score_settings`.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from ..arrays import Index
from ..checks import Rule, one_of
from ..clock import LATE_SECONDS, expired, time_limit
from ..config import blas_threads, config_context
from ..exceptions import UnderfitWarning
from ..fit import FitResult, interrupted
from ..grams.precomputed import PrecomputedGrams
from ..parameters import fitted, parameter
from .classes import alone, take
from .folds import (
    CHOICES,
    SCORING,
    Fold,
    FoldFit,
    Folds,
    FoldScore,
    Scores,
    Scoring,
    Setting,
    folds_of,
    score_settings,
    scorer_of,
)
from .kernel import Data, KernelEstimator
from .weights import dictionary_of

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

# what `one_or_several` allows
OneOrSeveral: TypeAlias = "float | Sequence[float] | NDArray[np.number] | str"

T = TypeVar("T", bound=float)


def one_or_several(rule: Rule) -> Rule:
    """Return the rule for a number, several to choose among, or ``"cv"``."""

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


class CrossValidatedEstimator(KernelEstimator):
    """Base of estimators that choose parameters by folds. Mixed in before others.

    A subclass names them in `grids`, and gives each the rule ``one_or_several(rule)``. The fit
    tells what was chosen: ``lam_`` of ``lam``.
    """

    cv: Folds = parameter(
        "The folds of cross-validation, as in scikit-learn: a number, a splitter or a list of "
        "splits. With ``groups``, a number of folds leaves out whole groups. Used if a parameter "
        "is chosen; a classifier with ``probability=True`` uses a splitter or a list too.",
        kind="int, splitter or iterable",
        default=5,
    )
    scoring: Scoring = parameter(
        "The scorer of cross-validation, as in scikit-learn; by default R² or accuracy. Sample "
        "weights and ``class_weight`` count.",
        kind="str or callable",
        default=None,
        rule=SCORING,
    )
    choice: str = parameter(
        "Which setting is selected: the one with the best mean score, or the simplest within "
        "one standard error of it.",
        default="best",
        rule=one_of(*CHOICES),
    )

    cv_results_: dict[str, Any] | None = fitted(
        "dict or None",
        "If cross-validation chose: ``params``, ``split0_test_score``, ``mean_test_score`` and so "
        "on, as `GridSearchCV` has them, and the relative gap of each fit in ``split0_gap``; NaN "
        "for fits that ``max_time`` or Ctrl-C prevented.",
    )

    best_params_: dict[str, Any] = fitted(
        "dict", "The values of the fit, chosen or given, by name."
    )
    best_score_: float = fitted("float", "Its mean score; NaN if nothing was chosen.")

    # what folds may choose, and the values that "cv" means
    grids: ClassVar[Mapping[str, tuple[Any, ...]]] = {}

    def settings(self, data: Data) -> list[Setting]:
        """Return the candidates, neighbours one after the other."""
        names = list(self.grids)
        several = product(*(values_of(self, name) for name in names))
        return [dict(zip(names, values, strict=True)) for values in several]

    @staticmethod
    def complexity(setting: Setting) -> Any:
        """Return a sort key, simpler settings first: the values, in the order of ``grids``."""
        return tuple(setting.values())

    def scores(
        self, settings: list[Setting], data: Data, folds: list[Fold], score: FoldScore
    ) -> Scores:
        """Return the scores of candidates, each fitted anew: what paths and warm starts replace."""
        return score_settings(settings, folds, fold_fits(self, data, folds), score)

    def take(self, setting: Setting, data: Data) -> None:
        """Make what was chosen the parameters of this draft."""
        self.__dict__.update(setting)

    def _learn(self, data: Data) -> FitResult:
        """Choose by folds where parameters have several values, then learn from all samples.

        After a Ctrl-C or at the end of ``max_time`` the best setting so far is still learned, for
        at most ``LATE_SECONDS``.
        """
        settings, scores, late = self.settings(data), None, False
        chosen = settings[0]
        with blas_threads(data.X.shape[0]):
            with time_limit(self.max_time):
                if len(settings) > 1:
                    with config_context(memory_limit=self.memory_limit):
                        scores = _scores_of(self, settings, data)
                    chosen = scores.settings[scores.choose(self.choice, self.complexity)]
                    late = scores.stopped is not None or expired()
                self.take(chosen, data)
                fit = None if late else super()._learn(data)
            if fit is None:
                with time_limit(LATE_SECONDS):
                    fit = super()._learn(data)
        attributes = {f"{name}_": getattr(self, name) for name in self.grids} | fit.attributes
        attributes |= {"cv_results_": None, "best_params_": chosen, "best_score_": np.nan}
        if scores is not None:
            best = scores.settings.index(chosen)
            attributes |= {
                "cv_results_": scores.cv_results,
                "best_score_": float(scores.means[best]),
            }
        if scores is None or scores.stopped is None:
            return FitResult(attributes, fit.stopped)
        return interrupted(attributes, fit.stopped or scores.stopped, self.on_interrupt)


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
        inputs, new, *before = cut[fold]
        model = clone(part).set_params(**setting)
        if begin is not None and before:
            begin(model, before[0])
        with warnings.catch_warnings():
            # others explain more, or the fit to all samples says so
            warnings.simplefilter("ignore", UnderfitWarning)
            groups = None if data.groups is None else data.groups[train]
            model.fit(inputs, y[train], data.weight[train], groups=groups)
        cut[fold][2:] = [model]
        return model, new

    return fit


def part_of(estimator: CrossValidatedEstimator, **changed: object) -> BaseEstimator:
    """Return an unfitted copy for folds, with probabilities where a scorer may ask for them."""
    part = alone(estimator, **changed)
    if estimator.scoring is not None and hasattr(part, "probability"):
        part.set_params(probability=estimator.probability)
    cv = estimator.cv
    if not (cv is None or hasattr(cv, "split") or isinstance(cv, numbers.Integral)):
        # splits of all rows do not split those of a fold for its probabilities
        part.set_params(cv=5)
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
    checked.remember_definite()
    return checked
