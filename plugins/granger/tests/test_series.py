"""Lags, replicates, groups, simulation and scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


def test_a_strong_forcing_stays_finite() -> None:
    X, _ = lorenz96(10, 100, forcing=40.0, random_state=0)
    assert 10.0 < X.std() < 15.0


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


SERIES = np.random.default_rng(0).standard_normal((30, 3))
BAD_SERIES = {
    "nan": (np.where(SERIES > 1, np.nan, SERIES), "got nan in row"),
    "infinite": (np.where(SERIES > 1, np.inf, SERIES), "got inf in row"),
    "strings": ([["a", "b"], ["c", "d"]], "must hold numbers"),
    "ragged": ([[1.0], [1.0, 2.0]], "rows of equal length"),
    "objects": ([[object()]], "must hold numbers"),
    "none": (None, "shape"),
    "complex": (SERIES * 1j, "real numbers"),
    "empty": ([], "shape"),
    "no rows": (np.empty((0, 3)), "longest replicate has 0 rows"),
    "no nodes": (np.empty((5, 0)), "at least one node"),
    "one row": (SERIES[:1], "longer series or fewer lags"),
    "one series": (SERIES[:, 0], "a single series is a column"),
    "a stack": (SERIES[None], "n_times, n_nodes"),
    "huge": (SERIES * 1e300, "too large"),
}


@pytest.mark.parametrize("name", BAD_SERIES)
@pytest.mark.parametrize("reader", [lambda X: lagged_samples(X, 1), lasso_var])
def test_bad_series_are_named(reader: Callable[[Any], Any], name: str) -> None:
    X, said = BAD_SERIES[name]
    with pytest.raises(ValueError, match=said):
        reader(X)


@pytest.mark.parametrize("lags", [0, -1, 1.5, "1", None, True, [], [0], [1.5]])
@pytest.mark.parametrize("reader", [lagged_samples, lasso_var])
def test_bad_lags_are_named(reader: Callable[..., Any], lags: Any) -> None:
    with pytest.raises(ValueError, match="lags must be an integer >= 1"):
        reader(SERIES, lags)


def test_too_many_lags_are_named() -> None:
    with pytest.raises(ValueError, match=r"no row has 40 predecessors.* 30 rows"):
        lagged_samples(SERIES, 40)


@pytest.mark.parametrize("cv", [0, 1, 2.5, "five", None])
def test_bad_folds_are_named(cv: Any) -> None:
    with pytest.raises(ValueError, match="cv must be an integer"):
        lasso_var(SERIES, cv=cv)


def test_a_series_shorter_than_its_folds_is_named() -> None:
    with pytest.raises(ValueError, match="the series is too short"):
        lasso_var(SERIES[:4])


@pytest.mark.parametrize(
    ("change", "said"),
    [({"n_times": 0}, "n_times"), ({"dt": 0.0}, "dt must"), ({"noise": -1.0}, "noise must")],
)
def test_bad_simulations_are_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        lorenz96(**{"n_nodes": 5, "n_times": 10, **change})
