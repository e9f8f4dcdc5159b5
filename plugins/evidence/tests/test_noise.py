"""Noise that varies: intervals wide where it is strong, and within the range of the targets."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kernelweave.evidence import EvidenceKernelRegressor
from kernelweave.evidence.intervals import Range
from kernelweave.evidence.noise import _slope, learn_noise
from kernelweave.evidence.rows import Rows
from kernelweave.kernels_core.clock import time_limit


def table(n: int, seed: int) -> tuple[Any, Any, Any]:
    """Return columns, a function of one and standard normal numbers."""
    state = np.random.default_rng(seed)
    X = state.uniform(size=(n, 4))
    return X, np.sin(4 * X[:, 1]), state.normal(size=n)


def interval_score(low: Any, high: Any, y: Any) -> float:
    """Return the mean score of Gneiting and Raftery 2007 of 90 % intervals."""
    return float(np.mean(high - low + 20.0 * (np.maximum(low - y, 0) + np.maximum(y - high, 0))))


def without_varying_noise(model: Any) -> Any:
    """Return the model as if noise were even."""
    other = EvidenceKernelRegressor()
    vars(other).update(vars(model))
    other._predictor = replace(model._predictor, varying_noise=None)
    return other


@pytest.fixture(scope="module")
def uneven() -> Any:
    X, f, noise = table(2400, 0)
    y = f + (0.05 + X[:, 0] ** 2) * noise
    quick = EvidenceKernelRegressor(precisions=(50.0, 5.0), max_iter=20)
    return quick.fit(X[:400], y[:400]), X[400:], y[400:]


def test_intervals_hold_in_every_quarter_of_noise_that_grows(uneven: Any) -> None:
    model, X, y = uneven
    quarter = np.digitize(X[:, 0], [0.25, 0.5, 0.75])

    def held(each: Any) -> Any:
        low, high = each.predict_interval(X)
        inside = (low <= y) & (y <= high)
        return [inside[quarter == k].mean() for k in range(4)], interval_score(low, high, y)

    (before, worse), (after, score) = held(without_varying_noise(model)), held(model)
    assert min(before) < 0.75
    assert min(after) >= 0.86
    assert score < 0.8 * worse


def test_so_they_do_by_landmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelweave.evidence.read_table.FACTOR_ROWS", 2000)
    X, f, noise = table(4600, 2)
    y = f + (0.05 + X[:, 0] ** 2) * noise
    quick = EvidenceKernelRegressor(precisions=(5.0,), max_iter=15, n_landmarks=300)
    model = quick.fit(X[:2600], y[:2600])
    X, y = X[2600:], y[2600:]
    quarter = np.digitize(X[:, 0], [0.25, 0.5, 0.75])
    worst = []
    for each in (without_varying_noise(model), model):
        low, high = each.predict_interval(X)
        inside = (low <= y) & (y <= high)
        worst.append(min(inside[quarter == k].mean() for k in range(4)))
    assert worst[0] < 0.8
    assert worst[1] > 0.85
    predictor = model._predictor
    judging = np.sort(np.abs(predictor.scores / predictor.varying_noise.held_out), axis=0)
    rank = int(np.ceil(0.9 * (len(judging) + 1))) - 1
    mean, std = model.predict(X, return_std=True)
    reach = judging[rank, 0] * std
    np.testing.assert_allclose(high, mean + reach, rtol=1e-9)
    np.testing.assert_allclose(low, mean - reach, rtol=1e-9)
    quantiles = model.predict_quantiles(X[:50], (0.1, 0.9))
    held = np.mean((quantiles[:, 0] <= y[:50]) & (y[:50] <= quantiles[:, 1]))
    assert 0.6 < held < 0.96


def test_deviations_follow_the_noise(uneven: Any) -> None:
    """The truth is known: .05 + x² at every row."""
    model, X, y = uneven
    mean, std = model.predict(X, return_std=True)
    even = without_varying_noise(model).predict(X, return_std=True)[1]
    truth = 0.05 + X[:, 0] ** 2
    errors = [np.mean(np.log(each / truth) ** 2) for each in (std, even)]
    assert errors[0] < 0.2 * errors[1]
    np.testing.assert_allclose(np.mean((y - mean) ** 2 / std**2), 1.0, atol=0.25)


def test_even_noise_costs_next_to_nothing() -> None:
    ratios = []
    for seed in range(3):
        X, f, noise = table(1300, 10 + seed)
        y = f + 0.5 * noise
        quick = EvidenceKernelRegressor(precisions=(5.0,), max_iter=20)
        model = quick.fit(X[:300], y[:300])
        ends = [each.predict_interval(X[300:]) for each in (model, without_varying_noise(model))]
        new, old = (interval_score(*each, y[300:]) for each in ends)
        ratios.append(new / old)
    assert np.mean(ratios) < 1.005
    assert max(ratios) < 1.02


def test_after_a_power_intervals_end_where_rows_left_out_did() -> None:
    """Counts under a power of -1: deviations that vary stepped over its end, to 13 of at most 9."""
    state = np.random.RandomState(0)
    X = state.normal(size=(1600, 4))
    state.normal(size=1600)
    y = state.poisson(np.exp(0.7 * X[:, 0] - 1.0) * state.gamma(0.7, 1 / 0.7, size=1600)) * 1.0
    model = EvidenceKernelRegressor(random_state=0).fit(X[:400], y[:400])
    assert model._predictor.mixture.target.warps[0].power < -0.5
    ends = [each.predict_interval(X[400:]) for each in (model, without_varying_noise(model))]
    new, old = (interval_score(*each, y[400:]) for each in ends)
    assert new < 1.01 * old
    assert model.predict_quantiles(X[400:], [0.9]).max() <= y[:400].max()


def test_the_slope_and_its_error_are_those_of_weighted_least_squares() -> None:
    """Huber and White's sandwich of the regression with an intercept, over groups of rows."""
    state = np.random.default_rng(0)
    v, mass, groups = state.normal(size=90), state.uniform(0.5, 2.0, 90), np.arange(90) // 3
    y = 0.7 * v + state.normal(size=90)
    share = mass[:, None] / mass.sum()
    slope, error = _slope(v[:, None], y[:, None], share, groups)
    A = np.column_stack([np.ones(90), v])
    bread = np.linalg.inv(A.T @ (mass[:, None] * A))
    coefficients = bread @ A.T @ (mass * y)
    scores = mass[:, None] * A * (y - A @ coefficients)[:, None]
    sums = np.array([scores[groups == g].sum(axis=0) for g in range(30)])
    np.testing.assert_allclose(slope[0], coefficients[1], rtol=1e-10)
    np.testing.assert_allclose(error[0] ** 2, (bread @ sums.T @ sums @ bread)[1, 1], rtol=1e-10)


def test_time_that_runs_out_leaves_noise_even_and_says_so() -> None:
    X, f, noise = table(60, 0)
    rows = Rows(X, np.zeros((60, 0), np.int64), (f + noise)[None])
    state = np.random.RandomState(0)
    with time_limit(1e-9):
        noise_model, missing = learn_noise(rows, noise[:, None], state)
    assert noise_model is None
    assert missing == "noise that varies"


def test_rows_that_are_predicted_exactly_have_no_noise_to_learn() -> None:
    X, f, noise = table(60, 0)
    rows = Rows(X, np.zeros((60, 0), np.int64), f[None])
    scores = np.where(X[:, :1] < 0.3, noise[:, None], 0.0)
    assert learn_noise(rows, scores, np.random.RandomState(0)) == (None, "")


class TestRange:
    def test_counts_and_shares_stay_in_their_range(self) -> None:
        X, f, _ = table(500, 3)
        state = np.random.default_rng(0)
        counts, shares = state.poisson(np.exp(f)), state.beta(2 + 3 * X[:, 0], 1)
        y = np.column_stack([counts, shares])
        quick = EvidenceKernelRegressor(precisions=(5.0,), max_iter=20)
        model = quick.fit(X[:200], y[:200])
        low, high = model.predict_interval(X[200:])
        assert (low >= 0).all()
        assert (low <= model.predict(X[200:])).all()
        assert (model.predict(X[200:]) <= high).all()
        assert (high[:, 1] <= 1).all()
        np.testing.assert_array_equal(low[:, 0], np.rint(low[:, 0]))
        np.testing.assert_array_equal(high[:, 0], np.rint(high[:, 0]))
        inside = (low <= y[200:]) & (y[200:] <= high)
        assert (inside.mean(axis=0) > 0.84).all()

    def test_whole_ends_hold_the_whole_numbers_that_the_others_did(self) -> None:
        state = np.random.default_rng(0)
        held = Range.of(np.array([[0.0, 3.0, 7.0]]))
        low = state.uniform(-1, 5, (200, 1))
        high = low + state.exponential(size=(200, 1))
        mean = low + state.uniform(size=(200, 1)) * (high - low)
        below, above = held.ends(low, high, np.maximum(mean, 0.0))
        for y in range(9):
            inside = (below <= y) & (y <= above)
            assert (inside >= ((low <= y) & (y <= high))).all()
        assert (below > low - 1).all()
        assert (above < high + 1).all()

    def test_numbers_of_either_sign_have_no_range(self) -> None:
        held = Range.of(np.array([[-0.5, 0.25]]))
        values = np.array([[-9.3], [9.3]])
        np.testing.assert_array_equal(held.hold(values), values)


@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.UnderfitWarning")
@pytest.mark.filterwarnings("ignore::kernelweave.evidence.HeldOutWarning")
@pytest.mark.parametrize("seed", [1, 4])
def test_an_output_whose_noise_does_not_vary_costs_no_warning(seed: int) -> None:
    """Two outputs, the second with noise that grows: the first has no slope to divide by."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 2))
    coin = rng.integers(0, 2, 40)
    y = np.column_stack([coin, np.exp(X[:, 0] + 0.4 * rng.normal(size=40))])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = EvidenceKernelRegressor().fit(X, y)
    assert np.isfinite(model.predict(X, return_std=True)[1]).all()
