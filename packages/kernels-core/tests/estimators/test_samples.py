"""A weight of 2 is the sample twice, a weight of 0 the sample left out, order is nothing."""

from __future__ import annotations

import numpy as np
import pytest
from kernelweave.kernels_core.estimators.samples import merge_samples
from numpy.testing import assert_array_equal


@pytest.fixture
def data():  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(30, 2)).astype(float)
    return X, rng.choice([-1.0, 1.0], size=(1, 30))


def test_weights_equal_repetitions_in_any_order(data) -> None:  # type: ignore[no-untyped-def]
    X, y = data
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 4, size=30).astype(float)
    rows = rng.permutation(np.repeat(np.arange(30), weight.astype(int)))
    a = merge_samples(X, y, weight)
    b = merge_samples(X[rows], y[:, rows], np.ones(len(rows)))
    assert_array_equal(a.X, b.X)
    assert_array_equal(a.targets, b.targets)
    assert_array_equal(a.weight, b.weight)


def test_spreading_returns_each_samples_share(data) -> None:  # type: ignore[no-untyped-def]
    X, y = data
    weight = np.arange(30.0)
    merged = merge_samples(X, y, weight)
    assert merged.weight is not None
    spread = merged.to_original_rows(merged.weight[None, :])
    np.testing.assert_allclose(spread[0], weight)
    assert spread[0, 0] == 0.0


def test_distinct_samples_of_weight_one_need_no_weights() -> None:
    X = np.array([[2.0], [1.0], [-0.0]])
    merged = merge_samples(X, np.array([[1.0, -1.0, 1.0]]), np.ones(3))
    assert merged.weight is None
    assert_array_equal(merged.X.ravel(), [0.0, 1.0, 2.0])
    assert_array_equal(merged.owner, [2, 1, 0])
    assert not np.signbit(merged.X).any()


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, -1.0], "-1.0"),
        ([np.nan, 1.0], "nan"),
        ([0.0, 0.0], "somewhere, got zeros only"),
    ],
)
def test_senseless_weights_are_refused(weight: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        merge_samples(np.zeros((2, 1)), np.zeros((1, 2)), np.array(weight))
