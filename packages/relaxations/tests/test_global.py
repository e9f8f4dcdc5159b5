from itertools import combinations

import cvxpy as cp
import numpy as np
import pytest
from enumeration import best_of
from kernelweave.kernels_core.grams import GramStack
from kernelweave.kernels_core.result import Status
from kernelweave.mkl_sparse import SparseSimplex
from kernelweave.qp_smo import SVC, SVR
from kernelweave.qp_smo.saddle import CutPool, KSupport, SaddleOracle, solve_kernel_weights
from kernelweave.relaxations import SupportSearch, lower_bound, search, solve_global, sweep
from scipy.optimize import minimize_scalar
from sklearn.svm import SVC as LibSVC
from sklearn.svm import SVR as LibSVR


def by_enumeration(grams, y, k0, lam, **learner):
    """Return the least ends of the ridge problems over all supports, proven to 1e-8."""
    return best_of(grams, y, combinations(range(len(grams)), k0), lam, **learner)


@pytest.mark.parametrize("k0", [1, 2, 3])
@pytest.mark.parametrize("lam", [0.01, 1.0, 30.0])
def test_optimum_equals_the_enumeration_of_supports(problem, k0, lam):
    grams, y, _ = problem
    low, high = by_enumeration(grams, y, k0, lam, C=5.0)
    s = solve_global(grams, y, C=5.0, lam=lam, k0=k0, tol=1e-6)
    assert s.status is Status.CONVERGED
    assert np.count_nonzero(s.weights) <= k0
    assert s.lower_bound <= high
    assert s.upper_bound >= low
    assert s.upper_bound <= high * (1 + 1e-6)
    assert s.relaxation_bound <= s.upper_bound


def test_regression_equals_the_enumeration_of_supports(problem):
    grams, _, X = problem
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]
    learner = SVR(C=5.0, epsilon=0.1)
    low, high = by_enumeration(grams, y, 2, 0.5, learner=learner)
    s = solve_global(grams, y, learner=learner, lam=0.5, k0=2, tol=1e-6)
    assert s.lower_bound <= high
    assert low <= s.upper_bound <= high * (1 + 1e-6)


def regression_by_libsvm(grams, y, C, epsilon, lam):
    """Minimise one pair's objective over its one free weight, the learner being LIBSVM's."""

    def objective(share):
        K = share * grams[0] + (1 - share) * grams[1]
        fitted = LibSVR(C=C, epsilon=epsilon, kernel="precomputed", tol=1e-10).fit(K, y)
        u, at = fitted.dual_coef_[0], fitted.support_
        dual = y[at] @ u - epsilon * np.abs(u).sum() - 0.5 * u @ K[np.ix_(at, at)] @ u
        return dual + lam * (share**2 + (1 - share) ** 2)

    inner = minimize_scalar(objective, bounds=(0, 1), method="bounded", options={"xatol": 1e-9})
    return min(inner.fun, objective(0.0), objective(1.0))


def test_regression_equals_libsvm_over_supports(problem):
    grams, _, X = problem
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]
    pairs = combinations(range(len(grams)), 2)
    best = min(regression_by_libsvm(grams[list(p)], y, 5.0, 0.1, 0.5) for p in pairs)
    s = solve_global(grams, y, learner=SVR(C=5.0, epsilon=0.1), lam=0.5, k0=2, tol=1e-7)
    assert s.upper_bound == pytest.approx(best, rel=1e-6)


def regression_by_cones(grams, y, C, epsilon, lam):
    """Solve one support by Clarabel, from the dual side: the best weights are in closed form."""
    u, tau = cp.Variable(y.size), cp.Variable()
    over = cp.Variable(len(grams), nonneg=True)
    forms = [0.5 * cp.sum_squares(factor_of(K) @ u) for K in grams]
    value = y @ u - epsilon * cp.norm1(u) - tau - cp.sum_squares(over) / (4 * lam)
    constraints = [form - tau <= over[j] for j, form in enumerate(forms)]
    problem = cp.Problem(cp.Maximize(value), [*constraints, cp.abs(u) <= C, cp.sum(u) == 0])
    return problem.solve(solver="CLARABEL")


def factor_of(K):
    """Return R with RᵀR = K."""
    values, vectors = np.linalg.eigh(K)
    return (vectors * np.sqrt(np.maximum(values, 0.0))).T


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize(("k0", "lam"), [(1, 0.5), (2, 0.05), (2, 5.0), (3, 0.5)])
def test_regression_equals_cvxpy_over_supports(problem, k0, lam):
    grams, _, X = problem
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]
    supports = combinations(range(len(grams)), k0)
    best = min(regression_by_cones(grams[list(s)], y, 5.0, 0.1, lam) for s in supports)
    s = solve_global(grams, y, learner=SVR(C=5.0, epsilon=0.1), lam=lam, k0=k0, tol=1e-7)
    assert s.upper_bound == pytest.approx(best, rel=1e-6)
    assert s.lower_bound == pytest.approx(best, rel=1e-6)


def test_tiny_problems_need_no_branching(problem):
    grams, y, _ = problem
    s = solve_global(grams[:1], y, C=1.0, lam=1.0, k0=3)
    assert s.weights.tolist() == [1.0]
    everything = solve_global(grams, y, C=1.0, lam=1.0, k0=len(grams), tol=1e-6)
    ridge = solve_kernel_weights(grams, y, C=1.0, penalty=KSupport(1.0), tol=1e-6)
    assert everything.lower_bound <= ridge.upper_bound
    assert everything.upper_bound >= ridge.lower_bound


def many_kernels(n=60, q=40):
    """Gaussian kernels of two columns each, of which a few say something of the labels."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, q))
    y = np.where(X[:, 0] + X[:, 1] + X[:, 2] + rng.standard_normal(n) > 0.0, 1.0, -1.0)
    pairs = [X[:, [j, (j + 1) % q]] for j in range(q)]
    return np.stack([np.exp(-0.5 * ((P[:, None] - P) ** 2).sum(-1)) for P in pairs]), y


@pytest.mark.parametrize("lam", [0.0, 1.0])
@pytest.mark.parametrize("views", [None, "two"])
def test_one_kernel_of_many_costs_little_more_than_trying_each(lam, views):
    grams, y = many_kernels()
    options = {"views": [j % 2 for j in range(40)], "n_views": 1} if views else {}
    s = solve_global(grams, y, C=10.0, lam=lam, k0=1, tol=1e-6, **options)
    each = [LibSVC(C=10.0, kernel="precomputed", tol=1e-9).fit(K, y) for K in grams]
    values = [
        np.abs(m.dual_coef_).sum()
        - 0.5 * m.dual_coef_[0] @ K[np.ix_(m.support_, m.support_)] @ m.dual_coef_[0]
        for m, K in zip(each, grams, strict=True)
    ]
    assert s.status is Status.CONVERGED
    assert s.gap <= 1e-6
    assert s.lower_bound <= (min(values) + lam) * (1 + 1e-7)
    assert s.upper_bound >= (min(values) + lam) * (1 - 1e-7)
    assert s.support.tolist() == [int(np.argmin(values))]
    # the tree took 74 solves and more, each of them with 40 quadratic forms
    assert s.n_svm_solves <= 60
    assert len(s.pool) <= 10
    assert s.relaxation_bound <= s.lower_bound


def test_a_kernel_that_a_known_cut_closes_is_not_solved():
    grams, y = many_kernels(q=12)
    best = solve_global(grams, y, C=10.0, lam=1.0, k0=1, tol=1e-6)
    pool = CutPool(12)
    for K in grams:
        alone = SVC(C=10.0).solve(K, y)
        pool.add(alone.kappa, GramStack(grams).quadratic_forms(alone.dual_coef[0]), alone.dual_coef)
    known = solve_global(grams, y, C=10.0, lam=1.0, k0=1, tol=1e-6, pool=pool)
    assert known.support.tolist() == best.support.tolist()
    assert known.n_svm_solves < 12 <= best.n_svm_solves
    assert known.lower_bound <= best.upper_bound
    assert best.lower_bound <= known.upper_bound


@pytest.mark.parametrize("C", [0.3, 10.0])
def test_a_few_hundred_supports_are_enumerated_without_a_relaxation(C):
    grams, y = many_kernels(n=40, q=16)
    low, high = by_enumeration(grams, y, 2, 0.5, C=C)
    s = solve_global(grams, y, C=C, lam=0.5, k0=2, tol=1e-5)
    assert s.status is Status.CONVERGED
    assert s.lower_bound <= high
    assert low <= s.upper_bound <= high * (1 + 1e-5)
    assert s.relaxation_bound <= s.lower_bound
    # the relaxation alone took 45 solves, and as many masters
    assert s.n_svm_solves_relaxation == 0
    assert s.n_svm_solves < 120
    near = solve_global(grams, y, C=C, lam=0.5, k0=2, tol=1e-5, weights0=s.weights)
    assert near.n_svm_solves < s.n_svm_solves
    assert near.lower_bound <= high
    assert low <= near.upper_bound <= high * (1 + 1e-5)
    short = solve_global(grams, y, C=C, lam=0.5, k0=2, tol=1e-9, max_time=1e-9)
    assert 0.0 <= short.lower_bound <= high
    assert short.upper_bound >= low


def test_the_time_of_trying_each_may_end_early():
    grams, y = many_kernels()
    full = solve_global(grams, y, C=10.0, lam=1.0, k0=1, tol=1e-6)
    short = solve_global(grams, y, C=10.0, lam=1.0, k0=1, tol=1e-6, max_nodes=5)
    assert short.status is Status.MAX_ITER
    assert short.n_nodes == 5
    assert short.lower_bound <= full.upper_bound
    assert short.upper_bound >= full.lower_bound


@pytest.mark.parametrize("k0", [1, 2])
def test_making_a_search_solves_nothing(problem, k0):
    grams, y, _ = problem
    oracle = SaddleOracle(GramStack(grams), y[None], SVC(C=5.0))
    search = SupportSearch(oracle, SparseSimplex(k0, 1.0).relaxed(len(grams)), 1e-4)
    assert oracle.counts.n_svm_solves == oracle.counts.n_master_solves == 0
    search.step()
    assert oracle.counts.n_svm_solves > 0
    assert np.count_nonzero(search.parameters) <= k0


def test_without_a_ridge_the_search_still_ends(problem):
    grams, y, _ = problem
    low, high = by_enumeration(grams, y, 1, 0.0, C=5.0)
    s = solve_global(grams, y, C=5.0, lam=0.0, k0=1, tol=1e-6)
    assert s.lower_bound <= high
    assert low <= s.upper_bound <= high * (1 + 1e-6)


def test_a_time_limit_returns_an_interval_that_holds(problem):
    grams, y, _ = problem
    full = solve_global(grams, y, C=5.0, lam=1.0, k0=2, tol=1e-6)
    short = solve_global(grams, y, C=5.0, lam=1.0, k0=2, tol=1e-12, max_time=1e-9)
    assert short.status is Status.MAX_TIME
    assert short.lower_bound <= full.upper_bound
    assert short.upper_bound >= full.lower_bound
    nodes = solve_global(grams, y, C=5.0, lam=1.0, k0=1, tol=1e-12, max_nodes=1)
    assert nodes.status in (Status.MAX_ITER, Status.STALLED, Status.CONVERGED)


def test_an_impossible_tolerance_ends_where_rounding_does(problem):
    grams, y, _ = problem
    s = solve_global(grams, y, C=5.0, lam=1.0, k0=2, tol=0.0, max_time=60.0)
    assert s.status is Status.STALLED
    assert s.gap <= 1e-9


def test_a_learner_that_rounding_keeps_from_its_optimum_ends_the_search():
    """Of values up to 1e32 each dual point is a new cut, which says nothing new."""
    rng = np.random.default_rng(9)
    X = 1e8 * rng.uniform(-1, 1, (10, 2))
    products = X @ X.T
    grams = np.stack([np.eye(10), products, (1.0 + products) ** 2])
    y = np.where(X[:, 0] + 5e7 * rng.standard_normal(10) > 0, 1.0, -1.0)
    s = solve_global(grams, y, C=1.0, lam=0.1, k0=3, tol=1e-2, max_time=60.0)
    assert s.status is Status.STALLED
    assert s.lower_bound <= s.upper_bound
    assert s.gap > 1e-2


def test_a_pool_serves_the_next_setting(problem):
    grams, y, _ = problem
    first = solve_global(grams, y, C=5.0, lam=1.0, k0=2, tol=1e-5)
    cold = solve_global(grams, y, C=5.0, lam=1.2, k0=1, tol=1e-5)
    warm = solve_global(grams, y, C=5.0, lam=1.2, k0=1, tol=1e-5, pool=first.pool)
    assert warm.n_svm_solves < cold.n_svm_solves
    assert warm.support.tolist() == cold.support.tolist()


def test_the_hierarchy_of_bounds(problem):
    grams, y, _ = problem
    setting = {"C": 5.0, "lam": 1.0, "k0": 2}
    bounds = {
        name: lower_bound(grams, y, relaxation=name, **setting)
        for name in ("soc", "soc-random", "sdp-3x3", "full-sdp")
    }
    saddle = lower_bound(grams, y, tol=1e-8, **setting)
    optimum = solve_global(grams, y, tol=1e-7, **setting)
    slack = 1 + 1e-6
    assert bounds["soc"].value <= bounds["soc-random"].value * slack
    assert bounds["soc"].value <= bounds["sdp-3x3"].value * slack
    for b in bounds.values():
        assert b.value <= bounds["full-sdp"].value * slack
        assert b.bound <= saddle.value
        assert abs(b.gap) <= 1e-4
    assert bounds["full-sdp"].value == pytest.approx(saddle.bound, rel=1e-5)
    assert saddle.bound <= optimum.upper_bound


@pytest.mark.parametrize("limit", ["_MOST_SOLVES", "_MOST_BRANCHES"])
def test_an_enumeration_that_takes_long_is_left_to_the_relaxation(limit, monkeypatch):
    grams, y = many_kernels(n=40, q=16)
    low, high = by_enumeration(grams, y, 2, 0.5, C=10.0)
    monkeypatch.setattr(search, "_FEW_ENOUGH", 100)
    monkeypatch.setattr(search, limit, 5)
    # a list of open supports that is soon full, so that not all are looked at before
    monkeypatch.setattr(sweep, "_CAPACITY", 4)
    step, lower = search.SupportSearch.step, []
    watched = lambda self: step(self) or lower.append(self.lower)  # noqa: E731
    monkeypatch.setattr(search.SupportSearch, "step", watched)
    s = solve_global(grams, y, C=10.0, lam=0.5, k0=2, tol=1e-5)
    assert s.status is Status.CONVERGED
    assert s.n_svm_solves_relaxation > 0
    assert max(lower) <= high
    assert s.lower_bound <= high
    assert low <= s.upper_bound <= high * (1 + 1e-5)
