"""p-values against counts by hand, their warnings, and what edges do."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from kernelweave.granger import GrangerGraph, lagged_samples, random_network
from kernelweave.granger.draws import null_weights
from kernelweave.granger.frames import (
    looks_nonstationary,
    shared_season,
    warn_of_draws,
    warn_of_series,
)
from kernelweave.granger.histories import history_dictionary
from kernelweave.granger.series import make_groups
from kernelweave.granger.significance import (
    adjusted_p_values,
    most_draws,
    moved_orders,
    pooled_p_values,
)
from kernelweave.granger.target import TargetSettings, fit_target
from kernelweave.kernels_core import KernelWeaveWarning, MemoryBudgetError, config_context
from kernelweave.vv_rkhs.penalties import ElasticNet


@pytest.fixture
def drawn() -> tuple[np.ndarray, np.ndarray]:
    """Weights of five groups, rounded so that some are equal, and of seven draws."""
    rng = np.random.default_rng(1)
    null = rng.integers(0, 9, (5, 7, 5)) / 8.0
    null[range(5), :, range(5)] = np.nan
    return rng.integers(0, 12, (5, 5)) / 8.0, null


def test_p_values_count_the_draws_of_a_source_into_all_targets(
    drawn: tuple[np.ndarray, np.ndarray],
) -> None:
    observed, null = drawn
    found = pooled_p_values(observed, null)
    assert np.isnan(np.diag(found)).all()
    for i, j in zip(*np.nonzero(~np.eye(5, dtype=bool)), strict=True):
        pool = [null[k, d, j] for k in range(5) if k != j for d in range(7)]
        count = sum(weight >= observed[i, j] for weight in pool)
        assert found[i, j] == (1 + count) / (1 + len(pool))


def test_adjusted_p_values_are_those_of_their_definitions(
    drawn: tuple[np.ndarray, np.ndarray],
) -> None:
    observed, null = drawn
    p = pooled_p_values(observed, null)
    tested = [(i, j) for i in range(5) for j in range(5) if i != j]
    found = adjusted_p_values(p, observed, null, "bh")
    ordered = sorted(p[each] for each in tested)
    for each in tested:
        later = [20 * ordered[k] / (k + 1) for k in range(20) if ordered[k] >= p[each]]
        assert found[each] == pytest.approx(min(1.0, *later))
    found = adjusted_p_values(p, observed, null, "max-t")
    every = np.concatenate([null, np.where(np.eye(5), np.nan, observed)[:, None]], axis=1)
    size = [np.sqrt(np.nanmean(every[:, :, j] ** 2)) for j in range(5)]
    largest = [max(null[i, d, j] / size[j] for i, j in tested) for d in range(7)]
    for i, j in tested:
        count = sum(each >= observed[i, j] / size[j] for each in largest)
        assert found[i, j] == (1 + count) / 8


def test_weights_by_chance_are_those_of_histories_moved_away() -> None:
    X, _ = random_network(3, 60, random_state=0)
    samples = lagged_samples(X / X.std(axis=0), 1)
    dictionary, owner = history_dictionary(samples.history, make_groups(None, list("abc")), 1, None)
    grams, Y, seen = dictionary.grams, samples.targets[:, [1]], np.flatnonzero(owner != 2)
    exact = TargetSettings(ElasticNet(0.5), learn_output=False, tol=1e-11, max_iter=500)
    # what models may miss is of no account here
    task = TargetSettings(ElasticNet(0.5), learn_output=False, tol=1e-2, max_iter=2)
    seeds = np.array([3, 8])
    every = np.arange(len(owner))
    replicate = samples.replicate
    share = np.eye(3)[owner]
    own, found = null_weights(grams, Y, every, owner == 1, share, 0.1, task, replicate, seeds)
    orders = [*moved_orders(replicate, seeds), np.arange(len(replicate))]
    for draw, order in zip([*found, own], orders, strict=True):
        moved = grams.copy()
        for s in np.flatnonzero(owner != 1):
            moved[s] = grams[s][np.ix_(order, order)]
        weights = fit_target(moved, Y, 0.1, exact).weights
        expected = [weights[owner == j].sum() for j in range(3)]
        np.testing.assert_allclose(draw[[0, 2]], np.array(expected)[[0, 2]], atol=1e-5)
    assert np.isnan(found[:, 1]).all()
    _, less = null_weights(grams, Y, seen, owner == 1, share, 0.1, task, replicate, seeds)
    assert np.isnan(less[:, 1:]).all()
    assert (less[:, 0] >= 0.0).all()


def test_shifts_of_one_replicate_come_once_and_never_leave_all_in_place() -> None:
    together = np.zeros(9, dtype=np.intp)
    orders = np.array(list(moved_orders(together, np.arange(16))))
    assert sorted(orders[:, 0]) == list(range(1, 9))
    assert most_draws(together) == len(orders) == 8, "a shift counted twice is no new evidence"
    np.testing.assert_array_equal((np.diff(orders, axis=1) - 1) % 9, 0)
    assert len(list(moved_orders(together, np.arange(5)))) == 5
    several = np.array(list(moved_orders(np.repeat([0, 1], 4), np.arange(40))))
    assert len(several) == 40
    assert 8 < len(np.unique(several, axis=0)) <= 16


def test_p_values_of_more_draws_than_shifts_are_exact() -> None:
    X, _ = random_network(3, 70, kind="saturating", random_state=0)
    settings = {"lam": 0.1, "cv": None, "significance": "permutation", "random_state": 0}
    every, more = (GrangerGraph(n_draws=n, **settings).fit(X) for n in (68, 120))
    assert every.n_draws_ == more.n_draws_ == 68
    np.testing.assert_array_equal(every.p_values_, more.p_values_)
    assert np.nanmin(more.p_values_) >= 1 / (1 + 2 * 68)


@pytest.mark.filterwarnings("ignore:20 draws", "ignore:.*came to rest")
@pytest.mark.parametrize("groups", [None, ["a", "a", "b"]])
def test_p_values_do_not_depend_on_the_accuracy_of_the_models(groups: list[str] | None) -> None:
    X = np.random.default_rng(5).standard_normal((60, 3))
    settings = {"lam": 0.1, "cv": None, "significance": "permutation", "random_state": 0}
    rough, fine = (
        GrangerGraph(groups=groups, tol=tol, n_draws=20, **settings).fit(X) for tol in (1e-1, 1e-7)
    )
    np.testing.assert_array_equal(rough.p_values_, fine.p_values_)
    np.testing.assert_array_equal(rough.adjusted_p_values_, fine.adjusted_p_values_)


def test_a_draw_that_leaves_all_in_place_is_as_large_as_what_is_observed() -> None:
    """Two replicates of two samples have four orders: p counts each as often as it was drawn."""
    X, _ = random_network(3, 6, random_state=0)
    settings = {"lam": 0.1, "cv": None, "significance": "permutation", "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GrangerGraph(replicates=[0] * 3 + [1] * 3, n_draws=400, **settings).fit(X)
    # a quarter of the draws into the target is the observed order, and an eighth of all draws
    assert np.nanmin(model.p_values_) > 0.1


@pytest.mark.filterwarnings("ignore:20 draws", "ignore:.*21 samples", "ignore:.*20 samples")
def test_impulses_have_p_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shifted impulses meet those of the target: their functions are dependent then."""
    X = np.zeros((21, 2))
    X[0, 0] = X[1, 1] = 1.0
    model = GrangerGraph(
        lam=0.1, cv=None, significance="permutation", n_draws=19, level=0.2, random_state=0
    )
    found = model.fit(X).p_values_
    monkeypatch.setattr("kernelweave.granger.draws.reduction", lambda *_: None)
    whole = model.fit(X).p_values_
    np.testing.assert_allclose(found, whole, atol=0.1)
    assert found[1, 0] == pytest.approx(0.05), "the one follows the other, as in no other order"


def test_draws_that_come_twice_are_fitted_once() -> None:
    X, _ = random_network(3, 40, random_state=0)
    samples = lagged_samples(X, 1, np.repeat([0, 1], 20))
    dictionary, owner = history_dictionary(samples.history, make_groups(None, list("abc")), 1, None)
    task = TargetSettings(ElasticNet(0.5), learn_output=False, tol=1e-9, max_iter=500)
    seeds = np.random.default_rng(0).permutation(np.repeat(np.arange(6), 3))
    _, found = null_weights(
        *(dictionary.grams, samples.targets[:, [0]], np.arange(len(owner)), owner == 0),
        *(np.eye(3)[owner], 0.1, task, samples.replicate, seeds),
    )
    assert found.shape == (18, 3)
    for seed in range(6):
        same = found[seeds == seed]
        np.testing.assert_array_equal(same, np.broadcast_to(same[0], same.shape))
    assert len(np.unique(found[:, 1])) == 6


@pytest.fixture(scope="module")
def model() -> GrangerGraph:
    """Node b falls with a two steps before, c is noise."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((150, 3))
    X[2:, 1] -= 1.5 * X[:-2, 0]
    frame = pd.DataFrame(10.0 + 3.0 * X, columns=["a", "b", "c"])
    return GrangerGraph(lags=3, lam=0.1, cv=None).fit(frame)


def test_the_table_says_lag_and_sign(model: GrangerGraph) -> None:
    best = model.edges_.iloc[0]
    assert (best["source"], best["target"], best["lag"], best["effect"]) == ("a", "b", 2, "-")
    assert best["weight"] == model.graph_[1, 0] == model.edges_["weight"].max()
    assert list(model.edges_) == ["source", "target", "lag", "effect", "weight"]
    assert len(model.edges_) == (model.graph_[~np.eye(3, dtype=bool)] > 0).sum()


def test_a_curve_is_what_forecasts_do_when_one_value_changes(model: GrangerGraph) -> None:
    effects, history = model.effects_, np.full((3, 3), 10.0)
    history[:] = model._forecaster.mean
    rows = []
    for value in effects.values[0]:
        history[1, 0] = value  # two steps before the forecast
        rows.append(model.forecast(pd.DataFrame(history, columns=list("abc"))).iloc[-1])
    found = np.array(rows)
    for i in range(3):
        expected = found[:, i] - found[0, i]
        curve = effects.curves[i, 0, 1]
        np.testing.assert_allclose(curve - curve[0], expected, atol=1e-10)
    signs = effects.signs()
    assert signs[1, 0, 1] == "-"
    for at in np.ndindex(signs.shape):
        curve = effects.curves[at]
        along = np.corrcoef(np.arange(len(curve)), curve)[0, 1] if curve.std() else 0.0
        expected = "±" if abs(along) < 0.5 else "+" if along > 0.0 else "-"
        assert signs[at] == (expected if curve.std() else "")
    assert effects.curves.shape == (3, 3, 3, effects.values.shape[1])


@pytest.mark.parametrize(
    ("adjust", "n_draws", "needed"), [("bh", 99, 120), ("max-t", 18, 19), ("bh", 120, None)]
)
def test_draws_that_cannot_reach_the_level_are_counted(
    adjust: str, n_draws: int, needed: int | None
) -> None:
    smallest = 1.0 / (1.0 + 5 * n_draws)
    if needed is None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warn_of_draws(n_draws, smallest, 30, 0.05, adjust)
        return
    with pytest.warns(KernelWeaveWarning, match=f"{needed} draws can"):
        warn_of_draws(n_draws, smallest, 30, 0.05, adjust)
    with pytest.warns(KernelWeaveWarning, match=f"{needed} draws could, but one replicate has"):
        warn_of_draws(n_draws, smallest, 30, 0.05, adjust, n_draws)


def test_random_walks_trends_and_shared_seasons_are_named() -> None:
    rng = np.random.default_rng(0)
    noise, time = rng.standard_normal((200, 4)), np.arange(200)
    together = np.zeros(200, dtype=np.intp)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not warn_of_series(noise, list("abcd"), together)
    X = noise.copy()
    X[:, 1] = noise[:, [1, 2]].sum(axis=1).cumsum()
    X[:, 3] += time / 20.0
    with pytest.warns(
        KernelWeaveWarning, match="series b, d seem to be random walks or follow a trend"
    ):
        assert warn_of_series(X, list("abcd"), together)
    X = noise.copy()
    X[:, [0, 2]] += 1.5 * np.sin(time * np.pi / 6)[:, None]
    with pytest.warns(KernelWeaveWarning, match="series a, c seem to share a season of about 11.7"):
        assert warn_of_series(X, list("abcd"), together)


def test_slow_series_are_no_random_walks_and_have_no_season() -> None:
    X = np.zeros((40, 450, 5))
    noise = np.random.default_rng(1).standard_normal(X.shape)
    for t in range(1, 450):
        X[:, t] = 0.8 * X[:, t - 1] + noise[:, t]
    assert np.mean([looks_nonstationary(x) for series in X[:, 250:] for x in series.T]) <= 0.02
    assert np.mean([len(shared_season(series)[1]) > 0 for series in X[:, 250:]]) <= 0.05
    assert (
        np.mean([looks_nonstationary(x) for series in noise.cumsum(axis=1) for x in series.T])
        >= 0.65
    )


def test_random_networks_follow_their_equation() -> None:
    X, truth = random_network(4, 4000, kind="linear", memory=0.3, random_state=3)
    found = np.linalg.lstsq(X[:-1], X[1:], rcond=None)[0].T
    assert ((np.abs(found) > 0.1) == truth).all()
    np.testing.assert_allclose(np.diag(found), 0.3, atol=0.06)
    assert random_network(3, 10, degree=0.0, random_state=0)[1].sum() == 3
    even, graph = random_network(3, 3000, kind="even", degree=2.0, memory=0.0, random_state=0)
    assert graph.all()
    squares = even[:-1, 1] ** 2 / (1.0 + even[:-1, 1] ** 2)
    straight, bent = (np.corrcoef(even[1:, 0], each)[0, 1] for each in (even[:-1, 1], squares))
    assert np.abs(bent) > 2.5 * np.abs(straight) > 0.0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n_nodes": 1}, "n_nodes must be"),
        ({"kind": "cubic"}, "kind must be"),
        ({"degree": 9.0}, "degree must be"),
        ({"memory": 1.0}, "memory must be"),
    ],
)
def test_bad_networks_are_named(change: dict[str, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        random_network(**change)


def test_an_edge_without_weight_is_as_likely_as_any_by_chance() -> None:
    X = np.random.default_rng(0).standard_normal((64, 3))
    model = GrangerGraph(lam=2.0, cv=None, significance="permutation", n_draws=60).fit(X)
    assert model.graph_.max() < 1e-4
    between = ~np.eye(3, dtype=bool)
    np.testing.assert_array_equal(model.p_values_[between], 1.0)
    np.testing.assert_array_equal(model.adjusted_p_values_[between], 1.0)


def test_features_of_pairs_of_all_draws_count_in_the_memory() -> None:
    rng = np.random.default_rng(0)
    Y, grams = rng.standard_normal((40, 1)), np.stack([np.eye(40)] * 3)
    wide = rng.standard_normal((2, 40, 30))
    task = TargetSettings(ElasticNet(), learn_output=False, tol=1e-3, max_iter=10)
    with (
        config_context(memory_limit=2**20),
        pytest.raises(MemoryBudgetError, match="pairs of 32 draws"),
    ):
        null_weights(
            *(grams, Y, np.arange(3), np.array([True, False, False]), np.eye(3), 0.1, task),
            *(np.zeros(40, dtype=int), np.arange(40), {2: (wide[0], wide[1])}),
        )
