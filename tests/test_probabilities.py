"""Probabilities of classifiers that learn them where they are asked to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernelweave.baselines import AverageMKLClassifier
from kernelweave.kernels_core import RBF, KernelDictionary, PrecomputedGrams
from kernelweave.mkl_sparse import SparseMKLClassifier
from kernelweave.vv_rkhs import MatrixValuedKernelClassifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import TimeSeriesSplit

KERNELS = [RBF(0.1), RBF(1.0)]


def noisy() -> tuple[Any, Any, Any, Any]:
    X, y = make_classification(
        400, 4, n_informative=3, n_redundant=0, flip_y=0.2, class_sep=0.7, random_state=0
    )
    return X[:200], y[:200], X[200:], y[200:]


def average(**changed: Any) -> AverageMKLClassifier:
    return AverageMKLClassifier(KERNELS, normalize=None, probability=True, **changed)


def test_they_are_as_good_as_those_of_scikit_learn() -> None:
    X, y, X_new, y_new = noisy()
    own = average().fit(X, y)
    other = CalibratedClassifierCV(average(), ensemble=False).fit(X, y)
    losses = [log_loss(y_new, model.predict_proba(X_new)) for model in (own, other)]
    assert losses[0] < 0.62
    assert abs(losses[0] - losses[1]) < 0.01
    np.testing.assert_allclose(np.exp(own.predict_log_proba(X_new)), own.predict_proba(X_new))


def test_the_folds_are_those_of_cv() -> None:
    """A sigmoid of decision values on later rows, where ``cv`` holds such out."""
    X, y, X_new, _ = noisy()
    settings = {"kernels": KERNELS, "normalize": None, "k0": 1, "C": 1.0, "lam": 1e-3}
    cv = TimeSeriesSplit(3)
    own = SparseMKLClassifier(**settings, cv=cv, probability=True).fit(X[:90], y[:90])
    parts = [(SparseMKLClassifier(**settings).fit(X[a], y[a]), b) for a, b in cv.split(X[:90])]
    values = np.concatenate([part.decision_function(X[b]) for part, b in parts])
    labels, spread = np.concatenate([y[b] for _, b in parts]), values.std()
    oracle = LogisticRegression().fit(values[:, None] / spread, labels)
    new = own.decision_function(X_new)[:, None] / spread
    np.testing.assert_allclose(own.predict_proba(X_new), oracle.predict_proba(new), atol=1e-6)
    alone = [(np.flatnonzero(y[:90] == 1), np.flatnonzero(y[:90] == 0))]
    with pytest.raises(ValueError, match="fold 1 of cv has no row of class 0"):
        SparseMKLClassifier(**settings, cv=alone, probability=True).fit(X[:90], y[:90])


def test_the_unit_of_decision_values_means_nothing() -> None:
    X, y, X_new, _ = noisy()
    own = average().fit(X, y)
    values = own.decision_function(X_new)
    logit = own.calibration_.coef_[0, 0] * values + own.calibration_.intercept_[0]
    np.testing.assert_allclose(own.predict_proba(X_new)[:, 1], 1.0 / (1.0 + np.exp(-logit)))


@pytest.mark.parametrize("kind", [AverageMKLClassifier, MatrixValuedKernelClassifier])
def test_those_of_gram_matrices_are_those_of_their_points(kind: type) -> None:
    X, y, X_new, _ = noisy()
    grams, crossed = (np.stack([k(points, X) for k in KERNELS]) for points in (X, X_new))
    plain = KernelDictionary(KERNELS, normalize=None)
    by_points = kind(plain, probability=True).fit(X, y).predict_proba(X_new)
    by_grams = kind("precomputed", probability=True).fit(PrecomputedGrams(grams), y)
    np.testing.assert_allclose(by_grams.predict_proba(crossed), by_points, atol=2e-2)


def test_a_row_of_weight_zero_is_a_row_left_out() -> None:
    X, y, X_new, _ = noisy()
    weight = np.where(np.arange(len(y)) < 150, 1.0, 0.0)
    given = average().fit(X, y, weight).predict_proba(X_new)
    np.testing.assert_allclose(given, average().fit(X[:150], y[:150]).predict_proba(X_new))


def test_the_sum_of_weights_means_nothing() -> None:
    X, y, X_new, _ = noisy()
    small = average(C=1e3).fit(X, y, np.full(len(y), 1e-3)).predict_proba(X_new)
    np.testing.assert_allclose(small, average().fit(X, y).predict_proba(X_new), atol=1e-3)


@pytest.mark.parametrize("multiclass", ["shared", "ovr", "ovo"])
def test_several_classes(multiclass: str) -> None:
    X, y = load_iris(return_X_y=True)
    model = average(multiclass=multiclass, class_weight="balanced").fit(X[::2], y[::2])
    assert log_loss(y[1::2], model.predict_proba(X[1::2])) < 0.3


@pytest.mark.parametrize(
    "make",
    [
        average,
        lambda **k: MatrixValuedKernelClassifier(KERNELS, probability=True, learn_output=False),
    ],
)
@pytest.mark.parametrize("weights", [None, "balanced"])
def test_labels_are_the_most_probable(make: Any, weights: Any) -> None:
    """As with scikit-learn's CalibratedClassifierCV; digits have rows where the signs disagree."""
    X, y = load_digits(n_class=3, return_X_y=True)
    X, y = X[:120, ::3] / 16 + np.random.default_rng(0).normal(size=(120, 22)), 2 * y[:120]
    for classes in (y, (y > 0).astype(int)):
        model = make().set_params(class_weight=weights).fit(X[::2], classes[::2])
        values = np.reshape(model.decision_function(X), (len(X), -1))
        signs = values.argmax(axis=1) if values.shape[1] > 1 else (values[:, 0] > 0).astype(int)
        best = model.predict_proba(X).argmax(axis=1)
        np.testing.assert_array_equal(model.predict(X), model.classes_[best])
        if weights is None and make is average:
            assert (signs != best).any()


def test_held_out_rows_that_say_nothing_turn_no_label_round() -> None:
    """Of noise, held-out values and labels go against each other: what was learned is left out."""
    y, slopes = np.arange(60) % 2, []
    for seed in range(4):
        X = np.random.default_rng(seed).normal(size=(60, 22))
        model = average().fit(X, y)
        slopes.append(model.calibration_.coef_[0, 0])
        if slopes[-1] == 0.0:
            np.testing.assert_allclose(model.predict_proba(X), 0.5)
    assert min(slopes) == 0.0
    assert max(slopes) > 0.0


@pytest.mark.parametrize("how", ["points", "matrices"])
def test_copies_of_noise_make_no_class_sure(how: str) -> None:
    rng = np.random.default_rng(0)
    X, y, new = rng.normal(size=(80, 3)), rng.integers(0, 2, 80), rng.normal(size=(500, 3))
    order = rng.permutation(160)
    X, y = np.vstack([X, X + 1e-9 * rng.normal(size=X.shape)])[order], np.append(y, y)[order]
    kernel = RBF(3.0)
    model = AverageMKLClassifier("precomputed" if how == "matrices" else [kernel], probability=True)
    given = (kernel(X)[None], kernel(new, X)[None]) if how == "matrices" else (X, new)
    proba = model.fit(given[0], y).predict_proba(given[1])
    assert proba.max(axis=1).mean() < 0.65


def test_probabilities_count_classes_as_the_fit_does() -> None:
    """A rare class that is brought up is as probable as the other if nothing tells them apart."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2)), (np.arange(120) < 20).astype(int)
    plain = average().fit(X, y).predict_proba(X)[:, 1].mean()
    even = average(class_weight="balanced").fit(X, y).predict_proba(X)[:, 1].mean()
    assert plain == pytest.approx(1 / 6, abs=0.03)
    assert even == pytest.approx(1 / 2, abs=0.05)


def test_they_are_learned_only_where_asked_for() -> None:
    X, y, X_new, _ = noisy()
    model = AverageMKLClassifier(KERNELS).fit(X, y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba") as refused:
        model.predict_proba(X_new)
    assert "probability=True, which takes 5 more fits" in str(refused.value.__cause__)


def test_a_class_of_one_row_cannot_be_held_out() -> None:
    X, y, _, _ = noisy()
    y = np.where(np.arange(len(y)) == 3, "rare", np.where(y > 0, "a", "b"))
    with pytest.raises(ValueError, match="class 'rare' has 1 row of positive weight"):
        average().fit(X, y)
