"""Choice by folds: Gram matrices computed once, each λ started where the last one ended."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, TypedDict

import numpy as np
from kernelweave.kernels_core import (
    PrecomputedGrams,
    SolveInterrupted,
    Status,
    config_context,
)
from kernelweave.kernels_core.arrays import FloatArray, Index, Labels, RealArray
from kernelweave.kernels_core.clock import LATE_SECONDS, time_limit
from kernelweave.kernels_core.config import blas_threads
from kernelweave.kernels_core.estimators.choosing import candidates, first_near_best, folds_of
from kernelweave.kernels_core.estimators.kernel import Data, learn_formula
from kernelweave.kernels_core.estimators.parts import alone
from kernelweave.kernels_core.estimators.weights import dictionary_of
from kernelweave.kernels_core.fit import FitResult
from sklearn.base import is_classifier

from .settings import Automatic

if TYPE_CHECKING:
    from .estimators import _LearnedWeights, _Ridge

# λ from nearly interpolating to nearly constant, of Gram matrices with a diagonal of 1
USUAL: dict[str, tuple[float, ...]] = {
    "degree": (1, 2),
    "q": (1.0, 2.0),
    "lam": (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0),
}
Setting = dict[str, float]


class Scores(TypedDict):
    """Of each setting, as scikit-learn's searches tell it."""

    params: list[Setting]
    mean_test_score: FloatArray
    std_test_score: FloatArray
    split_test_score: FloatArray


def values_of(estimator: _LearnedWeights, name: str) -> list[float]:
    """Return what a parameter may be in the fit: one value, unless folds choose among several."""
    given = getattr(estimator, name)
    return candidates(given, USUAL[name]) if name in estimator._searched else [given]


def learn_chosen(estimator: _Ridge, data: Data) -> FitResult:
    """Choose by folds where a parameter has several values, then learn from all samples.

    After a Ctrl-C in the folds the best setting so far is learned, in a second.
    """
    names = estimator._searched
    grids = product(*(values_of(estimator, name) for name in names))
    settings = [dict(zip(names, values, strict=True)) for values in grids]
    results, chosen, stopped = None, settings[0], None
    with time_limit(estimator.max_time), blas_threads(data.X.shape[0]):
        if len(settings) > 1:
            with config_context(memory_limit=estimator.memory_limit):
                results, stopped = _scores_of(estimator, data, settings)
            chosen = chosen_of(results, estimator.choice)
        estimator.__dict__.update(chosen)
        with time_limit(None if stopped is None else LATE_SECONDS):
            fit = learn_formula(estimator, data)
    found = {**fit.attributes, **{f"{name}_": value for name, value in chosen.items()}}
    found["cv_results_"] = results
    if stopped is None:
        return FitResult(found, fit.stopped)
    found["result_"] = replace(found["result_"], status=Status.INTERRUPTED)
    if estimator.on_interrupt == "return":
        return FitResult(found, fit.stopped)
    raised = SolveInterrupted(found["result_"])
    raised.__cause__ = stopped
    return FitResult(found, raised)


def _scores_of(
    estimator: _Ridge, data: Data, settings: list[Setting]
) -> tuple[Scores, KeyboardInterrupt | None]:
    """Return the held-out score of each setting as scikit-learn's searches tell it.

    And the Ctrl-C that ended the search, after which what was not scored is NaN. All folds share
    the Gram matrices. `settings`: λ ascending, and what else is chosen.
    """
    kept, targets = np.flatnonzero(data.weight > 0), data.targets
    y = targets[0] if len(targets) == 1 else targets.T
    if is_classifier(estimator):
        y = targets.argmax(axis=0) if len(targets) > 1 else targets[0] > 0
    folds = folds_of(estimator.cv, y, data.weight, classifier=is_classifier(estimator))
    if data.grams is None:
        grams = _of_checked(dictionary_of(estimator).fit_grams(data.X[kept]).grams)
    else:
        grams = data.grams[kept, kept]
    y, weight = y[kept], data.weight[kept]
    scores = np.full((len(folds), len(settings)), np.nan)
    stopped: KeyboardInterrupt | None = None
    try:
        for own, (train, test) in zip(scores, folds, strict=True):
            _score(own, estimator, grams, y, weight, settings, train, test)
    except KeyboardInterrupt as stop:
        stopped = stop
    results: Scores = {
        "params": settings,
        "mean_test_score": scores.mean(axis=0),
        "std_test_score": scores.std(axis=0),
        "split_test_score": scores,
    }
    return results, stopped


def _of_checked(grams: RealArray) -> PrecomputedGrams:
    """Return matrices that need no check as samples."""
    checked = PrecomputedGrams.of_checked(grams)
    checked.remember("each matrix")
    return checked


def chosen_of(results: Scores, choice: str) -> Setting:
    """Return the best setting, or the simplest within one standard error of it.

    - `results`: of all settings; of a search that was interrupted, the setting that was
      best where it was scored wins, the simplest where none was
    - `choice`: one of `CHOICES`; simple is a small degree, then a large λ, then a small q
    """
    settings = results["params"]
    scores = results["split_test_score"]
    order = sorted(range(len(settings)), key=lambda i: _complexity(settings[i]))
    if np.isnan(scores).any():
        known = [i for i in order if not np.isnan(scores[:, i]).all()]
        best = max(known, key=lambda i: np.nanmean(scores[:, i]), default=order[0])
        return settings[best]
    if choice == "best":
        return settings[int(np.argmax(results["mean_test_score"]))]
    return settings[first_near_best(scores.T, order)]


def _complexity(setting: Setting) -> tuple[float, float, float]:
    return setting.get("degree", 1), -setting["lam"], setting.get("q", 1.0)


def _score(
    scores: FloatArray,
    estimator: _LearnedWeights,
    grams: PrecomputedGrams,
    y: Labels,
    weight: FloatArray,
    settings: list[Setting],
    train: Index,
    test: Index,
) -> None:
    """Write the score of each setting on one fold to ``scores``.

    A path goes from the smoothest function down. The fold's matrices are copied once, and each λ
    begins at the weights of the one before.
    """
    # the weights of the samples hold those of the classes already
    part = alone(estimator, kernels="precomputed", on_interrupt="raise")
    known = _of_checked(grams[train, train].grams)
    new = PrecomputedGrams.of_checked(grams[test, train].grams)
    path = None
    for place, setting in reversed(list(enumerate(settings))):
        others = {name: value for name, value in setting.items() if name != "lam"}
        if others != path:
            path, _ = others, part.set_params(algorithm=estimator.algorithm)
        part.set_params(**setting).fit(known, y[train], weight[train])
        scores[place] = part.score(new, y[test], weight[test])
        if estimator.algorithm == "krr-auto" and part.weights_.any():
            part.set_params(algorithm=Automatic(mu_init=part.weights_))
