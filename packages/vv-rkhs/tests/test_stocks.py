"""The paper's Table 1 on weekly log-returns of nine stocks: mean squared error × 1000."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from kernelweave.kernels_core import RBF
from kernelweave.kernels_core.grams import PrecomputedGrams
from kernelweave.vv_rkhs import MatrixValuedKernelRegressor
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold

OLS = [0.98, 0.39, 1.68, 2.15, 0.58, 0.98, 0.65, 0.62, 1.93]
LASSO = [0.42, 0.31, 0.71, 0.77, 0.45, 0.79, 0.66, 0.49, 1.88]


@pytest.fixture(scope="module")
def returns(shared: Path) -> np.ndarray:
    return np.genfromtxt(shared / "data" / "stock04.csv", delimiter=",", skip_header=1)


def errors(returns: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    return 1000.0 * ((predicted - returns[26:]) ** 2).mean(axis=0)


def test_least_squares_column(returns: np.ndarray) -> None:
    model = LinearRegression().fit(returns[:25], returns[1:26])
    found = errors(returns, model.predict(returns[25:-1]))
    np.testing.assert_array_equal(found.round(2), OLS)
    assert round(found.mean(), 2) == 1.11


def test_lasso_column_is_the_training_mean(returns: np.ndarray) -> None:
    model = DummyRegressor().fit(returns[:25], returns[1:26])
    found = errors(returns, model.predict(returns[25:-1]))
    np.testing.assert_array_equal(found.round(2), LASSO)
    assert round(found.mean(), 2) == 0.72


LEARNED = {"IKL": (True, False), "OKL": (False, True), "IOKL": (True, True)}


def gaussians(X: np.ndarray, *, level: bool) -> np.ndarray:
    """Return 117 Gram matrices; ``level`` centres them on the training half, to equal traces."""
    spread = X[:25].std(axis=0)
    grams = np.stack(
        [
            RBF(gamma=2.0**power / (2.0 * spread[c] ** 2)).on([c])(X)
            for c in range(9)
            for power in range(-9, 4)
        ]
    )
    if level:
        means = grams[:, :, :25].mean(axis=2, keepdims=True)
        grams += grams[:, :25, :25].mean(axis=(1, 2))[:, None, None] - means
        grams -= means.transpose(0, 2, 1)
        train = grams[:, :25, :25]
        train[...] = 0.5 * (train + train.transpose(0, 2, 1))  # rounding, of wide kernels' ones
        grams /= np.trace(train, axis1=1, axis2=2)[:, None, None] / 25
    return grams


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "scaled", "level", "average"),
    [
        ("IKL", False, False, 0.714),
        ("OKL", False, False, 0.717),
        ("IOKL", False, False, 0.695),
        ("IKL", True, False, 0.693),
        ("OKL", True, False, 0.694),
        ("IOKL", False, True, 0.675),
    ],
)
def test_protocols_come_to_what_the_benchmarks_page_prints(
    returns: np.ndarray, method: str, scaled: bool, level: bool, average: float
) -> None:
    grams = gaussians(returns[:-1], level=level)
    targets = returns[1:26]
    scale = targets.std(axis=0) if scaled else np.ones(9)
    learn_input, learn_output = LEARNED[method]
    model = MatrixValuedKernelRegressor(
        "precomputed",
        learn_input=learn_input,
        learn_output=learn_output,
        center=True,
        tol=1e-3,
        max_iter=300,
    )
    search = GridSearchCV(
        model, {"lam": np.logspace(-4, 1, 16)}, cv=KFold(10), scoring="neg_mean_squared_error"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(PrecomputedGrams(np.ascontiguousarray(grams[:, :25, :25])), targets / scale)
    found = errors(returns, scale * search.predict(grams[:, 25:, :25])).mean()
    assert found == pytest.approx(average, abs=1.5e-3)
