"""The estimator: what it finds, how it selects, and what it promises scikit-learn."""

from __future__ import annotations

import warnings
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from kernelweave.granger import (
    GrangerGraph,
    lagged_samples,
    lorenz96,
    random_network,
    score_graph,
)
from kernelweave.granger.histories import WIDTHS, history_dictionary
from kernelweave.granger.selection import choose, warn_of_ends
from kernelweave.granger.series import make_groups
from kernelweave.granger.significance import rearranged
from kernelweave.granger.target import of_kernels
from kernelweave.kernels_core import (
    RBF,
    KernelWeaveWarning,
    Linear,
    MemoryBudgetError,
    config_context,
)
from kernelweave.vv_rkhs import MatrixValuedKernelRegressor
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import LeaveOneGroupOut, TimeSeriesSplit


@pytest.fixture(scope="module")
def driven() -> np.ndarray:
    """Node 0 is a nonlinear function of node 2, the others are noise."""
    X = np.random.default_rng(0).standard_normal((90, 3))
    X[1:, 0] = np.cos(2.0 * X[:-1, 2]) + 0.3 * X[1:, 0]
    return X


# of few candidates most are an end
AT_AN_END = pytest.mark.filterwarnings("ignore:.*of lams, has the least held-out error")


def test_direction_and_certificates(driven: np.ndarray) -> None:
    model = GrangerGraph().fit(driven)
    assert model.graph_[0].argmax() == 2
    assert all(result.gap <= 1e-3 for result in model.results_)
    assert model.rmse_ is not None
    assert model.rmse_[0] < 0.7 * driven[:, 0].std() < model.rmse_[2] * 2
    assert model.lam_.shape == (3,)


def test_weights_are_those_of_the_regressor(driven: np.ndarray) -> None:
    model = GrangerGraph(lam=0.05, cv=None, tol=1e-10, pairs=False).fit(driven)
    scaled = (driven - driven.mean(axis=0)) / driven.std(axis=0)
    samples = lagged_samples(scaled, 1)
    dictionary, owner = history_dictionary(
        samples.history, make_groups(None, ["a", "b", "c"]), 1, None
    )
    target = samples.targets[:, 0] - samples.targets[:, 0].mean()
    plain = MatrixValuedKernelRegressor("precomputed", penalty="elastic-net", lam=0.05, tol=1e-10)
    plain.fit(dictionary.grams, target)
    np.testing.assert_allclose(model.weights_[0], plain.weights_, atol=1e-4)
    for j in range(3):
        np.testing.assert_allclose(model.graph_[0, j], model.weights_[0][owner == j].sum())


def test_noise_gets_less_weight_than_a_cause_under_the_elastic_net_only(driven: np.ndarray) -> None:
    elastic = GrangerGraph(lam=1.0, cv=None).fit(driven)
    assert elastic.graph_[2].sum() < 0.5 * elastic.graph_[0].sum()
    simplex = GrangerGraph(penalty="lp", lam=1.0, cv=None).fit(driven)
    np.testing.assert_allclose(simplex.graph_.sum(axis=1), 1.0, rtol=1e-9)


def test_forecast_uses_the_past_only_and_the_units_of_the_data(driven: np.ndarray) -> None:
    X = 7.0 + 3.0 * driven
    model = GrangerGraph(lags=2, lam=0.03, cv=None).fit(X)
    found = model.forecast(X)
    assert found.shape == (len(X) - 1, 3)
    assert np.corrcoef(found[:-1, 0], X[2:, 0])[0, 1] > 0.8
    changed = X.copy()
    changed[50:] += 5.0
    np.testing.assert_array_equal(model.forecast(changed)[:48], found[:48])
    np.testing.assert_allclose(model.forecast(X[-2:])[0], found[-1])


def test_groups_share_an_output_kernel() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((120, 4))
    shared = np.sin(2.0 * X[:-1, 2])
    X[1:, 0] = shared + 0.2 * X[1:, 0]
    X[1:, 1] = -shared + 0.2 * X[1:, 1]
    with pytest.warns(ConvergenceWarning, match="of pair came to rest.*learn_output=False") as told:
        model = GrangerGraph(groups=["pair", "pair", "c", "d"], lam=0.05, cv=2).fit(X)
    assert len(told) == 1, "once, though every fold came to rest"
    assert model.group_names_ == ["pair", "c", "d"]
    assert model.graph_.shape == (3, 3)
    assert model.graph_[0].argmax() == 1
    L = model.output_kernels_[0]
    assert L[0, 1] < -0.5 * L[0, 0], "the two move against each other"
    assert model.results_[0].status.label == "stationary"
    plain = clone(model).set_params(learn_output=False).fit(X)
    np.testing.assert_allclose(plain.output_kernels_[0], np.eye(2))


def test_replicates_change_what_is_a_sample() -> None:
    X, _ = lorenz96(4, 60, random_state=0)
    whole = GrangerGraph(lam=0.1, cv=None).fit(X)
    parts = GrangerGraph(lam=0.1, cv=None, replicates=np.repeat([0, 1, 2], 20)).fit(X)
    assert len(whole.results_[0].solution.C) == 59
    assert len(parts.results_[0].solution.C) == 57


def test_folds_hold_out_whole_replicates() -> None:
    from kernelweave.granger.selection import make_folds

    replicate = np.repeat([0, 1, 2, 3], 5)
    for train, test in make_folds(5, replicate):
        assert not set(replicate[train]) & set(replicate[test])
    for _, test in make_folds(4, np.zeros(20, dtype=int)):
        assert (np.diff(test) == 1).all()


def test_folds_are_what_scikit_learn_takes() -> None:
    from kernelweave.granger.selection import make_folds

    replicate = np.repeat([0, 1, 2], 5)
    held_out = [replicate[test].tolist() for _, test in make_folds(LeaveOneGroupOut(), replicate)]
    assert held_out == [[0] * 5, [1] * 5, [2] * 5]
    # a series alone has no groups, of which a splitter in time would say that it ignores them
    one = np.zeros(12, dtype=int)
    later = [(train.max(), test.min()) for train, test in make_folds(TimeSeriesSplit(3), one)]
    assert all(last < first for last, first in later)
    assert len(make_folds(list(TimeSeriesSplit(2).split(one)), one)) == 2
    with pytest.raises(ValueError, match="cv must be an integer >= 2 or a splitter, got 1"):
        make_folds(1, one)


@AT_AN_END
@pytest.mark.parametrize("groups", [None, ["a", "a", "b"]])
def test_a_scorer_chooses(driven: np.ndarray, groups: Any) -> None:
    later = [(np.arange(60), np.arange(60, len(driven) - 1))]
    lams, settings = [1.0, 0.3, 0.1], {"groups": groups, "learn_output": False}
    model = GrangerGraph(lams=lams, cv=later, scoring="r2", **settings).fit(driven)
    plain = GrangerGraph(lams=lams, cv=later, **settings).fit(driven)
    assert model.selection_ is not None
    assert plain.selection_ is not None
    np.testing.assert_allclose(model.selection_.errors, plain.selection_.errors, rtol=1e-6)
    # R² of standardised values, of a fold alone
    unit = (driven - driven.mean(axis=0)) / driven.std(axis=0)
    r2 = 1.0 - plain.selection_.errors / unit[1:][later[0][1]].var(axis=0)
    np.testing.assert_allclose(model.selection_.losses, -r2, rtol=1e-6)
    assert model.lam_[0] == lams[int(r2.sum(axis=1).argmax())]
    np.testing.assert_allclose(model.rmse_, np.sqrt(model.selection_.errors[
        lams.index(model.lam_[0])]) * driven.std(axis=0))  # fmt: skip

    # each node's absolute errors, folds alike
    def worst(model: Any, X: Any, y: Any) -> float:
        return -float(np.abs(model.predict(X) - y).max())

    named = GrangerGraph(lams=lams, cv=later, scoring="neg_max_error", **settings).fit(driven)
    own = GrangerGraph(lams=lams, cv=later, scoring=worst, **settings).fit(driven)
    assert named.selection_ is not None
    assert own.selection_ is not None
    np.testing.assert_array_equal(named.selection_.losses, own.selection_.losses)
    with pytest.raises(ValueError, match="scoring must be None or the name of a scorer"):
        GrangerGraph(scoring=1).fit(driven)


@AT_AN_END
def test_shared_or_separate_lambda(driven: np.ndarray) -> None:
    shared = GrangerGraph(lams=[1.0, 0.1, 0.01]).fit(driven)
    assert len(set(shared.lam_)) == 1
    separate = GrangerGraph(lams=[1.0, 0.1, 0.01], shared_lam=False).fit(driven)
    assert separate.selection_ is not None
    best = separate.selection_.errors.argmin(axis=0)
    np.testing.assert_allclose(separate.lam_, np.array([1.0, 0.1, 0.01])[best])


def test_small_lambdas_are_left_out_once_errors_rise() -> None:
    from kernelweave.granger.selection import search

    lams, asked = np.array([10.0, 1.0, 0.3, 0.1, 0.03, 0.01]), []
    first, groups = lams[:4].tolist(), [np.array([0]), np.array([1])]
    falling = [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
    for errors, shared, tried in (
        ([50.0, 20.0, 10.0, 19.0, 90.0, 90.0], True, [first]),
        ([50.0, 20.0, 10.0, 11.05, 13.0, 90.0], True, [first, [0.03]]),
        ([50.0, 20.0, 10.0, 10.0, 11.0, 12.1], True, [first, [0.03], [0.01]]),
        ([50.0, 20.0, 10.0, 19.0, 90.0, 90.0], False, [first, [0.03], [0.01]]),
    ):
        table = np.column_stack([errors, falling])

        def errors_of(some: np.ndarray, table: np.ndarray = table) -> np.ndarray:
            asked.append(some.tolist())
            return table[np.searchsorted(-lams, -some)]

        asked.clear()
        found = search(lams, errors_of, groups, shared)
        assert asked == tried
        assert found.lams.tolist() == [each for part in tried for each in part]
        assert found.lams[found.chosen[0]] == lams[table.sum(axis=1).argmin() if shared else 2]


def test_permutations_find_the_edge_and_spare_the_others(driven: np.ndarray) -> None:
    model = GrangerGraph(
        lam=0.1, cv=None, significance="permutation", n_draws=60, random_state=0, tol=1e-2
    ).fit(driven)
    assert model.p_values_ is not None
    assert model.p_values_[0, 2] == 1 / 121, "draws into both targets of node 2 count"
    assert np.isnan(np.diag(model.p_values_)).all()
    others = model.p_values_[~np.eye(3, dtype=bool)]
    assert (others <= 0.05).sum() <= 2
    assert model.n_draws_ == 60
    assert model.adjusted_p_values_ is not None
    assert model.adjusted_p_values_[0, 2] == pytest.approx(6 / 121)
    best = model.edges_.iloc[0]
    assert (best["source"], best["target"], best["lag"]) == ("2", "0", 1)
    assert best["passes"]
    assert best["effect"] == "±", "a cosine neither rises nor falls"


@pytest.mark.filterwarnings("ignore:2 draws")
def test_replicates_too_short_for_a_circle_are_named(driven: np.ndarray) -> None:
    model = GrangerGraph(lam=0.1, cv=None, significance="permutation", n_draws=2)
    with pytest.warns(KernelWeaveWarning, match="a replicate has 19 samples"):
        model.set_params(replicates=np.repeat([0, 1], 20)).fit(driven[:40])
    model.set_params(replicates=np.repeat(range(5), 8)).fit(driven[:40])
    model.set_params(replicates=np.repeat([0, 1], 26)).fit(driven[:52])


def test_rearrangements_keep_the_order_within_each_replicate() -> None:
    rng = np.random.default_rng(0)
    replicate = np.repeat([0, 1, 2], [7, 1, 4])
    drawn = np.array([rearranged(replicate, rng) for _ in range(300)])
    for first, last in ((0, 7), (7, 8), (8, 12)):
        rows = drawn[:, first:last]
        assert set(rows[:, 0]) == set(range(first, last)), "every shift, none among them, is drawn"
        np.testing.assert_array_equal((np.diff(rows, axis=1) - 1) % (last - first), 0)
    drawn = np.array([rearranged(np.repeat(np.arange(5), 3), rng) for _ in range(300)])
    blocks = drawn.reshape(300, 5, 3)
    np.testing.assert_array_equal(np.diff(blocks, axis=2), 1)
    assert (np.sort(blocks[:, :, 0], axis=1) == 3 * np.arange(5)).all()
    assert {tuple(each) for each in blocks[:, :, 0]} >= {(0, 3, 6, 9, 12), (12, 9, 6, 3, 0)}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*random walks or follow a trend")
@pytest.mark.parametrize("n_replicates", [1, 5])
def test_slow_series_without_edges_pass_a_test_of_five_per_cent_as_often(n_replicates: int) -> None:
    rates = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = np.zeros((n_replicates, 260 if n_replicates == 1 else 212, 4))
        noise = rng.standard_normal(X.shape)
        for t in range(1, X.shape[1]):
            X[:, t] = 0.9 * X[:, t - 1] + noise[:, t]
        kept = X[:, 200:]
        model = GrangerGraph(
            lam=0.3,
            cv=None,
            tol=1e-2,
            replicates=np.repeat(np.arange(n_replicates), kept.shape[1]),
            significance="permutation",
            n_draws=19,
            adjust="max-t",
            random_state=seed,
        ).fit(kept.reshape(-1, 4))
        assert model.p_values_ is not None
        rates.append(np.mean(model.p_values_[~np.eye(4, dtype=bool)] <= 0.05))
    error = np.std(rates, ddof=1) / np.sqrt(len(rates))
    assert np.mean(rates) <= 0.05 + 2.0 * error, (
        "single samples drawn anew give a third or an eighth"
    )


@AT_AN_END
@pytest.mark.filterwarnings("ignore:4 draws")
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_any_joblib_backend_gives_the_same_graph(driven: np.ndarray, backend: str) -> None:
    model = GrangerGraph(
        lams=[1.0, 0.1], cv=3, significance="permutation", n_draws=4, random_state=0, tol=1e-2
    )
    alone = clone(model).fit(driven)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        together = clone(model).fit(driven)
    np.testing.assert_allclose(together.graph_, alone.graph_, atol=1e-9)
    np.testing.assert_array_equal(together.p_values_, alone.p_values_)
    np.testing.assert_array_equal(together.lam_, alone.lam_)


def test_kernels_and_names_of_the_user(driven: np.ndarray) -> None:
    frame = pd.DataFrame(driven, columns=["wind", "rain", "sun"])
    model = GrangerGraph(kernels=[Linear(), RBF(gamma=2.0)], lam=0.1, cv=None).fit(frame)
    assert model.group_names_ == ["wind", "rain", "sun"]
    assert len(model.kernel_names_) == 6
    assert model.owner_.tolist() == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"lags": 0}, "lags must be"),
        ({"lags": True}, "lags must be"),
        ({"lam": "auto"}, "lam must be 'cv'"),
        ({"lam": None}, "lam must be 'cv'"),
        ({"lams": []}, "lams must hold"),
        ({"n_draws": 0}, "n_draws must be"),
        ({"n_draws": 1.5}, "n_draws must be"),
        ({"adjust": "holm"}, "adjust must be"),
        ({"level": 0.0}, "level must be"),
        ({"cv": None}, "needs cv"),
        ({"cv": 1}, "cv must be"),
        ({"significance": "magic"}, "significance must be"),
        ({"groups": ["a"]}, "one label per node"),
    ],
)
def test_parameters_are_refused_by_name(
    driven: np.ndarray, change: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        GrangerGraph(**change).fit(driven)


def test_linear_series_are_predicted_better_than_by_gaussians_alone() -> None:
    rng = np.random.default_rng(0)
    X = np.zeros((320, 3))
    for t in range(1, 320):
        X[t] = 0.95 * X[t - 1] + 0.3 * np.roll(X[t - 1], 1) * [1, 0, 0] + rng.standard_normal(3)
    X = X[200:]
    lams = [1.0, 0.3, 0.1, 0.03]
    ours = GrangerGraph(lams=lams, tol=1e-2).fit(X)
    gaussians = GrangerGraph(kernels=[RBF(gamma=g) for g in WIDTHS], lams=lams, tol=1e-2).fit(X)
    assert ours.kernel_names_[0] != gaussians.kernel_names_[0]
    assert ours.rmse_ is not None
    assert gaussians.rmse_ is not None
    assert (ours.rmse_ < gaussians.rmse_).all()


@pytest.mark.parametrize("lam", [0.3, 3.0])
def test_edges_are_those_that_a_proved_optimum_has(lam: float) -> None:
    X, _ = random_network(5, 100, degree=0.0, memory=0.0, random_state=2)
    model = GrangerGraph(lam=lam, cv=None).fit(X)
    assert max(result.gap for result in model.results_) <= model.tol
    assert (model.weights_ == 0.0).mean() > 0.5
    assert model.weights_[model.weights_ > 0.0].min(initial=1.0) > 1e-3
    assert len(model.edges_) == (0 if lam == 3.0 else (model.graph_ > 0.0).sum() - 5)


def test_a_copy_of_kernels_counts_beside_all_of_them() -> None:
    grams = np.ones((4, 10, 10))
    seen = np.array([0, 2, 3])
    with config_context(memory_limit=7 * 800):
        assert of_kernels(grams, seen).shape == (3, 10, 10)
    with config_context(memory_limit=7 * 800 - 1):
        assert of_kernels(grams, None) is grams
        with pytest.raises(MemoryBudgetError, match="4 Gram matrices of 10 samples and a copy"):
            of_kernels(grams, seen)


def test_memory_limit_refuses_before_the_work(driven: np.ndarray) -> None:
    with pytest.raises(MemoryError, match="memory limit"):
        GrangerGraph(memory_limit=1e4).fit(driven)


def test_a_lam_at_the_end_of_its_candidates_is_told() -> None:
    errors = np.array([[1.0], [0.5], [0.2]])
    lams = np.array([10.0, 1.0, 0.1])
    chosen = choose(errors, lams, [np.array([0])], True)
    assert chosen.end == "the least tried"
    assert choose(-errors, lams, [np.array([0])], True).end == "the largest tried"
    assert choose(errors[[0, 2, 1]], lams, [np.array([0])], True).end == ""


def test_a_fit_warns_of_a_lam_at_the_end_of_its_candidates(driven: np.ndarray) -> None:
    with pytest.warns(KernelWeaveWarning, match="λ = 1, the smallest of lams.*give smaller ones"):
        GrangerGraph(lams=[10.0, 3.0, 1.0], tol=1e-2, pairs=False).fit(driven)


def test_targets_with_a_lam_of_their_own_are_counted() -> None:
    errors = np.array([[1.0, 0.1], [0.5, 0.2], [0.7, 0.3]])
    selection = choose(errors, np.array([10.0, 1.0, 0.1]), [np.array([0]), np.array([1])], False)
    with pytest.warns(KernelWeaveWarning, match="λ = 10, the largest of lams.* for 1 of 2 targets"):
        warn_of_ends(selection)


def test_the_largest_lam_is_no_end_where_nothing_drives() -> None:
    errors = np.array([[1.0, 0.1], [1.0, 0.2], [1.2, 0.3]])
    groups = [np.array([0]), np.array([1])]
    alone = choose(errors, np.array([10.0, 1.0, 0.1]), groups, False)
    assert alone.at_ends()[0].tolist() == [False, True]
    one = choose(errors[:, :1], np.array([10.0, 1.0, 0.1]), groups[:1], True)
    assert one.chosen[0] == 0
    assert one.end == ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_ends(one)


@pytest.mark.slow
def test_lorenz96_beats_chance_by_far() -> None:
    X, truth = lorenz96(8, 200, noise=0.5, random_state=0)
    assert score_graph(GrangerGraph(tol=1e-2).fit(X).graph_, truth).auroc > 0.85
