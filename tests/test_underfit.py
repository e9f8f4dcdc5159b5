"""A fit that has learned next to nothing says so, and one that was never judged does not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.baselines import AverageMKLClassifier, SimpleMKLRegressor
from kernelweave.evidence import EvidenceKernelClassifier, EvidenceKernelRegressor
from kernelweave.kernels_core import PrecomputedGrams, UnderfitWarning
from kernelweave.mkl_sparse import SparseMKLRegressor
from kernelweave.ridge_mkl import RidgeMKLClassifier, RidgeMKLRegressor
from kernelweave.spectahedron import TessellatedKernelRegressor, TessellatedKernelRegressorCV
from kernelweave.vv_rkhs import MatrixValuedKernelClassifier, MatrixValuedKernelRegressor
from scipy.sparse import coo_array

NUMBERS = "R² is .* on the rows that were learned from: either the columns say next to nothing"


def noise(n: int = 60) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2)), rng.normal(size=n)


def rings() -> tuple[Any, Any]:
    """Return classes that no plane tells apart, one of them with two rows."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, 0)
    y[:3], y[-2:] = 0, 2
    return X, y


def said(model: Any, X: Any, y: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        model.fit(X, y)
    return [str(each.message) for each in given if issubclass(each.category, UnderfitWarning)]


@pytest.mark.parametrize(
    "model",
    [
        SparseMKLRegressor(C=1e-4),
        SimpleMKLRegressor(C=1e-4),
        RidgeMKLRegressor(lam=1e6),
        TessellatedKernelRegressor(C=1e-5),
        TessellatedKernelRegressorCV(C=(1e-5, 1e-4), cv=2),
        MatrixValuedKernelRegressor(),
    ],
)
def test_numbers_that_are_not_explained(model: Any) -> None:
    X, y = noise()
    with pytest.warns(UnderfitWarning, match=NUMBERS) as given:
        model.fit(X, y)
    # folds of a search say nothing, and neither do scores of what was not learned
    assert len([each for each in given if issubclass(each.category, UnderfitWarning)]) == 1


@pytest.mark.parametrize(
    "model",
    [
        AverageMKLClassifier(kernels=["linear"]),
        AverageMKLClassifier(kernels=["linear"], multiclass="ovr"),
        RidgeMKLClassifier(kernels=["linear"], lam=10.0),
        MatrixValuedKernelClassifier(kernels=["linear"], lam=0.1, learn_output=False),
    ],
)
def test_classes_that_are_guessed_worse_than_by_none_of_the_columns(model: Any) -> None:
    messages = said(model, *rings())
    assert len(messages) == 1
    assert messages[0].startswith("accuracy is 0.4")


def test_labels_of_probabilities_are_no_worse_than_a_guess() -> None:
    """And the fits that hold rows out for them say nothing of their own."""
    X, y = rings()
    model = RidgeMKLClassifier(kernels=["linear"], lam=10.0, probability=True)
    assert said(model, X, y) == []
    assert model.score(X, y) >= np.bincount(y).max() / len(y)


def test_weights_of_classes_count() -> None:
    """A rare class that is brought up costs accuracy, and that is no fault."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)), (np.arange(80) < 8).astype(int)
    X[:8] += 0.7
    model = RidgeMKLClassifier(kernels=["linear"], class_weight="balanced")
    assert said(model, X, y) == []
    assert model.score(X, y) < 0.9


def test_rows_held_out_judge_where_there_are_some() -> None:
    X, y = noise()
    with pytest.warns(UnderfitWarning, match="R² is -.* on rows held out: either the columns say"):
        model = EvidenceKernelRegressor().fit(X, y)
    assert model.held_out_score_ < 0
    labels = np.random.default_rng(12)
    X, y = labels.normal(size=(40, 2)), labels.integers(0, 2, 40)
    with pytest.warns(UnderfitWarning, match="accuracy is 0.4.*, less than the 0.500 .* held out"):
        EvidenceKernelClassifier(precisions=(50.0,), max_iter=10).fit(X, y)


@pytest.mark.parametrize("form", [coo_array, pd.DataFrame, PrecomputedGrams, list])
def test_whatever_holds_the_rows(form: Any) -> None:
    X, y = noise()
    given = PrecomputedGrams([X @ X.T]) if form is PrecomputedGrams else form(X)
    kernels = "precomputed" if form is PrecomputedGrams else ["linear"]
    with pytest.warns(UnderfitWarning, match=NUMBERS):
        RidgeMKLRegressor(kernels, lam=1e4).fit(given, y)


def test_what_does_not_vary_cannot_be_explained() -> None:
    X, _ = noise()
    assert said(RidgeMKLRegressor(), X, np.full(60, 3.0)) == []
    several = np.column_stack([X[:, 0], np.random.default_rng(1).normal(size=60)])
    assert said(RidgeMKLRegressor(), X, several) == []
