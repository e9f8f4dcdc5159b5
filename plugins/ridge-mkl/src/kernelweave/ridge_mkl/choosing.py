"""Choice by folds: Gram matrices computed once, each λ started where the last one ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import numpy as np
from kernelweave.kernels_core import PrecomputedGrams
from kernelweave.kernels_core.arrays import FloatArray, Index, Labels, RealArray
from kernelweave.kernels_core.estimators.choosing import first_near_best
from sklearn.base import clone, is_classifier

from .settings import Automatic

if TYPE_CHECKING:
    from .machine import WeightLearner

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


def scores_of(
    estimator: WeightLearner,
    grams: PrecomputedGrams,
    y: RealArray,
    weight: FloatArray,
    settings: list[Setting],
    folds: list[tuple[Index, Index]],
) -> tuple[Scores, KeyboardInterrupt | None]:
    """Return the held-out score of each setting as scikit-learn's searches tell it.

    And the interruption that ended the search, after which what was not scored is NaN.

    - `estimator`: with its other parameters; it is not fitted
    - `grams`: training Gram matrices
    - `y` of shape (n,) or (n, n_outputs): numbers or labels
    - `weight` of shape (n,): positive sample weights, of the scores too
    - `settings`: λ ascending, and what else is chosen
    - `folds`: training and held-out samples of each

    ``params``, ``mean_test_score``, ``std_test_score`` and ``split_test_score``, whose shape is
    (n_folds, n_settings).
    """
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


def chosen_of(results: Scores, choice: str) -> Setting:
    """Return the best setting, or the simplest within one standard error of it.

    - `results`: what `scores_of` returns; of a search that was interrupted, the setting that was
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
    estimator: WeightLearner,
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
    part = clone(estimator).set_params(kernels="precomputed", on_interrupt="raise")
    if is_classifier(part):
        part.set_params(class_weight=None)  # which the weights of the samples hold already
    known = estimator._parts_of(grams[train, train].grams)
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
