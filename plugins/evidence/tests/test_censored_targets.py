"""Targets that are known by half, in each form that people have them."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import EvidenceKernelClassifier, EvidenceKernelRegressor
from kernelweave.evidence.censored.ends import ends_of, is_censored
from kernelweave.evidence.censored.task import CensoredRegression
from kernelweave.kernels_core.arrays import FloatArray
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

# rows beyond those of training, and lines of kinds of rows that are poorer
pytestmark = [
    pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.ExtrapolationWarning"),
    pytest.mark.filterwarnings("ignore::kernelweave.evidence.HeldOutWarning"),
]
INF = np.inf


def surv(event: Any, time: Any) -> Any:
    """Return events and times as scikit-survival has them; other events than 0 and 1 as numbers."""
    kind = "?" if set(map(int, event)) <= {0, 1} else "<i8"
    fields = [("died", kind), ("days", "<f8")]
    return np.array(list(zip(event, time, strict=True)), dtype=fields)


def ends(low: Any, high: Any) -> pd.DataFrame:
    return pd.DataFrame({"low": low, "high": high})


def made(n: int, seed: int = 0, censored: float = 2.5) -> tuple[pd.DataFrame, FloatArray, Any]:
    """Times of a log-normal model, observed until a time at random."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((n, 4)), columns=list("abcd"))
    X["sex"] = rng.choice(["f", "m"], n)
    centre = 2.0 + X["a"] - 0.7 * X["b"] ** 2 + 0.8 * (X["sex"] == "f")
    true = np.exp(centre + 0.5 * rng.standard_normal(n)).to_numpy()
    until = np.exp(censored + rng.standard_normal(n))
    return X, true, surv(true <= until, np.minimum(true, until))


@pytest.fixture(scope="module")
def fitted() -> EvidenceKernelRegressor:
    X, _, y = made(240)
    return EvidenceKernelRegressor().fit(X, y)


def test_forms_of_one_target_give_the_same_ends() -> None:
    event, time = np.array([True, False, True]), np.array([3.0, 5.0, 7.0])
    expected = [[3.0, 5.0, 7.0], [3.0, INF, 7.0]]
    forms = {
        "structured": surv(event, time),
        "time first": np.rec.fromarrays([time, event], names="T,E"),
        "frame": pd.DataFrame({"died": event, "days": time}),
        "ends": pd.DataFrame({"Low": time, "High": [3.0, INF, 7.0]}),
        "array of ends": np.array(expected).T,
        "cells": np.array(["3", "5+", "7"], dtype=object),
        "series": pd.Series(["3", ">5", "7"]),
        "units": np.array(["3 mg", "5+ mg", "7 mg"]),
    }
    for name, y in forms.items():
        assert is_censored(y), name
        assert ends_of(y, 3)[0].tolist() == expected, name
    assert ends_of(np.array(["<0,5", "1,25", "3–5"]), 3)[0].tolist() == [
        [-INF, 1.25, 3],
        [0.5, 1.25, 5],
    ]


@pytest.mark.parametrize(
    "y",
    [
        [1.0, 2.0, 3.0],
        ["a", "b", "c"],
        np.ones((3, 2)),
        np.array([[1.0, 2.0], [3.0, -INF], [2.0, 1.0]]),
        pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [1.0, 0.0, 3.0]}),
        pd.Series([1.0, np.nan, 2.0]),
    ],
)
def test_other_targets_are_not(y: Any) -> None:
    assert not is_censored(y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (surv([1, 0, 1], [1, -3, 2]), r"time 'days' of y must not be negative, got -3 in row 1"),
        (surv([0, 0, 0], [1, 2, 3]), r"y has no event in any of its 3 rows"),
        (surv([1, 0, 1], [1, np.nan, 3]), r"the time 'days' of y is missing \(NaN\)"),
        (surv([1, 1, 0], [2, 2, 2]), r"y is 2, or has it as its limit, in every row"),
        (
            pd.DataFrame({"low": [1, 5, 3], "high": [2, 4, 3]}),
            r"low is above high in row 1 of y: 5 and 4",
        ),
        (pd.DataFrame({"low": [1, np.nan, 3], "high": [2, 4, 3]}), r"'low' end of y is missing"),
        (np.array(["<1", "2 kg", "3", "4"]), r"such as <0.5, 36\+ and 3-5, got '2 kg' in row 1"),
        (np.array(["36+", "40+", "50+"]), r"y has no upper limit in any of its 3 rows"),
        (surv([1, 0], [1, 2]), r"X has 3 rows and y has 2"),
        (surv([1, 2, 0], [1, 2, 3]), r"the event 'died' of y must be yes or no, .*, got 2"),
        (surv([1, 0, 1], [5, 4, 5]), r"no two of the 3 rows of y are in a known order"),
        (ends([1, INF, 3], [2, INF, 3]), r"'low' end of y is infinite .* in row 1"),
        (ends([1, -INF, 3], [2, -INF, 3]), r"'high' end of y is infinite .* in row 1"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(y: Any, message: str) -> None:
    X = np.arange(len(y) if "X has 3" not in message else 3)[:, None].astype(float)
    with pytest.raises(ValueError, match=message):
        EvidenceKernelRegressor().fit(X, y)


def test_rows_of_no_weight_tell_nothing() -> None:
    X, _, y = made(30)
    with pytest.raises(ValueError, match="y has no event in any of its"):
        EvidenceKernelRegressor().fit(X, y, sample_weight=np.where(y["died"], 0.0, 1.0))


def test_ranges_without_an_infinite_end_are_told() -> None:
    X = np.arange(30.0)[:, None] ** 1.01
    ends = pd.DataFrame({"low": np.arange(30.0), "high": np.arange(30.0) + 1.0})
    with pytest.warns(UserWarning, match="read as ranges from 'low' to 'high'"):
        told = EvidenceKernelRegressor(precisions=(5.0,), max_iter=10).fit(X, ends).predict(X)
    assert told == pytest.approx(np.arange(30.0) + 0.5, abs=1.0)


def test_ranges_of_cells_and_fields_are_no_outputs() -> None:
    task = CensoredRegression(None)
    low, high = np.arange(12.0), np.arange(12.0) + 2.0
    fields = np.rec.fromarrays([low, high], names="low,high")
    cells = np.array([f"{a:g}-{b:g}" for a, b in zip(low, high, strict=True)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for y in (fields, cells):
            assert task.read(y, 12, None)[0].ends is not None
    with pytest.warns(UserWarning, match="give an array for two outputs"):
        task.read(ends(low, high), 12, None)


def test_quantiles_of_times_are_not_negative(fitted: EvidenceKernelRegressor) -> None:
    low, high = fitted.predict_quantiles(made(3, seed=1)[0], [0.0001, 0.9999]).T
    np.testing.assert_array_equal(low, 0.0)
    np.testing.assert_array_equal(high, INF)


def test_a_life_table_keeps_its_rows_known_by_half() -> None:
    """Of each time an event and a censoring, of one weight: they are no copies."""
    X = pd.DataFrame({"arm": np.tile([0.0, 0.0, 1.0, 1.0], 15)})
    times = np.repeat(np.arange(1.0, 31.0), 2) * (1.0 + 9.0 * X["arm"])
    weight = np.tile([1.0, 9.0], 30)
    model = EvidenceKernelRegressor().fit(X, surv(np.tile([1, 0], 30), times), weight)
    ends = model._predictor.rows.ends
    assert ends is not None
    assert np.isposinf(ends[1]).mean() == pytest.approx(0.5)
    # nine of ten had not ended at the time of the last
    assert model.predict(X.iloc[:1]) > 30.0
    assert model.predict(X.iloc[2:3]) > 5.0 * model.predict(X.iloc[:1])


@pytest.mark.parametrize("seed", [0, 1])
def test_few_events_are_enough(seed: int) -> None:
    X, _, y = made(160, seed, censored=0.0)
    assert 0.75 < 1.0 - y["died"].mean() < 0.95
    X_new, true, _ = made(800, seed + 10)
    model = EvidenceKernelRegressor().fit(X, y)
    centre = 2.0 + X_new["a"] - 0.7 * X_new["b"] ** 2 + 0.8 * (X_new["sex"] == "f")
    rest = np.log(model.predict(X_new)) - centre
    # the level is that of times that hardly any row has reached
    assert np.std(rest) < 0.5 * np.std(centre)
    assert model.score(X_new, true) > 0.8


@pytest.mark.slow
def test_more_rows_than_share_a_metric() -> None:
    X, _, y = made(2100)
    model = EvidenceKernelRegressor(precisions=(10.0,), tol=1e-2, warp=False).fit(X, y)
    new, true, late = made(400, seed=1)
    low, high = model.predict_interval(new, 0.8)
    assert np.mean((low <= true) & (true <= high)) == pytest.approx(0.8, abs=0.06)
    error = np.hypot(model.held_out_error_, 0.02)
    assert model.score(new, late) == pytest.approx(model.held_out_score_, abs=3 * error)


def test_later_rows_without_an_event_have_no_score() -> None:
    X, true, _ = made(60)
    X["day"] = np.arange(60) // 2
    y = surv(np.arange(60) < 30, true)
    with pytest.warns(UserWarning, match="are in a known order: there is no score"):
        model = EvidenceKernelRegressor().fit(X, y, order="day")
    assert np.isnan(model.held_out_score_)
    assert np.isfinite(model.predict(X)).all()


def test_explanations_add_up_to_what_is_predicted(fitted: EvidenceKernelRegressor) -> None:
    X = made(6, seed=7)[0]
    told = fitted.predict(X)
    logs, medians = fitted.explain(X), fitted.explain(X, scale="response")
    assert logs.values.sum(axis=1) + logs.base_values == pytest.approx(np.log(told))
    assert medians.values.sum(axis=1) + medians.base_values == pytest.approx(told)
    assert (logs.scale, medians.scale) == ("the logarithm of the target", "the target")


def test_new_rows_are_predicted_by_their_medians(fitted: EvidenceKernelRegressor) -> None:
    X, true, y = made(600, seed=1)
    told = np.log(fitted.predict(X))
    centre = 2.0 + X["a"] - 0.7 * X["b"] ** 2 + 0.8 * (X["sex"] == "f")
    rest = told - centre
    assert 1.0 - np.mean(rest**2) / np.var(centre) > 0.85
    assert abs(rest.mean()) < 0.15
    error = np.hypot(fitted.held_out_error_, 0.015)
    assert fitted.score(X, y) == pytest.approx(fitted.held_out_score_, abs=3 * error)
    # the true times, of which the fit had seen half
    low, high = fitted.predict_interval(X, 0.8)
    assert np.mean((low <= true) & (true <= high)) == pytest.approx(0.8, abs=0.06)
    held = fitted.predict_distribution(X).cdf(true)
    assert np.quantile(held, [0.25, 0.5, 0.75]) == pytest.approx([0.25, 0.5, 0.75], abs=0.08)


def test_a_fit_that_takes_censored_times_as_events_is_worse() -> None:
    X, _, y = made(240)
    new, later, _ = made(600, seed=1)
    known = EvidenceKernelRegressor().fit(X, y).predict(new)
    naive = EvidenceKernelRegressor(warp=False).fit(X, np.log(y["days"])).predict(new)
    errors = [np.mean((each - np.log(later)) ** 2) for each in (np.log(known), naive)]
    assert errors[0] < 0.6 * errors[1]


def test_distribution_has_a_survival_function(fitted: EvidenceKernelRegressor) -> None:
    X = made(5, seed=2)[0]
    told = fitted.predict_distribution(X)
    median = fitted.predict(X)
    assert told.sf(0.0) == pytest.approx(1.0, abs=0.01)
    assert told.sf(median) == pytest.approx(0.5, abs=0.15)
    assert np.all(np.diff([told.sf(t) for t in (1.0, 5.0, 20.0)], axis=0) <= 0.0)
    assert told.cumulative_hazard(5.0) == pytest.approx(-np.log(told.sf(5.0)))
    assert (told.mean(horizon=10.0) <= 10.0).all()
    assert (told.mean(horizon=10.0) < told.mean(horizon=20.0)).all()


def test_limits_of_detection_are_learned_from() -> None:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((300, 3))
    true = np.exp(X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.standard_normal(300))
    limit = np.quantile(true, 0.4)
    cells = np.array([f"{v:.4g}" if v >= limit else f"<{limit:.4g}" for v in true], dtype=object)
    half = np.where(true >= limit, true, limit / 2)
    fit, new = slice(0, 150), slice(150, 300)
    model = EvidenceKernelRegressor().fit(X[fit], cells[fit])
    ours = np.log(model.predict(X[new])) - np.log(true[new])
    theirs = EvidenceKernelRegressor(warp=False).fit(X[fit], np.log(half[fit])).predict(X[new])
    assert np.mean(ours**2) < 0.9 * np.mean((theirs - np.log(true[new])) ** 2)
    assert "concordance" in model._repr_html_()


def test_known_targets_are_learned_as_numbers_are() -> None:
    X, true, _ = made(150)
    events = EvidenceKernelRegressor().fit(X, surv(np.ones(150), true))
    numbers = EvidenceKernelRegressor(warp=False).fit(X, np.log(true))
    new = made(100, seed=3)[0]
    told = np.log(events.predict(new)), numbers.predict(new)
    assert np.corrcoef(told)[0, 1] > 0.999
    assert np.sqrt(np.mean((told[0] - told[1]) ** 2)) < 0.05


def test_a_weight_of_two_is_the_row_twice() -> None:
    X, _, y = made(60)
    X = X[["a", "b"]].round(1)
    twice = np.r_[np.arange(60), np.arange(20)]
    weight = np.where(np.arange(60) < 20, 2.0, 1.0)
    by_weight = EvidenceKernelRegressor(n_folds=2).fit(X, y, weight)
    by_copies = EvidenceKernelRegressor(n_folds=2).fit(X.iloc[twice], y[twice])
    assert by_copies.predict(X) == pytest.approx(by_weight.predict(X), rel=1e-6)


@pytest.mark.parametrize("given", ["groups", "order", "cv"])
def test_rows_are_held_out_as_asked(given: str) -> None:
    X, _, y = made(120)
    X["person"] = np.repeat([f"p{k}" for k in range(30)], 4)
    X["day"] = np.arange(120) // 2
    model = EvidenceKernelRegressor(cv=4 if given == "cv" else None)
    asked = {"groups": {"groups": "person"}, "order": {"order": "day"}}.get(given, {})
    model.fit(X, y, **asked)
    assert 0.6 < model.held_out_score_ < 1.0
    low, high = model.predict_interval(X)
    assert (low <= high).all()


def test_tools_of_scikit_learn_take_them(fitted: EvidenceKernelRegressor) -> None:
    X, _, y = made(90)
    scores = cross_val_score(clone(fitted).set_params(n_folds=2), X, y, cv=3)
    assert (scores > 0.6).all()
    loaded = pickle.loads(pickle.dumps(fitted))
    assert loaded.predict(X).tobytes() == fitted.predict(X).tobytes()
    assert loaded.score(X, y) == fitted.score(X, y)
    assert {each.column for each in fitted.importance_} == set(X.columns)


def test_numbers_can_be_scored_too(fitted: EvidenceKernelRegressor) -> None:
    X, true, _ = made(100, seed=5)
    assert fitted.score(X, true) == pytest.approx(
        fitted.score(X, surv(np.ones(100), true)), abs=1e-12
    )


def test_limits_of_what_is_built_are_told() -> None:
    X, _, y = made(30)
    with pytest.raises(ValueError, match="scoring must be None where targets are known by half"):
        EvidenceKernelRegressor(scoring="r2").fit(X, y)
    with pytest.raises(ValueError, match="of events and times learns a regressor"):
        EvidenceKernelClassifier().fit(X, y)


def test_without_time_for_the_likelihood_there_is_a_model(
    fitted: EvidenceKernelRegressor, monkeypatch: Any
) -> None:
    from kernelweave.evidence.censored import fit

    monkeypatch.setattr(fit, "best_share", lambda _: (1.0, None))
    monkeypatch.setattr(fit, "_SOME", 100)
    X, true, y = made(240)
    model = EvidenceKernelRegressor().fit(X, y)
    whole = fitted.predict(X)
    assert model.result_.status.label in ("stopped", "max_time")
    assert model.held_out_score_ > 0.7
    # the mode of a part of the rows, and a step of all from there, are near the mode of all
    assert np.sqrt(np.mean(np.log(model.predict(X) / whole) ** 2)) < 0.15
    low, high = model.predict_interval(X, confidence=0.8)
    assert np.mean((low <= true) & (true <= high)) > 0.7


def test_numbers_in_a_part_of_a_table_are_known(fitted: EvidenceKernelRegressor) -> None:
    X, true, _ = made(40, seed=8)
    ends = np.column_stack([true, true])
    cells = np.array([f"{each:.17g} h" for each in true])
    assert fitted.score(X, ends) == fitted.score(X, cells) == fitted.score(X, true)


def limited(t: FloatArray, seed: int) -> Any:
    """Return ends of targets, of which about a quarter are above limits."""
    rng = np.random.default_rng(seed)
    until = np.where(rng.random(len(t)) < 0.5, INF, rng.exponential(6.0, len(t)))
    return ends(np.minimum(t, until), np.where(t <= until, t, INF))


def test_the_scale_is_that_of_rows_held_out() -> None:
    rng = np.random.default_rng(0)
    skewed = rng.exponential(1.0, 300)
    X = np.column_stack([skewed, rng.standard_normal((300, 2))])
    # linear in a skewed column: targets alone look like the exponentials of normal ones
    plain = 1.0 + 2.0 * skewed + 0.3 * rng.standard_normal(300)
    model = EvidenceKernelRegressor(n_folds=2).fit(X, limited(plain, 0))
    assert not model._task.log
    assert CensoredRegression().read(limited(plain, 0), 300, None)[0].log
    # noise that multiplies, around targets that are uniform
    X[:, 0] = rng.random(300)
    even = (1.0 + 6.0 * X[:, 0]) * np.exp(0.05 * rng.standard_normal(300))
    y = limited(even, 1)
    model = EvidenceKernelRegressor(n_folds=2).fit(X, y)
    assert model._task.log
    assert not CensoredRegression().read(y, 300, None)[0].log


@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_times_keep_their_logarithms_where_these_are_right(noise: float) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 2))
    time = np.exp(X[:, 0] + noise * rng.standard_normal(200))
    model = EvidenceKernelRegressor(n_folds=2).fit(X, surv(rng.random(200) < 0.7, time))
    assert model._task.log


def test_times_on_their_own_scale_are_not_negative() -> None:
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.uniform(0.0, 1.0, 300), rng.standard_normal(300)])
    time = np.maximum(20.0 * X[:, 0] + rng.standard_normal(300), 0.01)
    model = EvidenceKernelRegressor(n_folds=2).fit(X, surv(rng.random(300) < 0.8, time))
    assert not model._task.log
    assert model.predict(np.array([[-1.0, 0.0]])) == 0.0
    assert model.predict_interval(np.array([[-1.0, 0.0]]))[0] == 0.0


def test_medians_are_those_of_the_distribution_where_noise_is_skewed() -> None:
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"a": rng.uniform(-1.0, 1.0, 500)})
    noise = 1.2 * np.log(rng.exponential(size=500))
    true = np.exp(2.0 + X["a"] + noise).to_numpy()
    y = surv(true < 40.0, np.minimum(true, 40.0))
    model = EvidenceKernelRegressor().fit(X, y)
    new = pd.DataFrame({"a": rng.uniform(-0.9, 0.9, 400)})
    median = model.predict_quantiles(new, [0.5])[:, 0]
    assert model.predict(new) == pytest.approx(median, rel=0.005)
    # that of the noise is 1.2 log log 2, its mean −1.2 Euler's constant
    truth = np.exp(2.0 + new["a"] + 1.2 * np.log(np.log(2.0)))
    assert abs(np.mean(np.log(model.predict(new) / truth))) < 0.15
    told = model.explain(new.iloc[:5], scale="response")
    assert told.values.sum(axis=1) + told.base_values == pytest.approx(model.predict(new[:5]))
    # so are rows held out
    ended = true < 40.0
    assert np.mean(true < model.held_out_prediction_) == pytest.approx(0.5, abs=0.06)
    assert ended.mean() > 0.8


def test_the_middle_of_the_distribution_is_the_prediction(fitted: EvidenceKernelRegressor) -> None:
    X = made(20, seed=9)[0]
    predicted = fitted.predict(X)
    assert fitted.predict_quantiles(X, [0.5])[:, 0] == pytest.approx(predicted, rel=0.01)
    assert fitted.predict_distribution(X).ppf(0.5) == pytest.approx(predicted, rel=0.01)
