"""Columns that people have of events, times and limits, and which of them are read as such."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from kernelweave.evidence import EvidenceKernelRegressor
from kernelweave.evidence.censored.ends import ends_of, is_censored, warn_of_event

pytestmark = pytest.mark.filterwarnings("ignore::kernelweave.evidence.HeldOutWarning")
INF = np.inf
DIED, DAYS = np.array([True, False, True, False]), np.array([3.0, 5.0, 7.0, 9.0])
ENDS = [[3.0, 5.0, 7.0, 9.0], [3.0, INF, 7.0, INF]]


@pytest.mark.parametrize(
    "died",
    [
        pytest.param(DIED, id="bool"),
        pytest.param(DIED.astype(object), id="object"),
        pytest.param(pd.array(DIED, dtype="boolean"), id="nullable"),
        pytest.param(pd.array(DIED, dtype=pd.ArrowDtype(pa.bool_())), id="arrow"),
        pytest.param(["yes", "no", "Yes", " NO "], id="yes and no"),
        pytest.param(["true", "false", "TRUE", "False"], id="true and false"),
        pytest.param(pd.Categorical(["y", "n", "y", "n"]), id="category"),
    ],
)
@pytest.mark.parametrize("days", [DAYS, DAYS.astype(int), DAYS.astype(object)])
def test_truth_values_and_words_beside_numbers_are_events(died: Any, days: Any) -> None:
    for y in (pd.DataFrame({"died": died, "days": days}), pd.DataFrame({"T": days, "E": died})):
        assert is_censored(y)
        ends, times = ends_of(y, 4)
        assert times
        assert ends.tolist() == ENDS


def test_a_structured_array_may_have_words_of_events() -> None:
    y = np.array(list(zip(DAYS, ["yes", "no", "yes", "no"], strict=True)), dtype="f8,U3")
    assert ends_of(y, 4)[0].tolist() == ENDS


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(["dead", "alive", "dead", "alive"], id="others"),
        pytest.param(["dead", "yes", "no", "no"], id="some others"),
    ],
)
def test_words_that_are_not_yes_or_no_are_named_with_what_to_write(event: list[str]) -> None:
    structured = np.array(list(zip(event, DAYS, strict=True)), dtype=[("Died", "U5"), ("t", "f8")])
    for y in (pd.DataFrame({"Died": event, "t": DAYS}), structured):
        assert is_censored(y)
        message = (
            r"the event 'Died' of y must be yes or no, true or false, 1 or 0, got 'dead' in row 0: "
            r".* y\['Died'\] == 'dead'"
        )
        with pytest.raises(ValueError, match=message):
            ends_of(y, 4)


def test_a_missing_event_is_named() -> None:
    y = pd.DataFrame({"died": pd.array([True, None, False], dtype="boolean"), "t": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match=r"the event 'died' of y is missing \(NaN\) in 1 rows"):
        ends_of(y, 3)


@pytest.mark.parametrize(
    "y",
    [
        pd.DataFrame({"a": DIED, "b": ~DIED}),
        pd.DataFrame({"a": ["3", "4", "5", "6"], "b": DAYS}),
        pd.DataFrame({"a": ["<3", "4", "5", "6"], "b": DAYS}),
        pd.DataFrame({"a": DIED, "b": DAYS, "c": DAYS}),
    ],
)
def test_other_pairs_of_columns_are_no_event_and_time(y: pd.DataFrame) -> None:
    assert not is_censored(y)


@pytest.mark.parametrize(
    "died", [DIED.astype(int), DIED.astype(float), DIED.astype(int).astype(str)]
)
def test_two_targets_that_may_be_an_event_and_a_time_are_told(died: Any) -> None:
    with pytest.warns(UserWarning, match="two targets: if 'Died' is an event, .* True and False"):
        warn_of_event(pd.DataFrame({"Died": died, "days": DAYS}))


@pytest.mark.parametrize(
    "y",
    [
        pd.DataFrame({"a": DAYS, "b": DAYS[::-1]}),
        pd.DataFrame({"a": [0, 1, 0, 1], "b": -DAYS}),
        pd.DataFrame({"a": [0, 1, 0, 1], "b": [1, 1, 0, 0]}),
        pd.DataFrame({"a": [0, 1, 0, 1], "b": DAYS, "c": DAYS}),
        pd.DataFrame({"died": DIED, "days": DAYS}),
        np.column_stack([DIED, DAYS]),
        DAYS,
    ],
)
def test_other_targets_are_not_called_events(y: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_event(y)


def test_a_fit_of_zeros_and_ones_and_times_warns() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 1))
    days = np.exp(X[:, 0] + 0.2 * rng.standard_normal(40))
    y = pd.DataFrame({"died": (X[:, 0] > 0.0).astype(int), "days": days})
    with pytest.warns(UserWarning, match="if 'died' is an event"):
        model = EvidenceKernelRegressor(n_folds=2).fit(X, y)
    assert model.predict(X).shape == (40, 2)


def test_ends_are_told_by_their_names_in_either_order() -> None:
    low, high = ENDS
    y = pd.DataFrame({"High ": [*high[:3], 12.0], "low": low})
    fields = np.rec.fromarrays([[*high[:3], 12.0], low], names="high,low")
    for each in (y, fields):
        assert is_censored(each)
        ends, times = ends_of(each, 4)
        assert not times
        assert ends.tolist() == [low, [*high[:3], 12.0]]


def test_a_frame_of_one_column_is_that_column() -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.standard_normal(40)})
    days = np.exp(X["a"].to_numpy() + 0.2 * rng.standard_normal(40)).round(3)
    cells = pd.DataFrame({"crp": [f"{t}{'+' if k % 3 else ''}" for k, t in enumerate(days)]})
    assert is_censored(cells)
    by_frame = EvidenceKernelRegressor(n_folds=2).fit(X, cells)
    by_series = EvidenceKernelRegressor(n_folds=2).fit(X, cells["crp"])
    assert by_frame.predict(X).tolist() == by_series.predict(X).tolist()
    assert by_frame.score(X, cells) == by_series.score(X, cells["crp"])
    numbers = pd.DataFrame({"days": days})
    assert by_frame.score(X, numbers) == by_series.score(X, numbers["days"])
