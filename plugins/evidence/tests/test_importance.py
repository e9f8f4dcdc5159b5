"""What each column is worth, on rows held out."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import EvidenceKernelClassifier, EvidenceKernelRegressor
from kernelweave.evidence.scores import accuracy_with_error, r2_with_error
from kernelweave.kernels_core.clock import time_limit
from sklearn.datasets import make_friedman1
from sklearn.feature_selection import SelectFromModel
from sklearn.inspection import partial_dependence, permutation_importance

QUICK = {"precisions": (50.0, 5.0), "max_iter": 20}


@pytest.fixture(scope="module")
def table():
    X, y = make_friedman1(950, n_features=8, noise=1.0, random_state=0)
    X = pd.DataFrame(X, columns=list("abcdefgh"))
    state = np.random.RandomState(0)
    X["town"] = state.choice(["north", "south", "west"], 950)
    X["always"] = 1.0
    y = y + 6.0 * (X["town"] == "north")
    X.loc[state.rand(950) < 0.1, "d"] = np.nan
    return X[:150], y[:150], X[150:], y[150:]


@pytest.fixture(scope="module")
def model(table):
    return EvidenceKernelRegressor(**QUICK).fit(*table[:2])


def test_columns_of_noise_are_worth_nothing_and_the_others_something(table, model) -> None:
    found = {each.column: each for each in model.importance_}
    assert list(found) == list(table[0].columns)
    for name in ("a", "b", "d", "town"):
        assert found[name].importance > 4 * found[name].error > 0
    for name in "fgh":
        assert abs(found[name].importance) < 3 * found[name].error + 0.01
    assert found["always"] == ("always", 0.0, 0.0)


def test_importance_is_near_that_of_new_rows(table, model) -> None:
    X, y = table[2:]
    new = permutation_importance(model, X, y, n_repeats=3, random_state=0)["importances_mean"]
    for own, other in zip(model.importance_, new, strict=True):
        assert own.importance == pytest.approx(other, abs=4 * own.error + 0.02)


def test_the_same_number_gives_the_same_importance(model) -> None:
    other = copy.copy(model)
    other._importance = None
    assert other.importance_ == model.importance_


def test_a_time_limit_ends_what_importance_takes(model) -> None:
    late = copy.copy(model)
    late._importance = None
    with time_limit(0.0), pytest.raises(TimeoutError, match="time was up after 0 of"):
        _ = late.importance_


def test_importance_of_a_classifier_is_lost_accuracy(table) -> None:
    X, y = table[:2]
    model = EvidenceKernelClassifier(**QUICK).fit(X, np.digitize(y, [12.0, 18.0]))
    found = {each.column: each for each in model.importance_}
    assert 0.05 < found["d"].importance < 0.6
    assert abs(found["f"].importance) < 3 * found["f"].error + 0.02


@pytest.mark.usefixtures("by_landmarks")
def test_importance_of_a_model_by_landmarks() -> None:
    X, y = make_friedman1(700, n_features=6, noise=0.5, random_state=0)
    model = EvidenceKernelRegressor(precisions=(5.0,), max_iter=15, n_landmarks=100).fit(X, y)
    assert "landmarks" in str(model.certificate_)
    worth = [each.importance for each in model.importance_]
    assert worth[3] == max(worth) > 0.3
    assert abs(worth[5]) < 0.01
    # what judges shuffled rows predicts the rows as they are as they were predicted left out
    for held_out, predict in model._predictor.fold_predictors():
        own = model._predictor.rows.take(held_out)
        before = model._predictor.held_out[held_out]
        # kernel values are summed in single precision; the noise is 0.5
        np.testing.assert_allclose(predict(own.numeric, own.codes), before, atol=0.1)


def test_partial_dependence_of_a_table_with_words_and_gaps(table, model) -> None:
    """It is the prediction, averaged over the table with the column set."""
    X = table[0]
    found = partial_dependence(model, X, ["town"], categorical_features=["town"])
    for place, value in zip(found["grid_values"][0], found["average"][0], strict=True):
        assert value == pytest.approx(model.predict(X.assign(town=place)).mean())


def test_score_and_error_of_a_ratio() -> None:
    """A jackknife, row by row, gives the same standard error."""
    state = np.random.RandomState(0)
    y, weight = state.randn(400, 1), state.uniform(0.5, 2.0, 400)
    predicted = y + 0.3 * state.randn(400, 1)
    score, error = r2_with_error(y, predicted, weight)
    each = np.delete(np.arange(400)[None].repeat(400, 0).ravel(), np.arange(400) * 401)
    parts = [r2_with_error(y[i], predicted[i], weight[i])[0] for i in each.reshape(400, 399)]
    assert score == pytest.approx(1 - 0.09, abs=0.02)
    assert error == pytest.approx(
        np.sqrt(399 / 400 * np.sum((parts - np.mean(parts)) ** 2)), rel=0.02
    )


def test_accuracy_and_its_error_where_all_rows_are_right() -> None:
    """The rule of three bounds what no row shows: twice the error is 3 / n."""
    right, weight = np.ones(60, dtype=bool), np.ones(60)
    assert accuracy_with_error(right, weight) == (1.0, pytest.approx(1.5 / 60))
    assert accuracy_with_error(~right, weight) == (0.0, pytest.approx(1.5 / 60))
    right[:15] = False
    assert accuracy_with_error(right, weight) == pytest.approx((0.75, np.sqrt(0.1875 / 60)))


def test_selectors_keep_the_columns_that_are_worth_something(table, model) -> None:
    np.testing.assert_array_equal(
        model.feature_importances_, [each.importance for each in model.importance_]
    )
    selector = SelectFromModel(model, prefit=True, threshold=0.05).fit(table[0])
    kept = table[0].columns[selector.get_support()]
    assert {"a", "b", "d", "town"} <= set(kept)
    assert not {"f", "g", "h", "always"} & set(kept)
