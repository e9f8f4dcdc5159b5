"""Classes: least squares and logistic regression on the learned kernel, averaged."""

from __future__ import annotations

import pickle
import warnings
from unittest.mock import patch

import cvxpy as cp
import numpy as np
import pytest
from kernelweave.evidence import EffectDisplay, EvidenceKernelClassifier
from kernelweave.evidence.classes import Calibration, class_codes, per_class
from kernelweave.evidence.cross import cross_kernel
from kernelweave.evidence.last_step import STRENGTHS, ClassPredictor
from kernelweave.evidence.likelihood import fit_softmax
from kernelweave.kernels_core import RBF
from kernelweave.kernels_core.clock import time_limit
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

QUICK = {"precisions": (50.0, 5.0), "max_iter": 20}


def rings(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return noisy rings around each other: neighbours overlap, which ±1 targets do not know."""
    state = np.random.RandomState(seed)
    y = state.randint(0, 5, n)
    radius, angle = 1 + y + 0.35 * state.randn(n), state.uniform(0, 2 * np.pi, n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle), state.randn(n)]), y


@pytest.fixture(scope="module")
def model():
    return EvidenceKernelClassifier(**QUICK).fit(*rings(200, 0))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_mode_is_that_of_cvxpy(n_classes: int) -> None:
    state = np.random.RandomState(0)
    X, codes = state.randn(30, 2), state.randint(0, n_classes, 30)
    mass, gram = state.randint(1, 4, 30).astype(float), RBF(0.5)(X)
    fits = list(fit_softmax(gram, codes, n_classes, mass, [1.0, 5.0]))
    scaled = 5.0 * (gram / (gram.diagonal().mean() - gram.mean()) + 1e-6 * np.eye(30))
    own, offset = cp.Variable((30, n_classes)), cp.Variable(n_classes)
    hit = np.eye(n_classes)[codes]
    logits = np.linalg.cholesky(scaled) @ own + np.ones((30, 1)) @ offset[None]
    lost = cp.log_sum_exp(logits, axis=1) - cp.sum(cp.multiply(hit, logits), axis=1)
    charge = 0.5 * cp.sum_squares(own) + 0.005 * cp.sum_squares(offset)
    optimum = cp.Problem(cp.Minimize(mass @ lost + charge)).solve(solver="CLARABEL")
    values = fits[1].values(gram)
    coordinates = np.linalg.solve(np.linalg.cholesky(scaled), values - fits[1].offset)
    mine = -mass @ log_softmax(values, axis=1)[np.arange(30), codes]
    mine += 0.5 * np.sum(coordinates**2) + 0.005 * np.sum(fits[1].offset ** 2)
    assert mine == pytest.approx(optimum, rel=1e-4)
    np.testing.assert_allclose(values, logits.value, atol=0.02)


def test_the_mode_of_many_rows_is_that_of_a_regression_on_some_of_their_kernels() -> None:
    X, codes = rings(2400, 3)
    gram, strength = RBF(0.5)(X), 10.0
    *_, mode = fit_softmax(gram, codes, 5, np.ones(2400), [1.0, strength], 600)
    chosen = np.flatnonzero(mode.dual.any(axis=1))
    assert len(chosen) == 600
    size = gram.diagonal().mean() - gram.mean()
    inner = gram[np.ix_(chosen, chosen)] / size + 1e-6 * np.eye(600)
    root = np.linalg.solve(np.linalg.cholesky(inner), gram[chosen] / size).T
    # scikit-learn's offsets cost nothing, ours next to nothing
    oracle = LogisticRegression(max_iter=1000).fit(np.sqrt(strength) * root, codes)
    told = softmax(mode.values(gram), axis=1)
    expected = oracle.predict_proba(np.sqrt(strength) * root)
    assert log_loss(codes, told) == pytest.approx(log_loss(codes, expected), rel=2e-2)
    assert np.abs(told - expected).mean() < 5e-3


@pytest.mark.usefixtures("one_metric")
def test_many_rows_gain_by_the_likelihood_of_classes() -> None:
    (X, y), (others, truth) = rings(600, 0), rings(2000, 1)
    plain, model = least_squares(X, y), EvidenceKernelClassifier(**QUICK).fit(X, y)
    new = -np.log(model.predict_proba(others)[np.arange(2000), truth])
    assert new.mean() < 0.95 * log_loss(truth, plain.predict_proba(others))
    # rows held out lose what new rows do
    told = model.held_out_prediction_[np.arange(600), y]
    # rows that the metric is learned from are not held out
    assert np.isnan(told).any()
    own = -np.log(told[~np.isnan(told)])
    error = np.hypot(new.std() / 2000**0.5, own.std() / len(own) ** 0.5)
    assert abs(own.mean() - new.mean()) < 3.5 * error


def least_squares(X: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None):
    """Return the model without its last step."""
    with patch("kernelweave.evidence.fit.with_likelihood", lambda predictor: predictor):
        return EvidenceKernelClassifier(**QUICK).fit(X, y, sample_weight=weight)


def test_overlapping_neighbours_gain_by_the_likelihood_of_classes(model) -> None:
    X, y = rings(1000, 1)
    plain = least_squares(*rings(200, 0))
    assert log_loss(y, model.predict_proba(X)) < 0.95 * log_loss(y, plain.predict_proba(X))
    assert model.score(X, y) >= plain.score(X, y)


def squares(part, rows, points):
    """Return least squares from scratch, a column for each class."""
    gram = cross_kernel(part.points, part.points, part.scales, part.views.match_weight)
    t = rows.targets.T
    centred, noise = t - t.mean(axis=0), (part.noise + 1e-6) * np.eye(len(gram))
    own = part.kernel(points) @ np.linalg.solve(gram + noise, centred) + t.mean(axis=0)
    return per_class(own)


def likeliest(strength: float):
    """Return what fits the likelihood of classes at one strength."""

    def fit(part, rows, points):
        gram = cross_kernel(part.points, part.points, part.scales, part.views.match_weight)
        codes, n_classes = class_codes(rows.targets), max(2, len(rows.targets))
        (own,) = fit_softmax(gram, codes, n_classes, rows.mass, [strength])
        return own.values(part.kernel(points))

    return fit


@pytest.mark.parametrize("n_classes", [2, 4])
def test_logits_are_the_average_of_two_calibrated_predictors(n_classes: int) -> None:
    X, y = rings(120, 0)
    model = EvidenceKernelClassifier(**QUICK).fit(X, np.minimum(y, n_classes - 1))
    predictor, new = model._predictor, model._encoded(rings(40, 1)[0])
    rows, codes = predictor.rows, class_codes(predictor.rows.targets)
    found = []
    for member in (squares, *map(likeliest, STRENGTHS)):
        held_out = np.empty((120, n_classes))
        for fold in predictor.folds:
            part, own = fold.mixture(predictor.weights), rows.take(fold.held_out)
            points = part.views.points(own.numeric, own.codes)
            held_out[fold.held_out] = member(part, fold.training, points)
        calibration = Calibration.of(held_out, codes, rows.mass)
        loss = 120 * log_loss(codes, softmax(calibration.logits(held_out), axis=1))
        mixture = predictor.mixture
        values = member(mixture, rows, mixture.views.points(*new))
        found.append((loss, calibration.logits(values)))
    both = [found[0], min(found[1:], key=lambda each: each[0])]
    shares = softmax([-0.3 * loss for loss, _ in both])
    expected = sum(share * logits for share, (_, logits) in zip(shares, both, strict=True))
    p = softmax(per_class(predictor.mean(*new)), axis=1)
    np.testing.assert_allclose(p, softmax(expected, axis=1), atol=5e-3)


def test_held_out_figures_are_those_of_the_last_step(model) -> None:
    X, y = rings(1000, 1)
    assert abs(model.held_out_score_ - model.score(X, y)) < 3.5 * model.held_out_error_
    told = model.held_out_prediction_
    assert np.mean(told.argmax(axis=1) == rings(200, 0)[1]) == pytest.approx(model.held_out_score_)
    worth = {each.column: each.importance for each in model.importance_}
    assert min(worth["x0"], worth["x1"]) > worth["x2"]


def test_effects_are_those_of_the_probabilities(model) -> None:
    X, _ = rings(200, 0)
    effect = EffectDisplay.from_estimator(model, columns=["x0"], n_rows=200, output=4).effects[0]
    mean = []
    for value in effect.grid:
        moved = X.copy()
        moved[:, 0] = value
        mean.append(model.predict_proba(moved)[:, 4].mean())
    expected = np.array(mean) - model.predict_proba(X)[:, 4].mean()
    np.testing.assert_allclose(effect.effect, expected, atol=1e-9)
    assert (effect.low < effect.effect).all()
    assert (effect.effect < effect.high).all()


def test_two_classes_have_one_value_and_turn_with_their_names() -> None:
    X, y = rings(150, 0)
    y = np.where(y > 2, "b", "a")
    new = rings(50, 1)[0]
    model = EvidenceKernelClassifier(**QUICK).fit(X, y)
    other = EvidenceKernelClassifier(**QUICK).fit(X, np.where(y == "a", "b", "a"))
    assert model._predictor.mean(*model._encoded(new)).shape == (50, 1)
    np.testing.assert_allclose(
        model.predict_proba(new), other.predict_proba(new)[:, ::-1], rtol=1e-7
    )


def test_the_kernel_of_classes_keeps_a_share_of_the_plain_gaussian(model) -> None:
    assert model.path_weights_[-1] >= 0.25
    assert model.path_weights_.sum() == pytest.approx(1.0)


def test_rows_told_apart_make_a_model_as_sure_as_their_number_allows() -> None:
    codes = np.repeat([0, 1], 20)
    values = per_class(2.0 * codes[:, None] - 1.0)
    p = softmax(Calibration.of(values, codes, np.ones(40)).logits(values), axis=1)
    np.testing.assert_allclose(p[np.arange(40), codes], 41 / 42, rtol=1e-4)


def test_a_repeated_row_is_a_weight_of_two() -> None:
    X, y = rings(100, 0)
    weight = np.ones(100)
    weight[:30] = 2.0
    once = EvidenceKernelClassifier(**QUICK).fit(X, y, sample_weight=weight)
    twice = EvidenceKernelClassifier(**QUICK).fit(np.vstack([X, X[:30]]), np.append(y, y[:30]))
    new = rings(50, 1)[0]
    np.testing.assert_allclose(once.predict_proba(new), twice.predict_proba(new), rtol=1e-6)


def test_no_time_leaves_least_squares() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with time_limit(1e-9):
            model = EvidenceKernelClassifier(**QUICK).fit(*rings(100, 0))
    assert not isinstance(model._predictor, ClassPredictor)
    assert np.isfinite(model.predict_proba(rings(20, 1)[0])).all()


def test_pickles(model) -> None:
    X = rings(20, 1)[0]
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
