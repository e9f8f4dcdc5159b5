import cvxpy as cp
import numpy as np
import pytest
from kernelweave.kernels_core.exceptions import ContradictoryBoundsError
from kernelweave.kernels_core.grams import GramStack
from kernelweave.kernels_core.result import Status
from kernelweave.qp_smo import SVC, SVR
from kernelweave.qp_smo.saddle import (
    CutPool,
    KSupport,
    SaddleOracle,
    solve_kernel_weights,
)


def test_a_false_cut_is_an_error_and_no_convergence(problem):
    grams, y, _ = problem
    pool = CutPool(len(grams))
    pool.add(1e6, np.zeros(len(grams)), np.zeros((1, y.size)))
    with pytest.raises(ContradictoryBoundsError, match="cutting planes: the lower bound"):
        solve_kernel_weights(grams, y, C=5.0, pool=pool)


PENALTIES = [KSupport(0.0), KSupport(2.0), KSupport(3.0, 2)]


def by_dual(grams, y, penalty, kappa, constraints, u):
    """Maximise κ − h*(d/2) by a conic solver: the saddle from the other side."""
    form = penalty.on(len(grams))
    half = [0.5 * cp.quad_form(u, cp.psd_wrap(K)) for K in grams]
    tau = cp.Variable()
    over = cp.Variable(len(grams), nonneg=True)
    for j, h in enumerate(half):
        over_j = 0 if form.lam == 0 else over[j]
        constraints.append(h - tau <= over_j)
    cost = kappa - tau
    if form.lam > 0:
        cost = cost - cp.sum_largest(cp.square(over), form.capacity) / (4 * form.lam)
    return cp.Problem(cp.Maximize(cost), constraints).solve(solver="CLARABEL")


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_classification_equals_a_conic_solver(problem, penalty):
    grams, y, _ = problem
    alpha = cp.Variable(y.size, nonneg=True)
    value = by_dual(
        grams, y, penalty, cp.sum(alpha), [alpha <= 5, y @ alpha == 0], cp.multiply(y, alpha)
    )
    s = solve_kernel_weights(grams, y, C=5.0, penalty=penalty, tol=1e-7)
    assert s.status is Status.CONVERGED
    assert s.lower_bound <= value * (1 + 1e-6)
    assert s.upper_bound >= value * (1 - 1e-6)
    assert s.gap <= 1e-7
    assert s.weights.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_regression_equals_a_conic_solver(problem, penalty):
    grams, _, X = problem
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1]
    u = cp.Variable(y.size)
    kappa = y @ u - 0.1 * cp.norm1(u)
    value = by_dual(grams, y, penalty, kappa, [cp.abs(u) <= 5, cp.sum(u) == 0], u)
    s = solve_kernel_weights(grams, y, learner=SVR(C=5.0, epsilon=0.1), penalty=penalty, tol=1e-6)
    assert s.lower_bound <= value * (1 + 1e-5)
    assert s.upper_bound >= value * (1 - 1e-5)
    assert s.gap <= 1e-6


def test_tasks_share_the_weights(problem):
    grams, y, _ = problem
    both = solve_kernel_weights(grams, np.stack([y, y]), C=5.0, penalty=KSupport(2.0), tol=1e-6)
    one = solve_kernel_weights(grams, y, C=5.0, penalty=KSupport(1.0), tol=1e-6)
    assert both.lower_bound <= 2 * one.upper_bound
    assert both.upper_bound >= 2 * one.lower_bound


def test_a_weight_of_two_is_the_sample_twice(problem):
    grams, y, _ = problem
    weight = np.ones(y.size)
    weight[3], weight[5] = 2.0, 0.0
    rows = np.r_[np.delete(np.arange(y.size), 5), 3]
    a = solve_kernel_weights(grams, y, C=2.0, sample_weight=weight, penalty=KSupport(1.0), tol=1e-6)
    twice = np.ascontiguousarray(grams[:, rows][:, :, rows])
    b = solve_kernel_weights(twice, y[rows], C=2.0, penalty=KSupport(1.0), tol=1e-6)
    assert max(a.lower_bound, b.lower_bound) <= min(a.upper_bound, b.upper_bound)


def test_a_duplicate_kernel_changes_nothing_without_penalty(problem):
    grams, y, _ = problem
    a = solve_kernel_weights(grams, y, C=5.0, tol=1e-6)
    b = solve_kernel_weights(np.concatenate([grams, grams[:1]]), y, C=5.0, tol=1e-6)
    assert max(a.lower_bound, b.lower_bound) <= min(a.upper_bound, b.upper_bound)


def test_every_feasible_point_is_a_cut(problem):
    grams, y, _ = problem
    learner = SVC(C=5.0)
    oracle = SaddleOracle(GramStack(grams), y[None], learner)
    loose = oracle.evaluate(np.full(4, 0.25), np.inf)
    for beta in np.random.default_rng(0).dirichlet(np.ones(4), size=20):
        exact = learner.solve(np.einsum("j,jkl->kl", beta, grams), y, tol=1e-9)
        assert oracle.pool.model(beta) <= exact.upper_bound
    assert loose.lower_bound <= loose.upper_bound


def test_a_pool_is_reused(problem):
    grams, y, _ = problem
    first = solve_kernel_weights(grams, y, C=5.0, penalty=KSupport(1.0, 2), tol=1e-5)
    cold = solve_kernel_weights(grams, y, C=5.0, penalty=KSupport(1.3, 2), tol=1e-5)
    warm = solve_kernel_weights(
        grams, y, C=5.0, penalty=KSupport(1.3, 2), tol=1e-5, pool=first.pool
    )
    assert warm.n_svm_solves < cold.n_svm_solves
    assert max(cold.lower_bound, warm.lower_bound) <= min(cold.upper_bound, warm.upper_bound)
    scaled = solve_kernel_weights(grams, y, C=10.0, tol=1e-5, pool=first.pool.rescaled(2.0))
    fresh = solve_kernel_weights(grams, y, C=10.0, tol=1e-5)
    assert max(scaled.lower_bound, fresh.lower_bound) <= min(scaled.upper_bound, fresh.upper_bound)


def test_limits_are_kept_and_the_interval_still_holds(problem):
    grams, y, _ = problem
    full = solve_kernel_weights(grams, y, C=50.0, penalty=KSupport(0.1), tol=1e-6)
    short = solve_kernel_weights(grams, y, C=50.0, penalty=KSupport(0.1), tol=1e-9, max_iter=2)
    assert short.status is Status.MAX_ITER
    assert short.lower_bound <= full.upper_bound
    assert short.upper_bound >= full.lower_bound
    timed = solve_kernel_weights(grams, y, C=50.0, penalty=KSupport(0.1), tol=1e-12, max_time=1e-9)
    assert timed.status is Status.MAX_TIME
    assert timed.n_svm_solves >= 1


def test_same_input_same_result(problem):
    grams, y, _ = problem
    a, b = (solve_kernel_weights(grams, y, C=5.0, penalty=KSupport(1.0)) for _ in range(2))
    assert np.array_equal(a.weights, b.weights)
    assert a.upper_bound == b.upper_bound


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C": None}, "either C"),
        ({"learner": SVC()}, "either C"),
        ({"C": -1.0}, "C must"),
        ({"tol": -1.0}, "tol"),
        ({"weights0": [1.0]}, "weights must be 4"),
        ({"weights0": [-1.0, 1.0, 1.0, 1.0]}, "weights"),
        ({"pool": CutPool(3)}, "pool"),
    ],
)
def test_bad_arguments_are_named(problem, change, message):
    grams, y, _ = problem
    with pytest.raises(ValueError, match=message):
        solve_kernel_weights(grams, y, **{"C": 1.0, **change})
    with pytest.raises(ValueError, match="y must have shape"):
        solve_kernel_weights(grams, y[:-1], C=1.0)


def test_a_warm_start_within_tolerance_is_still_sharpened(problem):
    grams, y, _ = problem
    stack = GramStack(grams)
    first = SaddleOracle(stack, y[None], SVC(C=5.0))
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    loose = first.evaluate(weights, 0.1)
    again = SaddleOracle(stack, y[None], SVC(C=5.0), pool=first.pool)
    want = 1e-6 * abs(loose.upper_bound)
    assert loose.upper_bound - loose.lower_bound > 100 * want
    fine = again.evaluate(weights, want)
    assert fine.upper_bound - fine.lower_bound <= 4 * want
