"""Outliers among the targets count less, and nothing else does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import EvidenceKernelRegressor, learn, outliers
from kernelweave.evidence.exact import ExactPredictor
from kernelweave.evidence.intervals import LeftOut
from kernelweave.evidence.mixture import fit_mixture
from kernelweave.evidence.outliers import HeavyTails
from kernelweave.evidence.path import PathPlan
from kernelweave.evidence.rows import Rows
from scipy.stats import t

QUICK = {"precisions": (5.0,), "max_iter": 15}


def wave(seed: int, n: int) -> tuple[pd.DataFrame, np.ndarray]:
    state = np.random.RandomState(seed)
    X = pd.DataFrame(state.rand(n, 3), columns=list("abc"))
    return X, np.sin(6.0 * X["a"]).to_numpy() + X["b"].to_numpy()


def dirty(seed: int, n: int, n_wrong: int) -> tuple[pd.DataFrame, np.ndarray]:
    X, y = wave(seed, n)
    state = np.random.RandomState(seed + 1)
    y = y + 0.1 * state.randn(n)
    y[state.permutation(n)[:n_wrong]] += 15.0
    return X, y


def without_and_with(
    monkeypatch: pytest.MonkeyPatch,
    rows: tuple[pd.DataFrame, np.ndarray],
    new: tuple[pd.DataFrame, np.ndarray],
) -> tuple[EvidenceKernelRegressor, list[float]]:
    """Return the model for which outliers count less, and root mean squares without and with."""
    errors = []
    for tried in (np.inf, outliers._TRIED):
        monkeypatch.setattr(outliers, "_TRIED", tried)
        model = EvidenceKernelRegressor(**QUICK).fit(*rows)
        errors.append(float(np.sqrt(np.mean((model.predict(new[0]) - new[1]) ** 2))))
    return model, errors


def test_the_likeliest_tails_are_those_of_scipy() -> None:
    residuals = np.random.RandomState(0).standard_t(3.0, size=400)
    found = HeavyTails.of(residuals, np.ones(400))
    _, _, scale = t.fit(residuals, fdf=found.degrees, floc=0.0)
    assert found.degrees in (2.0, 3.0, 4.0)
    assert found.scale == pytest.approx(scale, rel=1e-3)
    twice = HeavyTails.of(residuals[:200], np.full(200, 2.0))
    both = HeavyTails.of(np.tile(residuals[:200], 2), np.ones(400))
    assert (twice.degrees, twice.scale) == (both.degrees, pytest.approx(both.scale))


def test_a_target_left_out_is_predicted_without_it_and_has_plain_noise() -> None:
    X, y = dirty(0, 60, 0)
    model = EvidenceKernelRegressor(**QUICK, warp=False).fit(X, y)
    predictor = model._predictor
    assert isinstance(predictor, ExactPredictor)
    trust = np.random.RandomState(2).rand(60) + 0.1
    rows = replace(predictor.rows, trust=trust[None])
    views, scales = predictor.views, tuple(predictor.scales)
    target = predictor.mixture.target
    mixture = fit_mixture(views, rows, scales, target)
    left_out = LeftOut(mixture, np.arange(60))
    others = np.arange(1, 60)
    alone = fit_mixture(views, rows.take(others), scales, target)
    points = views.points(rows.numeric[:1], rows.codes[:1])
    wanted = target.of_rows(rows).values[0, 0] - alone.latent(points)[0, 0]
    assert left_out.residuals[0, 0] == pytest.approx(wanted, rel=1e-6)
    variance = alone.variance(points)[0] + alone.noise
    assert left_out.variances[0] == pytest.approx(variance, rel=1e-4)


def test_outliers_do_not_move_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    (X, y), (X_new, truth) = dirty(0, 90, 3), wave(9, 500)
    model, errors = without_and_with(monkeypatch, (X, y), (X_new, truth))
    assert errors[1] < 0.5 * errors[0]
    assert errors[1] < 0.2
    # the score is that of all rows, outliers included
    assert model.held_out_score_ < 0.5
    rest = y - model.held_out_prediction_
    score = 1.0 - np.sum(rest**2) / np.sum((y - y.mean()) ** 2)
    assert model.held_out_score_ == pytest.approx(score, abs=0.05)
    low, high = model.predict_interval(X_new, 0.9)
    noisy = truth + 0.1 * np.random.RandomState(3).randn(500)
    assert 0.8 < np.mean((low <= noisy) & (noisy <= high)) < 0.999


def test_outliers_among_many_rows_count_less_in_every_fold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (X, y), (X_new, truth) = dirty(0, 2200, 0), wave(9, 500)
    wrong = np.arange(5, 2200, 100)
    y[wrong] += np.where(np.arange(22) % 2, 15.0, -15.0)
    model, errors = without_and_with(monkeypatch, (X, y), (X_new, truth))
    assert errors[1] < 0.5 * errors[0]
    predictor = model._predictor
    marked = predictor.rows.targets[0, predictor.rows.outliers]
    assert sorted(marked) == sorted(y[wrong])
    low, high = model.predict_interval(X_new, 0.9)
    noisy = truth + 0.1 * np.random.RandomState(3).randn(500)
    assert 0.8 < np.mean((low <= noisy) & (noisy <= high)) < 0.999
    # the closed form is a fit of the fold's training rows with their trust and that noise
    rows = predictor.rows
    for fold, unseen in zip(predictor.folds, predictor.closed, strict=True):
        alone = fold.mixture(predictor.weights)
        points = alone.views.points(rows.numeric[fold.held_out], rows.codes[fold.held_out])
        np.testing.assert_allclose(
            predictor.held_out[fold.held_out], alone.predict(points), atol=1e-3
        )
        width = np.sqrt(alone.variance(points) + alone.nugget) * alone.target.spread[0]
        np.testing.assert_allclose(unseen.width * unseen.target.spread[0], width, rtol=0.02)


def test_trust_is_tried_with_the_scales_that_are_known() -> None:
    """Rows held out are predicted as by a fit of the fold with that trust and that noise."""
    X, y = dirty(0, 90, 3)
    rows = Rows(X.to_numpy(), np.zeros((90, 0), dtype=np.int64), y[None])
    folds = [np.arange(k, 90, 3) for k in range(3)]
    splits = [(np.setdiff1d(np.arange(90), fold), fold) for fold in folds]
    plan = PathPlan(precisions=(5.0,), max_iter=15)
    learned = learn.learn(rows, splits, plan, np.random.RandomState(0))
    found = outliers.with_outliers(learned)
    assert found is not learned
    assert np.flatnonzero(found.rows.outliers).tolist() == np.flatnonzero(y > 8.0).tolist()
    share = found.mixture.noise / learned.mixture.noise
    assert share < 1.0
    for before, after in zip(learned.folds, found.folds, strict=True):
        scales = tuple(
            replace(each, noise=share * each.noise) for each in before.scales(learned.weights)
        )
        alone = fit_mixture(before.views, after.training, scales)
        points = before.views.points(rows.numeric[before.held_out], rows.codes[before.held_out])
        expected = alone.predict(points)
        np.testing.assert_allclose(found.held_out[before.held_out], expected, rtol=1e-7)
        again = after.mixture(found.weights).predict(points)
        np.testing.assert_allclose(again, expected, rtol=1e-7)


def test_nothing_changes_without_outliers(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = dirty(0, 80, 0)
    with_, asked = EvidenceKernelRegressor(**QUICK).fit(X, y), wave(9, 20)[0]
    monkeypatch.setattr(outliers, "_TRIED", np.inf)
    without = EvidenceKernelRegressor(**QUICK).fit(X, y)
    np.testing.assert_array_equal(with_.predict(asked), without.predict(asked))


def test_what_a_fold_trusts_does_not_depend_on_rows_that_it_holds_out() -> None:
    X, y = dirty(0, 90, 3)
    model = EvidenceKernelRegressor(**QUICK).fit(X, y)
    held = model.held_out_fold_ == 0
    other = y.copy()
    other[held] += 0.01 * np.random.RandomState(5).randn(held.sum())
    again = EvidenceKernelRegressor(**QUICK).fit(X, other)
    np.testing.assert_array_equal(again.held_out_fold_, model.held_out_fold_)
    trusts = [each._predictor.folds[0].training.trust for each in (model, again)]
    assert trusts[0] is not None
    np.testing.assert_allclose(trusts[0], trusts[1], rtol=0.05, atol=1e-3)
