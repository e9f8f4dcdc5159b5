"""What learning the kernel again would gain, when update says so, and what forget says."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from kernelweave.evidence import EvidenceKernelClassifier, EvidenceKernelRegressor, RelearnWarning
from kernelweave.evidence.living.forgetting import Forgotten
from kernelweave.evidence.living.relearn import KernelAtHand, Relearn
from kernelweave.evidence.objective import Evidence, log_prior
from kernelweave.evidence.path import EvidenceDescent
from kernelweave.evidence.terms import Scales
from kernelweave.kernels_core.arrays import FloatArray
from scipy.stats import multivariate_normal

QUICK = {"precisions": (50.0, 5.0)}


def table(n: int, seed: int, noise: float = 0.3) -> tuple[FloatArray, FloatArray]:
    """Return rows of a smooth function of two of four columns."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 4))
    return X, np.sin(3.0 * X[:, 0]) + X[:, 1] + noise * rng.normal(size=n)


@pytest.fixture(scope="module")
def saved() -> bytes:
    """A fit to 200 rows, to be loaded anew by each test."""
    return pickle.dumps(EvidenceKernelRegressor(**QUICK).fit(*table(200, 0)))


def at_hand(model: EvidenceKernelRegressor) -> KernelAtHand:
    certificate = model.certificate_
    weights = np.array(certificate.weights)
    return KernelAtHand.of(model._predictor, weights, certificate.precisions)


def test_the_evidence_of_the_scales_at_hand_is_that_of_a_normal_distribution(saved: bytes) -> None:
    model = pickle.loads(saved)
    kernel, rows = at_hand(model), model._predictor.rows.take(np.arange(0, 200, 5))
    theta = EvidenceDescent(kernel.evidence(rows), kernel.thetas[0]).theta
    scales = Scales.from_vector(theta)
    points = kernel.views.points(rows.numeric, rows.codes)
    from kernelweave.evidence.cross import cross_kernel

    S = cross_kernel(points, points, (scales,), kernel.views.match_weight)
    S = S + (scales.noise + 1e-6) * np.eye(40)
    y = kernel.units.of_rows(rows).values[0]
    told = -multivariate_normal(np.zeros(40), S).logpdf(y) - 20.0 * np.log(2.0 * np.pi)
    prior = log_prior(theta, kernel.precision)[0]
    assert kernel.evidence(rows).value(theta) == pytest.approx(told + prior, rel=1e-6)


def test_the_best_kernel_of_the_path_is_taken_out_of_the_sum(saved: bytes) -> None:
    model = pickle.loads(saved)
    certificate, kernel = model.certificate_, at_hand(model)
    place = certificate.precisions.index(kernel.precision)
    assert certificate.weights[place] == max(
        w
        for w, p in zip(certificate.weights, certificate.precisions, strict=True)
        if np.isfinite(p)
    )
    for fold, theta in zip(model._predictor.folds, kernel.thetas[1:], strict=True):
        finite = theta > -30.0
        np.testing.assert_allclose(theta[finite], fold.fits[place].theta[finite], atol=1e-9)


def test_the_gain_is_a_bound_of_what_a_whole_search_gains(saved: bytes) -> None:
    model = pickle.loads(saved)
    rng, kernel = np.random.RandomState(0), at_hand(model)
    X, y = table(150, 1)
    rows = model.refit(X, 3.0 * y)._predictor.rows
    told = kernel.measure(rows, rng)
    evidence = kernel.evidence(rows)
    starts = [EvidenceDescent(evidence, each).theta for each in kernel.thetas]
    now = min(map(evidence.value, starts))
    whole = (now - EvidenceDescent(evidence, starts[0]).run(200, 1e-8).value) / 150
    assert 0.5 * whole < told.gain <= whole + 1e-3
    assert told.slope > 10.0
    # the scales that half of the rows find serve the other half
    assert 0.3 * whole < told.held_out < whole


def test_rows_like_those_of_the_fit_gain_nothing(saved: bytes) -> None:
    model = pickle.loads(saved)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RelearnWarning)
        for seed in range(1, 5):
            model.update(*table(50, seed))
            assert not model.certificate_.relearn.is_worth_it
    assert model.certificate_.relearn.held_out < 0.01


@pytest.mark.parametrize("change", ["noise", "function", "level"])
def test_update_says_once_that_learning_again_is_worth_it(saved: bytes, change: str) -> None:
    model = pickle.loads(saved)
    told: list[int] = []
    for seed in range(1, 5):
        X, y = table(30, seed, 1.5 if change == "noise" else 0.3)
        y = y + (2.0 * np.sin(5.0 * X[:, 2]) if change == "function" else 0.0)
        y = y + (2.0 if change == "level" else 0.0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.update(X, y)
            if seed == 2:
                # settled, saved and loaded
                model = pickle.loads(pickle.dumps(model))
        told += [seed for each in caught if each.category is RelearnWarning]
    assert told in ([1], [2])
    assert model.certificate_.relearn.is_worth_it
    assert str(model.certificate_.relearn) in str(model.certificate_)


def test_a_warning_that_comes_true_lowers_the_error_of_another_fit(saved: bytes) -> None:
    model = pickle.loads(saved)
    X, y = table(150, 1)
    y = y + 2.0 * np.sin(5.0 * X[:, 2])
    with pytest.warns(RelearnWarning, match="Call fit with all rows"):
        model.update(X[:100], y[:100])
    old, (others, _) = table(200, 0), (X[100:], None)
    again = EvidenceKernelRegressor(**QUICK)
    again.fit(np.vstack([old[0], X[:100]]), np.append(old[1], y[:100]))
    errors = [np.mean((each.predict(others) - y[100:]) ** 2) for each in (again, model)]
    assert errors[0] < 0.9 * errors[1]


def test_classes_are_told_too() -> None:
    X, y = table(260, 2, 0.1)
    kind = np.where(y > 0.0, "high", "low")
    model = EvidenceKernelClassifier(**QUICK).fit(X[:160], kind[:160])
    turned = np.where(np.sin(6.0 * X[:, 3]) > 0.0, "high", "low")
    with pytest.warns(RelearnWarning):
        model.update(X[160:], turned[160:])


def test_what_is_told_is_the_same_whatever_the_rows_came_in(saved: bytes) -> None:
    one, other = pickle.loads(saved), pickle.loads(saved)
    X, y = table(60, 3)
    one.update(X, y)
    other.update(X[:20], y[:20]).update(X[20:], y[20:])
    assert one.certificate_.relearn == other.certificate_.relearn


def test_a_refused_update_says_nothing_and_leaves_all(saved: bytes) -> None:
    model = pickle.loads(saved)
    before = pickle.dumps(model)
    X, y = table(50, 1)
    y[7] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"NaN|missing"):
            model.update(X, y)
    assert pickle.dumps(model) == before


def test_an_interrupted_measure_leaves_the_old_model(
    saved: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = pickle.loads(saved)
    before = pickle.dumps(model)

    def stop(*_: object) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(Evidence, "value", stop)
    X, y = table(50, 1)
    with pytest.raises(KeyboardInterrupt):
        model.update(X, 9.0 * y)
    assert pickle.dumps(model) == before


def test_forget_says_what_the_kernel_still_has(saved: bytes) -> None:
    model = pickle.loads(saved)
    X, y = table(10, 5)
    # two of its numbers are also those of a row of the fit
    X[0, :2] = table(200, 0)[0][50, :2]
    model.update(X, y).forget([3, 4, 200])
    told = model.certificate_.forgotten
    assert (told.n_rows, told.n_seen, told.n_values) == (3, 2, 8)
    assert "at most 2 of them" in str(told)
    assert "8 numbers" in str(told)
    assert pickle.loads(pickle.dumps(model)).certificate_.forgotten is None
    model.forget(199)
    assert str(model.certificate_.forgotten) == (
        "1 row is forgotten; the kernel was learned without them"
    )
    model.update(*table(5, 6))
    assert model.certificate_.forgotten is None


def test_forgotten_categories_were_seen() -> None:
    rng = np.random.default_rng(0)
    import pandas as pd

    X = pd.DataFrame({"x": rng.normal(size=80), "town": rng.choice(["a", "b", "c"], 80)})
    y = X["x"] + (X["town"] == "a") + 0.1 * rng.normal(size=80)
    model = EvidenceKernelRegressor(**QUICK).fit(X, y)
    model.update(pd.DataFrame({"x": X["x"][:2], "town": ["d", "a"]}), y[:2])
    model.forget([80, 0])
    # the numbers of the first are the kernel's, but its town is not
    assert model.certificate_.forgotten.n_seen == 1


def test_sentences() -> None:
    assert "it" in str(Forgotten(1, 1, 2, 3.0))
    assert "3 s of the processor" in str(Forgotten(1, 1, 2, 3.0))
    assert not Relearn(1.0, 9.0, 0.04, 100).is_worth_it
    assert Relearn(1.0, 9.0, 0.04, 400).is_worth_it
    assert "would lose 0.04" in str(Relearn(1.0, 9.0, -0.04, 100))
    assert "took" not in str(Relearn(1.0, 9.0, 0.4, 400).warning())
