"""Tables, lags, roles of columns, gaps, forecasts, and what other programs read."""

from __future__ import annotations

import io
import warnings
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from kernelweave.granger import GrangerGraph, lagged_samples
from kernelweave.granger.frames import extend_index
from kernelweave.kernels_core import KernelWeaveWarning


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Series b follows a, three steps later, and c follows b; w is a wave that all share."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((140, 4))
    for t in range(3, 140):
        X[t, 1] += 1.5 * np.tanh(X[t - 3, 0])
        X[t, 2] -= 1.5 * X[t - 1, 1]
    X[:, 3] = np.sin(np.arange(140) * np.pi / 6)
    return pd.DataFrame(X + 5.0, columns=["a", "b", "c", "w"])


def quick(**params: Any) -> GrangerGraph:
    return GrangerGraph(**{"lam": 0.1, "cv": None, "tol": 1e-3, **params})


def test_lags_that_are_listed_are_columns_of_the_history() -> None:
    X = np.arange(20.0).reshape(10, 2)
    samples = lagged_samples(X, [4, 1])
    assert samples.times.tolist() == [4, 5, 6, 7, 8, 9]
    assert samples.history[0].tolist() == [6.0, 0.0, 7.0, 1.0]
    np.testing.assert_array_equal(
        lagged_samples(X, 3).history, lagged_samples(X, [1, 2, 3]).history
    )
    assert lagged_samples(X, 1, first=5).times.tolist() == [5, 6, 7, 8, 9]


def test_the_lag_of_an_edge_is_one_that_was_listed(frame: pd.DataFrame) -> None:
    model = quick(lags=[1, 3]).fit(frame)
    found = model.edges_.set_index(["source", "target"])
    assert found.loc[("a", "b"), "lag"] == 3
    assert found.loc[("b", "c"), "lag"] == 1
    assert model.lags_ == (1, 3)
    assert model.forecast(frame).shape == (138, 4)


def test_a_length_is_chosen_by_held_out_errors(frame: pd.DataFrame) -> None:
    model = GrangerGraph("cv", lam=0.3, cv=3, tol=1e-2).fit(frame[["a", "b"]])
    assert model.lags_ == (1, 2, 3)


def test_every_lag_may_have_a_weight_and_a_p_value(frame: pd.DataFrame) -> None:
    model = quick(
        lags=3,
        per_lag=True,
        significance="permutation",
        n_draws=19,
        adjust="max-t",
        tol=1e-2,
        random_state=0,
    ).fit(frame[["a", "b", "c"]])
    assert model.lag_graph_ is not None
    assert model.lag_p_values_ is not None
    np.testing.assert_allclose(model.lag_graph_.sum(axis=2), model.graph_)
    assert model.lag_graph_[1, 0].argmax() == 2
    assert model.lag_p_values_[1, 0, 2] <= 2 / 39
    assert np.nanmin(model.lag_p_values_[0]) > 0.05
    assert np.isnan(model.lag_p_values_[0, 0]).all()
    passing = model.edges_[model.edges_["passes"]]
    assert ("a", "b", 3) in set(
        passing[["source", "target", "lag"]].itertuples(index=False, name=None)
    )
    assert model.lag_p_values_[2, 1, 0] <= 2 / 39


def test_a_list_of_tables_is_its_replicates(frame: pd.DataFrame) -> None:
    parts = [frame[:50], frame[50:90], frame[90:]]
    model = quick().fit(parts)
    labels = np.repeat([0, 1, 2], [50, 40, 50])
    plain = quick(replicates=labels).fit(frame)
    np.testing.assert_array_equal(model.graph_, plain.graph_)
    assert model.group_names_ == list(frame)
    arrays = quick().fit([part.to_numpy() for part in parts])
    np.testing.assert_allclose(arrays.graph_, plain.graph_)
    with pytest.raises(ValueError, match="must have the same columns"):
        quick().fit([frame, frame[["b", "a", "c", "w"]]])
    with pytest.raises(ValueError, match="as many columns"):
        quick().fit([np.ones((9, 2)), np.ones((9, 3))])
    with pytest.raises(ValueError, match="replicates must be None"):
        quick(replicates=labels).fit(parts)


def test_roles_keep_edges_out(frame: pd.DataFrame) -> None:
    model = quick(
        exogenous=["w"], never_targets=["a"], forbidden=[("c", "b"), ("b", "a")], lags=3
    ).fit(frame)
    assert model.group_names_ == ["a", "b", "c"]
    assert model.targets_ == ["b", "c"]
    assert len(model.results_) == len(model.lam_) == 2
    assert (model.graph_[0] == 0.0).all()
    assert model.graph_[1, 2] == 0.0
    assert model.graph_[1, 0] > 0.0
    assert (model.weights_[1:][:, model.owner_ == 3] > 0.0).any(), "all models see the wave"
    assert set(model.edges_["target"]) <= {"b", "c"}
    assert "w" not in set(model.edges_["source"])
    forecast = model.forecast(frame)
    assert forecast[["a", "w"]].isna().all(axis=None)
    assert not forecast[["b", "c"]].isna().any(axis=None)


def test_a_forbidden_link_leaves_the_model_that_never_saw_it(frame: pd.DataFrame) -> None:
    pair = frame[["b", "c"]]
    with_c = quick(forbidden=[("c", "b")]).fit(pair)
    alone = quick().fit(frame[["b"]])
    np.testing.assert_allclose(with_c.graph_[0, 0], alone.graph_[0, 0], rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"exogenous": ["x"]}, "exogenous must name series of X, got 'x'"),
        ({"exogenous": ["a", "b", "c", "w"]}, "at least one must be a node"),
        ({"never_targets": ["a", "b", "c", "w"]}, "at least one must be driven"),
        ({"forbidden": [("a", "x")]}, "forbidden must name"),
        ({"forbidden": ["ab"]}, "forbidden must hold pairs"),
        ({"forbidden": [("a", "a")]}, "pairs of different nodes"),
        ({"lags": "aic"}, "lags must be"),
        ({"lags": [0, 1]}, "lags must be"),
        ({"lags": "cv"}, "lags='cv' needs cv"),
        ({"missing": "fill"}, "missing must be"),
    ],
)
def test_bad_roles_are_named(frame: pd.DataFrame, change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        quick(**change).fit(frame)


def test_an_exogenous_season_stays_in_place_and_is_not_warned_of() -> None:
    rng = np.random.default_rng(0)
    season = np.sin(np.arange(200) * np.pi / 6)
    X = np.column_stack([rng.standard_normal((200, 3)) + 1.5 * season[:, None], season])
    known = pd.DataFrame(X, columns=["a", "b", "c", "season"])
    settings = {"significance": "permutation", "n_draws": 60, "tol": 1e-2, "random_state": 0}
    with pytest.warns(KernelWeaveWarning, match="share a season of about 11.7 rows"):
        quick(lam=0.3, **settings).fit(known[["a", "b", "c"]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = quick(lam=0.3, exogenous=["season"], **settings).fit(known)
    assert not told.edges_["passes"].any()


def test_gaps_leave_their_samples_out(frame: pd.DataFrame) -> None:
    holes = frame.copy()
    holes.iloc[40, 0] = holes.iloc[41, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        quick().fit(holes)
    model = quick(missing="skip").fit(holes)
    assert len(model.results_[0].solution.C) == 139 - 3
    forecast = model.forecast(holes)
    assert forecast.loc[[41, 42]].isna().all(axis=None)
    assert not forecast.drop([41, 42]).isna().any(axis=None)
    assert np.isfinite(model.score(holes))
    with pytest.raises(ValueError, match="every row of X has a missing value in it or in its lags"):
        quick(missing="skip", lags=2).fit(
            frame.where((np.arange(140) % 2 == 0)[:, None] & np.ones(4, dtype=bool))
        )


def test_score_is_the_mean_share_of_variance_explained(frame: pd.DataFrame) -> None:
    model = quick(lags=3).fit(frame[:100])
    test = frame[100:]
    known = test[3:]
    found = model.forecast(test).loc[known.index]
    missed = ((found - known) ** 2).sum() / ((known - known.mean()) ** 2).sum()
    assert model.score(test) == pytest.approx(1.0 - missed.mean())
    assert model.score(test) > 0.3
    with pytest.raises(ValueError, match="at least 5 rows, got 4"):
        model.score(test[:4])


def test_several_stretches_have_one_score(frame: pd.DataFrame) -> None:
    model = quick(lags=3).fit(frame[:80])
    parts = [frame[80:105], frame[105:140]]
    known = np.vstack([each[3:] for each in parts])
    found = np.vstack([model.forecast(each)[:-1] for each in parts])
    missed = ((found - known) ** 2).sum(axis=0) / ((known - known.mean(axis=0)) ** 2).sum(axis=0)
    assert model.score(parts) == pytest.approx(1.0 - missed.mean())
    assert model.score([parts[0]]) == model.score(parts[0])
    with pytest.raises(ValueError, match="at least 5 rows, got 25, 3"):
        model.score([parts[0], parts[1][:3]])


def test_intervals_hold_the_share_that_they_promise() -> None:
    rng = np.random.default_rng(0)
    X = np.zeros((1300, 2))
    for t in range(1, 1300):
        X[t] = [[0.7, 0.0], [0.8, 0.5]] @ X[t - 1] + rng.standard_normal(2)
    goes_on = np.random.RandomState(0)
    model = GrangerGraph(lam=0.03, cv=None, random_state=goes_on).fit(X[:150])
    inside, ends = [], []
    for start in range(150, 1250, 22):
        found = model.forecast_ahead(X[start - 5 : start], 3, level=0.8, n_paths=100)
        known = X[start : start + 3]
        inside.append((found.lower <= known) & (known <= found.upper))
        ends.append(found.upper - found.lower)
    assert np.mean(inside) == pytest.approx(0.8, abs=0.06)
    width = np.mean(ends, axis=0)[:, 0] / (2 * 1.2816)
    expected = np.sqrt([1.0, 1.49, 1.49 + 0.49**2])
    np.testing.assert_allclose(width, expected, rtol=0.12)


def test_a_forecast_of_one_step_is_the_prediction(frame: pd.DataFrame) -> None:
    model = quick(lags=3, exogenous=["w"], random_state=0).fit(frame)
    coming = np.zeros((2, 4))
    coming[:, 3] = 5.0
    found = model.forecast_ahead(frame, 2, future=coming, n_paths=4000)
    nodes = ["a", "b", "c"]
    expected = model.forecast(frame).loc[140, nodes]
    spread = (found.upper - found.lower).loc[140, nodes]
    assert (np.abs(found.mean.loc[140, nodes] - expected) < 0.05 * spread).all()
    np.testing.assert_allclose(found.mean["w"], 5.0)
    named = model.forecast_ahead(frame, 2, future=pd.DataFrame({"w": [5.0, 5.0]}))
    np.testing.assert_allclose(named.mean["w"], 5.0)
    with pytest.raises(ValueError, match="future must have a column 'w'"):
        model.forecast_ahead(frame, 2, future=frame[["a"]][:2])
    with pytest.raises(ValueError, match="future must hold the coming rows"):
        model.forecast_ahead(frame, 2)
    with pytest.raises(ValueError, match="future must have shape"):
        model.forecast_ahead(frame, 3, future=coming)
    with pytest.raises(ValueError, match="steps must be"):
        model.forecast_ahead(frame, 0)


def test_tables_keep_their_names_and_times(frame: pd.DataFrame) -> None:
    dated = frame[["a", "b"]].set_axis(pd.date_range("2020-01-31", periods=140, freq="ME"))
    model = quick(random_state=0).fit(dated)
    found, plain = model.forecast(dated), quick().fit(dated.to_numpy())
    np.testing.assert_allclose(found, plain.forecast(dated.to_numpy()))
    assert list(found) == ["a", "b"]
    assert list(found.index[:-1]) == list(dated.index[1:])
    assert found.index[-1] == pd.Timestamp("2031-09-30")
    ahead = model.forecast_ahead(dated, 2)
    assert [str(day.date()) for day in ahead.lower.index] == ["2031-09-30", "2031-10-31"]
    assert isinstance(plain.forecast(dated.to_numpy()), np.ndarray)


@pytest.mark.parametrize(
    ("index", "after"),
    [
        (pd.RangeIndex(3), [3, 4]),
        (pd.Index([2, 4, 6]), [8, 10]),
        (pd.Index(["x", "y", "z"]), [3, 4]),
        (pd.period_range("2020Q1", periods=3, freq="Q"), ["2020Q4", "2021Q1"]),
        (pd.DatetimeIndex(["2020-01-01", "2020-01-04"]), ["2020-01-07", "2020-01-10"]),
    ],
)
def test_what_comes_later_goes_on_like_what_was(index: pd.Index, after: list[Any]) -> None:
    found = extend_index(index, 2)
    expected = after if isinstance(after[0], int) else list(type(index)(after, freq=index.freq))
    assert list(found) == expected


def test_times_must_rise_and_be_even(frame: pd.DataFrame) -> None:
    days = pd.date_range("2020-01-01", periods=140)
    with pytest.raises(ValueError, match="must rise from row to row"):
        quick().fit(frame.set_axis(days[::-1]))
    months = pd.date_range("2020-01-31", periods=140, freq="ME")
    quick().fit([frame[["a", "b"]].set_axis(months), frame[["a", "b"]].set_axis(months)])
    gap = frame[["a", "b"]].set_axis(days).drop(days[50:53])
    with pytest.warns(KernelWeaveWarning, match="steps of up to 4 times the usual one"):
        quick().fit(gap)
    quick(missing="skip").fit(gap.asfreq("D"))


def test_other_programs_read_the_graph(frame: pd.DataFrame) -> None:
    model = quick(lags=3).fit(frame.rename(columns={"w": 'say "w"'}))
    graph = model.to_networkx()
    assert set(graph.nodes) == {"a", "b", "c", 'say "w"'}
    assert graph.number_of_edges() == len(model.edges_)
    assert graph.edges["a", "b", 3]["effect"] == "+"
    written = io.BytesIO()
    nx.write_graphml(graph, written)
    written.seek(0)
    again = nx.read_graphml(written, force_multigraph=True)
    assert {each[:2] for each in again.edges} == {each[:2] for each in graph.edges}
    weights = nx.get_edge_attributes(again, "weight")
    assert max(weights.values()) == pytest.approx(model.edges_["weight"].max())
