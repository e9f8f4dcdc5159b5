"""What every estimator of a list of kernels says of bad data and bad kernels, and takes as kernels.

The messages name the argument, the value and what would be right.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.baselines import (
    AverageMKLClassifier,
    CKAClassifier,
    ElasticNetMKLClassifier,
    SimpleMKLClassifier,
    SimpleMKLRegressor,
)
from kernelweave.evidence import EvidenceMKLClassifier, EvidenceMKLRegressor
from kernelweave.kernels_core import RBF, KernelDictionary, Linear, PrecomputedGrams
from kernelweave.mkl_sparse import SparseMKLClassifier, SparseMKLRegressor
from kernelweave.ridge_mkl import GeneralizedMKLClassifier, RidgeMKLRegressor
from kernelweave.spectahedron import TessellatedKernelClassifier, TessellatedKernelRegressor
from kernelweave.vv_rkhs import MatrixValuedKernelClassifier, MatrixValuedKernelRegressor
from sklearn.base import clone, is_classifier
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

WEIGHTED = (
    AverageMKLClassifier,
    CKAClassifier,
    ElasticNetMKLClassifier,
    SimpleMKLClassifier,
    SimpleMKLRegressor,
    EvidenceMKLClassifier,
    EvidenceMKLRegressor,
    SparseMKLClassifier,
    SparseMKLRegressor,
    GeneralizedMKLClassifier,
    RidgeMKLRegressor,
)
OF_LISTS = (*WEIGHTED, MatrixValuedKernelClassifier, MatrixValuedKernelRegressor)
ALL = (*OF_LISTS, TessellatedKernelClassifier, TessellatedKernelRegressor)

N = 24
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(RNG.normal(size=(N, 3)), columns=["age", "dose", "weight"])
TARGET = TABLE["age"].to_numpy() + 0.1 * RNG.normal(size=N)
GRAMS = np.stack([rbf_kernel(TABLE, gamma=g) for g in (0.1, 1.0)])
GAP = TABLE.copy()
GAP.loc[3, "dose"] = np.nan
WORDS = TABLE.assign(colour=["red", "blue"] * (N // 2))


def target(kind: type[Any]) -> Any:
    return np.where(np.median(TARGET) < TARGET, "yes", "no") if is_classifier(kind()) else TARGET


def refused(words: str) -> Any:
    return pytest.raises(ValueError, match=re.escape(words))


@pytest.mark.parametrize("kind", ALL)
def test_cells_that_are_no_numbers_are_named(kind: type[Any]) -> None:
    y = target(kind)
    with refused("X contains NaN in column 'dose', row 3"):
        kind().fit(GAP, y)
    with refused("X: could not convert 'red' in column 'colour', row 0 and 23 more rows to a num"):
        kind().fit(WORDS, y)
    with refused("X has a date, '2024-01-01"):
        kind().fit(TABLE.assign(day=pd.date_range("2024", periods=N)), y)
    with refused("Complex data not supported: X has "):
        kind().fit(TABLE.to_numpy() + 1j, y)
    gap: Any = pd.Series(y).astype(object)
    gap[5] = None
    with refused("y contains NaN (None) in row 5"):
        kind().fit(TABLE, gap)
    with refused("sample_weight contains NaN in row 2"):
        kind().fit(TABLE, y, sample_weight=np.where(np.arange(N) == 2, np.nan, 1.0))
    if is_classifier(kind()):
        with refused("y holds labels of types int and str, which have no order"):
            kind().fit(TABLE, np.array(["a", 1] * (N // 2), dtype=object))
    else:
        with refused("y: could not convert 'a' in row 0 to a number: for classes take a class"):
            kind().fit(TABLE, np.array(["a", "b"] * (N // 2), dtype=object))


@pytest.mark.parametrize("kind", WEIGHTED)
def test_cells_of_views_are_named_with_their_view(kind: type[Any]) -> None:
    y, views = target(kind), {"patient": ["age", "weight"], "drug": ["dose"]}
    kernels = KernelDictionary([RBF(1.0)], columns=views)
    with refused("view drug contains NaN in column 'dose', row 3: give the view a transformer, su"):
        kind(kernels=kernels).fit(GAP, y)
    model = kind(kernels=kernels).fit(TABLE, y)
    with refused("view drug contains NaN in column 'dose', row 3"):
        model.predict(GAP)
    with refused("view drug: could not convert 'none' in column 'dose', row 0 to a number: give t"):
        model.predict(TABLE.assign(dose="none"))
    views = {"all": (StandardScaler(), ["age", "colour"])}
    with refused("view all cannot be made of X: could not convert string to float: 'red'"):
        kind(kernels=KernelDictionary([RBF(1.0)], columns=views)).fit(WORDS, y)


@pytest.mark.parametrize("kind", OF_LISTS)
def test_kernels_in_a_list_are_searched_by_position(kind: type[Any]) -> None:
    y, model = target(kind), kind(kernels=[RBF(1.0), Linear()])
    grid = {"kernels__0__gamma": [0.01, 1.0, 100.0]}
    found = GridSearchCV(model, grid, cv=2, error_score="raise").fit(TABLE, y)
    other = GridSearchCV(
        kind(kernels=KernelDictionary([RBF(1.0), Linear()])),
        {"kernels__kernels__0__gamma": [0.01, 1.0, 100.0]},
        cv=2,
    )
    # a dictionary has a normalisation of its own
    other.estimator.set_params(kernels__normalize=model.normalize)
    other.fit(TABLE, y)
    scores = found.cv_results_["mean_test_score"]
    assert scores == pytest.approx(other.cv_results_["mean_test_score"], abs=1e-12)
    assert np.ptp(scores) > 0.0
    assert model.kernels == [RBF(1.0), Linear()]
    inside = make_pipeline(StandardScaler(), clone(model))
    place = f"{kind.__name__.lower()}__kernels__1"
    assert inside.set_params(**{place: RBF(3.0)})[-1].kernels == [RBF(1.0), RBF(3.0)]
    with refused("kernels has kernels__0, kernels__1"):
        clone(model).set_params(kernels__2__gamma=1.0)
    with refused("RBF has no parameter 'gama': its parameters are gamma"):
        clone(model).set_params(kernels__0__gama=1.0)
    with refused("give kernels a list of kernels such as [RBF(gamma=1.0)] first"):
        kind(kernels=None).set_params(kernels__0__gamma=1.0)
    with refused("'rbf' is a name: give a kernel such as RBF(gamma=1.0) instead"):
        kind(kernels=["rbf"]).set_params(kernels__0__gamma=1.0)


@pytest.mark.parametrize("kind", OF_LISTS)
def test_functions_are_kernels(kind: type[Any]) -> None:
    y = target(kind)
    ours = kind(kernels=[RBF(1.0 / 3.0), Linear()]).fit(TABLE.to_numpy(), y)
    theirs = kind(kernels=[rbf_kernel, lambda X, Z: X @ Z.T]).fit(TABLE.to_numpy(), y)
    # the same matrices up to rounding: within what the tolerances of the searches leave
    assert theirs.weights_ == pytest.approx(ours.weights_, abs=2e-3)
    new = RNG.normal(size=(5, 3))
    values = [
        m.decision_function(new) if is_classifier(kind()) else m.predict(new)
        for m in (ours, theirs)
    ]
    assert values[1] == pytest.approx(values[0], abs=2e-3)
    with refused("or of functions k(X, Z), got rbf_kernel: write [rbf_kernel]"):
        kind(kernels=rbf_kernel).fit(TABLE, y)


@pytest.mark.parametrize("kind", OF_LISTS)
def test_gram_matrices_in_another_shape_are_refused_with_the_right_one(kind: type[Any]) -> None:
    y, model, gap = target(kind), kind(kernels="precomputed"), GRAMS.copy()
    gap[1, 2, 3] = np.nan
    for X, words in (
        (GRAMS[0], "for one kernel give X[None]"),
        (TABLE, "for points give a list of kernels instead"),
        (np.moveaxis(GRAMS, 0, 2), "give np.moveaxis(X, 2, 0)"),
        ([GRAMS[0], GRAMS[1][:5, :5]], "shapes (24, 24), (5, 5)"),
        (gap, "X[1] contains NaN in row 2, column 3"),
    ):
        with refused(words):
            model.fit(X, y)
    with refused("for points give a list of kernels instead"):
        model.fit(GRAMS, y).predict(TABLE)
    # scikit-learn sees an array before the estimator does; as PrecomputedGrams it can slice it
    with refused("inconsistent numbers of samples: [2, 24]"):
        cross_val_score(model, GRAMS, y, cv=2)
    scores = cross_val_score(model, PrecomputedGrams(GRAMS), y, cv=2, error_score="raise")
    with refused("give np.moveaxis(X, 2, 0)"):
        cross_val_score(model, np.moveaxis(GRAMS, 0, 2), y, cv=2, error_score="raise")
    assert np.isfinite(scores).all()
