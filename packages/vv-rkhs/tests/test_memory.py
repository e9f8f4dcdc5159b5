"""Gram matrices that are never stored: Gaussian grids, budgets."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
from kernelweave.kernels_core import RBF, Problem, config_context, solve
from kernelweave.kernels_core.exceptions import MemoryBudgetError
from kernelweave.vv_rkhs import (
    GaussianGrid,
    MatrixValuedKernelRegressor,
    PrecomputedFamily,
    SeparableKernels,
    VectorLeastSquares,
)
from kernelweave.vv_rkhs.objective import work_bytes


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    Y = np.column_stack([np.sin(2 * X[:, 0]), np.cos(X[:, 2]), X[:, 0] * 0.1])
    return X, Y + 0.1 * rng.standard_normal(Y.shape)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_grid_equals_the_stack(
    data: tuple[np.ndarray, np.ndarray], weighted: bool, n_threads: int
) -> None:
    X = data[0]
    fitted = GaussianGrid(0.05, 7).fit_grams(X)
    root = np.sqrt(np.random.default_rng(1).uniform(0.5, 2, len(X))) if weighted else None
    stack = PrecomputedFamily(np.stack([kernel(X) for kernel in fitted.kernels])).weighted(root)
    weights = np.random.default_rng(2).uniform(0, 1, 21) * (np.arange(21) % 3 > 0)
    weights[7:14] = 0.0
    C = np.random.default_rng(3).standard_normal((600, 2))
    L = np.array([[2.0, 0.5], [0.5, 1.0]])
    with config_context(n_threads=n_threads):
        grid = fitted.weighted(root)
        K, w = grid.combine(weights), grid.inner(C, L)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(K, stack.combine(weights), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(w, stack.inner(C, L), rtol=1e-10, atol=1e-9)
    assert (grid.norms >= stack.norms * (1 - 1e-12)).all()


def test_grid_fit_is_the_fit_of_its_kernels(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, Y = data[0][:80], data[1][:80]
    grid = GaussianGrid(0.1, 4)
    kernels = grid.fit_grams(X).kernels
    ours = MatrixValuedKernelRegressor(grid, learn_output=False, lam=0.01, tol=1e-7).fit(X, Y)
    plain = MatrixValuedKernelRegressor(kernels, learn_output=False, lam=0.01, tol=1e-7).fit(X, Y)
    np.testing.assert_allclose(ours.weights_, plain.weights_, atol=1e-5)
    np.testing.assert_allclose(ours.predict(X[:5]), plain.predict(X[:5]), atol=1e-5)
    assert ours.kernel_names_ == plain.kernel_names_
    assert ours.result_.gap <= 1e-7
    weight = np.arange(80) % 3
    whole = ours.fit(X, Y, sample_weight=weight).predict(X)
    twice = np.repeat(np.arange(80), weight)
    np.testing.assert_allclose(ours.fit(X[twice], Y[twice]).predict(X), whole, atol=1e-5)


def test_single_precision_moves_the_objective_by_little(
    data: tuple[np.ndarray, np.ndarray],
) -> None:
    X, Y = data[0][:200], data[1][:200]
    kernels = [RBF(gamma=0.5).on([c]) for c in range(3)]
    values = [
        MatrixValuedKernelRegressor(kernels, lam=0.01, tol=1e-8, learn_output=False, dtype=dtype)
        .fit(X, Y)
        .result_.value
        for dtype in ("float32", "float64")
    ]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-7)


def test_budgets_are_checked_before_the_work(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, Y = data
    with pytest.raises(MemoryBudgetError, match="600 samples"):
        MatrixValuedKernelRegressor(GaussianGrid(), memory_limit=5e6).fit(X, Y)
    kernels = [RBF(gamma=g).on([c]) for c in range(3) for g in (0.1, 1.0)]
    with pytest.raises(MemoryBudgetError):
        MatrixValuedKernelRegressor(kernels, memory_limit=1.2e7).fit(X, Y)


def test_work_counts_beside_the_stack(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, Y = data
    kernels = [RBF(gamma=g).on([c]) for c in range(3) for g in (0.1, 1.0)]
    model = MatrixValuedKernelRegressor(kernels, memory_limit=2.5e7)  # the stack takes 1.7e7
    with pytest.raises(MemoryBudgetError, match="6 Gram matrices of 600 samples and the work"):
        model.fit(X, Y)


def test_copies_of_precomputed_matrices_count(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, Y = data
    grams = np.stack([RBF(gamma=0.1 * g)(X) for g in range(1, 9)])
    weight = (np.arange(600) > 0).astype(float)
    model = MatrixValuedKernelRegressor("precomputed", memory_limit=2e7, max_iter=1, tol=1.0)
    with pytest.raises(MemoryBudgetError, match="a copy of 8 Gram matrices for 599"):
        model.fit(grams, Y, sample_weight=weight)
    model.fit(grams, Y)  # as they are given they are not copied


@pytest.mark.parametrize(("l", "n"), [(200, 3), (20, 200)])
@pytest.mark.parametrize("algorithm", ["vv-spg", "vv-block-descent"])
def test_work_takes_no_more_than_was_asked_for(l: int, n: int, algorithm: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((l, 2))
    grams = np.stack([RBF(gamma=g)(X) for g in (0.1, 1.0)])
    Y = np.sin(X @ rng.standard_normal((2, n)))
    family, learner = PrecomputedFamily(grams), VectorLeastSquares(0.01)
    case = Problem(family, learner, SeparableKernels(), np.arange(float(l))[:, None], Y.T)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solve(case, algorithm, max_iter=1)  # imports
        tracemalloc.start()
        solve(case, algorithm, max_iter=4, method="eigen")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert 0.3 * work_bytes(l, n) <= peak <= 1.05 * work_bytes(l, n)


@pytest.mark.parametrize(
    ("gamma", "n_widths"),
    [(0.0, 3), (float("inf"), 3), ("wide", 3), (1.0, 0), (1.0, 2.5), (1.0, 2000)],
)
def test_bad_grids_are_refused(gamma: float, n_widths: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        GaussianGrid(gamma, n_widths).fit_grams(np.ones((2, 1)))
