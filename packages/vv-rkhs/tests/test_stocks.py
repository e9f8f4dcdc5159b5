"""The paper's Table 1 on weekly log-returns of nine stocks: mean squared error × 1000."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression

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
