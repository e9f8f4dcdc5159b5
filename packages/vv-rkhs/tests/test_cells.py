"""Gaps in y, a weight for each cell, and names of outputs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from kernelweave.kernels_core import RBF
from kernelweave.vv_rkhs import MatrixValuedKernelRegressor
from kernelweave.vv_rkhs.cells import CellLeaveOneOut, solve_cells
from numpy.typing import NDArray
from sklearn.kernel_ridge import KernelRidge

Array = NDArray[np.float64]
KERNELS = [RBF(gamma=1.0).on([0]), RBF(gamma=1.0).on([1]), RBF(gamma=0.3)]


@pytest.fixture(scope="module")
def data() -> tuple[Array, Array, Array]:
    """Points, three targets, and weights per cell, some missing."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 2))
    wave = np.sin(2 * X[:, 0])
    Y = np.column_stack([wave, -wave + 0.2 * X[:, 1], X[:, 1] ** 2])
    Y += 0.1 * rng.standard_normal(Y.shape)
    weight = rng.uniform(0.3, 3.0, Y.shape)
    weight[rng.random(Y.shape) < 0.3] = 0.0
    weight[:, 2] = weight[:, 0]
    return X, Y, weight


@pytest.mark.parametrize("diagonal", [True, False])
def test_the_solution_is_that_of_the_whole_system(
    data: tuple[Array, Array, Array], diagonal: bool
) -> None:
    X, Y, weight = data
    K = RBF(gamma=1.0)(X, X)
    L = 0.7 * np.eye(3) if diagonal else np.array([[1.0, -0.6, 0.1], [-0.6, 1.0, 0.0], [0.1, 0, 2]])
    root, ridge = np.sqrt(weight), 0.05
    known = np.flatnonzero(weight)
    found = solve_cells(K, L, Y * (weight > 0), ridge, root, tol=1e-10)
    system = np.kron(K, L)[np.ix_(known, known)] + np.diag(ridge / weight.ravel()[known])
    expected = np.zeros(Y.size)
    expected[known] = np.linalg.solve(system, Y.ravel()[known])
    np.testing.assert_allclose(found.C.ravel(), expected, rtol=1e-7, atol=1e-8)
    assert found.converged
    again = solve_cells(K, L, Y * (weight > 0), ridge, root, C0=found.C, tol=1e-8)
    assert again.n_iter == 0


def test_left_out_cells_are_those_of_fits_without_them(data: tuple[Array, Array, Array]) -> None:
    X, Y, weight = data
    K, root = RBF(gamma=1.0)(X, X), np.sqrt(weight)
    found = CellLeaveOneOut(K, root).errors(Y * root, 0.2)
    for i, j in [(0, 0), (7, 1), (12, 2)]:
        rows = np.flatnonzero(weight[:, j])
        rest = rows[rows != i]
        A = K[np.ix_(rest, rest)] + np.diag(0.2 / weight[rest, j])
        missed = Y[i, j] - K[i, rest] @ np.linalg.solve(A, Y[rest, j])
        assert found[i, j] == pytest.approx(root[i, j] * missed)
    assert (found[weight == 0.0] == 0.0).all()


def fitted(X: Array, Y: Any, weight: Any = None, **params: Any) -> MatrixValuedKernelRegressor:
    settings = {"lam": 1e-2, "tol": 1e-7, "missing": "skip", **params}
    return MatrixValuedKernelRegressor(KERNELS, **settings).fit(X, Y, weight)


def test_outputs_with_gaps_are_ridge_problems_of_their_own(
    data: tuple[Array, Array, Array],
) -> None:
    X, Y, weight = data
    holes = np.where(weight > 0, Y, np.nan)
    model = fitted(X, holes, learn_input=False)
    alpha = 1e-2 * (weight > 0).sum() / 3
    for j in range(3):
        rows = weight[:, j] > 0
        alone = KernelRidge(alpha=alpha, kernel=model.kernel_).fit(X[rows], Y[rows, j])
        np.testing.assert_allclose(model.predict(X)[:, j], alone.predict(X), atol=1e-8)
    assert model.dual_gap_ <= 1e-7 * model.result_.upper_bound
    assert model.score(X, holes) > 0.8


@pytest.mark.parametrize(("learn_input", "learn_output"), [(True, False), (False, True)])
def test_a_weight_of_two_is_the_cell_twice_and_bounds_hold(
    data: tuple[Array, Array, Array], learn_input: bool, learn_output: bool
) -> None:
    X, Y, weight = data
    learned = {"learn_input": learn_input, "learn_output": learn_output}
    once = np.where(weight > 0, 1.0, 0.0)
    once[3:6, 1] = 1.0
    twice = once.copy()
    twice[3:6, 1] = 2.0
    model = fitted(X, Y, twice, **learned)
    more = np.where(np.eye(3)[[1]] == 1.0, once[3:6], 0.0)
    longer = fitted(
        np.vstack([X, X[3:6]]), np.vstack([Y, Y[3:6]]), np.vstack([once, more]), **learned
    )
    np.testing.assert_allclose(model.predict(X), longer.predict(X), atol=2e-3)
    # both prove their optimum, which is the same
    for a, b in itertools.permutations([model.result_, longer.result_]):
        assert a.lower_bound <= b.upper_bound
    assert model.result_.gap <= 1e-6


def test_whole_rows_weigh_as_they_always_did(data: tuple[Array, Array, Array]) -> None:
    X, Y, _ = data
    rows = np.where(np.arange(40) < 30, 1.0, 2.0)
    plain = fitted(X, Y, rows, missing="raise")
    np.testing.assert_array_equal(
        fitted(X, Y, np.tile(rows[:, None], 3)).dual_coef_, plain.dual_coef_
    )
    almost = np.tile(rows[:, None], 3)
    almost[0, 0] *= 1.0 + 1e-9
    np.testing.assert_allclose(fitted(X, Y, almost).predict(X), plain.predict(X), atol=1e-3)


def test_lam_is_chosen_with_gaps(data: tuple[Array, Array, Array]) -> None:
    X, Y, weight = data
    holes = np.where(weight > 0, Y, np.nan)
    model = fitted(X, holes, lam="loo", tol=1e-4)
    assert model.selection_ is not None
    clean = fitted(X, Y, lam="loo", tol=1e-4, missing="raise")
    assert model.score(X, Y) > 0.9 * clean.score(X, Y)
    same = np.where(np.tile(weight[:, :1], 3) > 0, Y, np.nan)
    kept = weight[:, 0] > 0
    rest = fitted(X[kept], Y[kept], lam="loo", tol=1e-4)
    np.testing.assert_allclose(fitted(X, same, lam="loo", tol=1e-4).predict(X), rest.predict(X))


def test_what_is_no_gap_is_refused(data: tuple[Array, Array, Array]) -> None:
    X, Y, weight = data
    holes = np.where(weight > 0, Y, np.nan)
    with pytest.raises(ValueError, match="NaN"):
        fitted(X, holes, missing="raise")
    with pytest.raises(ValueError, match="missing must be one of"):
        fitted(X, holes, missing="fill")
    with pytest.raises(ValueError, match="output 1 of y has no value"):
        fitted(X, np.where(np.arange(3) == 1, np.nan, Y))
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(40,\) or \(40, 3\)"):
        fitted(X, Y, weight[:, :2])
    with pytest.raises(ValueError, match="algorithm must be 'vv-spg' if y has missing values"):
        fitted(X, holes, algorithm="vv-block-descent")


def test_predictions_have_the_names_of_the_outputs(data: tuple[Array, Array, Array]) -> None:
    X, Y, _ = data
    rows = pd.DataFrame(X, columns=["u", "v"], index=pd.Index(range(100, 140)))
    model = MatrixValuedKernelRegressor(lam=1e-2).fit(rows, pd.DataFrame(Y, columns=list("abc")))
    found = model.predict(rows[:4])
    assert list(found) == list("abc") == model.output_names_
    assert found.index.tolist() == [100, 101, 102, 103]
    assert model.score(rows, pd.DataFrame(Y, columns=list("abc"))) > 0.5
    other = MatrixValuedKernelRegressor(lam=1e-2).fit(X, pl.DataFrame(Y, schema=list("abc")))
    assert isinstance(other.predict(X[:4]), pl.DataFrame)
    plain = MatrixValuedKernelRegressor(lam=1e-2).fit(X, Y)
    np.testing.assert_allclose(plain.predict(X[:4]), found)
