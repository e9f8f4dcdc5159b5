"""Models of landmarks, and sums over these, merged."""

from __future__ import annotations

import warnings
from copy import deepcopy

import numpy as np
import pytest
from kernelweave.evidence import EvidenceKernelClassifier, EvidenceKernelRegressor, merge
from large_tables import QUICK, small, table

assert small


@pytest.fixture(autouse=True)
def few_rows() -> None:
    warnings.filterwarnings("ignore", "sums of")
    warnings.filterwarnings("ignore", "the kernel suits")


def test_sums_add_to_the_sums_of_a_model() -> None:
    frame = table(900).sample(frac=1.0, random_state=0, ignore_index=True)
    X, y = frame.drop(columns="price"), frame["price"]
    kernel = EvidenceKernelRegressor(**QUICK).fit(X[:400], y[:400])
    landmarks = kernel._predictor.landmarks
    sums = [kernel.sums(X[400:500], y[400:500]), kernel.sums(X[500:700], y[500:700])]
    merged = merge([kernel, *sums])
    # dense normal equations of all 700 rows, at the kernel's own landmarks and ridge
    F = landmarks.features(*kernel.encoder_.transform(X[:700]))
    target = kernel._predictor.targets
    v = (y[:700].to_numpy() - target.centre) / target.spread
    G = landmarks.gram()
    G += 1e-7 * np.abs(G).sum(axis=0).mean() * np.eye(len(G))
    beta = np.linalg.solve(F.T @ F + kernel._predictor.ridge * G, F.T @ v)
    new = landmarks.features(*kernel.encoder_.transform(X[700:]))
    np.testing.assert_allclose(
        merged.predict(X[700:]), new @ beta * target.spread + target.centre, rtol=0, atol=1e-8
    )
    assert np.isfinite(merged.held_out_score_)
    assert merged.score(X[700:], y[700:]) > 0.8


def test_models_of_landmarks_add_up() -> None:
    frame = table(900).sample(frac=1.0, random_state=0, ignore_index=True)
    X, y = frame.drop(columns="price"), frame["price"]
    kernel = EvidenceKernelRegressor(**QUICK).fit(X[:400], y[:400])
    one = merge([kernel.sums(X[400:600], y[400:600])], kernel=kernel)
    merged = merge([one, kernel, kernel.sums(X[600:800], y[600:800])], kernel=kernel)
    pooled = merge([kernel, kernel.sums(X[400:800], y[400:800])])
    np.testing.assert_allclose(merged.predict(X), pooled.predict(X), rtol=0, atol=1e-8)
    other = EvidenceKernelRegressor(**QUICK).fit(X[:500], y[:500])
    with pytest.raises(ValueError, match=r"parts\[1\] has another kernel"):
        merge([kernel, other])


def test_classes_of_landmark_models() -> None:
    frame = table(900).sample(frac=1.0, random_state=0, ignore_index=True)
    X = frame.drop(columns="price")
    y = np.where(frame["price"] > frame["price"].median(), "dear", "cheap")
    kernel = EvidenceKernelClassifier(**QUICK).fit(X[:400], y[:400])
    merged = merge(
        [kernel, kernel.sums(X[400:500], y[400:500]), kernel.sums(X[500:700], y[500:700])]
    )
    pooled = merge([kernel, kernel.sums(X[400:700], y[400:700])])
    np.testing.assert_allclose(merged.predict_proba(X), pooled.predict_proba(X), atol=1e-8)
    assert merged.score(X[700:], y[700:]) > 0.8


def test_models_of_landmarks_with_their_rows_are_joined() -> None:
    frame = table(900).sample(frac=1.0, random_state=0, ignore_index=True)
    X, y = frame.drop(columns="price"), frame["price"]
    kernel = EvidenceKernelRegressor(**QUICK).fit(X[:280], y[:280])
    parts = [deepcopy(kernel).refit(X[a:b], y[a:b]) for a, b in ((0, 500), (500, 700))]
    merged, pooled = merge(parts, kernel=kernel), deepcopy(kernel).refit(X[:700], y[:700])
    for one, other in zip(
        merged.predict(X, return_std=True), pooled.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-8)
    assert merged.held_out_score_ == pytest.approx(pooled.held_out_score_, abs=1e-8)
    # beside sums, its rows are summed over the landmarks of the kernel
    sums = kernel.sums(X[700:800], y[700:800])
    beside = merge([parts[1], sums], kernel=kernel)
    alone = merge([kernel.sums(X[500:800], y[500:800])], kernel=kernel)
    np.testing.assert_allclose(beside.predict(X), alone.predict(X), rtol=0, atol=1e-8)
    assert beside.held_out_score_ == pytest.approx(alone.held_out_score_, abs=1e-8)


def test_groups_of_landmark_models_are_those_of_one_model() -> None:
    frame = table(900).sample(frac=1.0, random_state=0, ignore_index=True)
    X, y = frame.drop(columns="price"), frame["price"]
    state = np.random.RandomState(1)
    patient = np.sort(state.randint(0, 90, 900))
    X["patient"], y = [f"p{k}" for k in patient], y + state.normal(size=90)[patient]
    cut, middle = (int(np.flatnonzero(patient == patient[k])[0]) for k in (250, 600))
    kernel = EvidenceKernelRegressor(**QUICK).fit(X[:cut], y[:cut], groups="patient")
    sums = [kernel.sums(X[a:b], y[a:b]) for a, b in ((cut, middle), (middle, 900))]
    merged, pooled = merge([kernel, *sums]), merge([kernel, kernel.sums(X[cut:], y[cut:])])
    np.testing.assert_allclose(merged.predict(X), pooled.predict(X), rtol=0, atol=1e-8)
    updated = deepcopy(kernel).update(X[cut:], y[cut:])
    # groups of the kernel's model have levels in both
    np.testing.assert_allclose(merged.predict(X[:cut]), updated.predict(X[:cut]), atol=1e-5)
