"""Choice by folds: Gram matrices computed once, each λ started where the last one ended."""

from __future__ import annotations

from typing import Any

import numpy as np
from kernelweave.kernels_core import PrecomputedGrams
from kernelweave.kernels_core.arrays import FloatArray, Index, Labels, RealArray
from kernelweave.kernels_core.estimators.choosing import first_near_best
from sklearn.base import clone, is_classifier

from .settings import Automatic

# λ from nearly interpolating to nearly constant, of Gram matrices with a diagonal of 1
USUAL: dict[str, tuple[float, ...]] = {
    "degree": (1, 2),
    "q": (1.0, 2.0),
    "lam": (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0),
}
Setting = dict[str, Any]


def scores_of(
    estimator: Any,
    grams: PrecomputedGrams,
    y: RealArray,
    weight: FloatArray,
    settings: list[Setting],
    folds: list[tuple[Index, Index]],
) -> dict[str, Any]:
    """Return the held-out score of each setting as scikit-learn's searches tell it.

    - `estimator`: with its other parameters; it is not fitted
    - `grams`: training Gram matrices
    - `y` of shape (n,) or (n, n_outputs): numbers or labels
    - `weight` of shape (n,): positive sample weights, of the scores too
    - `settings`: λ ascending, and what else is chosen
    - `folds`: training and held-out samples of each

    ``params``, ``mean_test_score``, ``std_test_score`` and ``split_test_score``, whose shape is
    (n_folds, n_settings).
    """
    scores = np.array(
        [_fold(estimator, grams, y, weight, settings, train, test) for train, test in folds]
    )
    return {
        "params": settings,
        "mean_test_score": scores.mean(axis=0),
        "std_test_score": scores.std(axis=0),
        "split_test_score": scores,
    }


def chosen_of(results: dict[str, Any], choice: str) -> Setting:
    """Return the best setting, or the simplest within one standard error of it.

    - `results`: what `scores_of` returns
    - `choice`: one of `CHOICES`; simple is a small degree, then a large λ, then a small q
    """
    settings: list[Setting] = results["params"]
    if choice == "best":
        return settings[int(np.argmax(results["mean_test_score"]))]
    order = sorted(range(len(settings)), key=lambda i: _complexity(settings[i]))
    return settings[first_near_best(results["split_test_score"].T, order)]


def _complexity(setting: Setting) -> tuple[float, float, float]:
    return setting.get("degree", 1), -setting["lam"], setting.get("q", 1.0)


def _fold(
    estimator: Any,
    grams: PrecomputedGrams,
    y: Labels,
    weight: FloatArray,
    settings: list[Setting],
    train: Index,
    test: Index,
) -> list[float]:
    """Return the score of each setting on one fold; a path goes from the smoothest function down.

    The fold's matrices are copied once, and each λ begins at the weights of the one before.
    """
    part = clone(estimator).set_params(kernels="precomputed", on_interrupt="raise")
    if is_classifier(part):
        part.set_params(class_weight=None)  # which the weights of the samples hold already
    known = estimator._parts_of(grams[train, train].grams)
    new = PrecomputedGrams.of_checked(grams[test, train].grams)
    scores, path = [], None
    for setting in reversed(settings):
        others = {name: value for name, value in setting.items() if name != "lam"}
        if others != path:
            path, _ = others, part.set_params(algorithm=estimator.algorithm)
        part.set_params(**setting).fit(known, y[train], weight[train])
        scores.append(float(part.score(new, y[test], weight[test])))
        if estimator.algorithm == "krr-auto" and part.weights_.any():
            part.set_params(algorithm=Automatic(mu_init=part.weights_))
    return scores[::-1]
