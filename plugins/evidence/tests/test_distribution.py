"""Predictive distributions: against the definition by enumeration, crepes and scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import EvidenceKernelRegressor, PredictiveDistribution, SurvivalDisplay
from sklearn.datasets import make_friedman1
from sklearn.metrics import mean_pinball_loss


@pytest.fixture(scope="module")
def split() -> tuple[Any, Any, Any]:
    """Residuals of a calibration set, predictions and deviations of new rows."""
    state = np.random.default_rng(0)
    return state.normal(size=37), state.normal(size=20), state.uniform(0.5, 2.0, 20)


@pytest.fixture(scope="module")
def distribution(split: Any) -> PredictiveDistribution:
    residuals, mean, width = split
    return PredictiveDistribution(mean + np.sort(residuals)[:, None] * width)


def test_probabilities_and_quantiles_are_those_of_the_definition(distribution: Any) -> None:
    state = np.random.default_rng(1)
    y = state.normal(size=20)
    y[:5] = distribution.points[7, :5]
    for j, each in enumerate(distribution.cdf(y)):
        own = distribution.points[:, j].tolist()
        less, equal = sum(p < y[j] for p in own), sum(p == y[j] for p in own)
        assert each == pytest.approx((less + 0.5 * (equal + 1)) / 38)
        for q, place in ((0.1, 3), (0.5, 19), (0.51, 20), (0.93, 36)):
            assert distribution.ppf(q)[j] == sorted(own)[place - 1]
    assert (distribution.ppf(0.02) == -np.inf).all()
    assert (distribution.ppf(0.99) == np.inf).all()
    for wrong in (5, np.nan, [0.1, 0.9]):
        with pytest.raises(ValueError, match="q must be a finite number > 0 and < 1, got "):
            distribution.ppf(wrong)


def test_targets_are_columns_of_any_library_and_one_a_row(distribution: Any) -> None:
    y = np.random.default_rng(1).normal(size=20)
    for each in (list(y), pd.Series(y, index=np.arange(20)[::-1])):
        np.testing.assert_array_equal(distribution.cdf(each), distribution.cdf(y))
        np.testing.assert_array_equal(distribution.crps(each), distribution.crps(y))
    assert (distribution.cdf(np.inf) == 1.0).all()
    assert (distribution.cdf(-np.inf) == 0.0).all()
    assert np.isnan(distribution.cdf(np.nan)).all()
    # numpy would have stretched it over the points
    for wrong in (y[:, None], np.zeros((37, 20)), y[:1]):
        for score in (distribution.cdf, distribution.crps):
            with pytest.raises(ValueError, match=r"y must have shape \(20,\), or be one number"):
                score(wrong)


def test_targets_with_an_end_of_their_range_are_all_beyond_it() -> None:
    points = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    times = PredictiveDistribution(points, lower=0.0)
    for y in (-np.inf, -1.0, 0.0):
        assert times.cdf(y).tolist() == [0.0, 0.0]
        assert times.sf(y).tolist() == [1.0, 1.0]
        assert times.cumulative_hazard(y).tolist() == [0.0, 0.0]
    assert times.cdf(2.5).tolist() == PredictiveDistribution(points).cdf(2.5).tolist()
    assert np.isnan(times.cdf(np.nan)).all()
    assert times.ppf(0.1).tolist() == [0.0, 0.0]
    assert times.ppf(0.9).tolist() == [np.inf, np.inf]


@pytest.fixture(scope="module")
def of_times() -> Any:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"dose": rng.uniform(0.0, 2.0, 60)})
    days = np.exp(X["dose"] + 0.5 * rng.standard_normal(60))
    y = pd.DataFrame({"died": days < 6.0, "days": np.minimum(days, 6.0)})
    return EvidenceKernelRegressor(precisions=(5.0,), max_iter=20).fit(X, y), X[:5]


def test_times_are_above_zero_by_every_method(of_times: Any) -> None:
    model, X = of_times
    distribution = model.predict_distribution(X)
    assert (distribution.sf(-1.0) == 1.0).all()
    assert (distribution.sf(0.0) == 1.0).all()
    assert (distribution.sf(1e-9) < 1.0).all()
    asked = (0.001, 0.2, 0.5, 0.999)
    quantiles = np.column_stack([distribution.ppf(q) for q in asked])
    np.testing.assert_array_equal(quantiles, model.predict_quantiles(X, asked))
    assert (quantiles[:, 0] == 0.0).all()
    assert (model.predict_interval(X, 0.99)[0] == 0.0).all()
    display = SurvivalDisplay.from_estimator(model, X, points=[-1.0, 0.0, 2.0])
    for k, y in enumerate(display.points):
        np.testing.assert_allclose(distribution.sf(y), display.survival[:, k])


def test_they_are_those_of_crepes(split: Any, distribution: Any) -> None:
    crepes = pytest.importorskip("crepes", reason="crepes, of the group `peers`, is not installed")
    residuals, mean, width = split
    peer = crepes.ConformalPredictiveSystem().fit(residuals, np.ones(37))
    y = np.random.default_rng(1).normal(size=20)
    # without ties broken at random theirs counts the new target below itself
    theirs = peer.predict_p(mean, y, sigmas=width, smoothing=False)
    np.testing.assert_allclose(distribution.cdf(y), theirs - 0.5 / 38)
    low = peer.predict_percentiles(mean, sigmas=width, lower_percentiles=[10, 40])
    high = peer.predict_percentiles(mean, sigmas=width, higher_percentiles=[60, 95])
    ours = np.column_stack([distribution.ppf(q) for q in (0.1, 0.4, 0.6, 0.95)])
    np.testing.assert_allclose(ours, np.column_stack([low, high]))


def test_the_score_is_the_mean_over_pairs_and_over_pinball_losses(distribution: Any) -> None:
    y, points = np.random.default_rng(2).normal(size=20), distribution.points
    crps = distribution.crps(y)
    pairs = np.abs(points[:, None] - points[None]).mean(axis=(0, 1))
    np.testing.assert_allclose(crps, np.abs(points - y).mean(axis=0) - 0.5 * pairs)
    # twice the mean pinball loss over all levels: a fine midpoint rule of the step quantiles
    levels = (np.arange(370) + 0.5) / 370
    steps = points[(levels * 37).astype(int)]
    losses = [mean_pinball_loss(y, q, alpha=a) for q, a in zip(steps, levels, strict=True)]
    np.testing.assert_allclose(crps.mean(), 2 * np.mean(losses), rtol=1e-4)


def test_draws_have_the_mean_and_the_deviation(distribution: Any) -> None:
    draws = distribution.rvs(20_000, random_state=0)
    assert draws.shape == (20_000, 20)
    error = distribution.std() / np.sqrt(20_000)
    assert (np.abs(draws.mean(axis=0) - distribution.mean()) < 5 * error).all()
    np.testing.assert_allclose(draws.std(axis=0), distribution.std(), rtol=0.05)
    np.testing.assert_array_equal(draws, distribution.rvs(20_000, random_state=0))


@pytest.fixture(scope="module")
def regression() -> Any:
    X, y = make_friedman1(700, n_features=5, noise=1.0, random_state=0)
    quick = EvidenceKernelRegressor(precisions=(5.0,), max_iter=20)
    return quick.fit(X[:200], y[:200]), X[200:], y[200:]


def test_points_are_predictions_without_each_row_and_its_residual(regression: Any) -> None:
    """Each fold's points, one row at a time, from its `LeftOut` and the factors of noise."""
    model, X, _ = regression
    predictor, encoded = model._predictor, model._encoded(X[:4])
    expected = []
    for part in predictor.left_out(None):
        centre, width = part.predict(*encoded)
        (alone,) = part.unseen
        grown = np.maximum(width / alone.width.max(), 1.0)
        for k, i in enumerate(part.rows):
            step = part.scores[k, 0] * width[k]
            if predictor.varying_noise is not None:
                step = (
                    step
                    * predictor.varying_noise(*encoded)[:, 0]
                    / predictor.varying_noise.held_out[i, 0]
                )
            restore, at = part.mixture.target.restore, centre[k, :, :1]
            reach, middle = restore(at + step[:, None]), restore(at)
            margin = alone.margin * grown[k][:, None]
            expected.append(np.clip(reach, middle - margin, middle + margin)[:, 0])
    points = model.predict_distribution(X[:4]).points
    np.testing.assert_allclose(points, np.maximum(np.sort(expected, axis=0), 0.0), rtol=1e-9)


def test_quantiles_do_not_cross_and_hold_their_shares(regression: Any) -> None:
    model, X, y = regression
    asked = (0.05, 0.25, 0.5, 0.75, 0.95)
    quantiles = model.predict_quantiles(X, asked)
    assert quantiles.shape == (500, 5)
    assert (np.diff(quantiles, axis=1) >= 0).all()
    held = (y[:, None] <= quantiles).mean(axis=0)
    # three standard errors of a share of 500 rows and of the level of a quantile of 200
    levels = np.array(asked)
    assert (np.abs(held - asked) < 3 * np.sqrt(levels * (1 - levels) * (1 / 200 + 1 / 500))).all()
    # better than constant quantiles of the training targets by sklearn's loss
    for k, q in enumerate(asked):
        constant = np.full(500, np.quantile(y, q))
        assert mean_pinball_loss(y, quantiles[:, k], alpha=q) < 0.6 * mean_pinball_loss(
            y, constant, alpha=q
        )
    distribution = model.predict_distribution(X)
    p = distribution.cdf(y)
    assert abs(np.mean(p) - 0.5) < 0.06
    assert distribution.crps(y).mean() < 0.6 * np.abs(y - np.median(y)).mean()
    with pytest.raises(ValueError, match="quantiles"):
        model.predict_quantiles(X, (1.5,))
    for wrong in (0.5, []):
        with pytest.raises(ValueError, match="quantiles must be a list of numbers"):
            model.predict_quantiles(X, wrong)


def test_several_outputs_and_counts_have_theirs() -> None:
    X, f = make_friedman1(160, n_features=5, random_state=1)
    y = np.column_stack([f, np.random.default_rng(0).poisson(f / 4)])
    model = EvidenceKernelRegressor(precisions=(5.0,), max_iter=15).fit(X[:80], y[:80])
    distribution = model.predict_distribution(X[80:])
    assert distribution.mean().shape == (80, 2)
    quantiles = model.predict_quantiles(X[80:], (0.2, 0.8))
    assert quantiles.shape == (80, 2, 2)
    np.testing.assert_array_equal(quantiles[:, 0], distribution.ppf(0.2))
    counts = distribution.points[:, :, 1]
    np.testing.assert_array_equal(counts, np.rint(counts))
    assert (counts >= 0).all()
