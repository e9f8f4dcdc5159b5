"""What is expected of new groups and later rows above 2,000 rows is what they bring."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import EvidenceKernelRegressor, HeldOutWarning
from kernelweave.evidence.large import learning
from kernelweave.evidence.large.survey import _some_knots
from test_new_rows import patients


@pytest.fixture(autouse=True)
def landmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let more than 2,000 rows be learned by landmarks."""
    monkeypatch.setattr("kernelweave.evidence.read_table.FACTOR_ROWS", 2000)


MANY = {"precisions": (5.0,), "max_iter": 15, "n_landmarks": 500}


@pytest.fixture(scope="module")
def clinic() -> Any:
    X, y = patients(0, 1667)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = EvidenceKernelRegressor(**MANY).fit(X[:4002], y[:4002], groups="patient")
    return model, X, y


@pytest.mark.slow  # 4,002 rows
def test_patients_of_four_thousand_rows_foretell_new_ones(clinic: Any) -> None:
    model, X, y = clinic
    score, error = model.held_out_.iloc[0][["score", "error"]]
    # of so many new patients the score is nearly what it is of all
    assert abs(score - model.score(X[4002:], y[4002:])) < 2.0 * error
    low, high = model.predict_interval(X[4002:])
    assert 0.87 < np.mean((low <= y[4002:]) & (y[4002:] <= high)) < 0.93


def test_known_patients_of_thousands_have_their_own_intervals() -> None:
    state = np.random.default_rng(0)
    who, level = np.repeat(np.arange(550), 6), state.normal(size=550)
    X = pd.DataFrame(state.normal(size=(3300, 3)), columns=["a", "b", "c"])
    X["patient"] = [f"m{k}" for k in who]
    y = 0.5 * X["a"].to_numpy() + level[who] + 0.3 * state.normal(size=3300)
    known, new = (who < 450) & (np.arange(3300) % 6 == 5), who >= 450
    seen = ~known & ~new
    model = EvidenceKernelRegressor(**MANY, warp=False).fit(X[seen], y[seen], groups="patient")
    widths = []
    for which in (known, new):
        low, high = model.predict_interval(X[which])
        assert np.mean((low <= y[which]) & (y[which] <= high)) == pytest.approx(0.9, abs=0.05)
        widths.append(np.mean(high - low))
    assert widths[0] < 0.6 * widths[1]
    assert model.score(X[known], y[known]) > 0.85
    _, error = model.predict(X[known], return_std=True)
    scores = (y[known] - model.predict(X[known])) / error
    assert np.mean(scores**2) == pytest.approx(1.0, abs=0.25)
    median = model.predict_quantiles(X[known], [0.05, 0.95])
    assert np.mean(median[:, 1] - median[:, 0]) == pytest.approx(widths[0], rel=0.1)


def test_a_new_patient_is_told_from_a_new_visit_of_thousands() -> None:
    X, y = patients(0, 667)
    with pytest.warns(HeldOutWarning, match="on rows"):
        model = EvidenceKernelRegressor(**MANY).fit(X, y)
    told = model.held_out_.score
    assert told["new patient"] < told["rows like these"] - 0.1


def test_there_is_no_alarm_where_groups_do_not_matter() -> None:
    state = np.random.default_rng(0)
    X = pd.DataFrame(state.normal(size=(2400, 2)), columns=["a", "b"])
    X["city"] = [f"c{k}" for k in state.integers(0, 60, 2400)]
    X["code"] = state.integers(0, 90, 2400)
    X["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(state.integers(0, 300, 2400), "D")
    y = np.sin(2 * X["a"]) + 0.5 * state.normal(size=2400)
    with warnings.catch_warnings():
        warnings.simplefilter("error", HeldOutWarning)
        model = EvidenceKernelRegressor(**MANY).fit(X, y)
    told = model.held_out_
    assert {"new city", "new code", "later by day", "later in the file"} < set(told.index)
    assert (np.abs(told.score - told.score.iloc[0]) < 3.0 * told.error + 0.02).all()


@pytest.mark.filterwarnings("ignore::kernelweave.evidence.HeldOutWarning")
def test_a_model_keeps_some_rows_and_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = patients(2, 400)
    weight = np.ones(2400)
    weight[::9] = 0.0
    y = np.abs(y)
    whole = EvidenceKernelRegressor(**MANY).fit(X, y, weight)
    monkeypatch.setattr(learning, "_KEPT", 50)
    model = EvidenceKernelRegressor(**MANY).fit(X, y, weight)
    few = model._predictor.rows
    judging = model.held_out_fold_ >= 0
    assert judging.sum() <= len(few) <= judging.sum() + 55
    assert len(whole._predictor.rows) == np.count_nonzero(weight)
    assert (few.targets.min(), few.targets.max()) == (y[weight > 0].min(), y[weight > 0].max())
    for name in ("held_out_prediction_", "held_out_fold_", "held_out_score_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(whole, name))
    for one, other in zip(model.predict_interval(X), whole.predict_interval(X), strict=True):
        np.testing.assert_array_equal(one, other)
    at = np.flatnonzero(judging)[:2]
    told = model.explain_held_out(at, n_background=20)
    # features of held-out predictions are in single precision
    np.testing.assert_allclose(told.predictions, model.held_out_prediction_[at], atol=1e-5)


def test_ranks_between_some_knots_are_those_between_all() -> None:
    state = np.random.default_rng(0)
    values = np.concatenate([state.normal(size=20_000), np.repeat([0.5, 3.0], 4000)])
    knots, counts = np.unique(values, return_counts=True)
    ranks = (np.cumsum(counts) - 0.5 * counts) / len(values)
    some, own = _some_knots(knots, ranks)
    assert len(some) < 8200
    np.testing.assert_array_equal(some[[0, -1]], knots[[0, -1]])
    new = np.concatenate([values, state.normal(size=5000)])
    gap = np.interp(new, some, own) - np.interp(new, knots, ranks)
    assert np.abs(gap).max() < 1.0 / 8192
