"""Support vector machines over a Gram matrix that is not in memory, against the stored solution."""

from __future__ import annotations

import numpy as np
import pytest
from kernelweave.kernels_core import SolveStatus
from kernelweave.kernels_core.families import TessellatedFamily
from kernelweave.kernels_core.grams import UnstoredKernel
from kernelweave.kernels_core.testing import make_classification, make_regression
from kernelweave.qp_smo import SVC, SVR
from kernelweave.qp_smo.unstored import StoredBlock, choose_block

N = 240


def case(task):
    X, y = (make_classification if task == "classes" else make_regression)(N)
    family = TessellatedFamily(1, lower=np.full(2, -0.5), upper=np.full(2, 1.5))
    A = np.random.default_rng(0).normal(size=(family.n_P, 3))
    prepared = family.prepare(X)
    learner = SVC(C=5.0) if task == "classes" else SVR(C=5.0, epsilon=0.05)
    return learner, prepared.unstored(A @ A.T), prepared.gram(A @ A.T), y


def bytes_of(n_block, dtype="float64"):
    return int(1.5 * np.dtype(dtype).itemsize * n_block**2) + 1


@pytest.mark.parametrize(
    ("task", "n_block"),
    [*(("classes", n) for n in (20, 60, 100, N)), *(("numbers", n) for n in (40, 60, 100, N))],
)
def test_blocks_of_any_size_reach_the_stored_optimum(task, n_block):
    learner, entries, K, y = case(task)
    stored = learner.solve(K, y, tol=1e-8)
    kernel = UnstoredKernel(entries, bytes_of(n_block))
    assert kernel.block_size == n_block
    found = learner.solve(kernel, y, tol=1e-5)
    assert found.status is SolveStatus.CONVERGED
    assert found.upper_bound - found.lower_bound <= 1e-3 * abs(stored.upper_bound)
    # both intervals hold the same number
    assert found.lower_bound <= stored.upper_bound
    assert stored.lower_bound <= found.upper_bound
    np.testing.assert_allclose(found.function_values, found.dual_coef @ K, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("task", ["classes", "numbers"])
def test_float32_blocks_are_centred_and_reach_it_too(task):
    learner, entries, K, y = case(task)
    stored = learner.solve(K, y, tol=1e-8)
    found = learner.solve(
        UnstoredKernel(entries, bytes_of(60, "float32"), dtype="float32"), y, tol=1e-5
    )
    assert found.status is SolveStatus.CONVERGED
    assert found.upper_bound == pytest.approx(stored.upper_bound, rel=1e-3)


def test_a_warm_start_at_the_optimum_needs_no_block():
    learner, entries, _, y = case("numbers")
    kernel = UnstoredKernel(entries, bytes_of(80))
    first = learner.solve(kernel, y, tol=1e-4)
    again = learner.solve(kernel, y, tol=1e-3, dual0=first.dual_coef)
    assert first.n_iter > 0
    assert again.n_iter == 0


def test_a_limit_on_steps_keeps_the_interval():
    learner, entries, K, y = case("numbers")
    short = learner.solve(UnstoredKernel(entries, bytes_of(50)), y, tol=1e-6, max_iter=20)
    assert short.status is SolveStatus.MAX_ITER
    stored = learner.solve(K, y, tol=1e-8)
    assert short.lower_bound <= stored.upper_bound <= short.upper_bound * (1 + 1e-12)


def test_rows_that_stay_in_the_block_are_not_computed_again():
    _, entries, K, _ = case("classes")
    gram = StoredBlock(UnstoredKernel(entries, bytes_of(30)))
    for chosen in (np.arange(30), np.arange(10, 40), np.arange(0, 60, 2)):
        block = gram.move(chosen)
        assert sorted(gram.samples) == sorted(chosen)
        np.testing.assert_allclose(block, K[np.ix_(gram.samples, gram.samples)], rtol=1e-12)
    assert gram.n_rows == 30 + 10 + 15


def test_the_block_holds_the_worst_pair():
    learner, entries, _, y = case("numbers")
    problem = learner.problem(UnstoredKernel(entries, bytes_of(2)), y)
    u = np.zeros(N)
    rows = choose_block(problem, u, np.zeros(N), 2)
    assert set(rows) == {int(np.argmax(y)), int(np.argmin(y))}
