"""Held-out rows are judged by the scorer that was asked for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import EvidenceKernelClassifier, EvidenceKernelRegressor
from kernelweave.evidence.rows import Rows
from kernelweave.evidence.tasks import Scoring
from sklearn.base import clone
from sklearn.datasets import make_classification, make_friedman1
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import (
    balanced_accuracy_score,
    log_loss,
    make_scorer,
    mean_absolute_error,
    mean_pinball_loss,
    roc_auc_score,
)
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from test_new_rows import patients

QUICK = {"precisions": (50.0, 0.5), "max_iter": 20}


@pytest.fixture(scope="module")
def numbers():
    return make_friedman1(120, n_features=5, noise=0.5, random_state=0)


@pytest.fixture(scope="module")
def classes():
    X, y = make_classification(150, 5, n_informative=3, n_redundant=0, flip_y=0.2, random_state=0)
    return X, np.array(["no", "yes"])[y]


@pytest.mark.parametrize("weighted", [False, True])
def test_the_score_is_that_of_the_predictions(numbers, weighted) -> None:
    X, y = numbers
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 120) if weighted else None
    model = EvidenceKernelRegressor(scoring="neg_mean_absolute_error", **QUICK).fit(X, y, weight)
    expected = -mean_absolute_error(y, model.held_out_prediction_, sample_weight=weight)
    assert model.held_out_score_ == pytest.approx(expected)
    assert model.held_out_.score.iloc[0] == model.held_out_score_
    assert (model.held_out_.score < 0).all()


def test_r2_is_the_score_without_a_scorer(numbers) -> None:
    one = EvidenceKernelRegressor(scoring="r2", **QUICK).fit(*numbers)
    other = EvidenceKernelRegressor(**QUICK).fit(*numbers)
    assert one.held_out_score_ == pytest.approx(other.held_out_score_)
    # ratios of mean squared errors are those of 1 − R²
    np.testing.assert_allclose(one.path_weights_, other.path_weights_, atol=1e-9)
    assert one.held_out_error_ == pytest.approx(other.held_out_error_, rel=0.5)


def test_classes_by_probabilities_and_by_labels(classes) -> None:
    X, y = classes
    model = EvidenceKernelClassifier(scoring="roc_auc", **QUICK).fit(X, y)
    told = model.held_out_prediction_
    assert model.held_out_score_ == pytest.approx(roc_auc_score(y == "yes", told[:, 1]))
    model = EvidenceKernelClassifier(scoring="neg_log_loss", **QUICK).fit(X, y)
    assert model.held_out_score_ == pytest.approx(-log_loss(y, model.held_out_prediction_))


def test_the_scorer_combines_the_path(numbers) -> None:
    X, y = numbers
    y = y + 40.0 * (np.arange(120) % 30 == 0)
    low = make_scorer(mean_pinball_loss, alpha=0.05, greater_is_better=False)
    one = EvidenceKernelRegressor(scoring=low, warp=False, **QUICK).fit(X, y)
    other = EvidenceKernelRegressor(warp=False, **QUICK).fit(X, y)
    assert np.abs(one.path_weights_ - other.path_weights_).max() > 0.02


def test_the_error_is_that_of_draws_of_the_rows() -> None:
    state = np.random.default_rng(0)
    y = state.normal(size=400)
    values = (y + state.normal(size=400))[:, None]
    rows = Rows(np.zeros((400, 1)), np.zeros((400, 0), dtype=np.int64), y[None])
    _, error = Scoring("neg_mean_absolute_error", None).score(rows, values)
    rest = np.abs(y - values[:, 0])
    assert error == pytest.approx(rest.std() / 20.0, rel=0.4)


def test_the_error_of_a_perfect_score_is_half_of_the_rule_of_three() -> None:
    codes = np.arange(40) % 2
    rows = Rows(np.zeros((40, 1)), np.zeros((40, 0), dtype=np.int64), 2.0 * codes[None] - 1.0)
    values, labels = 3.0 * rows.targets.T, np.array(["no", "yes"])
    logits = np.hstack([-values, values])
    score, error = Scoring("accuracy", labels).score(rows, logits)
    assert (score, error) == (1.0, pytest.approx(1.5 / 40))
    score, error = Scoring("roc_auc", labels).score(rows, logits)
    # a row that is level with all 20 of the other class costs half of 1/20
    assert (score, error) == (1.0, pytest.approx(1.5 / 40))
    # ten groups: one of four wrong rows costs a tenth of the accuracy
    assert Scoring("accuracy", labels).score(rows, logits, np.arange(40) // 4)[1] == (
        pytest.approx(1.5 / 10)
    )


@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.exceptions.UnderfitWarning")
def test_groups_are_judged_by_it_too() -> None:
    X, y = patients(0, 30)
    model = EvidenceKernelRegressor(scoring="neg_root_mean_squared_error", **QUICK)
    model.fit(X, y, groups="patient")
    told = model.held_out_
    assert told.index.tolist() == ["new patient", "rows like these"]
    assert -2.0 < told.score.iloc[0] < told.score.iloc[1] < 0.0
    fold = pd.Series(y - model.held_out_prediction_)
    assert told.score.iloc[0] == pytest.approx(-np.sqrt(np.mean(fold**2)))


def test_an_unknown_scorer_is_refused_before_the_folds(numbers) -> None:
    with pytest.raises(ValueError, match="neg_mean_absolut_error"):
        EvidenceKernelRegressor(scoring="neg_mean_absolut_error").fit(*numbers)


def test_thresholds_of_scikit_learn_serve_a_metric() -> None:
    X, y = make_classification(
        800, 6, n_informative=4, n_redundant=0, weights=[0.85], flip_y=0.1, random_state=0
    )
    y = np.where(y == 1, "rare", "usual")
    model = EvidenceKernelClassifier(precisions=(50.0,), max_iter=20)
    fitted = clone(model).fit(X[:200], y[:200])
    probability, thresholds = fitted.held_out_prediction_[:, 0], np.linspace(0.05, 0.95, 91)
    scores = [
        balanced_accuracy_score(y[:200] == "rare", probability >= each) for each in thresholds
    ]
    fixed = FixedThresholdClassifier(
        FrozenEstimator(fitted),
        threshold=thresholds[np.argmax(scores)],
        pos_label="rare",
        response_method="predict_proba",
    ).fit(X[:200], y[:200])
    tuned = TunedThresholdClassifierCV(
        model, scoring="balanced_accuracy", cv=2, random_state=0
    ).fit(X[:200], y[:200])
    by_class, *others = (
        balanced_accuracy_score(y[200:], each.predict(X[200:])) for each in (fitted, fixed, tuned)
    )
    assert min(others) > by_class + 0.03
    np.testing.assert_array_equal(fixed.predict_proba(X[200:]), fitted.predict_proba(X[200:]))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.KernelWeaveWarning")
def test_the_error_of_a_score_of_noise_is_the_one_that_it_says() -> None:
    """Two values without signal: fits of folds differ by as much as the score does."""
    far = 0
    for seed in range(200):
        state = np.random.RandomState(seed)
        X, y = state.randn(60, 3), np.where(state.rand(60) < 0.5, 10.0, 20.0)
        model = EvidenceKernelRegressor(**QUICK).fit(X, y)
        # new targets are 15 ± 5 wherever they are
        away = model.predict(state.randn(2000, 3)) - 15.0
        far += abs(model.held_out_score_ + np.mean(away**2) / 25.0) > 2.0 * model.held_out_error_
    assert far <= 0.08 * 200
