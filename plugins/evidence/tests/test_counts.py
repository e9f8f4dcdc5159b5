"""Counts and other skewed targets: least squares and a Poisson likelihood, averaged."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from kernelweave.evidence import EffectDisplay, EvidenceKernelRegressor
from kernelweave.evidence.cross import cross_kernel
from kernelweave.evidence.exact import ExactPredictor
from kernelweave.evidence.last_step import PoissonPredictor
from kernelweave.evidence.likelihood import fit_poisson
from kernelweave.kernels_core import RBF
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.clock import time_limit
from sklearn.metrics import mean_poisson_deviance, mean_squared_error

QUICK = {"precisions": (50.0, 5.0), "max_iter": 15}


def table(n: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Rows with negative binomial counts of mean 2 and variance m + m²."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    mean = np.exp(0.7 + 0.8 * X[:, 0] + 0.4 * np.sin(2.0 * X[:, 1]))
    return X, random.negative_binomial(1.0, 1.0 / (1.0 + mean)).astype(np.float64)


@pytest.fixture(scope="module")
def counts() -> EvidenceKernelRegressor:
    """A fit to 150 counts."""
    return EvidenceKernelRegressor(**QUICK).fit(*table(150, 0))


def gram_of(model: EvidenceKernelRegressor, X: FloatArray) -> FloatArray:
    """The kernel between rows and the training rows."""
    part = model._predictor.mixture
    left = part.views.points(*model._encoded(X))
    return cross_kernel(left, part.points, part.scales, part.views.match_weight)


def test_the_mode_is_that_of_the_conic_program() -> None:
    random = np.random.default_rng(0)
    X, mass = random.normal(size=(25, 2)), random.uniform(0.5, 2.0, 25)
    y = random.poisson(np.exp(1.0 + X[:, 0])).astype(np.float64)
    gram = RBF(0.5)(X)
    (fit,) = fit_poisson(gram, y, mass, [3.0])
    size, unit = 1.0 - gram.mean(), np.average(y, weights=mass)
    root = np.linalg.cholesky(gram / size + 1e-6 * np.eye(25))
    own, offset = cp.Variable(25), cp.Variable()
    logs = np.sqrt(3.0) * root @ own + offset
    loss = mass @ cp.exp(logs) - (mass * y / unit) @ logs
    cp.Problem(cp.Minimize(loss + 0.5 * cp.sum_squares(own) + 0.005 * offset**2)).solve(
        solver=cp.CLARABEL
    )
    np.testing.assert_allclose(np.exp(fit.values(gram)[:, 0]), unit * np.exp(logs.value), rtol=2e-3)


def test_predictions_average_the_two_means(counts: EvidenceKernelRegressor) -> None:
    predictor, (X, _) = counts._predictor, table(40, 1)
    assert isinstance(predictor, PoissonPredictor)
    assert 0.0 < predictor.share <= 1.0
    squares = predictor.mixture.predict(predictor.views.points(*counts._encoded(X)))[:, 0]
    low, high = predictor.mixture.target.low[0], predictor.mixture.target.high[0]
    fit = predictor.all_rows
    other = np.clip(np.exp(gram_of(counts, X) @ fit.dual[:, 0] + fit.offset[0]), low, high)
    by_hand = (1.0 - predictor.share) * squares + predictor.share * other
    np.testing.assert_allclose(counts.predict(X), by_hand, rtol=1e-10)
    assert counts.predict(X).min() > 0.0


def test_folds_average_the_two_means_of_their_rows(counts: EvidenceKernelRegressor) -> None:
    predictor, encoded = counts._predictor, counts._encoded(table(150, 0)[0])
    for k, (held_out, predict) in enumerate(predictor.fold_predictors()):
        own = encoded.numeric[held_out], encoded.codes[held_out]
        part, fit = predictor.folds[k].mixture(predictor.weights), predictor.by_fold[k]
        points = part.views.points(*own)
        other = np.exp(part.kernel(points) @ fit.dual + fit.offset)
        other = np.clip(other, part.target.low, part.target.high)
        by_hand = (1.0 - predictor.share) * part.predict(points) + predictor.share * other
        np.testing.assert_allclose(predict(*own), by_hand, rtol=1e-10)


@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.ExtrapolationWarning")
def test_the_average_predicts_counts_better_than_least_squares() -> None:
    gains, losses = [], []
    for seed in (1, 3):
        (X, y), (other, truth) = table(150, seed), table(2000, 10 + seed)
        model = EvidenceKernelRegressor().fit(X, y)
        points = model._predictor.views.points(*model._encoded(other))
        squares = np.maximum(model._predictor.mixture.predict(points)[:, 0], 0.02)
        told = model.predict(other)
        before = mean_poisson_deviance(truth, squares)
        gains.append(1.0 - mean_poisson_deviance(truth, told) / before)
        losses.append(mean_squared_error(truth, told) / mean_squared_error(truth, squares))
    assert np.mean(gains) > 0.02, gains
    assert np.mean(losses) < 1.0, losses


@pytest.mark.slow  # 2,400 rows
@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.ExtrapolationWarning")
def test_many_counts_are_predicted_better_too() -> None:
    (X, y), (other, truth) = table(2400, 0), table(4000, 1)
    model = EvidenceKernelRegressor(precisions=(50.0, 5.0)).fit(X, y)
    assert isinstance(model._predictor, PoissonPredictor)
    points = model._predictor.views.points(*model._encoded(other))
    squares = np.maximum(model._predictor.mixture.predict(points)[:, 0], 0.02)
    told = model.predict(other)
    assert mean_poisson_deviance(truth, told) < 0.99 * mean_poisson_deviance(truth, squares)
    assert model._predictor.closed
    low, high = model.predict_interval(other)
    # counts may stand on an end
    assert np.mean((low < truth) & (truth < high)) < 0.93
    assert np.mean((low <= truth) & (truth <= high)) > 0.87


def test_values_add_up_to_predictions(counts: EvidenceKernelRegressor) -> None:
    X, _ = table(5, 2)
    for scale in ("link", "response"):
        values = counts.explain(X, scale=scale)
        np.testing.assert_allclose(
            values.values.sum(axis=1) + values.base_values, counts.predict(X), rtol=1e-9
        )
        assert (values.errors > 0.0).all()
    held_out = counts.explain_held_out([0, 7])
    assert held_out.values.shape == (2, 3)


def test_effects_are_partial_dependences_within_their_bands(
    counts: EvidenceKernelRegressor,
) -> None:
    X, _ = table(150, 0)
    display = EffectDisplay.from_estimator(counts, columns=["x0"], n_rows=1000)
    (effect,) = display.effects
    for k in (0, len(effect.grid) - 1):
        fixed = X.copy()
        fixed[:, 0] = effect.grid[k]
        expected = counts.predict(fixed).mean() - counts.predict(X).mean()
        assert effect.effect[k] == pytest.approx(expected, rel=1e-6)
    assert (effect.low <= effect.effect).all()
    assert (effect.effect <= effect.high).all()


def test_the_band_of_the_logarithm_is_laplaces_on_average(counts: EvidenceKernelRegressor) -> None:
    predictor, part = counts._predictor, counts._predictor.mixture
    fit, y, told = predictor.all_rows, predictor.rows.targets[0], predictor.held_out[:, 0]
    gram = cross_kernel(part.points, part.points, part.scales, part.views.match_weight)
    mean = np.exp(gram @ fit.dual[:, 0] + fit.offset[0])
    dispersion = np.mean((y - told) ** 2 / told)
    prior = dispersion / y.mean() * fit.variance * gram
    spread = prior - prior @ np.linalg.solve(prior + np.diag(dispersion / mean), prior)
    own = gram - gram @ np.linalg.solve(gram + np.diag(part.diagonal), gram)
    found = predictor._inflation(predictor._part(), None)
    assert found[0] == 1.0
    assert found[1] == pytest.approx(np.trace(spread) / np.trace(own), rel=1e-4)


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_units_say_nothing(counts: EvidenceKernelRegressor, factor: float) -> None:
    X, y = table(150, 0)
    other = EvidenceKernelRegressor(**QUICK).fit(X, factor * y)
    np.testing.assert_allclose(other.predict(X), factor * counts.predict(X), rtol=1e-4)


def test_a_scorer_decides_the_shares() -> None:
    X, y = table(120, 3)
    model = EvidenceKernelRegressor(scoring="neg_mean_absolute_error", **QUICK).fit(X, y)
    predictor = model._predictor
    assert isinstance(predictor, PoissonPredictor)
    told = model.held_out_prediction_
    assert model.held_out_score_ == pytest.approx(-np.abs(y - told).mean())


@pytest.mark.parametrize(
    "kind", ["negative", "even", "two outputs", "warp=False", "no time", "power"]
)
def test_other_targets_stay_with_least_squares(kind: str) -> None:
    X, y = table(60, 0)
    targets = {
        "negative": y - 1.0,
        "even": y + 20.0,
        "two outputs": np.column_stack([y, y[::-1]]),
        "power": np.exp(X[:, 0] + 0.1 * X[:, 1]),
    }.get(kind, y)
    model = EvidenceKernelRegressor(warp=kind != "warp=False", **QUICK)
    if kind == "no time":
        with time_limit(0.0), pytest.warns(UserWarning, match="max_time|folds"):
            model.set_params(max_time=1e-9).fit(X, targets)
    else:
        model.fit(X, targets)
    assert type(model._predictor) is ExactPredictor


@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.KernelWeaveWarning")
def test_rare_counts_keep_a_fold_without_any() -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.zeros(40)
    y[3] = 2.0
    model = EvidenceKernelRegressor().fit(X, y)
    assert np.isfinite(model.predict(X)).all()


def test_zeros_are_positive_zeros(counts: EvidenceKernelRegressor) -> None:
    quantiles = counts.predict_quantiles(table(50, 3)[0], (0.1, 0.5))
    assert (quantiles == np.rint(quantiles)).all()
    assert not np.signbit(quantiles).any()
