import cvxpy as cp
import numpy as np
import pytest
from kernelweave.qp_smo.saddle import (
    CutPool,
    KSupport,
    lower_bound_from,
    solve_cut_master,
)
from kernelweave.qp_smo.saddle import master as master_module


def random_pool(seed):
    rng = np.random.default_rng(seed)
    q, m = int(rng.integers(2, 12)), int(rng.integers(1, 30))
    pool = CutPool(q)
    scales = 10.0 ** rng.integers(0, 6, size=(m, q))
    for kappa, d in zip(100 * rng.random(m), rng.random((m, q)) * scales, strict=True):
        pool.add(kappa, d, np.zeros((1, 1)))
    penalty = KSupport(10.0 ** rng.integers(-3, 3), int(rng.integers(1, q + 1))).on(q)
    return pool, penalty


def by_cone_solver(pool, penalty):
    q = pool.n_kernels
    beta, z, t = cp.Variable(q, nonneg=True), cp.Variable(q, nonneg=True), cp.Variable()
    cost = t + penalty.lam * sum(cp.quad_over_lin(beta[j], z[j]) for j in range(q))
    constraints = [
        cp.sum(beta) == 1,
        z <= 1,
        cp.sum(z) <= penalty.capacity,
        t >= pool.kappa - pool.half_forms @ beta,
    ]
    return cp.Problem(cp.Minimize(cost), constraints).solve(solver="CLARABEL")


@pytest.mark.parametrize("seed", range(20))
def test_master_equals_a_cone_solver_and_its_bound_is_tight(seed):
    pool, penalty = random_pool(seed)
    master = solve_cut_master(pool, penalty)
    assert master.lower_bound <= master.value
    assert master.value - master.lower_bound <= 1e-9 * abs(master.value)
    assert master.value == pytest.approx(by_cone_solver(pool, penalty), rel=2e-6)
    assert master.weights.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("penalty", [KSupport(0.0), KSupport(0.3), KSupport(0.3, 3)], ids=repr)
@pytest.mark.parametrize(("q", "m"), [(60, 9), (40, 40), (200, 30)])
def test_many_kernels_equal_a_cone_solver(penalty, q, m, monkeypatch):
    monkeypatch.setattr(master_module, "_FIRST_KERNELS", 20)
    monkeypatch.setattr(master_module, "_MORE_KERNELS", 3)
    rng = np.random.default_rng(q + m)
    pool = CutPool(q)
    for kappa, d in zip(100 * rng.random(m), 200 * rng.random((m, q)), strict=True):
        pool.add(kappa, d, np.zeros((1, 1)))
    master = solve_cut_master(pool, penalty.on(q))
    assert 0.0 <= master.value - master.lower_bound <= 1e-9 * abs(master.value)
    assert master.value == pytest.approx(by_cone_solver(pool, penalty.on(q)), rel=2e-6, abs=1e-6)


def test_any_multipliers_give_a_lower_bound():
    pool, penalty = random_pool(3)
    best = solve_cut_master(pool, penalty)
    for mu in np.random.default_rng(0).dirichlet(np.full(len(pool), 0.2), size=100):
        bound = lower_bound_from(pool.kappa, pool.half_forms, mu, penalty)
        assert bound <= best.value * (1 + 1e-12) if best.value > 0 else bound <= best.value


def test_equal_cuts_and_one_kernel_are_no_trouble():
    pool = CutPool(1)
    for _ in range(40):
        pool.add(2.0, np.array([1.0]), np.zeros((1, 1)))
    master = solve_cut_master(pool, KSupport(0.5, 1).on(1))
    assert master.weights.tolist() == [1.0]
    assert master.lower_bound == pytest.approx(2.0, rel=1e-9)


def test_an_optimum_of_zero_has_its_weights_found():
    pool = CutPool(3)
    pool.add(0.0, np.zeros(3), np.zeros((1, 1)))
    pool.add(30.0, np.array([80.0, 1.0, 1.0]), np.zeros((1, 1)))
    master = solve_cut_master(pool, KSupport(0.0).on(3))
    assert master.lower_bound == pytest.approx(0.0, abs=1e-9)
    assert master.value == pytest.approx(0.0, abs=1e-9)


def test_a_rescaled_pool_holds_for_another_box():
    pool = CutPool(2)
    pool.add(3.0, np.array([2.0, 4.0]), np.ones((1, 5)))
    doubled = pool.rescaled(2.0)
    assert doubled.kappa[0] <= 6.0
    assert doubled.kappa[0] == pytest.approx(6.0, rel=1e-14)
    assert (2 * doubled.half_forms[0] >= [8.0, 16.0]).all()


@pytest.mark.parametrize("penalty", [KSupport(0.0), KSupport(0.3), KSupport(0.3, 2)], ids=repr)
def test_many_cuts_are_taken_in_where_they_matter(penalty, monkeypatch):
    rng = np.random.default_rng(0)
    pool = CutPool(5)
    # tangents of a convex function: of many cuts few matter at its minimiser
    for at in rng.dirichlet(np.full(5, 0.4), size=900):
        slope = 2.0 * (at - [0.9, 0.1, 0.0, 0.0, 0.0])
        value = float(((at - [0.9, 0.1, 0.0, 0.0, 0.0]) ** 2).sum())
        pool.add(value - slope @ at + 1.0, -2.0 * slope, np.zeros((1, 1)))
    form = penalty.on(5)
    few = solve_cut_master(pool, form)
    monkeypatch.setattr(master_module, "_FIRST_CUTS", 10_000)
    everything = solve_cut_master(pool, form)
    assert few.value == pytest.approx(everything.value, rel=1e-8)
    assert few.lower_bound == pytest.approx(everything.lower_bound, rel=1e-8)
    assert few.lower_bound <= everything.value
