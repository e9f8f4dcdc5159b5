"""Targets known by half of more rows than pairs are taken of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import (
    EvidenceKernelRegressor,
    SurvivalCalibrationDisplay,
    SurvivalDisplay,
)
from kernelweave.evidence.large import censored
from kernelweave.evidence.large.features import Landmarks
from kernelweave.evidence.large.posterior import root_of
from kernelweave.evidence.large.span import SpanProblem, at_mode, mode_in_span, with_curvature
from kernelweave.evidence.path import start
from kernelweave.evidence.rows import Rows, Standardised
from kernelweave.evidence.terms import Scales, Stopped
from kernelweave.kernels_core.arrays import FloatArray
from scipy.optimize import minimize
from scipy.stats import norm

pytestmark = [
    pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.ExtrapolationWarning"),
    pytest.mark.filterwarnings("ignore::kernelweave.evidence.HeldOutWarning"),
]
INF = np.inf


def made(n: int, seed: int = 0) -> tuple[pd.DataFrame, FloatArray, Any]:
    """Times of a log-normal model, about half of them observed."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.random((n, 3)), columns=list("abc"))
    centre = 2.0 * np.sin(4.0 * X["a"]) + X["b"]
    true = np.exp(centre + 0.4 * rng.standard_normal(n)).to_numpy()
    until = np.exp(centre.mean() + rng.standard_normal(n))
    kind = [("event", "?"), ("time", "f8")]
    y = np.array(list(zip(true <= until, np.minimum(true, until), strict=True)), dtype=kind)
    return X, true, y


def problem_of(n: int, size: int) -> SpanProblem:
    """Rows of one column, known, below, above and between, with weights."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-2.0, 2.0, (n, 1))
    truth = np.sin(2.0 * x[:, 0]) + 0.3 * rng.standard_normal(n)
    ends = np.array([truth, truth])
    ends[1, ::3], ends[0, 1::5] = INF, -INF
    ends[1, 2::7] = truth[2::7] + 0.4
    weight = rng.uniform(0.5, 2.0, n)
    codes = np.empty((n, 0), dtype=np.int64)
    rows = Rows(x, codes, truth[None], weight, ends=ends)
    views, scales = rows.views(), (Scales.from_vector(start(1)),)
    landmarks = Landmarks(views, views.points(x, codes).first(size), scales, np.float64)
    root = root_of(landmarks.gram())
    return SpanProblem(landmarks, root, rows, Standardised.of(rows), 0.1, 0.05)


def test_the_mode_is_what_a_general_minimiser_finds() -> None:
    problem = problem_of(60, 12)
    landmarks, rows, noise = problem.landmarks, problem.rows, problem.noise
    features, mass = landmarks.features(rows.numeric, rows.codes), rows.mass
    assert rows.ends is not None
    low, high = (rows.ends - problem.units.centre) / problem.units.spread
    inner, sigma = problem.root @ problem.root.T, np.sqrt(noise)

    def objective(z: np.ndarray) -> float:
        f = features @ np.linalg.solve(problem.root.T, z)
        with np.errstate(divide="ignore"):
            told = np.where(
                low == high,
                norm.logpdf(low, f, sigma),
                np.log(norm.cdf(high, f, sigma) - norm.cdf(low, f, sigma)),
            )
        return float(0.5 * problem.ridge / noise * z @ z - mass @ told)

    best = minimize(objective, np.zeros(12), method="BFGS", options={"gtol": 1e-6})
    mode = mode_in_span(problem, np.zeros(12))
    assert mode.latent == pytest.approx(features @ mode.dual)
    assert mode.latent == pytest.approx(
        features @ np.linalg.solve(problem.root.T, best.x), abs=1e-3
    )
    assert objective(problem.root.T @ mode.dual) <= best.fun + 1e-5
    # a later mode begins at one that was found, with its curvature
    near = mode_in_span(problem, mode.dual + 0.1, mode.equations)
    assert near.latent == pytest.approx(mode.latent, abs=1e-3)
    # it is the posterior mean of numbers with weights of their own
    at = at_mode(problem, mode.latent)
    weighted = features.T * at.precision
    numbers = (at.targets[0] - problem.units.centre) / problem.units.spread
    dual = np.linalg.solve(weighted @ features + problem.ridge * inner, weighted @ numbers)
    assert features @ dual == pytest.approx(mode.latent, abs=2e-3)
    # and its curvature is that of these
    gamma = with_curvature(problem, mode).factor
    left = weighted @ features + problem.ridge * inner
    white = np.linalg.solve(problem.root, np.linalg.solve(problem.root, left).T)
    assert gamma @ gamma.T == pytest.approx(white, rel=1e-6, abs=1e-6)


@pytest.fixture(scope="module")
def fitted() -> EvidenceKernelRegressor:
    X, _, y = made(5200)
    return EvidenceKernelRegressor(n_landmarks=100, random_state=0).fit(X, y)


def test_many_rows_are_predicted_as_well_as_few(fitted: EvidenceKernelRegressor) -> None:
    new, true, y = made(2000, seed=1)
    error = np.log(fitted.predict(new) / true)
    # the noise alone has 0.4
    assert np.sqrt(np.mean(error**2)) < 0.43
    assert abs(np.mean(error)) < 0.03
    assert fitted.score(new, y) == pytest.approx(fitted.held_out_score_, abs=0.02)
    low, high = fitted.predict_interval(new, confidence=0.8)
    assert np.mean((low <= true) & (true <= high)) == pytest.approx(0.8, abs=0.03)
    told = fitted.predict_distribution(new)
    assert np.mean(told.cdf(true) < 0.5) == pytest.approx(0.5, abs=0.03)
    assert (fitted.held_out_fold_ >= 0).sum() > 1000
    shown = fitted.explain(new.iloc[:2])
    assert shown is not None


def test_without_time_a_mode_of_some_rows_predicts(monkeypatch: Any) -> None:
    def stopped(_: object) -> None:
        raise Stopped

    monkeypatch.setattr(censored, "_likeliest", stopped)
    monkeypatch.setattr(censored, "_LATE_ROWS", 1000)
    X, true, y = made(5200)
    model = EvidenceKernelRegressor(n_landmarks=100, random_state=0)
    model.fit(X, y)
    assert model.result_.status.label in ("stopped", "max_time")
    assert np.sqrt(np.mean(np.log(model.predict(X) / true) ** 2)) < 0.5
    assert model.held_out_score_ > 0.7
    low, high = model.predict_interval(X, confidence=0.8)
    assert np.mean((low <= true) & (true <= high)) > 0.7


def test_distributions_of_many_rows_are_judged(fitted: EvidenceKernelRegressor) -> None:
    held_out = fitted.held_out_.iloc[0]
    assert held_out["brier"] < 0.7 * held_out["brier_one_curve"]
    assert held_out["calibration_p"] > 0.001
    # of rows that the fit did not see
    X, true, _ = made(300, seed=2)
    measures = SurvivalCalibrationDisplay.from_estimator(fitted, X, true).measures
    assert measures is not None
    assert measures.brier < 0.7 * measures.brier_one_curve
    curve = SurvivalDisplay.from_estimator(fitted, X.iloc[:5], points=[0.5, 2.0, 8.0])
    told = fitted.predict_distribution(X.iloc[:5])
    expected = np.column_stack([told.sf(t) for t in (0.5, 2.0, 8.0)])
    assert curve.survival == pytest.approx(expected, abs=0.01)
    shown = SurvivalDisplay.from_held_out(fitted)
    assert (np.diff(shown.survival, axis=1) <= 1e-12).all()
