"""Intervals and deviations of later rows are what forecasts of the training rows met."""

from __future__ import annotations

import numpy as np
import pytest
from kernelweave.evidence import EvidenceKernelRegressor
from kernelweave.evidence.forecasts import Forecasts
from kernelweave.evidence.inverse import Inverse
from kernelweave.evidence.leave_out import PairsLeaveOut
from kernelweave.evidence.rows import Rows, Standardised
from kernelweave.kernels_core.arrays import FloatArray
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

NOISE = 0.3
QUICK = {"precisions": (5.0,), "max_iter": 20}
pytestmark = [
    pytest.mark.filterwarnings("ignore::kernelweave.evidence.HeldOutWarning"),
    pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.exceptions.UnderfitWarning"),
]


def table(
    n: int, seed: int, step: float = 0.1, slope: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Three columns that help and a clock; targets with noise and a random walk or a trend."""
    state = np.random.RandomState(seed)
    X, t = state.uniform(-2.0, 2.0, (n, 3)), np.arange(n, dtype=np.float64)
    y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + NOISE * state.normal(size=n)
    return np.column_stack([X, t]), y + np.cumsum(step * state.normal(size=n)) + slope * t


def test_forecasts_of_one_factorisation_are_those_of_fits_to_the_rows_before() -> None:
    """Against scikit-learn's Gaussian process, fitted anew from every moment."""
    state = np.random.RandomState(0)
    times = np.repeat(np.arange(15.0), 2)
    X, y = np.column_stack([state.normal(size=30), times / 5.0]), state.normal(size=30) + 3.0
    rows = Rows(X, np.empty((30, 0), dtype=np.int64), y[None], times=times)
    kernel = RBF(0.8) + WhiteKernel(0.2)
    target = Standardised.of(rows)
    later = PairsLeaveOut(
        Inverse(np.linalg.cholesky(kernel(X))), target, rows, np.arange(30)
    ).later(np.arange(14, 30))  # fmt: skip
    for distance in (1.0, 2.0, 4.0):
        which, scores, width = later.forecasts(times, distance)
        # no row of the first moment: what came before it is not of these
        assert which.tolist() == list(range(14 + 2 * int(distance), 30))
        for row, score, deviation in zip(which, scores, width, strict=True):
            known = times <= times[row] - distance
            mean = y[known].mean()
            process = GaussianProcessRegressor(kernel, optimizer=None).fit(
                X[known], (y[known] - mean) / target.spread
            )
            expected, spread = process.predict(X[[row]], return_std=True)
            residual = (y[row] - mean) / target.spread - expected
            np.testing.assert_allclose(score, residual / spread, rtol=1e-8)
            np.testing.assert_allclose(deviation, spread * target.spread, rtol=1e-8)


@pytest.fixture
def shared_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    """One metric and one factorisation, as above 2,000 rows."""
    from kernelweave.evidence import findings, fit, learn

    for module in (findings, fit, learn):
        monkeypatch.setattr(module, "SHARED_METRIC", 400)
    monkeypatch.setattr(learn, "METRIC_ROWS", 200)


@pytest.mark.usefixtures("shared_metric")
def test_the_residuals_of_a_block_are_no_noise_that_varies_with_time() -> None:
    X, y = table(550, 1, step=0.3)
    model = EvidenceKernelRegressor(**QUICK).fit(X[:500], y[:500], order=X[:500, 3])
    assert model._predictor.closed
    low, high = model.predict_interval(X[500:])
    # 90 % of a normal distribution, were nothing but the noise unknown
    assert ((high - low) > 2.0 * 1.645 * NOISE).all()


@pytest.mark.parametrize("n", [300, 500])
@pytest.mark.usefixtures("shared_metric")
def test_deviations_and_intervals_of_later_rows_grow_together(n: int) -> None:
    X, y = table(n + 60, 2, step=0.3)
    model = EvidenceKernelRegressor(**QUICK).fit(X[:n], y[:n], order=X[:n, 3])
    # one row, at moments farther and farther ahead
    later = np.repeat(X[[n - 1]], 5, axis=0)
    later[:, 3] = n - 1 + np.array([1.0, 4.0, 16.0, 32.0, 50.0])
    low, high = model.predict_interval(later)
    deviation = model.predict(later, return_std=True)[1]
    np.testing.assert_allclose((high - low) / deviation, (high - low)[0] / deviation[0], rtol=1e-9)
    assert ((high - low)[1:] > (high - low)[:-1]).sum() >= 3
    drawn = model.predict_distribution(later).ppf(0.95) - model.predict_distribution(later).ppf(
        0.05
    )
    np.testing.assert_allclose(drawn, high - low, rtol=0.35)


def test_moments_that_no_column_has_are_told_nothing_of() -> None:
    X, y = table(300, 3, step=0.0)
    model = EvidenceKernelRegressor(**QUICK).fit(X[:, :3], y, order=np.arange(300))
    told = model._predictor.forecasts
    assert isinstance(told, Forecasts)
    assert told.column == -1
    low, high = model.predict_interval(X[:, :3])
    assert (high - low).mean() < 1.5 * 2.0 * 1.645 * NOISE


def held_by_the_process(n: int, seed: int, step: float, slope: float) -> tuple[float, float]:
    """Return what 90 % intervals of the process itself hold of the next 50 rows, and their width.

    By the filter of Kalman, which knows the function, the noise, the steps and the slope.
    """
    X, y = table(n + 50, seed, step, slope)
    rest = y - np.sin(2.0 * X[:, 0]) - 0.5 * X[:, 1] * X[:, 2] - slope * X[:, 3]
    level = variance = 0.0
    for value in rest[:n]:
        variance += step**2
        gain = variance / (variance + NOISE**2)
        level, variance = level + gain * (value - level), (1.0 - gain) * variance
    width = 1.645 * np.sqrt(variance + step**2 * np.arange(1, 51) + NOISE**2)
    return float(np.mean(np.abs(rest[n:] - level) < width)), float(2.0 * width.mean())


@pytest.mark.slow
@pytest.mark.parametrize("n", [700, 3000])
@pytest.mark.parametrize(
    "kind",
    [{"step": 0.1, "slope": 0.0}, {"step": 0.0, "slope": 0.0}, {"step": 0.0, "slope": 1e-3}],
    ids=["walk", "plain", "trend"],
)
def test_intervals_of_the_next_rows_hold_what_those_of_the_process_do(
    n: int, kind: dict[str, float]
) -> None:
    held, widths = [], []
    for seed in range(100, 106 if kind["step"] else 102):
        X, y = table(n + 50, seed, **kind)
        model = EvidenceKernelRegressor(random_state=seed).fit(X[:n], y[:n], order=X[:n, 3])
        low, high = model.predict_interval(X[n:])
        held.append((np.mean((low <= y[n:]) & (y[n:] <= high)), np.mean(high - low)))
        widths.append(held_by_the_process(n, seed, **kind))
    (share, width), (known, least) = np.mean(held, axis=0), np.mean(widths, axis=0)
    assert share >= known - 0.07
    assert width < 1.5 * least
