"""Products of two histories."""

from __future__ import annotations

import numpy as np
import pytest
from kernelweave.granger import GrangerGraph, lagged_samples, lorenz96, score_graph
from kernelweave.granger.draws import null_weights
from kernelweave.granger.histories import history_dictionary
from kernelweave.granger.roles import choose_pairs, pair_features, shares
from kernelweave.granger.series import make_groups
from kernelweave.granger.significance import moved_orders
from kernelweave.granger.target import TargetSettings, fit_target
from kernelweave.kernels_core import MemoryBudgetError, config_context
from kernelweave.vv_rkhs.penalties import ElasticNet, SquaredLpNorm


def product_driven(n_nodes: int, n_times: int = 200) -> np.ndarray:
    """The last node follows the product of the first two, all others are noise."""
    X = np.random.default_rng(0).standard_normal((n_times, n_nodes))
    X[1:, -1] = 1.5 * X[:-1, 0] * X[:-1, 1] + 0.3 * X[1:, -1]
    return X


def test_what_two_drive_together_is_found_with_pairs_alone() -> None:
    X = product_driven(4)
    with_pairs, alone = (
        GrangerGraph(lam=0.1, cv=None, pairs=pairs).fit(X).graph_[3] for pairs in (None, False)
    )
    assert with_pairs[:2].min() > 10.0 * with_pairs[2:].max()
    assert alone[:2].min() < 2.0 * alone[2:].max(), "noise gets as much"


def test_lorenz_systems_are_known_from_a_quarter_of_a_thousand_rows() -> None:
    X, truth = lorenz96(6, 150, forcing=40.0, random_state=0)
    areas = [
        score_graph(GrangerGraph(lam=0.1, cv=None, pairs=pairs).fit(X).graph_, truth).auroc
        for pairs in (True, False)
    ]
    assert areas[0] >= 0.99
    assert areas[1] < 0.97


def test_the_two_of_a_pair_share_its_weight() -> None:
    share = shares(np.array([0, 0, 1, 2, 3, 4]), 3, [(0, 1), (1, 2)])
    np.testing.assert_array_equal(share.sum(axis=1), 1.0)
    assert share[4].tolist() == [0.5, 0.5, 0.0]
    assert share[5].tolist() == [0.0, 0.5, 0.5]
    model = GrangerGraph(lam=0.3, cv=None, penalty="lp").fit(product_driven(3, 80))
    np.testing.assert_allclose(model.graph_.sum(axis=1), 1.0, rtol=1e-9)
    assert model.pairs_ == [("0", "1"), ("0", "2"), ("1", "2")]
    assert model.owner_.max() == 5


def test_kernels_of_pairs_are_those_of_their_features() -> None:
    X = product_driven(3, 40)
    history = lagged_samples(X, 2).history
    groups = make_groups(None, list("abc"))
    dictionary, unit = history_dictionary(history, groups, 2, None, pairs=[(0, 2)])
    views = groups.columns(2)
    Z = pair_features(history[:, views[0]], history[:, views[2]])
    (place,) = np.flatnonzero(unit == 3)
    np.testing.assert_allclose(dictionary.grams[place], Z @ Z.T, atol=1e-10)


@pytest.mark.parametrize("penalty", [ElasticNet(0.5), SquaredLpNorm(1.5)])
def test_pairs_with_the_own_history_move_with_the_other_half_alone(
    penalty: ElasticNet | SquaredLpNorm,
) -> None:
    X = product_driven(3, 50)
    samples = lagged_samples(X / X.std(axis=0), 1)
    pairs = [(0, 1), (0, 2), (1, 2)]
    groups = make_groups(None, list("abc"))
    dictionary, unit = history_dictionary(samples.history, groups, 1, None, pairs=pairs)
    grams, h, Y = np.asarray(dictionary.grams), samples.history, samples.targets[:, [2]]
    task, seeds = (
        TargetSettings(penalty, learn_output=False, tol=1e-8, max_iter=2000),
        np.array([5, 9]),
    )
    first = int(np.flatnonzero(unit == 3)[0])
    mixed = {first + k: (h[:, [2]], h[:, [pairs[k][0]]]) for k in (1, 2)}
    share = shares(unit, 3, pairs)
    every = np.arange(len(grams))
    own, found = null_weights(
        grams, Y, every, unit == 2, share, 0.1, task, samples.replicate, seeds, mixed
    )
    orders = [*moved_orders(samples.replicate, seeds), np.arange(len(h))]
    for draw, order in zip([*found, own], orders, strict=True):
        copy = grams.copy()
        moved = h.copy()
        moved[:, :2] = h[order][:, :2]  # all but the target's own history
        for j in np.flatnonzero(unit != 2):
            copy[j] = grams[j][np.ix_(order, order)]
        for k in (1, 2):
            Z = pair_features(moved[:, [2]], moved[:, [pairs[k][0]]])
            copy[first + k] = Z @ Z.T
        expected = fit_target(copy, Y, 0.1, task).weights @ share
        np.testing.assert_allclose(draw[:2], expected[:2], atol=2e-3)
        assert np.isnan(draw[2])


def test_of_many_pairs_the_promising_ones_are_taken() -> None:
    X = product_driven(16)
    samples = lagged_samples(X / X.std(axis=0), 1)
    groups = make_groups(None, [str(j) for j in range(16)])
    chosen = choose_pairs(samples.history, samples.targets, groups, 1)
    assert len(chosen) == 100
    assert (0, 1) in chosen
    assert len(GrangerGraph(lam=1.0, cv=None).fit(X).pairs_) == 100
    with pytest.raises(ValueError, match="pairs excludes significance for 16 groups"):
        GrangerGraph(lam=1.0, cv=None, significance="permutation", pairs=True).fit(X)


def test_products_that_do_not_vary_have_no_kernel() -> None:
    X = product_driven(3, 60)
    X[:, 1] = np.tile([-1.0, 1.0], 30)
    X[:, 0] = -X[:, 1]
    model = GrangerGraph(lam=1.0, cv=None).fit(X)
    assert model.pairs_ == [("0", "2"), ("1", "2")]


@pytest.mark.filterwarnings("ignore:2 draws")
def test_lags_with_weights_of_their_own_and_tests_have_no_pairs() -> None:
    X = product_driven(3, 60)
    tested = GrangerGraph(lam=1.0, cv=None, significance="permutation", n_draws=2)
    assert tested.fit(X).pairs_ == []
    assert len(tested.set_params(pairs=True).fit(X).pairs_) == 3
    assert GrangerGraph(lam=1.0, cv=None, lags=2, per_lag=True).fit(X).pairs_ == []
    with pytest.raises(ValueError, match="pairs excludes per_lag"):
        GrangerGraph(lam=1.0, cv=None, lags=2, per_lag=True, pairs=True).fit(X)


def test_a_forbidden_source_is_in_no_pair_that_is_seen() -> None:
    model = GrangerGraph(lam=0.1, cv=None, forbidden=[("0", "3")]).fit(product_driven(4))
    assert model.graph_[3, 0] == 0.0


def test_products_of_wide_groups_are_refused_before_they_are_formed() -> None:
    samples = lagged_samples(np.random.default_rng(0).standard_normal((101, 60)), 5)
    groups = make_groups([0] * 30 + [1] * 20 + [2] * 10, [str(i) for i in range(60)])
    # the widest two: 150 by 100 columns, three times 8 bytes, for 100 samples
    with (
        config_context(memory_limit=3 * 8 * 150 * 100 * len(samples.history) - 1),
        pytest.raises(MemoryBudgetError, match="products of 100 and 150 columns"),
    ):
        choose_pairs(samples.history, samples.targets, groups, 5)
