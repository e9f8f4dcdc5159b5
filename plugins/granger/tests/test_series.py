"""Lags, replicates, groups, simulation and scores."""

from __future__ import annotations

import numpy as np
import pytest
from kernelweave.granger import lagged_samples, lasso_var, lorenz96, score_graph
from kernelweave.granger.series import make_groups
from scipy.integrate import solve_ivp


def test_histories_end_before_their_target_and_stay_in_their_replicate() -> None:
    time = np.arange(10.0)
    X = np.column_stack([time, 100.0 + time])
    replicates = ["a"] * 4 + ["b"] * 6
    samples = lagged_samples(X, 2, replicates)
    assert samples.times.tolist() == [2, 3, 6, 7, 8, 9]
    assert samples.replicate.tolist() == [0, 0, 1, 1, 1, 1]
    for t, history, target in zip(samples.times, samples.history, samples.targets, strict=True):
        assert history.tolist() == [t - 1, t - 2, 99.0 + t, 98.0 + t]
        assert target.tolist() == [t, 100.0 + t]


@pytest.mark.parametrize(
    ("replicates", "said"),
    [
        ([0, 1, 0, 1], "neighbours"),
        ([0, 0], "one label per row"),
        ([0, 1, 2, 3], "no row has 1 predecessors"),
    ],
)
def test_replicates_are_checked(replicates: list[int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        lagged_samples(np.ones((4, 1)), 1, replicates)


def test_groups_keep_the_order_of_their_first_nodes() -> None:
    groups = make_groups(["b", "a", "b"], ["x", "y", "z"])
    assert groups.names == ["b", "a"]
    assert groups.columns(2) == [[0, 1, 4, 5], [2, 3]]
    with pytest.raises(ValueError, match="one label per node, 3"):
        make_groups(["a"], ["x", "y", "z"])


def test_lorenz96_solves_its_equation_and_drives_as_it_says() -> None:
    X, truth = lorenz96(6, 20, dt=0.001, random_state=1)

    def slope(_: float, x: np.ndarray) -> np.ndarray:
        n = len(x)
        return np.array([(x[(i + 1) % n] - x[i - 2]) * x[i - 1] - x[i] + 10.0 for i in range(n)])

    exact = solve_ivp(slope, (0, 0.019), X[0], rtol=1e-11, atol=1e-11, t_eval=[0.019]).y[:, 0]
    np.testing.assert_allclose(X[-1], exact, atol=1e-9)
    x = X[0]
    jacobian = np.array([slope(0.0, x + 1e-6 * row) - slope(0.0, x) for row in np.eye(6)]).T
    np.testing.assert_array_equal(np.abs(jacobian) > 1e-9, truth)


def test_scores_leave_self_loops_out() -> None:
    truth = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1]], dtype=bool)
    assert score_graph(truth * 2.0, truth).auroc == 1.0
    found = score_graph(100.0 * np.eye(3) - truth, truth)
    assert found.auroc == 0.0
    assert (found.n_edges, found.n_pairs) == (2, 6)
    with pytest.raises(ValueError, match="need both"):
        score_graph(np.eye(3), np.eye(3))


def test_lasso_var_finds_a_linear_graph() -> None:
    rng = np.random.default_rng(0)
    truth = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool)
    X = np.zeros((300, 3))
    for t in range(1, 300):
        X[t] = 0.8 * truth @ X[t - 1] + 0.3 * X[t - 1] + rng.standard_normal(3)
    path = lasso_var(X)
    assert path.graphs[0].max() == 0.0, "the largest penalty selects nothing"
    for graph in (path.chosen(), path.chosen(shared=True)):
        assert score_graph(graph, truth).auroc == 1.0
    assert path.best_auroc(truth) == 1.0
