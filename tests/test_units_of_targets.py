"""Prices and fractions: a regressor learns the same from y and from a million times y."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernelweave.baselines import (
    ElasticNetMKLRegressor,
    KernelQuantileRegressor,
    SimpleMKLRegressor,
)
from kernelweave.mkl_sparse import SparseMKLRegressor
from kernelweave.relaxations import certify
from kernelweave.ridge_mkl import RidgeMKLRegressor
from kernelweave.spectahedron import TessellatedKernelRegressor
from kernelweave.vv_rkhs import MatrixValuedKernelRegressor
from sklearn.datasets import make_friedman1
from sklearn.svm import SVR


def friedman() -> tuple[Any, Any, Any, Any]:
    X, y = make_friedman1(140, n_features=5, noise=1.0, random_state=0)
    return X[:90], y[:90], X[90:], y[90:]


@pytest.mark.parametrize(
    "model",
    [
        SparseMKLRegressor(),
        SparseMKLRegressor(k0=1, C="cv", cv=3),
        SparseMKLRegressor(approximation="nystroem", n_components=60, tol=1e-2, random_state=0),
        SimpleMKLRegressor(),
        ElasticNetMKLRegressor(),
        KernelQuantileRegressor(),
        RidgeMKLRegressor(),
        MatrixValuedKernelRegressor(),
        TessellatedKernelRegressor(tol=1e-2),
    ],
)
def test_the_unit_of_a_target_means_nothing(model: Any) -> None:
    X, y, X_new, y_new = friedman()
    scores = [model.fit(X, s * y).score(X_new, s * y_new) for s in (1e-3, 1.0, 1e6)]
    assert min(scores) > 0.7
    np.testing.assert_allclose(scores, scores[0], atol=2e-3)


@pytest.mark.parametrize("kind", [SparseMKLRegressor, SimpleMKLRegressor, ElasticNetMKLRegressor])
def test_absolute_units_are_those_of_a_support_vector_machine(kind: Any) -> None:
    X, y, X_new, _ = friedman()
    spread = float(y.std())
    scaled = kind(C=2.0, epsilon=0.1, tol=1e-7).fit(X, y)
    same = SVR(kernel=scaled.kernel_, C=2.0 * spread, epsilon=0.1 * spread, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(scaled.predict(X_new), same.predict(X_new), atol=1e-3)
    absolute = kind(C=2.0, epsilon=0.1, units="absolute", tol=1e-7).fit(X, y)
    plain = SVR(kernel=absolute.kernel_, C=2.0, epsilon=0.1, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(absolute.predict(X_new), plain.predict(X_new), atol=1e-3)


def test_certificates_and_paths_are_of_the_scaled_problem() -> None:
    X, y, _, _ = friedman()
    model = SparseMKLRegressor(k0=1).fit(X, 1e6 * y)
    proved = certify(model)
    assert proved.lower_bound <= model.result_.value <= proved.upper_bound * (1 + 1e-9)
    chosen = SparseMKLRegressor(k0=[1, 2], cv=3)
    paths = [chosen.fit(X, s * y).cv_results_["mean_test_score"] for s in (1.0, 1e6)]
    np.testing.assert_allclose(paths[0], paths[1], atol=1e-3)


def test_a_row_of_weight_zero_has_no_part_in_the_unit() -> None:
    X, y, X_new, _ = friedman()
    odd = np.where(np.arange(90) < 60, y, 1e9)
    weight = (np.arange(90) < 60).astype(float)
    given = SimpleMKLRegressor().fit(X, odd, weight).predict(X_new)
    np.testing.assert_allclose(given, SimpleMKLRegressor().fit(X[:60], y[:60]).predict(X_new))
