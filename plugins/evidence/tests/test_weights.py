"""A factor that all weights have in common says nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import (
    Batches,
    EvidenceKernelClassifier,
    EvidenceKernelRegressor,
    EvidenceMKLClassifier,
    EvidenceMKLRegressor,
)
from sklearn.datasets import make_friedman1

QUICK = {"precisions": (50.0, 5.0), "max_iter": 4}
FACTORS = [1e-12, 0.3, 1.0 / 90, 1e12]
WORDS = np.random.default_rng(3).choice(list("abcdefgh"), 450)


def table(n: int) -> tuple[pd.DataFrame, Any, Any]:
    """Numbers and words, of which some are rare; weights of all sizes."""
    X, y = make_friedman1(n, n_features=5, noise=0.5, random_state=0)
    frame = pd.DataFrame(X, columns=list("abcde")).assign(word=WORDS[:n])
    frame.loc[:2, "word"] = ["rare", "rare", "once"]
    return frame, y, np.random.default_rng(1).uniform(0.2, 3.0, n)


def told(model: Any, X: Any) -> list[Any]:
    """Everything that a fit says of rows."""
    out = [[model.held_out_score_, model.held_out_error_], model.held_out_prediction_]
    if hasattr(model, "predict_proba"):
        return [*out, model.predict_proba(X)]
    out += model.predict(X, return_std=True)
    return [*out, *model.predict_interval(X)] if hasattr(model, "predict_interval") else out


def check(model: Any, X: Any, y: Any, weight: Any, new: Any, factors: Any = FACTORS) -> None:
    plain = told(model.fit(X, y, weight), new)
    for factor in factors:
        own = np.full(len(y), factor) if weight is None else factor * weight
        for one, other in zip(plain, told(model.fit(X, y, own), new), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", [EvidenceKernelRegressor, EvidenceKernelClassifier])
def test_a_common_factor_of_weights_changes_nothing(model: Any, weighted: bool) -> None:
    X, y, weight = table(120)
    y = y > np.median(y) if model is EvidenceKernelClassifier else y
    check(model(**QUICK), X[:90], y[:90], weight[:90] if weighted else None, X[90:])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", [EvidenceMKLRegressor, EvidenceMKLClassifier])
def test_nor_that_of_weights_of_kernels(model: Any, weighted: bool) -> None:
    X, y, weight = table(90)
    y = y > np.median(y) if model is EvidenceMKLClassifier else y
    own = X.drop(columns="word")
    check(model(n_folds=2), own[:60], y[:60], weight[:60] if weighted else None, own[60:])


@pytest.mark.usefixtures("by_landmarks")
def test_nor_that_of_many_rows() -> None:
    X, y, weight = table(450)
    model = EvidenceKernelRegressor(precisions=(50.0,), max_iter=3, n_landmarks=50)
    # a power of two rounds nothing: an error in the last bit of a weight grows to 5e-6 here
    check(model, X, y, weight, X[:50], factors=[2.0**-40])
    assert "landmarks" in str(model.certificate_)


@pytest.mark.usefixtures("by_landmarks")
def test_nor_that_of_rows_in_batches() -> None:
    X, y, weight = table(450)
    model = EvidenceKernelRegressor(precisions=(50.0,), max_iter=3, n_landmarks=50)
    frame = X.assign(y=y, w=weight)
    plain = told(model.fit(Batches(frame, "y", weight="w", size=150)), X[:50])
    frame["w"] *= 2.0**30  # a power of two, as above
    scaled = told(model.fit(Batches(frame, "y", weight="w", size=150)), X[:50])
    for one, other in zip(plain, scaled, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)
    classes = EvidenceKernelClassifier(precisions=(50.0,), max_iter=3, n_landmarks=50)
    frame["y"] = np.where(frame["y"] > 14, "high", "low")
    scaled = told(classes.fit(Batches(frame, "y", weight="w", size=150)), X[:50])
    frame["w"] *= 2.0**-30
    plain = told(classes.fit(Batches(frame, "y", weight="w", size=150)), X[:50])
    for one, other in zip(plain, scaled, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


def test_intervals_hold_what_they_say_under_equal_weights() -> None:
    X, y = make_friedman1(500, n_features=5, noise=1.0, random_state=1)
    model = EvidenceKernelRegressor(**QUICK).fit(X[:100], y[:100], np.full(100, 0.01))
    low, high = model.predict_interval(X[100:])
    assert 0.85 < np.mean((low <= y[100:]) & (y[100:] <= high)) < 0.96
    deviation = model.predict(X[100:], return_std=True)[1]
    assert 0.9 < np.sqrt(np.mean(((y[100:] - model.predict(X[100:])) / deviation) ** 2)) < 1.3
