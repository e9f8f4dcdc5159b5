"""Likelihoods of classes, counts and targets known by half, once rows come and go."""

from __future__ import annotations

import pickle
from typing import Any

import kernelweave.evidence.fit as fits
import numpy as np
import pytest
from kernelweave.evidence import EvidenceKernelClassifier, EvidenceKernelRegressor
from kernelweave.evidence.censored.fit import CensoredPredictor
from kernelweave.evidence.classes import Calibration, class_codes, per_class
from kernelweave.evidence.cross import cross_kernel
from kernelweave.evidence.exact import ExactPredictor
from kernelweave.evidence.last_step import ClassPredictor, PoissonPredictor
from kernelweave.evidence.likelihood import fit_poisson
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.config import one_blas_thread
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import softmax
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

QUICK = {"precisions": (50.0, 5.0)}


def rings(n: int, seed: int, n_classes: int = 3) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return noisy rings around each other."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    radius, angle = 1 + y + 0.35 * rng.normal(size=n), rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


def counts(n: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return counts of variance m + m²."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    mean = np.exp(0.7 + 0.8 * X[:, 0] + 0.4 * np.sin(2.0 * X[:, 1]))
    return X, rng.negative_binomial(1.0, 1.0 / (1.0 + mean)).astype(np.float64)


def limits(n: int, seed: int) -> tuple[FloatArray, Any]:
    """Return targets of which those beyond −0.8 and 1 are known by half."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.sin(X[:, 0]) + X[:, 1] + 0.4 * rng.normal(size=n)
    low, high = np.where(y < -0.8, -np.inf, y), np.where(y > 1.0, np.inf, y)
    low, high = np.minimum(low, 1.0), np.maximum(high, -0.8)
    return X, np.rec.fromarrays([low, high], names="low,high")


MADE = {
    "classes": (EvidenceKernelClassifier, rings, ClassPredictor),
    "counts": (EvidenceKernelRegressor, counts, PoissonPredictor),
    "limits": (EvidenceKernelRegressor, limits, CensoredPredictor),
}


@pytest.fixture(scope="module")
def saved() -> dict[str, bytes]:
    """Fits to 120 rows of each kind."""
    models = {name: made(**QUICK).fit(*rows(120, 0)) for name, (made, rows, _) in MADE.items()}
    for name, (*_, kind) in MADE.items():
        assert isinstance(models[name]._predictor, kind)
    return {name: pickle.dumps(model) for name, model in models.items()}


def answers(model: Any, X: FloatArray) -> FloatArray:
    return model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)


def written(model: Any) -> bytes:
    """A file of the model, in which no object is shared by chance."""
    return pickle.dumps(pickle.loads(pickle.dumps(model)))


def kernel(part: Any, points: Any = None) -> FloatArray:
    left = part.points if points is None else points
    return cross_kernel(left, part.points, part.scales, part.views.match_weight)


def root_of(gram: FloatArray, strength: float) -> tuple[FloatArray, float]:
    """The root of the prior's covariance of linked values, and the unit of the kernel."""
    size = gram.diagonal().mean() - gram.mean()
    inner = gram / size + 1e-6 * np.eye(len(gram))
    return np.sqrt(strength) * np.linalg.cholesky(inner), size


@pytest.mark.parametrize("name", ["classes", "counts", "limits"])
def test_the_step_again_on_the_rows_of_the_fit_is_that_of_the_fit(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, rows, kind = MADE[name]
    given: list[ExactPredictor] = []
    for step in ("with_likelihood", "with_poisson"):
        own = getattr(fits, step)

        def recorded(plain: ExactPredictor, *more: Any, own: Any = own) -> Any:
            given.append(plain)
            return own(plain, *more)

        monkeypatch.setattr(fits, step, recorded)
    model = made(**QUICK).fit(*rows(120, 0))
    old, new = model._predictor, model._encoded(rows(50, 1)[0])
    plain = ExactPredictor(old.mixture, old.folds, old.weights, old.rows, old.held_out)
    with one_blas_thread():
        found = old.again(given[0] if given else plain)
    assert isinstance(found, kind)
    if name == "limits":
        # searches begin elsewhere
        np.testing.assert_allclose(found.mean(*new), old.mean(*new), atol=1e-10)
        np.testing.assert_allclose(found.held_out, old.held_out, atol=1e-9)
    else:
        np.testing.assert_array_equal(found.mean(*new), old.mean(*new))
        np.testing.assert_array_equal(found.held_out, old.held_out)


@pytest.mark.parametrize("name", ["classes", "counts", "limits"])
def test_rows_that_come_and_go_lead_to_the_same_model(name: str, saved: dict[str, bytes]) -> None:
    _, rows, _ = MADE[name]
    (X, y), (more, z), new = rows(120, 0), rows(30, 2), rows(40, 3)[0]
    two = [pickle.loads(saved[name]) for _ in range(2)]
    two[0].update(more, z)
    two[1].update(more[20:], z[20:]).update(more[:20], z[:20])
    before = answers(pickle.loads(saved[name]), new)
    one, other = (answers(each, new) for each in two)
    np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)
    assert np.abs(one - before).max() > 1e-3
    # all of the first again, without the new ones
    left = np.concatenate([X[10:], more[5:]])
    targets = np.concatenate([y[10:], z[5:]])
    two[0].forget([*range(10), *range(120, 125)])
    again = pickle.loads(saved[name]).update(more, z).refit(left, targets)
    np.testing.assert_array_equal(answers(two[0], new), answers(again, new))
    assert written(two[0]) == written(again)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logits_are_those_of_logistic_regressions_on_the_kernel(n_classes: int) -> None:
    model = EvidenceKernelClassifier(**QUICK).fit(*rings(100, 0, n_classes))
    was = model._predictor
    new = rings(60, 1, n_classes)[0]
    before = model.predict_proba(new)
    model.update(*rings(60, 2, n_classes))
    predictor, encoded = model._predictor, model._encoded(new)
    assert (predictor.strength, predictor.shares) == (was.strength, was.shares)
    codes = class_codes(predictor.rows.targets)

    def squares(part: Any, rows: Any, points: Any) -> FloatArray:
        S = kernel(part) + (part.noise + 1e-6) * np.eye(len(rows))
        t, target = rows.targets.T, part.target
        own = np.linalg.solve(S, (t - target.centre) / target.spread)
        return per_class(kernel(part, points) @ own * target.spread + target.centre)

    def logistic(part: Any, rows: Any, points: Any) -> FloatArray:
        root, size = root_of(kernel(part), predictor.strength)
        # of two classes a difference is learned, which varies twice as much
        wide = np.sqrt(2.0) if n_classes == 2 else 1.0
        found = LogisticRegression(max_iter=10_000, tol=1e-8)
        found.fit(wide * root, class_codes(rows.targets))
        cross = kernel(part, points) * predictor.strength / size
        values = wide * np.linalg.solve(root, cross.T).T @ found.coef_.T + found.intercept_
        return per_class(0.5 * values) if n_classes == 2 else values

    logits = []
    for member, share in zip((squares, logistic), predictor.shares, strict=True):
        held_out = np.empty((len(codes), n_classes))
        for fold in predictor.folds:
            part, own = fold.mixture(predictor.weights), predictor.rows.take(fold.held_out)
            points = part.views.points(own.numeric, own.codes)
            held_out[fold.held_out] = member(part, fold.training, points)
        calibration = Calibration.of(held_out, codes, predictor.rows.mass)
        mixture = predictor.mixture
        values = member(mixture, predictor.rows, mixture.views.points(*encoded))
        logits.append(share * calibration.logits(values))
    expected = softmax(sum(logits), axis=1)
    found = softmax(per_class(predictor.mean(*encoded)), axis=1)
    np.testing.assert_allclose(found, expected, atol=5e-3)
    assert np.abs(expected - before).max() > 0.05


def test_counts_have_the_mode_of_the_penalised_likelihood(saved: dict[str, bytes]) -> None:
    model = pickle.loads(saved["counts"])
    was, new = model._predictor, counts(40, 3)[0]
    before = was.mean(*model._encoded(new))
    model.update(*counts(50, 1))
    predictor, encoded = model._predictor, model._encoded(new)
    assert (predictor.strength, predictor.share) == (was.strength, was.share)
    mixture, rows = predictor.mixture, predictor.rows
    gram, y = kernel(mixture), rows.targets[0]
    root, size = root_of(gram, predictor.strength)
    unit, n = np.average(y, weights=rows.mass), len(y)

    def lost(theta: FloatArray) -> tuple[float, FloatArray]:
        f = root @ theta[:n] + theta[n]
        slope = rows.mass * (np.exp(f) - y / unit)
        value = rows.mass @ (np.exp(f) - y / unit * f) + 0.5 * theta[:n] @ theta[:n]
        value += 0.005 * theta[n] ** 2
        return value, np.append(root.T @ slope + theta[:n], slope.sum() + 0.01 * theta[n])

    done = minimize(
        lost, np.zeros(n + 1), jac=True, method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000, "maxfun": 10_000},
    )  # fmt: skip
    cross = kernel(mixture, mixture.views.points(*encoded)) * predictor.strength / size
    f = cross @ np.linalg.solve(root.T, done.x[:n]) + done.x[n]
    low, high = mixture.target.low[0], mixture.target.high[0]
    mean = np.clip(unit * np.exp(f), low, high)
    plain = mixture.predict(mixture.views.points(*encoded))[:, 0]
    expected = (1.0 - predictor.share) * plain + predictor.share * mean
    np.testing.assert_allclose(predictor.mean(*encoded)[:, 0], expected, rtol=1e-5)
    assert np.abs(before[:, 0] / expected - 1.0).max() > 1e-2


def test_targets_known_by_half_have_the_mode_of_their_likelihood(saved: dict[str, bytes]) -> None:
    model = pickle.loads(saved["limits"])
    before = model._predictor
    model.update(*limits(40, 1)).forget(range(20))
    predictor = model._predictor
    rows, units, noise = predictor.rows, predictor.metric_units, predictor.noise
    assert units.centre == before.metric_units.centre
    gram = kernel(predictor.mixture) + 1e-6 * np.eye(len(rows))
    root = np.linalg.cholesky(gram)
    low, high = ((each - units.centre[0]) / units.spread[0] for each in rows.ends)
    known = low == high

    deviation = np.sqrt(noise)

    def lost(b: FloatArray) -> tuple[float, FloatArray]:
        f = root @ b
        below, above = (high - f) / deviation, (low - f) / deviation
        told = np.where(np.isinf(low), norm.logcdf(below), norm.logsf(above))
        steep = np.where(
            np.isinf(low),
            -np.exp(norm.logpdf(below) - norm.logcdf(below)),
            np.exp(norm.logpdf(above) - norm.logsf(above)),
        )
        told = np.where(known, norm.logpdf(above), told)
        steep = np.where(known, above, steep) / deviation
        return 0.5 * b @ b - told.sum(), b - root.T @ steep

    options = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000}
    done = minimize(lost, np.zeros(len(rows)), jac=True, method="L-BFGS-B", options=options)
    points = predictor.mixture.views.points(rows.numeric, rows.codes)
    found = predictor.mixture.latent(points)[:, 0]
    np.testing.assert_allclose(found, root @ done.x, atol=1e-4)
    assert len(rows) == 140
    assert predictor.held_out_spread.shape == (2, 140)


def test_a_class_may_be_forgotten_whole_and_come_again(saved: dict[str, bytes]) -> None:
    model = pickle.loads(saved["classes"])
    (X, y), new = rings(120, 0), rings(200, 4)[0]
    before = model.predict_proba(new)
    model.forget(np.flatnonzero(y == 2))
    p = model.predict_proba(new)
    assert p.shape == (200, 3)
    assert list(model.classes_) == [0, 1, 2]
    # it falls with the rows that show it
    assert p[:, 2].max() < 0.2
    assert p[:, 2].mean() < 0.1 * before[:, 2].mean()
    assert (model.held_out_prediction_[:, 2] < 0.2).all()
    model.update(X[y == 2], y[y == 2])
    # other folds may hold these rows out, and calibrate
    after = model.predict_proba(new)
    assert np.mean(after.argmax(axis=1) == before.argmax(axis=1)) > 0.95
    assert np.abs(after - before).mean() < 0.05


def test_new_rows_need_not_show_every_class(saved: dict[str, bytes]) -> None:
    model, (X, y) = pickle.loads(saved["classes"]), rings(40, 5)
    model.update(X[y == 1], y[y == 1])
    assert np.isfinite(model.predict_proba(X)).all()


def test_negative_counts_are_refused(saved: dict[str, bytes]) -> None:
    model = pickle.loads(saved["counts"])
    before = pickle.dumps(model)
    X, y = counts(10, 1)
    y[3] = -2.0
    with pytest.raises(ValueError, match=r"y must be 0 or more.*got -2.*fit again"):
        model.update(X, y)
    assert pickle.dumps(model) == before


def test_counts_may_all_be_forgotten_but_zeros(saved: dict[str, bytes]) -> None:
    model, (_, y) = pickle.loads(saved["counts"]), counts(120, 0)
    model.forget(np.flatnonzero(y > 0))
    told = model.predict(counts(30, 1)[0])
    assert np.isfinite(told).all()
    assert np.abs(told).max() < 0.5
    (mode,) = fit_poisson(np.eye(3), np.zeros(3), np.ones(3), [1.0])
    assert np.exp(mode.values(np.eye(3))).max() < 1e-300


def test_no_fold_need_hold_out_a_row(saved: dict[str, bytes]) -> None:
    for name, (_, rows, _) in MADE.items():
        model = pickle.loads(saved[name])
        folds = model.held_out_fold_
        model.forget(np.flatnonzero(folds == 0))
        assert np.isfinite(answers(model, rows(20, 1)[0])).all()
        assert np.isfinite(model.held_out_score_)
