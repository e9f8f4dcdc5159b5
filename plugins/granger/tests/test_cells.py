"""Series as people have them: gaps, words, dates, and series that are constant."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from kernelweave.granger import GrangerGraph
from kernelweave.kernels_core import KernelWeaveWarning

NOISE = np.random.default_rng(0).standard_normal((40, 3))
FRAME = pd.DataFrame(NOISE, columns=["a", "b", "c"])
DAYS = pd.date_range("2024-01-01", periods=40)
WORD = "'Mon' is not a number: give numbers, or leave the series out"
TIME = "is a time, not a number: make the times the index of a DataFrame, or leave the series out"
GAP = "the value is missing (NaN): fill it in, or set missing='skip'"


def with_b(values: Any) -> pd.DataFrame:
    return FRAME.assign(b=values)


def gap(row: int = 5) -> pd.DataFrame:
    return with_b([np.nan if i == row else x for i, x in enumerate(FRAME["b"])])


BAD = {
    "gap": (gap(), f"series 'b', row 5: {GAP}"),
    "gap in an array": (gap().to_numpy(), f"series '1', row 5: {GAP}"),
    "gap in lists": (gap().to_numpy().tolist(), f"series '1', row 5: {GAP}"),
    "gap in a table of a list": ([FRAME, gap(7)], f"series 'b', table 1, row 7: {GAP}"),
    "None": (gap().astype(object).where(gap().notna(), None), f"series 'b', row 5: {GAP}"),
    "NA": (gap().astype("Float64"), f"series 'b', row 5: {GAP}"),
    "weekday": (with_b(["Mon", "Tue"] * 20), f"series 'b', row 0: {WORD}"),
    "category": (with_b(pd.Categorical(["Mon", "Tue"] * 20)), f"series 'b', row 0: {WORD}"),
    "one word": (with_b([*FRAME["b"][:-1], "Mon"]), f"series 'b', row 39: {WORD}"),
    "word in an array": (with_b("Mon").to_numpy(), f"series '1', row 0: {WORD}"),
    "word in a table of a list": ([FRAME, with_b("Mon")], f"series 'b', table 1, row 0: {WORD}"),
    "word in polars": (pl.DataFrame({"a": NOISE[:, 0], "b": ["Mon"] * 40}), f"row 0: {WORD}"),
    "date": (with_b(DAYS), f"series 'b', row 0: 2024-01-01 00:00:00 {TIME}"),
    "zone": (with_b(DAYS.tz_localize("UTC")), f"row 0: 2024-01-01 00:00:00+00:00 {TIME}"),
    "period": (with_b(DAYS.to_period("D")), f"series 'b', row 0: 2024-01-01 {TIME}"),
    "dates as objects": (with_b(DAYS.date), f"series 'b', row 0: 2024-01-01 {TIME}"),
    "dates in an array": (np.full((9, 2), DAYS[0].to_datetime64()), f"series '0', row 0: .*{TIME}"),
    "duration": (with_b(DAYS - DAYS[0]), f"series 'b', row 0: 0 days 00:00:00 {TIME}"),
    "infinite": (with_b(-np.inf), "series 'b', row 0: the value is -inf, not finite: correct it"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_cell_that_is_no_number_is_named(kind: str) -> None:
    X, said = BAD[kind]
    pattern = re.escape(said).replace(r"\.\*", ".*")
    with pytest.raises(ValueError, match=pattern):
        GrangerGraph(lam=0.1, cv=None).fit(X)


def test_cells_of_new_rows_are_named() -> None:
    model = GrangerGraph(lam=0.1, cv=None, never_targets=["a"]).fit(FRAME)
    for call in (model.forecast, model.forecast_ahead, model.score):
        with pytest.raises(ValueError, match=re.escape(f"series 'b', row 0: {WORD}")):
            call(with_b("Mon"))
        with pytest.raises(ValueError, match=re.escape(f"series 'b', row 5: {GAP}")):
            call(gap())
    for future in (pd.DataFrame({"a": ["Mon"]}), [["Mon", 0.0, 0.0]]):
        with pytest.raises(ValueError, match=f"series '[a0]', future, row 0: {WORD}"):
            model.forecast_ahead(FRAME, 1, future=future)


@pytest.fixture(scope="module")
def driven() -> np.ndarray:
    """Return two series, the second after the first."""
    X = np.random.default_rng(1).standard_normal((60, 2))
    X[1:, 1] += 1.5 * X[:-1, 0]
    return X


CONSTANT = r"series b \(3\.5\) is constant and left out: it has no model and no edges"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"pairs": True},
        {"per_lag": True, "lags": 2},
        {"exogenous": ["b"]},
        {"groups": ["one", "one", "two"]},
        {"significance": "permutation", "n_draws": 39},
    ],
    ids=str,
)
def test_a_constant_series_is_left_out(driven: np.ndarray, options: dict[str, Any]) -> None:
    """The graph of the other series is what they have without it."""
    whole = pd.DataFrame({"a": driven[:, 0], "b": 3.5, "c": driven[:, 1]})
    rest = {**options, "groups": ["one", "two"]} if "groups" in options else dict(options)
    rest.pop("exogenous", None)
    setup = {"lam": 0.1, "cv": None, "random_state": 0}
    known = GrangerGraph(**setup, **rest).fit(whole[["a", "c"]])
    with pytest.warns(KernelWeaveWarning, match=CONSTANT):
        model = GrangerGraph(**setup, **options).fit(whole)
    assert model.constant_ == ["b"]
    n = len(model.group_names_)
    assert n == (3 if "b" in model.group_names_ else 2)
    kept = [i for i, name in enumerate(model.group_names_) if name != "b"]
    alone = np.zeros((n, n))
    alone[np.ix_(kept, kept)] = known.graph_
    np.testing.assert_array_equal(model.graph_, alone)
    assert model.targets_ == known.targets_
    pd.testing.assert_frame_equal(model.edges_, known.edges_)
    if known.p_values_ is not None:
        p = np.full((n, n), np.nan)
        p[np.ix_(kept, kept)] = known.p_values_
        np.testing.assert_array_equal(model.p_values_, p)
    assert model.score(whole) == known.score(whole[["a", "c"]])
    ahead, known_ahead = model.forecast_ahead(whole, 2), known.forecast_ahead(whole[["a", "c"]], 2)
    for each in (ahead.mean, ahead.lower, ahead.upper, model.forecast(whole)):
        assert set(each["b"]) == {3.5}
    assert ahead.mean.shape == (2, 3)
    assert known_ahead.mean.shape == (2, 2)


def test_a_gap_in_a_constant_series_costs_no_row(driven: np.ndarray) -> None:
    whole = pd.DataFrame({"a": driven[:, 0], "b": 3.5, "c": driven[:, 1]})
    whole.loc[::2, "b"] = np.nan
    known = GrangerGraph(lam=0.1, cv=None).fit(whole[["a", "c"]])
    with pytest.warns(KernelWeaveWarning, match=CONSTANT):
        model = GrangerGraph(lam=0.1, cv=None, missing="skip").fit(whole)
    np.testing.assert_array_equal(model.graph_[np.ix_([0, 2], [0, 2])], known.graph_)


def test_series_of_small_units_are_not_constant(driven: np.ndarray) -> None:
    model, small = (GrangerGraph(lam=0.1, cv=None).fit(X) for X in (driven, 2.0**-60 * driven))
    np.testing.assert_allclose(small.graph_, model.graph_, rtol=1e-10)


def test_a_graph_without_series_that_vary_is_refused() -> None:
    frame = pd.DataFrame({"a": [1.0] * 30, "b": [2.0] * 30})
    with pytest.raises(ValueError, match=r"every node is constant \(a, b\)"):
        GrangerGraph(lam=0.1, cv=None).fit(frame)
    frame["b"] = np.nan
    with pytest.raises(ValueError, match="series 'b' has no value, all are missing"):
        GrangerGraph(lam=0.1, cv=None, missing="skip").fit(frame)
