"""Targets, classes and weights: what is taken, and the sentence for what is not."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from kernelweave.evidence.targets import check_classes, check_numbers, check_weight
from kernelweave.evidence.tasks import Classification
from kernelweave.kernels_core import KernelWeaveWarning

N = 12
Y = np.linspace(-1.0, 2.0, N)


@pytest.mark.parametrize(
    "y",
    [
        Y.tolist(),
        Y.astype(object),
        [decimal.Decimal(value) for value in Y],
        Y.astype(str),
        pd.Series(Y),
        pd.Series(Y, dtype="Float64"),
        pl.Series(Y),
        pa.chunked_array([Y]),
    ],
)
def test_numbers_of_every_kind_are_targets(y: Any) -> None:
    values, flat = check_numbers(y, N)
    np.testing.assert_array_equal(values, Y[None, :])
    assert flat


def test_several_outputs() -> None:
    both = np.stack([Y, Y**2], axis=1)
    for y in (both, pd.DataFrame(both), pl.DataFrame(both)):
        values, flat = check_numbers(y, N)
        np.testing.assert_array_equal(values, both.T)
        assert not flat
    assert not check_numbers(Y[:, None], N)[1]


def changed(row: int, value: Any) -> list[Any]:
    return [*Y[:row], value, *Y[row + 1 :]]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        (changed(3, np.nan), r"y is missing \(NaN\) in 1 rows, the first is row 3"),
        (changed(2, None), r"y is missing \(NaN\) in 1 rows, the first is row 2"),
        (changed(4, -np.inf), r"y is infinite \(infinity\) in row 4"),
        (changed(5, 1e90), r"y is 1e\+90, too large, in row 5"),
        (changed(5, "many"), "y must hold numbers, got 'many' in row 5"),
        (changed(5, {"a": 1}), "y must hold numbers, got {'a': 1} in row 5"),
        (np.full(N, 3.0), "y is 3 in every row: there is nothing to learn"),
        (np.stack([Y, np.ones(N)], axis=1), "output 1 of y is 1 in every row"),
        (Y[:-1], "X has 12 rows and y has 11"),
        (np.zeros((N, 2, 2)), "y must have shape"),
        (3.0, "y must have shape"),
        (Y + 1j, "Complex data not supported"),
        (pd.date_range("2020", periods=N), "y must hold numbers, got datetime64"),
    ],
)
def test_bad_targets_get_a_sentence(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_numbers(y, N)


def test_rows_that_do_not_count_make_no_target_vary() -> None:
    y, weight = np.zeros(N), np.ones(N)
    y[0] = 1.0
    check_numbers(y, N, weight)
    weight[0] = 0.0
    with pytest.raises(ValueError, match="is 0 in every row"):
        check_numbers(y, N, weight)


def test_few_rows_are_warned_of() -> None:
    with pytest.warns(KernelWeaveWarning, match="9 rows are too few"):
        check_numbers(Y[:9], 9)
    with pytest.warns(KernelWeaveWarning, match="9 rows are too few"):
        check_classes(["a", *"bbbbaaaa"], 9)


class TestClasses:
    @pytest.mark.parametrize(
        ("y", "labels"),
        [
            (["no", "yes"] * 6, ["no", "yes"]),
            ([True, False] * 6, [False, True]),
            ([3, 1, 2] * 4, [1, 2, 3]),
            (np.array(["b", "a"] * 6, dtype=object), ["a", "b"]),
            (pd.Series(pd.Categorical(["v", "u"] * 6)), ["u", "v"]),
            (pl.Series(["v", "u"] * 6), ["u", "v"]),
        ],
    )
    def test_labels_of_every_kind(self, y: Any, labels: list[Any]) -> None:
        found, codes = check_classes(y, N)
        assert found.tolist() == labels
        assert found[codes].tolist() == list(y)

    def test_targets_are_signs(self) -> None:
        np.testing.assert_array_equal(
            Classification().read([0, 1] * 6, N, None)[1], [[-1.0, 1.0] * 6]
        )
        three = Classification().read([0, 1, 2] * 4, N, None)[1]
        np.testing.assert_array_equal(three[1], [-1.0, 1.0, -1.0] * 4)
        assert three.shape == (3, N)

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            (["a"] * N, "y has one class only, 'a'"),
            ([*"ababababab", None, "b"], r"y is missing \(NaN\) in 1 rows, the first is row 10"),
            ([*[0.0, 1.0] * 5, np.nan, 1.0], r"y is missing \(NaN\)"),
            (Y, "continuous|Unknown label type"),
            (np.array([1, "one"] * 6, dtype=object), "y mixes labels of the types int and str"),
            (["a", "b"], "X has 12 rows and y has 2"),
            (None, "the target y is None"),
        ],
    )
    def test_bad_labels_get_a_sentence(self, y: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            check_classes(y, N)

    def test_a_class_without_weight(self) -> None:
        weight = np.ones(N)
        weight[::3] = 0.0
        with pytest.raises(ValueError, match="class 0 has no row of positive weight"):
            check_classes([0, 1, 2] * 4, N, weight)
        with pytest.raises(ValueError, match="one class only, 1: at least"):
            check_classes([0, 1, 1] * 4, N, weight)


class TestWeights:
    def test_none_and_numbers(self) -> None:
        assert check_weight(None, N) is None
        for weight in (2.0, [2] * N, pd.Series([2.0] * N), pl.Series([2] * N)):
            np.testing.assert_array_equal(check_weight(weight, N), np.full(N, 2.0))

    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            ([0.0] * N, "sample_weight is zero in every row"),
            (changed(7, -3.0), "sample_weight must not be negative"),
            (np.ones(N - 1), "sample_weight must be 1D, one weight a row"),
            (np.ones((N, 2)), "sample_weight must be 1D, one weight a row"),
            (np.full(N, np.nan), "sample_weight is missing"),
            (np.full(N, np.inf), "sample_weight is infinite"),
            (["heavy"] * N, "sample_weight must hold numbers, got 'heavy' in row 0"),
        ],
    )
    def test_bad_weights_get_a_sentence(self, weight: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            check_weight(weight, N)
