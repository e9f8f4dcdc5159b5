"""Columns of an inverse, asked for in any order, against NumPy's."""

import numpy as np
import pytest
from kernelweave.evidence.inverse import Inverse

# fewer rows than are copied at a time, and more
SIZES = [7, 300, 530]


@pytest.mark.parametrize("n", SIZES)
def test_any_columns_are_those_of_numpy(n: int) -> None:
    state = np.random.RandomState(n)
    X = state.normal(size=(n, 4))
    S = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=-1)) + 0.3 * np.eye(n)
    whole, inverse = np.linalg.inv(S), Inverse(np.linalg.cholesky(S))
    few, others = state.permutation(n)[: n // 5 + 1], state.permutation(n)[: n // 6 + 1]
    for rows in (few, others, np.sort(few)[::-1], np.arange(n), others, state.permutation(n)):
        np.testing.assert_allclose(inverse.columns(rows), whole[:, rows], rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(inverse.diagonal(rows), whole[rows, rows], rtol=1e-9)
        square = inverse.square(rows)
        np.testing.assert_allclose(square, whole[np.ix_(rows, rows)], rtol=1e-9, atol=1e-10)
        # a copy, which whoever asked may write to
        square[:] = np.nan
