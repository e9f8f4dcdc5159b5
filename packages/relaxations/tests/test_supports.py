"""Supports closed in compiled code: against the master problem, enumeration and exact sums."""

from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from enumeration import best_of
from kernelweave.kernels_core.result import Status
from kernelweave.qp_smo import SVR
from kernelweave.qp_smo.saddle import (
    CutPool,
    KSupport,
    solve_cut_master,
)
from kernelweave.relaxations import search, solve_global, sweep
from kernelweave.relaxations._njit_supports import (
    CLOSED,
    UNDECIDED,
    WITNESSED,
    enumerate_supports,
    minimise_over_support,
)

Q, K = 9, 3


def views(q=12, n=40, seed=0):
    """Return Grams of separate columns, two of them informative, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, q))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * X[:, 1] > 0.0, 1.0, -1.0)
    return np.exp(-0.5 * (X.T[:, :, None] - X.T[:, None, :]) ** 2), y


def random_cuts(m=30, q=Q, seed=0):
    """Return a pool of cuts such as learner solves make: nonnegative forms, one cut of zeros."""
    rng = np.random.default_rng(seed)
    pool = CutPool(q)
    pool.add(0.0, np.zeros(q), np.zeros((1, 1)))
    for _ in range(m - 1):
        pool.add(20.0 + rng.random(), 30.0 * rng.random(q) ** 2, np.zeros((1, 1)))
    return pool


def arrays(pool):
    half = np.ascontiguousarray(pool.half_forms)
    return pool.kappa, half, np.ascontiguousarray(half.T)


def masters(pool, lam):
    """Return the proved interval of the cuts' minimum over each support."""
    root = KSupport(lam, K).on(Q)
    found = {}
    for support in combinations(range(Q), K):
        chosen = np.zeros(Q, dtype=bool)
        chosen[list(support)] = True
        master = solve_cut_master(pool, root.on_support(chosen))
        found[support] = (master.lower_bound, master.value)
    return found


@pytest.mark.parametrize("lam", [0.01, 1.0, 30.0])
def test_one_support_equals_the_master_problem(lam):
    pool = random_cuts()
    cuts = arrays(pool)
    for support, (low, high) in list(masters(pool, lam).items())[::6]:
        marks, shares = np.zeros(K + 2, dtype=np.int64), np.zeros(K + 2)
        shares[0] = 1.0
        best = np.zeros(K)
        chosen = np.array(support)
        verdict, bound, lowest, _ = minimise_over_support(
            *cuts, lam, np.inf, 5000, chosen, best, marks, shares
        )
        assert verdict == WITNESSED
        assert bound <= high * (1 + 1e-12)
        assert lowest >= low * (1 - 1e-12)
        assert bound == pytest.approx(low, rel=1e-4)
        weights = np.zeros(Q)
        weights[chosen] = best / best.sum()
        assert pool.model(weights) + lam * weights @ weights == pytest.approx(lowest, rel=1e-9)


@pytest.mark.parametrize("lam", [0.01, 0.1, 1.0])
def test_small_penalties_take_few_steps(lam):
    """Pairwise steps alone zigzag where λ is small: 5000 did not do for some of these."""
    cuts = arrays(random_cuts())
    for support in combinations(range(Q), K):
        marks, shares = np.zeros(K + 2, dtype=np.int64), np.zeros(K + 2)
        shares[0] = 1.0
        *_, steps = minimise_over_support(
            *cuts, lam, np.inf, 5000, np.array(support), np.zeros(K), marks, shares
        )
        assert steps < 100


def exact_dual(pool, chosen, marks, shares, lam):
    """Return the dual value over a support at some multipliers, without rounding."""
    used = np.flatnonzero(shares)
    mu = [Fraction(x) for x in shares[used]]
    total = sum(mu)
    top = sum(x * Fraction(pool.kappa[i]) for x, i in zip(mu, marks[used], strict=True)) / total
    halves = pool.half_forms[np.ix_(marks[used], chosen)].T.tolist()
    w = sorted(
        (sum(x * Fraction(h) for x, h in zip(mu, row, strict=True)) / total for row in halves),
        reverse=True,
    )
    ridge = Fraction(lam)
    for r in range(len(w), 0, -1):
        tau = (sum(w[:r]) - 2 * ridge) / r
        if tau < w[r - 1]:
            return top - tau - sum((x - tau) ** 2 for x in w[:r]) / (4 * ridge)
    raise AssertionError


@pytest.mark.parametrize("limit", [2, 3, 4])
@pytest.mark.parametrize("lam", [0.01, 1.0])
def test_the_bound_is_below_its_exact_value(limit, lam):
    pool = random_cuts(seed=3)
    for support in combinations(range(Q), K):
        chosen = np.array(support)
        marks, shares, best = np.zeros(5, dtype=np.int64), np.zeros(5), np.zeros(3)
        shares[0] = 1.0
        _, bound, _, _ = minimise_over_support(
            *arrays(pool), lam, np.inf, limit, chosen, best, marks, shares
        )
        exact = exact_dual(pool, chosen, marks, shares, lam)
        assert Fraction(bound) <= exact
        assert bound == pytest.approx(float(exact), rel=1e-9)


def enumerated(pool, lam, threshold, budget):
    """Return the supports left open and the least bound of the others."""
    found, place = np.zeros((200, K), dtype=np.int64), np.array([0, 0, 0])
    parts = (np.zeros((200, K)), np.zeros((200, 2)), np.zeros((200, 5), dtype=np.int64))
    mu, path = np.full(len(pool), 1.0 / len(pool)), np.zeros(K, dtype=np.int64)
    free, closed = np.ones((K + 1, Q), dtype=bool), np.inf
    shape = (np.zeros(Q, dtype=np.int64), K, 1)
    state = (mu, place, path, free, *shape, found, *parts, np.zeros((200, 5)))
    while place[0] >= 0:
        ends = enumerate_supports(*arrays(pool), lam, threshold, 1000, budget, *state)
        closed = min(closed, ends[0])
    return {tuple(sorted(row)) for row in found[: place[2]].tolist()}, closed


@pytest.mark.parametrize("lam", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("budget", [1, 10**6])
def test_nothing_below_the_threshold_is_closed(lam, budget):
    pool = random_cuts(seed=1)
    ends = masters(pool, lam)
    values = sorted(high for _, high in ends.values())
    for threshold in (values[0] - 1e-6, values[20], values[-1] + 1e-6):
        left, closed = enumerated(pool, lam, threshold, budget)
        for support, (low, high) in ends.items():
            if high < threshold:
                assert support in left
            elif low > threshold * (1 + 1e-6):
                assert support not in left
        assert closed >= threshold


def test_the_verdicts_differ():
    assert len({CLOSED, WITNESSED, UNDECIDED}) == 3


@pytest.fixture
def at_once(monkeypatch):
    """Enumerate supports from the first branch on, few at a time."""
    monkeypatch.setattr(search, "_FEW_NODES", 0)
    monkeypatch.setattr(sweep, "_CAPACITY", 8)
    monkeypatch.setattr(sweep, "_BUDGET", 50)


@pytest.mark.parametrize(("k0", "lam"), [(1, 0.1), (2, 0.01), (2, 20.0), (3, 0.5)])
def test_enumerated_optimum_equals_that_of_all_supports(at_once, k0, lam):
    grams, y = views(q=8)
    low, high = best_of(grams, y, combinations(range(8), k0), lam, C=2.0)
    found = solve_global(grams, y, C=2.0, lam=lam, k0=k0, tol=1e-6)
    assert found.status is Status.CONVERGED
    assert found.lower_bound <= high
    assert low <= found.upper_bound <= high * (1 + 1e-6)
    assert found.n_svm_solves < 20 * comb(8, k0)


def test_branches_and_enumeration_agree(monkeypatch):
    grams, y = views()
    for learner in ({"C": 2.0}, {"learner": SVR(C=2.0, epsilon=0.1)}):
        monkeypatch.setattr(search, "_FEW_NODES", 10**9)
        branched = solve_global(grams, y, **learner, lam=0.2, k0=2, tol=1e-6)
        monkeypatch.setattr(search, "_FEW_NODES", 0)
        swept = solve_global(grams, y, **learner, lam=0.2, k0=2, tol=1e-6)
        assert branched.support.tolist() == swept.support.tolist()
        assert branched.lower_bound <= swept.upper_bound
        assert swept.lower_bound <= branched.upper_bound
        assert swept.n_nodes != branched.n_nodes


def test_one_solve_closes_several_supports(monkeypatch):
    """Where C is large most supports lie far above the optimum."""
    monkeypatch.setattr(search, "_FEW_NODES", 0)
    grams, y = views(n=60)
    together = solve_global(grams, y, C=10.0, lam=0.1, k0=3)
    monkeypatch.setattr(sweep.Sweep, "_solve_many", sweep.Sweep._solve)
    alone = solve_global(grams, y, C=10.0, lam=0.1, k0=3)
    assert together.n_svm_solves < 0.9 * alone.n_svm_solves
    assert together.support.tolist() == alone.support.tolist()
    assert together.lower_bound <= alone.upper_bound
    assert alone.lower_bound <= together.upper_bound


@pytest.mark.parametrize("k0", [2, 3, 4])
def test_branches_with_a_relaxation_of_their_own_miss_no_support(monkeypatch, k0):
    monkeypatch.setattr(search, "_LOOKED_AT", 0)
    monkeypatch.setattr(search, "_LOOSE", -1.0)
    monkeypatch.setattr(search, "_FEW_NODES", 0)
    monkeypatch.setattr(search, "_FEW_SUPPORTS", 6)
    monkeypatch.setattr(search, "_FEWER_SUPPORTS", 2)
    grams, y = views(q=7)
    found = solve_global(grams, y, C=20.0, lam=0.05, k0=k0)
    assert found.status is Status.CONVERGED
    low, high = best_of(grams, y, combinations(range(7), k0), 0.05, C=20.0, tol=1e-3)
    assert found.lower_bound <= high
    assert found.upper_bound >= low


def test_several_tasks_are_enumerated(at_once):
    grams, y = views(q=6)
    both = np.stack([y, np.roll(y, 1)])
    found = solve_global(grams, both, C=2.0, lam=0.2, k0=2, tol=1e-5)
    assert found.gap <= 1e-5


def test_kernels_that_no_optimum_uses_are_screened():
    grams, y = views()
    useless = 1e-3 * np.eye(len(y))[None] * np.ones((4, 1, 1))
    found = solve_global(np.concatenate([grams[:3], useless]), y, C=2.0, lam=1.0, k0=2)
    assert found.n_screened >= 4
    alone = solve_global(grams[:3], y, C=2.0, lam=1.0, k0=2)
    assert found.support.tolist() == alone.support.tolist()
    assert found.lower_bound <= alone.upper_bound


def test_a_tolerance_is_obeyed_by_enumeration(at_once):
    grams, y = views()
    for tol in (1e-3, 1e-9):
        found = solve_global(grams, y, C=2.0, lam=0.2, k0=2, tol=tol)
        assert found.status is Status.CONVERGED
        assert found.gap <= tol
