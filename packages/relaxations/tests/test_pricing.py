"""Relaxations over some kernels, the others priced: the same optima, and bounds that hold."""

from itertools import combinations

import numpy as np
import pytest
from enumeration import best_of
from kernelweave.kernels_core.grams import GramStack, LowRankStack
from kernelweave.kernels_core.result import Status
from kernelweave.mkl_sparse import SparseSimplex
from kernelweave.qp_smo import SVC, SVR
from kernelweave.qp_smo.saddle import SaddleOracle, lower_bound_from, solve_cut_master
from kernelweave.relaxations import pricing, solve_global


@pytest.fixture
def few_at_work(monkeypatch):
    monkeypatch.setattr(pricing, "WIDE", 2)
    monkeypatch.setattr(pricing, "_JOIN", 2)


def views(n=40, q=12, width=2):
    """Return Gaussian kernels of columns of their own, labels by three of them, and factors."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, q, width))
    y = np.where((X[:, :3] ** 2).sum(axis=(1, 2)) > 3 * width, 1.0, -1.0)
    square = ((X[:, None] - X[None]) ** 2).sum(axis=3)
    return np.exp(-square / width).transpose(2, 0, 1).copy(), y, X


@pytest.mark.usefixtures("few_at_work")
@pytest.mark.parametrize("lam", [0.0, 0.1, 10.0])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_the_optimum_is_that_of_all_supports(lam, C):
    grams, y, _ = views()
    low, high = best_of(grams, y, combinations(range(12), 2), lam, C=C)
    s = solve_global(grams, y, C=C, lam=lam, k0=2, tol=1e-6)
    assert s.status is Status.CONVERGED
    assert s.lower_bound <= high
    assert low <= s.upper_bound <= high * (1 + 1e-6)
    assert s.relaxation_bound <= high


@pytest.mark.usefixtures("few_at_work")
def test_a_search_that_begins_at_weights_and_cuts_of_fewer_kernels():
    """As along a path over k0: the working set is empty though there are weights already."""
    grams, y, _ = views()
    low, high = best_of(grams, y, combinations(range(12), 2), 1.0, C=1.0)
    one = solve_global(grams, y, C=1.0, lam=1.0, k0=1, tol=1e-6)
    known = {"weights0": one.weights, "pool": one.pool}
    s = solve_global(grams, y, C=1.0, lam=1.0, k0=2, tol=1e-6, **known)
    assert s.status is Status.CONVERGED
    assert s.lower_bound <= high
    assert low <= s.upper_bound <= high * (1 + 1e-6)


@pytest.mark.usefixtures("few_at_work")
def test_regression_and_low_rank_kernels_too():
    _, _, X = views(width=3)
    y = (X[:, 0] - X[:, 1]).sum(axis=1)
    factors = LowRankStack(X.reshape(40, 36), np.arange(0, 37, 3))
    grams = np.einsum("iqw,jqw->qij", X, X)
    learner = SVR(C=0.2, epsilon=0.1)
    low, high = best_of(grams, y, combinations(range(12), 2), 0.5, learner=learner)
    for stack in (grams, factors):
        s = solve_global(stack, y, learner=learner, lam=0.5, k0=2, tol=1e-5)
        assert s.support.tolist() == [0, 1]
        assert s.lower_bound <= high
        assert low * (1 - 1e-9) <= s.upper_bound <= high * (1 + 1e-5)


@pytest.mark.usefixtures("few_at_work")
def test_few_views_with_few_kernels_each():
    grams, y, _ = views()
    view = [j // 2 for j in range(12)]
    allowed = [s for s in combinations(range(12), 2) if view[s[0]] != view[s[1]]]
    low, high = best_of(grams, y, allowed, 1.0, C=1.0)
    s = solve_global(grams, y, C=1.0, lam=1.0, k0=1, views=view, n_views=2, tol=1e-6)
    assert s.lower_bound <= high
    assert low <= s.upper_bound <= high * (1 + 1e-6)


@pytest.mark.usefixtures("few_at_work")
def test_what_is_known_when_time_is_up_holds():
    grams, y, _ = views()
    full = solve_global(grams, y, C=1.0, lam=1.0, k0=2, tol=1e-6)
    short = solve_global(grams, y, C=1.0, lam=1.0, k0=2, tol=1e-12, max_time=1e-9)
    assert short.status is Status.MAX_TIME
    assert 0.0 <= short.lower_bound <= full.upper_bound
    assert short.upper_bound >= full.lower_bound


@pytest.mark.parametrize("make", [GramStack, None], ids=["matrices", "factors"])
def test_a_cut_of_some_kernels_holds_for_all_before_and_after_the_others_are_known(make):
    _, y, X = views(width=3)
    grams = np.einsum("iqw,jqw->qij", X, X)
    stack = GramStack(grams) if make else LowRankStack(X.reshape(40, 36), np.arange(0, 37, 3))
    oracle = SaddleOracle(stack, np.stack([y, -y]), SVC(C=0.01))
    some = np.arange(12) < 5
    for j in range(4):
        oracle.evaluate(np.eye(12)[j], 1e-3, kernels=some)
    penalty = SparseSimplex(2, 1e-3).relaxed(12)
    before = solve_cut_master(oracle.pool, penalty)
    oracle.complete()
    after = solve_cut_master(oracle.pool, penalty)
    wide = np.longdouble(1) * X
    for half, duals in zip(oracle.pool.half_forms, oracle.pool.dual_coef, strict=True):
        exact = sum((np.einsum("i,iqw->qw", np.longdouble(1) * u, wide) ** 2).sum(1) for u in duals)
        assert (2 * half >= exact).all()
        assert (2 * half <= exact + 1e-9 * (1 + np.abs(duals).sum()) ** 2).all()
    assert before.lower_bound < after.lower_bound
    pool = oracle.pool
    assert lower_bound_from(pool.kappa, pool.half_forms, after.multipliers, penalty) > 0.0
    assert [part.size for part in pool.unknown] == [0, 0]


def test_largest_forms_bound_all_forms():
    grams, _, _ = views()
    stack, u = GramStack(grams), np.random.default_rng(3).standard_normal(40)
    u -= u.mean()
    assert (stack.largest_forms(u) >= stack.quadratic_forms(u)).all()
    np.testing.assert_allclose(
        stack.forms_of(np.stack([u, 2 * u]), np.array([3, 1])),
        np.outer([1.0, 4.0], stack.quadratic_forms(u)[[3, 1]]),
        rtol=1e-12,
    )
