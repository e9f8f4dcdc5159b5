"""Prediction intervals: rows left out in closed form, quantiles as in the paper."""

from __future__ import annotations

import numpy as np
import pytest
from kernelweave.evidence import EvidenceKernelRegressor
from kernelweave.evidence.exact import ExactPredictor
from kernelweave.evidence.intervals import LeftOut, jackknife_plus
from kernelweave.evidence.learn import learn
from kernelweave.evidence.mixture import fit_mixture
from kernelweave.evidence.path import PathPlan
from kernelweave.evidence.rows import Rows
from kernelweave.kernels_core.exceptions import ExtrapolationWarning
from sklearn.datasets import make_friedman1
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

PLAN = PathPlan((50.0, 5.0), max_iter=15)


def friedman(n: int, *, weights: bool = False, prices: bool = False) -> Rows:
    X, y = make_friedman1(n, n_features=5, noise=0.5, random_state=0)
    targets = np.vstack([np.exp(0.3 * y) if prices else y, 30.0 - y])
    weight = np.random.RandomState(0).uniform(0.5, 2.0, n) if weights else None
    codes = (X[:, :1] > 0.5).astype(np.int64)
    return Rows(np.ascontiguousarray(X[:, 1:]), codes, targets, weight, prices)


def learned(rows: Rows):
    splits = list(KFold(3, shuffle=True, random_state=0).split(rows.numeric))
    return learn(rows, splits, PLAN, np.random.RandomState(0))


@pytest.fixture(scope="module", params=["plain", "weights", "prices"])
def case(request):
    rows = friedman(75, weights=request.param == "weights", prices=request.param == "prices")
    return rows, learned(rows)


def test_a_row_left_out_in_closed_form_is_a_row_left_out(case) -> None:
    rows, result = case
    fold, new = result.folds[0], friedman(85).take(np.arange(75, 85))
    left_out = LeftOut(fold.among(rows, result.weights), fold.held_out)
    mean, width = left_out.predict(new.numeric, new.codes)
    for k in (0, 7):
        i = fold.held_out[k]
        others = rows.take(np.delete(np.arange(len(rows)), i))
        scales = left_out.mixture.scales
        alone = fit_mixture(fold.views, others, scales, left_out.mixture.target)
        points = fold.views.points(new.numeric, new.codes)
        np.testing.assert_allclose(mean[k], alone.latent(points), atol=1e-9)
        np.testing.assert_allclose(width[k] ** 2, alone.variance(points) + alone.nugget, rtol=1e-8)
        own = rows.take(np.array([i]))
        point = fold.views.points(own.numeric, own.codes)
        residual = alone.target.standardise(own.targets.T) - alone.latent(point)
        np.testing.assert_allclose(left_out.residuals[k], residual[0], atol=1e-9)
        deviation = np.sqrt(alone.variance(point) + alone.noise / own.mass + 1e-6)
        np.testing.assert_allclose(left_out.scores[k], residual[0] / deviation, rtol=1e-8)


def test_intervals_are_nested_and_cover(case) -> None:
    rows, result = case
    new = friedman(575, prices=rows.transform_targets).take(np.arange(75, 575))
    predictor = ExactPredictor.of(result)
    wide, narrow = (predictor.interval(new.numeric, new.codes, c) for c in (0.9, 0.6))
    assert (wide[0] <= narrow[0]).all()
    assert (narrow[0] <= narrow[1]).all()
    assert (narrow[1] <= wide[1]).all()
    for ends, asked in ((wide, 0.9), (narrow, 0.6)):
        inside = np.mean((ends[0] <= new.targets.T) & (ends[1] >= new.targets.T), axis=0)
        np.testing.assert_allclose(inside, asked, atol=0.1)


def test_no_target_held_out_reaches_the_metric_or_the_units_of_its_interval(case) -> None:
    rows, result = case
    held_out = result.folds[0].held_out
    targets = rows.targets.copy()
    targets[:, held_out] = np.random.RandomState(1).permutation(targets[:, held_out].T).T
    other = learned(
        Rows(rows.numeric, rows.codes, targets, rows.weight, rows.transform_targets)
    ).folds[0]
    for one, two in zip(result.folds[0].fits, other.fits, strict=True):
        np.testing.assert_array_equal(one.theta, two.theta)
    before, after = (fold.among(rows, result.weights).target for fold in (result.folds[0], other))
    np.testing.assert_array_equal(before.values, after.values)


def test_a_target_that_a_warp_cannot_take_spoils_no_interval() -> None:
    """The logarithm of the only zero, held out of a fold of positive targets, has no end."""
    rows = friedman(60, prices=True)
    rows.targets[0, 10] = 0.0
    low, high = ExactPredictor.of(learned(rows)).interval(rows.numeric, rows.codes, 0.8)
    assert np.isfinite(low).all()
    assert (low < high).all()


def test_quantiles_are_those_of_the_paper() -> None:
    """⌈(1 − α)(n + 1)⌉-th smallest above, ⌊α(n + 1)⌋-th smallest below."""
    state = np.random.RandomState(0)
    low, high = state.randn(4, 23), 3.0 + state.randn(4, 23)
    below, above = jackknife_plus(low, high, 0.8)
    np.testing.assert_array_equal(below, np.sort(low, axis=1)[:, int(0.2 * 24) - 1])
    np.testing.assert_array_equal(above, np.sort(high, axis=1)[:, int(np.ceil(0.8 * 24)) - 1])
    assert np.isinf(jackknife_plus(low, high, 0.97)[0]).all()


def test_plain_residuals_give_the_intervals_of_mapie() -> None:
    regression = pytest.importorskip(
        "mapie.regression", reason="MAPIE, of the group `peers`, is not installed"
    )
    rows, new = friedman(60), friedman(80).take(np.arange(60, 80))
    X, y, folds = rows.numeric, rows.targets[0], KFold(5)
    peer = regression.CrossConformalRegressor(
        Ridge(), confidence_level=0.85, cv=folds, method="plus"
    ).fit_conformalize(X, y)
    _, theirs = peer.predict_interval(new.numeric)
    low, high = np.empty((2, 20, 60))
    for training, held_out in folds.split(X):
        model = Ridge().fit(X[training], y[training])
        residual = np.abs(y[held_out] - model.predict(X[held_out]))
        low[:, held_out] = model.predict(new.numeric)[:, None] - residual
        high[:, held_out] = model.predict(new.numeric)[:, None] + residual
    np.testing.assert_allclose(np.array(jackknife_plus(low, high, 0.85)), theirs[:, :, 0].T)


def test_an_interval_holds_its_prediction_however_far_from_the_rows() -> None:
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (40, 2))
    y = X[:, 0] + 0.3 * np.sin(3 * X[:, 1]) + 0.1 * rng.normal(size=40)
    model = EvidenceKernelRegressor(precisions=(50.0, 5.0), max_iter=15).fit(X, y)
    far = rng.uniform(-9, 9, (50, 2))
    with pytest.warns(ExtrapolationWarning, match="of 50 rows"):
        mean = model.predict(far)
    low, high = model.predict_interval(far, 0.2)
    bare = model._predictor.interval(*model._encoded(far), 0.2)
    assert np.any((mean < bare[0][:, 0]) | (mean > bare[1][:, 0]))
    assert np.all((low <= mean) & (mean <= high))
