"""λ, degree and norm by folds: what a search finds that solves everything anew, and its choice."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import (
    RBF,
    KernelDictionary,
    Linear,
    PrecomputedGrams,
    Progress,
    SolveInterrupted,
    Status,
    watch,
)
from kernelweave.kernels_core.estimators.folds import folds_of
from kernelweave.kernels_core.testing import make_regression
from kernelweave.ridge_mkl import (
    RidgeMKLClassifier,
    RidgeMKLClassifierCV,
    RidgeMKLRegressor,
    RidgeMKLRegressorCV,
)
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, LeaveOneOut, ShuffleSplit

KERNELS = KernelDictionary([RBF(0.5), Linear()])


def splits_of(model: Any) -> np.ndarray:
    """Return the scores of the folds, shape (n_folds, n_settings)."""
    results = model.cv_results_
    n_folds = sum(key.endswith("_test_score") and key.startswith("split") for key in results)
    return np.array([results[f"split{fold}_test_score"] for fold in range(n_folds)])


LAMS = [1e-3, 1e-1, 10.0]


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_regression_is_searched_as_scikit_learn_does(n_outputs: int) -> None:
    X, y = make_regression(60)
    targets = y if n_outputs == 1 else np.column_stack([y, X[:, 0] * X[:, 1]])
    model = RidgeMKLRegressorCV(KERNELS, lam=LAMS, degree="cv", q=[2.0, 3.0], cv=3).fit(X, targets)
    grid = {"degree": [1, 2], "q": [2.0, 3.0], "lam": LAMS}
    search = GridSearchCV(RidgeMKLRegressor(KERNELS), grid, cv=3).fit(X, targets)
    found = {tuple(sorted(each.items())): i for i, each in enumerate(search.cv_results_["params"])}
    order = [found[tuple(sorted(each.items()))] for each in model.cv_results_["params"]]
    assert sorted(order) == list(range(12))
    np.testing.assert_allclose(
        model.cv_results_["mean_test_score"],
        search.cv_results_["mean_test_score"][order],
        rtol=1e-4,
        atol=1e-6,
    )
    chosen = {"lam": model.lam_, "degree": model.degree_, "q": model.q_}
    assert chosen == search.best_params_
    np.testing.assert_array_equal(model.predict(X), search.predict(X))
    assert model.result_.gap <= 1e-6


def test_classes_are_searched_as_scikit_learn_does() -> None:
    X, y = load_iris(return_X_y=True)
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    model = RidgeMKLClassifierCV(KERNELS, lam=LAMS, degree=[1, 2], cv=3).fit(X, labels)
    search = GridSearchCV(RidgeMKLClassifier(KERNELS), {"degree": [1, 2], "lam": LAMS}, cv=3)
    found = search.fit(X, labels).cv_results_["mean_test_score"]
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], found, rtol=1e-4)
    np.testing.assert_array_equal(model.predict(X), search.predict(X))


def test_it_is_the_plain_estimator_with_lam_cv() -> None:
    X, y = make_regression(60)
    grams = PrecomputedGrams(KERNELS.fit_grams(X).grams)
    model = RidgeMKLRegressorCV("precomputed", cv=3).fit(grams, y)
    plain = RidgeMKLRegressor("precomputed", lam="cv", cv=3).fit(grams, y)
    assert (model.lam_, model.degree_, model.q_) == (plain.lam_, 1, 2.0)
    np.testing.assert_array_equal(model.predict(grams), plain.predict(grams))
    alone = RidgeMKLRegressorCV("precomputed", lam=0.3).fit(grams, y)
    assert alone.cv_results_ is None
    assert alone.lam_ == 0.3


def test_the_simplest_within_one_standard_error_is_chosen() -> None:
    X, y = make_regression(60)
    settings: dict[str, Any] = {"lam": LAMS, "degree": [1, 2], "cv": 4}
    model = RidgeMKLRegressorCV(KERNELS, choice="one-standard-error", **settings).fit(X, y)
    means, splits = model.cv_results_["mean_test_score"], splits_of(model)
    best = int(np.argmax(means))
    near = means >= means[best] - splits[:, best].std(ddof=1) / 2.0
    tried = [
        each for each, is_near in zip(model.cv_results_["params"], near, strict=True) if is_near
    ]
    simplest = min(tried, key=lambda each: (each["degree"], -each["lam"]))
    assert (model.degree_, model.lam_) == (simplest["degree"], simplest["lam"])
    # of one fold nothing is known of the error: the best wins
    one = ShuffleSplit(1, random_state=0)
    settings["cv"] = one
    rule = RidgeMKLRegressorCV(KERNELS, choice="one-standard-error", **settings).fit(X, y)
    assert rule.lam_ == RidgeMKLRegressorCV(KERNELS, **settings).fit(X, y).lam_


@pytest.mark.parametrize("estimator", [RidgeMKLRegressorCV, RidgeMKLClassifierCV])
def test_splits_speak_of_all_samples_whatever_their_weight(estimator: Any) -> None:
    X, y = make_regression(40)
    targets = y if estimator is RidgeMKLRegressorCV else y > np.median(y)
    weight = np.tile([0.0, 1.0, 2.0, 1.0], 10)
    splits = [(np.arange(20), np.arange(20, 40)), (np.arange(20, 40), np.arange(20))]
    model = estimator(KERNELS, lam=LAMS, cv=splits).fit(X, targets, weight)
    doubled = np.repeat(np.arange(40), weight.astype(int))
    half = np.flatnonzero(doubled < 20), np.flatnonzero(doubled >= 20)
    rows = estimator(KERNELS, lam=LAMS, cv=[half, half[::-1]]).fit(X[doubled], targets[doubled])
    np.testing.assert_allclose(splits_of(model), splits_of(rows), rtol=1e-6)
    assert model.lam_ == rows.lam_
    np.testing.assert_allclose(model.predict(X), rows.predict(X), rtol=1e-6)
    weight[:20] = 0.0
    with pytest.raises(ValueError, match=r"cv must leave .* got fold 1 with none for training"):
        estimator(KERNELS, lam=LAMS, cv=splits).fit(X, targets, weight)


def test_a_search_that_is_interrupted_fits_the_best_setting_so_far() -> None:
    X, y = make_regression(60)
    model = RidgeMKLRegressorCV(KERNELS, lam=LAMS, cv=3)
    whole = splits_of(model.fit(X, y))
    solves = 0

    def press_at_the_sixth(progress: Progress) -> None:
        nonlocal solves
        solves += progress.n_iter == 0
        if solves == 6:
            solves += 1
            signal.raise_signal(signal.SIGINT)

    with watch(press_at_the_sixth), pytest.raises(SolveInterrupted):
        model.fit(X, y)
    # each fold goes from the smoothest setting down
    known = whole.copy()
    known[1, 0] = known[2] = np.nan
    np.testing.assert_allclose(splits_of(model), known, rtol=1e-6)
    assert model.lam_ == LAMS[int(np.argmax(np.nanmean(known, axis=0)))]
    assert model.result_.status is Status.INTERRUPTED
    alone = RidgeMKLRegressor(KERNELS, lam=model.lam_).fit(X, y)
    np.testing.assert_allclose(model.predict(X), alone.predict(X), rtol=1e-6)


def test_a_search_interrupted_between_its_solves_fits_the_simplest() -> None:
    class Pressed(RidgeMKLRegressorCV):
        def score(self, *given: Any) -> float:
            signal.raise_signal(signal.SIGINT)
            return super().score(*given)

    X, y = make_regression(60)
    model = Pressed(KERNELS, lam=LAMS, cv=3)
    with pytest.raises(SolveInterrupted):
        model.fit(X, y)
    assert model.lam_ == LAMS[-1]
    alone = RidgeMKLRegressor(KERNELS, lam=model.lam_).fit(X, y)
    np.testing.assert_allclose(model.predict(X), alone.predict(X), rtol=1e-6)


def test_what_makes_no_search_is_refused() -> None:
    X, y = make_regression(20)
    with pytest.raises(ValueError, match=r"q=\[1\.0, 2\.0\] gives several norms .* beta=0\.1"):
        RidgeMKLRegressorCV(beta=0.1, q=[1.0, 2.0]).fit(X, y)
    with pytest.raises(ValueError, match="'krr-newton' learns sums: set degree=1"):
        RidgeMKLRegressorCV(algorithm="krr-newton", degree=[1, 2]).fit(X, y)
    with pytest.raises(ValueError, match="hold out 2 or more, got fold 1 with 1 held out"):
        RidgeMKLRegressorCV(cv=LeaveOneOut()).fit(X, y)
    with pytest.raises(ValueError, match="cv must give one split or more, got none"):
        RidgeMKLRegressorCV(cv=iter(())).fit(X, y)
    with pytest.raises(ValueError, match="sample_weight must be positive somewhere"):
        folds_of(2, X, y, np.zeros(20), classifier=False)
    with pytest.raises(ValueError, match=r"degree must be .*, a list of such, or 'cv'"):
        RidgeMKLRegressorCV(degree="both").fit(X, y)
