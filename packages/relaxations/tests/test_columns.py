"""Kernels of one column each: forms from factors, and screening of all of them at once."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from enumeration import best_of
from kernelweave.kernels_core.grams import GramStack, LowRankStack
from kernelweave.kernels_core.result import Status
from kernelweave.mkl_sparse import SparseSimplex
from kernelweave.qp_smo import SVC, SVR
from kernelweave.qp_smo.saddle import CutPool, SaddleOracle, lower_bound_from
from kernelweave.relaxations import solve_global
from kernelweave.relaxations.search import SupportSearch


def columns(n=40, q=12):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, q)) + 0.5 * rng.standard_normal((n, 1))
    return X, X[:, 0] + X[:, 1] - X[:, 2] + 0.3 * rng.standard_normal(n)


@pytest.mark.parametrize("kernels", [range(5), [4, 3, 2, 1, 0], [3], [2, 0, 4]])
def test_forms_of_factors_of_any_width(kernels):
    rng = np.random.default_rng(0)
    ends = np.array([0, 2, 2, 3, 7, 7])
    Z, points = rng.standard_normal((30, 7)), rng.standard_normal((2, 30))
    stack = LowRankStack(Z, ends)
    parts = [np.longdouble(1) * Z[:, a:b] for a, b in pairwise(ends)]
    exact = np.array([[((u @ parts[j]) ** 2).sum() for j in kernels] for u in points])
    found = stack.forms_of(points, np.array(kernels))
    assert (found >= exact).all()
    np.testing.assert_allclose(found, exact.astype(float), rtol=1e-10)
    np.testing.assert_allclose(stack.diagonals, [(p**2).sum(1).astype(float) for p in parts])
    assert (stack.largest_forms(points[0])[list(kernels)] >= exact[0]).all()


@pytest.mark.parametrize("views", [None, [j % 3 for j in range(9)]], ids=["plain", "views"])
@pytest.mark.parametrize("lam", [0.0, 0.5, 20.0])
def test_what_is_screened_is_what_bounds_one_by_one_close(lam, views):
    rng = np.random.default_rng(1)
    pool = CutPool(9)
    for _ in range(6):
        pool.add(10.0 + rng.random(), 6.0 * rng.random(9) ** 3, np.zeros((1, 4)))
    penalty = SparseSimplex(2, lam, views, None if views is None else 2).relaxed(9)
    oracle = SaddleOracle(GramStack(np.ones((9, 4, 4))), np.ones((1, 4)), SVC(), None, pool)
    mu, none, each = rng.random(6), np.zeros(9, dtype=bool), np.eye(9, dtype=bool)

    def bound(branch):
        return lower_bound_from(pool.kappa, pool.half_forms, mu, branch)

    with_j = np.array([bound(penalty.restricted(one, none)) for one in each])
    without_j = np.array([bound(penalty.restricted(none, one)) for one in each])
    pairs = [each[list(s)].any(axis=0) for s in combinations(range(9), 2)]
    supports = [s for s in [*pairs, *each] if penalty.is_met(s)]
    counts = set()
    for upper in np.unique([*with_j, *without_j]) + 1e-9:
        search = SupportSearch(oracle, penalty, 1e-12)
        search.upper = float(upper)
        left = search._screened(mu)
        assert left.excluded[with_j >= search.threshold].all()
        assert left.required[(without_j >= search.threshold) & ~left.excluded].all()
        out = [s for s in supports if (s & left.excluded).any() or (left.required & ~s).any()]
        least = min((bound(penalty.on_support(s)) for s in out), default=np.inf)
        assert search.threshold <= search._closed <= least * (1 + 1e-12)
        assert search.n_screened == (left.required | left.excluded).sum()
        counts.add(search.n_screened)
    assert len(counts) > 1


@pytest.mark.parametrize("learner", [SVC(C=0.1), SVC(C=5.0), SVR(C=0.3, epsilon=0.1)])
def test_the_best_columns_are_those_of_all_supports(learner):
    X, y = columns()
    y = np.sign(y) if learner.task == "classification" else y
    grams = np.einsum("ij,kj->jik", X, X)
    low, high = best_of(grams, y, combinations(range(12), 3), 0.5, learner=learner)
    stack = LowRankStack(X, np.arange(13))
    s = solve_global(stack, y, learner=learner, lam=0.5, k0=3, tol=1e-5)
    assert s.status is Status.CONVERGED
    assert s.lower_bound <= high
    assert low <= s.upper_bound <= high * (1 + 1e-5)
