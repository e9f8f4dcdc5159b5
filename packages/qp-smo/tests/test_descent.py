"""Support vector machines over low-rank factors, against the stored matrices."""

import numpy as np
import pytest
from kernelweave.kernels_core import SolveStatus
from kernelweave.kernels_core.grams import GramStack, LowRankStack
from kernelweave.kernels_core.testing import make_classification, make_regression
from kernelweave.qp_smo import SVC, SVR
from kernelweave.qp_smo.problem import Budget
from kernelweave.qp_smo.saddle import KSupport, solve_kernel_weights
from kernelweave.qp_smo.unstored import descend, rates

N = 240
ENDS = [0, 30, 34, 90]
WEIGHTS = np.array([0.5, 0.0, 0.5])


def case(task):
    X, y = (make_classification if task == "classes" else make_regression)(N)
    draw = np.random.default_rng(0)
    Z = np.cos(3.0 * X @ draw.normal(size=(X.shape[1], 90)) + 6.0 * draw.random(90)) / 4.0
    learner = SVC(C=5.0) if task == "classes" else SVR(C=5.0, epsilon=0.05)
    stack = LowRankStack(Z, ENDS)
    parts = np.split(Z, ENDS[1:-1], axis=1)
    return learner, stack, np.array([part @ part.T for part in parts]), y


@pytest.mark.parametrize("task", ["classes", "numbers"])
def test_the_factors_reach_the_stored_optimum(task):
    learner, stack, grams, y = case(task)
    K = np.tensordot(WEIGHTS, grams, 1)
    stored = learner.solve(K, y, tol=1e-8)
    found = learner.solve(stack.combine(WEIGHTS), y, tol=1e-6)
    assert found.status is SolveStatus.CONVERGED
    assert found.upper_bound - found.lower_bound <= 1e-4 * abs(stored.upper_bound)
    # both intervals hold the same number
    assert found.lower_bound <= stored.upper_bound
    assert stored.lower_bound <= found.upper_bound
    np.testing.assert_allclose(found.function_values, found.dual_coef @ K, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("task", ["classes", "numbers"])
def test_descent_alone_is_feasible_and_goes_most_of_the_way(task):
    learner, stack, grams, y = case(task)
    problem = learner.problem(stack.combine(WEIGHTS), y)
    up, down = rates(problem, np.zeros(N), np.zeros(N))
    first = up.max() - down.min()
    u, n_iter = descend(problem, None, Budget(0.05 * first, 10**9))
    assert n_iter > 0
    assert (u >= problem.lower).all()
    assert (u <= problem.upper).all()
    assert u.sum() == pytest.approx(0.0, abs=1e-9)
    up, down = rates(problem, u, np.tensordot(WEIGHTS, grams, 1) @ u)
    left = up.max() - down.min()
    assert left <= 0.1 * first
    again, none = descend(problem, u, Budget(2.1 * left, 10**9))
    assert none == 0
    np.testing.assert_allclose(again, u, atol=1e-12)


def test_a_limit_on_steps_keeps_the_interval():
    learner, stack, grams, y = case("numbers")
    short = learner.solve(stack.combine(WEIGHTS), y, tol=1e-6, max_iter=5)
    stored = learner.solve(np.tensordot(WEIGHTS, grams, 1), y, tol=1e-8)
    assert short.status is SolveStatus.MAX_ITER
    assert short.lower_bound <= stored.upper_bound <= short.upper_bound * (1 + 1e-12)


def test_a_stack_of_factors_is_the_stack_of_their_matrices():
    _, stack, grams, y = case("numbers")
    stored = GramStack(grams, check=False)
    assert (len(stack), stack.n_samples) == (3, N)
    np.testing.assert_allclose(stack.diagonals, stored.diagonals)
    assert (stack.largest >= stored.largest * (1 - 1e-12)).all()
    forms = np.array([y @ K @ y for K in grams])
    assert (stack.quadratic_forms(y) >= forms * (1 - 1e-15)).all()
    np.testing.assert_allclose(stack.quadratic_forms(y), forms, rtol=1e-10)
    part = np.empty((4, 3))
    rows, columns = np.array([5, 1, 7, 200]), np.array([0, 9, 3])
    stack.combine(WEIGHTS).entries.block(rows, columns, part)
    whole = np.tensordot(WEIGHTS, grams, 1)
    np.testing.assert_allclose(part, whole[np.ix_(rows, columns)], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("task", ["classes", "numbers"])
def test_the_optimum_over_weights_is_that_of_the_matrices(task):
    learner, stack, grams, y = case(task)
    options = {"learner": learner, "penalty": KSupport(1.0), "tol": 1e-7}
    stored = solve_kernel_weights(grams, y, check=False, **options)
    found = solve_kernel_weights(stack, y, **options)
    assert found.gap <= 1e-7
    assert found.lower_bound <= stored.upper_bound
    assert stored.lower_bound <= found.upper_bound


@pytest.mark.parametrize("ends", [[0], [1, 90], [0, 30], [0, 40, 30, 90]])
def test_columns_that_do_not_fit_are_refused(ends):
    with pytest.raises(ValueError, match="ends must rise from 0 to the columns of factors"):
        LowRankStack(np.ones((5, 90)), ends)


def test_what_needs_matrices_says_so():
    with pytest.raises(ValueError, match="this needs Gram matrices"):
        case("numbers")[1].matrices  # noqa: B018
