"""Predictions beyond the training rows: straight lines go on, deviations grow, no cut hides it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import EvidenceKernelRegressor, read_table
from kernelweave.evidence.large.plan import LargePlan
from kernelweave.evidence.rows import Rows, Standardised, natural_range
from kernelweave.evidence.views import Views, Warp
from kernelweave.kernels_core.exceptions import ExtrapolationWarning

QUICK: dict[str, Any] = {"precisions": (50.0, 5.0), "max_iter": 30}
SPREADS = (1.0, 2.0, 4.0)

# what each does beyond its range it does within
FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "line": lambda X: 1000.0 + 50.0 * X[:, 0],
    "falling line": lambda X: 200.0 - 30.0 * X[:, 0],
    "plane": lambda X: 20.0 * X[:, 0] - 10.0 * X[:, 1] + 5.0 * X[:, 2],
    "line and sine": lambda X: 10.0 * X[:, 0] + 3.0 * np.sin(3.0 * X[:, 1]),
    "line and step": lambda X: 8.0 * X[:, 0] + 4.0 * (X[:, 1] > 0.0),
    "line and product": lambda X: 6.0 * X[:, 0] + 3.0 * X[:, 1] * X[:, 2],
    "line and groups": lambda X: 7.0 * X[:, 0] + 3.0 * np.round(X[:, 2]),
    "weak line": lambda X: 2.0 * X[:, 0] + X[:, 1],
    "line and bend": lambda X: 9.0 * X[:, 0] + X[:, 1] ** 2,
    "line across": lambda X: 4.0 * (X[:, 0] + X[:, 1]) + np.abs(X[:, 2]),
}


def line(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    state = np.random.RandomState(seed)
    X = state.randn(60, 2)
    return X, 1000.0 + 50.0 * X[:, 0] + 2.0 * state.randn(60)


@pytest.fixture(params=["pairs", "landmarks"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many rows a table has, either way to predict taking it."""
    if request.param == "pairs":
        return 60

    def plan(path: Any, n_landmarks: int | str, n_folds: int) -> LargePlan:
        return LargePlan(
            path, metric_rows=80, sample_rows=300, first=20, most=40,
            n_folds=n_folds, dtype=np.float64,
        )  # fmt: skip

    monkeypatch.setattr(read_table, "FACTOR_ROWS", 200)
    monkeypatch.setattr(LargePlan, "of", plan)
    return 300


@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.ExtrapolationWarning")
def test_a_line_goes_on_at_every_door(size: int) -> None:
    state = np.random.RandomState(0)
    X = state.randn(size, 2)
    y = 1000.0 + 50.0 * X[:, 0] + 2.0 * state.randn(size)
    model = EvidenceKernelRegressor().fit(X, y)
    far = np.array([[2.0, 0.0], [3.0, 0.0], [5.0, 0.0], [50.0, 0.0]])
    truth = 1000.0 + 50.0 * far[:, 0]
    mean, deviation = model.predict(far, return_std=True)
    low, high = model.predict_interval(far)
    distribution = model.predict_distribution(far)
    assert mean[1] == pytest.approx(truth[1], abs=5.0)
    assert (low[:3] <= truth[:3]).all()
    assert (truth[:3] <= high[:3]).all()
    assert mean[3] == pytest.approx(truth[3], abs=4.0 * deviation[3])
    assert (np.diff(deviation) > 0.0).all()
    assert (np.diff(high - low) > 0.0).all()
    # one model, one answer
    np.testing.assert_array_less(np.abs(distribution.mean() - mean), 2.0 * deviation)
    ratio = distribution.std() / deviation
    assert ((ratio > 0.4) & (ratio < 2.5)).all()
    middle = model.predict_quantiles(far, [0.5])[:, 0]
    np.testing.assert_array_less(np.abs(middle - mean), 2.0 * deviation)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.ExtrapolationWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_intervals_hold_beyond_the_rows_where_a_function_goes_on(name: str) -> None:
    function, held = FUNCTIONS[name], dict.fromkeys(SPREADS, 0.0)
    for seed in range(6):
        state = np.random.RandomState(seed)
        X = state.uniform(-1.7, 1.7, (60, 3)) if seed % 2 else state.randn(60, 3)
        model = EvidenceKernelRegressor().fit(X, function(X) + state.randn(60))
        for spreads in SPREADS:
            far = state.uniform(-1.5, 1.5, (200, 3))
            far[:, 0] = X[:, 0].max() + spreads * X[:, 0].std()
            low, high = model.predict_interval(far)
            new = function(far) + state.randn(200)
            held[spreads] += np.mean((low <= new) & (new <= high)) / 6.0
    assert min(held.values()) >= 0.8


def long_double_kernel(left: Any, right: Any, scales: Any) -> np.ndarray:
    """The five terms as docs/theory/evidence.md has them, of numbers alone."""
    x, z, u, v = (np.asarray(each.T, np.longdouble) for each in (left.X, right.X, left.U, right.U))
    ell, s, w = (
        np.asarray(each, np.longdouble) for each in (scales.ell, scales.strength, scales.weights)
    )
    d2 = np.sum((ell * (x[:, None] - z)) ** 2, axis=2)
    kappa = 3 * (
        -np.abs(u[:, None] - v)
        + (u**2 - u + 0.5)[:, None]
        + (v**2 - v + 0.5)
        - np.longdouble(1) / 3
    )
    product = np.prod((1 + s * kappa) / (1 + s), axis=2)
    linear = (ell * x) @ (ell * z).T
    return (
        w[0] * np.exp(-d2 / 2) + w[1] * np.exp(-np.sqrt(d2)) + w[2] * linear + w[3] * product
        + w[4] * np.exp(-d2 / 200)
    )  # fmt: skip


def long_double_solve(S: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Gauss and Jordan's elimination of a positive definite matrix."""
    both = np.hstack([S, right])
    for k in range(len(S)):
        both[k] /= both[k, k]
        rest = np.arange(len(S)) != k
        both[rest] -= np.outer(both[rest, k], both[k])
    return both[:, len(S) :]


@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.ExtrapolationWarning")
def test_mean_and_deviation_are_the_exact_posterior_s() -> None:
    X, y = line()
    model = EvidenceKernelRegressor(warp=False, **QUICK).fit(X, y)
    assert model._predictor.varying_noise is None
    far = np.array([[1.0, 0.0], [3.0, 0.5], [4.0, -3.0], [6.0, 0.0], [50.0, 0.0]])
    mean, deviation = model.predict(far, return_std=True)
    mixture, none = model._predictor.mixture, np.zeros((len(far), 0), dtype=np.int64)
    points, new = mixture.points, mixture.views.points(far, none)
    S = sum(long_double_kernel(points, points, each) for each in mixture.scales)
    S[np.diag_indices_from(S)] += mixture.diagonal
    across = sum(long_double_kernel(new, points, each) for each in mixture.scales)
    own = sum(long_double_kernel(new, new, each) for each in mixture.scales).diagonal()
    # the rows lie in another order there
    values = model._predictor.rows.targets[0]
    z = np.asarray((values - values.mean()) / values.std(), np.longdouble)[:, None]
    solved = long_double_solve(S, np.hstack([z, across.T]))
    expected = y.mean() + y.std() * (across @ solved[:, :1])[:, 0]
    variance = own - np.sum(across * solved[:, 1:].T, axis=1) + mixture.nugget
    np.testing.assert_allclose(mean, expected.astype(float), rtol=1e-7)
    np.testing.assert_allclose(deviation, y.std() * np.sqrt(variance).astype(float), rtol=1e-4)


def months(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """A trend and what advertising adds, with noise 4, month by month."""
    state = np.random.RandomState(seed)
    time, spent = np.arange(n), state.gamma(4.0, 2.0, n)
    frame = pd.DataFrame({"month": pd.date_range("2015-01", periods=n, freq="MS"), "ads": spent})
    return frame, 100.0 + 3.0 * time + 2.0 * spent + 4.0 * state.randn(n)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.KernelWeaveWarning")
def test_a_trend_is_forecast_as_well_as_its_score_says(seed: int) -> None:
    X, y = months(132, seed)
    model = EvidenceKernelRegressor().fit(X[:96], y[:96], order="month")
    score = model.score(X[96:], y[96:])
    assert score >= 0.95
    later = model.held_out_.iloc[0]
    assert abs(later["score"] - score) <= 2.0 * later["error"]


@pytest.mark.parametrize("power", [-1.0, -0.4, 0.0, 0.5, 2.0])
@pytest.mark.parametrize("positive", [True, False])
def test_a_power_goes_on_straight_beyond_its_range(power: float, positive: bool) -> None:
    y = np.linspace(4.0, 9.0, 50) if positive else np.linspace(-1.0, 2.0, 50)
    plain = Warp(power, 0.0, 1.5, positive)
    warp = plain.within(y)
    assert (warp.low, warp.high) == (y.min(), y.max())
    np.testing.assert_array_equal(warp.forward(y), plain.forward(y))
    far = np.linspace(-40.0, 60.0, 201)
    np.testing.assert_allclose(warp.inverse(warp.forward(far)), far, rtol=1e-9, atol=1e-9)
    z = plain.forward(y)
    for end, beyond in ((z[0], -1.0), (z[-1], 1.0)):
        steps = np.diff(warp.inverse(end + beyond * np.arange(4.0)))
        np.testing.assert_allclose(steps, steps[0])
        # no steeper than the power there, nor than five chords
        near = (plain.inverse(end) - plain.inverse(end - 1e-6 * beyond)) / 1e-6 * beyond
        chord = 5.0 * (y[-1] - y[0]) / (z[-1] - z[0])
        assert abs(steps[0]) == pytest.approx(min(near, chord), rel=1e-4)


@pytest.mark.parametrize("power", [0.0, 0.5])
def test_a_power_that_bends_goes_on_itself_for_a_quarter_of_its_range(power: float) -> None:
    y = np.geomspace(0.01, 100.0, 50)
    plain = Warp(power, 0.0, 1.5, True)
    warp, z = plain.within(y), plain.forward(y)
    room = 0.25 * (z[-1] - z[0])
    near = z[-1] + room * np.array([0.2, 0.9])
    np.testing.assert_allclose(warp.inverse(near), plain.inverse(near))
    far = np.linspace(-40.0, 9e4, 201)
    np.testing.assert_allclose(warp.inverse(warp.forward(far)), far, rtol=1e-9, atol=1e-9)
    steps = np.diff(warp.inverse(z[-1] + room * np.arange(1.0, 5.0)))
    np.testing.assert_allclose(steps, steps[0])
    # that of the other tail, upside down
    mirrored = Warp(2.0 - power, 0.0, 1.5, False).within(-y)
    np.testing.assert_allclose(
        mirrored.inverse(-near), -Warp(power, 0.0, 1.5, False).within(y).inverse(near)
    )


def test_a_column_under_a_power_leaves_its_range_by_a_tenth() -> None:
    state = np.random.RandomState(0)
    column = np.exp(state.randn(200, 1))
    views = Views.of(column, np.empty((200, 0), dtype=np.int64), transform_columns=True)
    (warp,) = views.warps
    assert warp is not None
    far = np.array([[0.0], [1e-30], [1e9], [column.min()], [column.max()]])
    X = views.points(far, np.empty((5, 0), dtype=np.int64)).X[0]
    low, high = X[3], X[4]
    room = 0.1 * (warp.forward(column.max()) - warp.forward(column.min())) / views.scale[0]
    np.testing.assert_allclose(X[:3], [low - room, low - room, high + room], rtol=0.05)


def test_the_first_view_goes_on_straight_and_is_as_it_was_within() -> None:
    state = np.random.RandomState(0)
    column = state.randn(300, 1)
    none = np.empty((300, 0), dtype=np.int64)
    views = Views.of(column, none)
    t = (column[:, 0] - column.mean()) / column.std()
    np.testing.assert_allclose(
        views.points(column, none).X[0], t / np.sqrt(1.0 + (t / 8.0) ** 2), rtol=1e-12
    )
    far = column.max() + column.std() * np.arange(5.0)[:, None]
    X = views.points(far, none[:5]).X[0]
    np.testing.assert_allclose(np.diff(X), np.diff(X)[0])
    assert 0.9 < np.diff(X)[0] < 1.0


def test_predictions_stop_at_zero_only_where_targets_come_near_it() -> None:
    least, most = np.array([0.0, 0.5, 900.0, 0.0, 0.3]), np.array([9.0, 9.0, 1100.0, 1.0, 0.6])
    low, high = natural_range(
        np.linspace(least, most, 100).T, least, most, np.array([1.0, 1.0, 50.0, 0.3, 0.05])
    )
    assert low.tolist() == [0.0, 0.0, -np.inf, 0.0, -np.inf]
    assert high.tolist() == [np.inf, np.inf, np.inf, 1.0, np.inf]


def test_predictions_stop_where_targets_were_cut() -> None:
    state = np.random.RandomState(0)
    X = state.uniform(-1.0, 1.0, (120, 2))
    y = np.minimum(100.0 * X[:, 0] + 5.0 * state.randn(120), 70.0)
    model = EvidenceKernelRegressor(**QUICK).fit(X, y)
    assert model.predict(X).max() <= 70.0
    far = np.array([[1.2, 0.0], [-1.2, 0.0]])
    high, low = model.predict(far)
    assert 55.0 < high <= 70.0
    assert low < -105.0
    assert (model.predict_interval(far)[1] <= 70.0).all()
    # each value of a rising count is shared, and no end is
    steps = np.repeat(np.arange(20.0), 5)[None]
    ends = natural_range(steps, np.zeros(1), np.full(1, 19.0), np.full(1, 6.0))
    assert [end.tolist() for end in ends] == [[0.0], [np.inf]]


def test_rows_beyond_are_warned_of_once_with_their_columns() -> None:
    X, y = line()
    frame = pd.DataFrame(X, columns=["size", "age"])
    model = EvidenceKernelRegressor(**QUICK).fit(frame, y)
    model.predict(frame)
    new = pd.DataFrame({"size": [0.0, 9.0, 9.0, 9.0], "age": [0.0, 0.0, -9.0, 0.0]})
    said = "3 of 4 rows lie beyond the training rows, by more than a quarter of the range of "
    with pytest.warns(ExtrapolationWarning, match=said + "'size', 'age': ") as caught:
        model.predict(new, return_std=True)
    assert len(caught) == 1
    edge = pd.DataFrame({"size": [X[:, 0].max() + 0.24 * np.ptp(X[:, 0])], "age": [0.0]})
    model.predict(edge)


def test_targets_of_other_rows_lie_beyond_a_power_too() -> None:
    """A target of zero where the power of training is a logarithm is somewhere."""
    none = np.empty((5, 0))
    rows = Rows(none, none.astype(int), np.exp(np.arange(5.0))[None], None, True)
    targets = Standardised.of(rows)
    other = Rows(none, none.astype(int), np.array([[0.0, 1.0, 10.0, 200.0, 1e6]]))
    values = targets.of_rows(other).values
    assert np.isfinite(values).all()
    np.testing.assert_allclose(targets.restore(values.T)[:, 0], other.targets[0], atol=1e-8)
