"""The cell that an error about data names, for every kind of table and of value."""

from __future__ import annotations

import datetime
import re

import numpy as np
import pandas as pd
import pytest
from kernelweave.kernels_core import as_grams
from kernelweave.kernels_core.estimators.cells import cells_named, fault_of_table, first_fault
from scipy.sparse import csr_array
from sklearn.utils import check_array

SOUND = np.arange(12.0).reshape(4, 3)


def with_cell(value, column=1, row=2):
    X = SOUND.astype(object)
    X[row, column] = value
    return X


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("high", "could not convert 'high' in column 1, row 2 to a number"),
        (b"high", "could not convert b'high' in column 1, row 2"),
        (np.nan, "X contains NaN in column 1, row 2"),
        (None, "X contains NaN (None) in column 1, row 2"),
        (pd.NA, "X contains NaN (<NA>) in column 1, row 2"),
        (pd.NaT, "X contains NaN (NaT) in column 1, row 2"),
        (-np.inf, "X contains infinity"),
        (10**400, "infinity or a number above 1.8e308 in column 1, row 2"),
        (1 + 2j, "Complex data not supported: X has (1+2j) in column 1, row 2"),
        (datetime.date(2024, 2, 3), "X has a date, '2024-02-03' in column 1, row 2"),
        (np.datetime64("2024-02-03"), "X has a date, '2024-02-03' in column 1, row 2"),
    ],
)
def test_first_cell_that_is_no_number_is_named(value, words):
    assert words in fault_of_table(with_cell(value))
    frame = pd.DataFrame(with_cell(value), columns=["a", "b", "c"])
    assert words.replace("column 1", "column 'b'") in fault_of_table(frame)


def test_every_kind_of_table_is_looked_at():
    gap = SOUND.copy()
    gap[[1, 3], 2] = np.nan
    for X in (gap, gap.tolist(), gap.astype(np.float32), csr_array(gap), csr_array(gap).tocoo()):
        column, row, value, others = first_fault(X)
        assert (column, row, others) == (2, 1, " and 1 more row")
        assert np.isnan(value)
    twice = pd.DataFrame(gap, columns=["a", "a", "b"]).astype({"b": "Float64"})
    assert first_fault(twice)[:2] == ("b", 1)
    polars = pytest.importorskip("polars")
    assert first_fault(polars.DataFrame(gap, schema=["a", "b", "c"]))[:2] == ("c", 1)


def test_numbers_of_any_kind_are_sound():
    mixed = pd.DataFrame({"i": [1, 2], "b": [True, False], "s": ["1.5", "2"], "o": [np.int8(1), 2]})
    for X in (SOUND, SOUND.astype(int), with_cell("3.5"), mixed, csr_array(SOUND), 5, None, "text"):
        assert first_fault(X) is None
    # objects that no message here explains are left to scikit-learn
    assert first_fault(with_cell({"a": 1})) is None


def test_an_error_without_a_wrong_cell_stays_as_it_is():
    with pytest.raises(ValueError, match="Expected 2D array"), cells_named(SOUND[0]):
        check_array(SOUND[0])
    with pytest.raises(TypeError, match="another"), cells_named(SOUND, [1.0, 2.0]):
        raise TypeError("another")
    # what is allowed in y is not blamed for another fault
    for y, allowed in ((["a", "b"], "text"), ([1.0, np.nan], "NaN")):
        with pytest.raises(ValueError, match="another"), cells_named(y=y, allowed=allowed):
            raise ValueError("another")
        with pytest.raises(ValueError, match=r"^y.* in row [01]"), cells_named(y=y):
            raise ValueError("another")
    with cells_named(with_cell("high")):
        pass


@pytest.mark.parametrize(
    ("grams", "words"),
    [
        (np.eye(4), "shape (4, 4): kernels='precomputed' takes Gram matrices of shape (n_kernels"),
        (np.eye(4), "for one kernel give X[None]"),
        (np.ones((4, 3)), "shape (4, 3)"),
        (np.ones((4, 3)), "for points give a list of kernels"),
        (np.ones((4, 4, 2)), "give np.moveaxis(X, 2, 0)"),
        ([np.eye(4), np.eye(3)], "shapes (4, 4), (3, 3)"),
        (csr_array(np.eye(4)), "X is sparse"),
        (np.stack([np.eye(4), np.full((4, 4), np.inf)]), "X[1] contains infinity"),
        (np.stack([np.eye(4), np.diag([1, 1, np.nan, 1])]), "X[1] contains NaN in row 2, column 2"),
    ],
)
def test_what_is_wrong_with_gram_matrices_is_named(grams, words):
    with pytest.raises(ValueError, match=re.escape(words)), cells_named(grams=grams):
        as_grams(grams, square=True)
