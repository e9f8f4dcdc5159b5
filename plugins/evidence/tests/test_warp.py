"""Targets under a power: there and back, and when it is taken."""

from __future__ import annotations

import numpy as np
import pytest
from kernelweave.evidence import EvidenceKernelRegressor
from kernelweave.evidence.rows import Rows, Standardised
from kernelweave.evidence.views import Warp

QUICK = {"precisions": (50.0, 5.0), "max_iter": 20}


@pytest.mark.parametrize("shape", ["price", "signed", "tail to the left", "normal"])
def test_there_and_back(shape: str) -> None:
    state = np.random.RandomState(0)
    y = {
        "price": np.exp(state.randn(200)) * 1e5,
        "signed": state.randn(200) ** 3,
        "tail to the left": 10.0 - state.exponential(size=200),
        "normal": state.randn(200),
    }[shape]
    warp = Warp.of(y)
    np.testing.assert_allclose(warp.inverse(warp.forward(y)), y, rtol=1e-7, atol=1e-9)
    grid = np.linspace(-50.0, 50.0, 999)
    back = warp.inverse(grid)
    assert np.isfinite(back).all()
    assert (np.diff(back) >= 0).all()


def test_a_price_is_learned_as_its_logarithm() -> None:
    state = np.random.RandomState(0)
    price = np.exp(12.0 + state.randn(4000))
    assert Warp.of(price).power == pytest.approx(0.0, abs=0.05)
    assert Warp.of(1e-9 * price).power == pytest.approx(Warp.of(price).power, abs=1e-6)


def test_the_mean_of_a_warped_target_is_that_of_its_law() -> None:
    """A log-normal target: the mean is exp(μ + σ²/2), not exp(μ)."""
    state = np.random.RandomState(0)
    rows = Rows(
        np.zeros((500, 0)), np.zeros((500, 0), int), np.exp(state.randn(1, 500)), None, True
    )
    targets = Standardised.of(rows)
    warp = Warp(0.0, 0.0, 1.0, True)
    plain = Standardised(
        targets.values, np.zeros(1), np.ones(1), np.zeros(1), np.full(1, 1e9), (warp,)
    )
    mean, deviation = plain.moments(np.array([[0.3]]), 0.5)
    assert mean[0, 0] == pytest.approx(np.exp(0.3 + 0.125), rel=1e-6)
    assert deviation[0, 0] == pytest.approx(mean[0, 0] * np.sqrt(np.exp(0.25) - 1), rel=1e-4)


def prices(n: int) -> tuple[np.ndarray, np.ndarray]:
    state = np.random.RandomState(1)
    X = state.uniform(-1, 1, (n, 4))
    return X, np.exp(1.5 * X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * state.randn(n)) * 1e5


def test_held_out_rows_take_the_warp_where_it_pays_and_only_there() -> None:
    X, y = prices(600)
    bent = EvidenceKernelRegressor(**QUICK).fit(X[:150], y[:150])
    plain = EvidenceKernelRegressor(warp=False, **QUICK).fit(X[:150], y[:150])
    assert bent.score(X[150:], y[150:]) > plain.score(X[150:], y[150:])
    low, high = bent.predict_interval(X[150:])
    assert 0.85 < np.mean((low <= y[150:]) & (y[150:] <= high)) < 0.97
    _, std = bent.predict(X[150:], return_std=True)
    assert np.corrcoef(std, y[150:])[0, 1] > 0.5
    straight = X[:150, 0] + 0.1 * X[:150, 1]
    assert (
        not EvidenceKernelRegressor(**QUICK)
        .fit(X[:150], straight)
        ._predictor.rows.transform_targets
    )


@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.ExtrapolationWarning")
def test_a_product_is_learned_as_one_where_few_large_targets_hold_the_squares() -> None:
    """Log-normal columns and target: the noise is 20 %, so no median error is below .13."""
    median = []
    for seed in range(3, 7):
        state = np.random.RandomState(seed)
        X = np.exp(1.5 * state.randn(1200, 5))
        y = X[:, 0] * np.exp(0.3 * np.sqrt(X[:, 1]) + 0.2 * state.randn(1200))
        model = EvidenceKernelRegressor(random_state=0).fit(X[:200], y[:200])
        median.append(np.median(np.abs(model.predict(X[200:]) / y[200:] - 1.0)))
    assert np.mean(median) < 0.17


def test_an_exact_sum_stays_one_however_skewed_it_is() -> None:
    state = np.random.RandomState(0)
    X = np.exp(state.randn(300, 4))
    y = 3.0 * X[:, 0] + X[:, 1]
    assert not EvidenceKernelRegressor(random_state=0).fit(X, y)._predictor.rows.transform_targets


@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_no_power_of_a_target_is_stronger_than_a_logarithm(shift: float) -> None:
    """The likeliest power of a tail far heavier than a log-normal's has a pole."""
    mass = np.ones(400)
    tail = np.exp(np.abs(np.random.RandomState(0).standard_cauchy(400)).clip(max=20.0)) - shift
    assert Warp.of(tail, mass).power < -0.3
    assert Warp.of_target(tail, mass).power == pytest.approx(0.0, abs=1e-5)
    if shift:
        assert Warp.of_target(-tail, mass).power == pytest.approx(2.0, abs=1e-5)
    counts = np.floor(tail - tail.min())
    assert Warp.of_target(counts, mass) == Warp.of(counts, mass)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_steep_sum_predicts_new_rows_as_well_as_its_score_says(seed: int) -> None:
    """Zakharov's function of six inputs, a little below zero at some rows by its noise."""
    state = np.random.RandomState(seed)
    X = state.uniform(-5.0, 10.0, (2200, 6))
    slope = X @ np.arange(1, 7) / 2.0
    y = np.sum(X**2, axis=1) + slope**2 + slope**4
    y = y / y.std() + 0.002 * state.randn(len(y))
    assert y[:200].min() < 0.0
    model = EvidenceKernelRegressor(random_state=0).fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.9
    assert model.held_out_score_ > 0.9
    assert model.predict(X[200:]).max() < 2.0 * y.max()
