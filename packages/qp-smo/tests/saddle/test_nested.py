"""Few views and few kernels within each: the penalty, its closed form, and the master problem."""

from itertools import combinations, product

import cvxpy as cp
import numpy as np
import pytest
from kernelweave.qp_smo.saddle import (
    CutPool,
    KSupport,
    NestedPenalty,
    nested,
    solve_cut_master,
)
from scipy.optimize import linprog

VIEWS = ("a", "b", "a", "c", "b", "a", "c")


def supports(views, k0, n_views):
    """Yield every support of at most so many views with at most so many kernels of each."""
    for size in range(1, k0 * n_views + 1):
        for chosen in combinations(range(len(views)), size):
            own = [views[j] for j in chosen]
            if len(set(own)) <= n_views and max(map(own.count, own)) <= k0:
                yield chosen


def hull(views, form):
    """Return shares z within the hull of the supports of a branch, and what holds them there."""
    z, w = cp.Variable(len(views), nonneg=True), cp.Variable(len(set(views)), nonneg=True)
    holds = [w <= 1, cp.sum(w) <= form.n_views]
    holds += [z[j] <= w[v] for j, v in enumerate(form.view)]
    for v in range(w.size):
        holds.append(cp.sum(z[np.flatnonzero(form.view == v)]) <= form.capacity * w[v])
    holds += [z[j] == 1 for j in np.flatnonzero(form.required)]
    return z, holds


def forms(lam=0.7):
    """Return penalties of several limits, branches among them."""
    one = np.eye(len(VIEWS), dtype=bool)
    for k0, n_views in [(1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (5, 2)]:
        root = NestedPenalty.of(lam, k0, VIEWS, n_views)
        yield root
        yield root.restricted(one[1], one[0] | one[6])
    yield root.restricted(one[0] | one[1], one[2])


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("form", list(forms()))
def test_the_value_is_the_least_over_the_hull(form, seed):
    beta = np.random.default_rng(seed).dirichlet(np.full(len(VIEWS), 0.5))
    beta[~form.allowed] = 0.0
    beta /= beta.sum()
    z, holds = hull(VIEWS, form)
    cost = sum(b * b * cp.inv_pos(z[j]) for j, b in enumerate(beta) if b > 0)
    least = cp.Problem(cp.Minimize(cost), holds).solve(solver="CLARABEL")
    assert form.value(beta) <= form.lam * least * (1 + 1e-7)
    assert form.value(beta) == pytest.approx(form.lam * least, rel=1e-5)


def test_it_is_the_ridge_on_the_supports_and_more_elsewhere():
    form = NestedPenalty.of(1.0, 2, VIEWS, 2)
    for chosen in supports(VIEWS, 2, 2):
        beta = np.zeros(len(VIEWS))
        beta[list(chosen)] = 1.0 / len(chosen)
        assert form.is_met(beta > 0)
        assert form.value(beta) == pytest.approx(1.0 / len(chosen), rel=1e-12)
    even = np.full(len(VIEWS), 1.0 / len(VIEWS))
    assert not form.is_met(even > 0)
    assert form.value(even) > 1.05 / len(VIEWS)


def test_one_view_is_the_k_support_norm_and_so_are_single_kernels():
    rng = np.random.default_rng(0)
    for beta in rng.dirichlet(np.full(6, 0.5), size=5):
        flat = KSupport(0.3, 2).on(6)
        for same in (
            NestedPenalty.of(0.3, 2, ("one",) * 6, 1),
            NestedPenalty.of(0.3, 1, tuple(range(6)), 2),
        ):
            assert same.value(beta) == pytest.approx(flat.value(beta), rel=1e-12)
            assert same.n_supports == flat.n_supports == 15
            low = same.best_response(9.0 * beta)[1]
            assert low == pytest.approx(flat.best_response(9.0 * beta)[1], rel=1e-12)


@pytest.mark.parametrize("form", [*forms(), *forms(1e-4), *forms(0.0)])
def test_the_closed_form_is_a_bound_and_tight(form):
    rng = np.random.default_rng(3)
    for scale in (1.0, 1e6):
        c = scale * rng.random(len(VIEWS))
        weights, low = form.best_response(c)
        assert weights.sum() == pytest.approx(1.0, abs=1e-12)
        assert not weights[~form.allowed].any()
        for beta in rng.dirichlet(np.full(len(VIEWS), 0.3), size=100):
            beta[~form.allowed] = 0.0
            beta /= beta.sum()
            assert low <= form.value(beta) - c @ beta
    beta, t = cp.Variable(len(VIEWS), nonneg=True), cp.Variable(len(VIEWS))
    z, holds = hull(VIEWS, form)
    holds += [cp.sum(beta) == 1, beta[np.flatnonzero(~form.allowed)] == 0]
    holds += [cp.quad_over_lin(beta[j], z[j]) <= t[j] for j in range(len(VIEWS))]
    c = rng.random(len(VIEWS))
    least = cp.Problem(cp.Minimize(form.lam * cp.sum(t) - c @ beta), holds)
    assert form.best_response(c)[1] == pytest.approx(least.solve(solver="CLARABEL"), abs=1e-6)


@pytest.mark.parametrize("form", list(forms()))
def test_the_search_for_the_best_tau_ends_where_it_is_found(form, monkeypatch):
    asked, response = [], nested._Views.response
    monkeypatch.setattr(
        nested._Views, "response", lambda *given: asked.append(given) or response(*given)
    )
    draws = np.random.default_rng(5).random((50, len(VIEWS)))
    for c in draws:
        form.best_response(9.0 * c)
    assert len(asked) <= 8 * len(draws)


@pytest.mark.parametrize(("k0", "n_views"), [(1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (5, 3)])
def test_supports_are_counted_and_the_largest_found(k0, n_views):
    form = NestedPenalty.of(1.0, k0, VIEWS, n_views)
    own = {}
    for chosen in supports(VIEWS, k0, n_views):
        counts = tuple(sum(VIEWS[j] == v for j in chosen) for v in "abc")
        own[counts] = own.get(counts, 0) + 1
    full = [min(k0, VIEWS.count(v)) for v in "abc"]
    complete = [
        number
        for counts, number in own.items()
        if sum(map(bool, counts)) == n_views
        and all(n in (0, most) for n, most in zip(counts, full, strict=True))
    ]
    assert form.n_supports == sum(complete)
    rank = np.array([0.1, 0.5, 0.3, 0.0, 0.2, 0.25, 0.9])
    assert form.is_met(form.largest(rank))
    assert form.largest(rank)[6]


def some_cuts(seed):
    rng = np.random.default_rng(seed)
    pool = CutPool(len(VIEWS))
    for _ in range(12):
        pool.add(3.0 * rng.standard_normal(), 10.0 * rng.random(len(VIEWS)), np.zeros((1, 2)))
    return pool


@pytest.mark.parametrize("position", range(len(list(forms()))))
def test_the_master_closes_its_own_gap_at_the_conic_optimum(position):
    # one program for all cuts and λ: to set one up takes ten times as long as to solve it
    cuts = some_cuts(0)
    kappa, half = cp.Parameter(cuts.kappa.shape), cp.Parameter(cuts.half_forms.shape)
    strength = cp.Parameter(nonneg=True)
    beta, t = cp.Variable(len(VIEWS), nonneg=True), cp.Variable(len(VIEWS))
    top = cp.Variable()
    form = list(forms())[position]
    z, holds = hull(VIEWS, form)
    holds += [cp.sum(beta) == 1, beta[np.flatnonzero(~form.allowed)] == 0]
    holds += [cp.quad_over_lin(beta[j], z[j]) <= t[j] for j in range(len(VIEWS))]
    holds.append(top >= kappa - half @ beta)
    program = cp.Problem(cp.Minimize(top + strength * cp.sum(t)), holds)
    for seed, lam in product(range(4), (0.01, 1.0, 30.0)):
        cuts, form = some_cuts(seed), list(forms(lam))[position]
        kappa.value, half.value, strength.value = cuts.kappa, cuts.half_forms, lam
        master = solve_cut_master(cuts, form)
        upper = cuts.model(master.weights) + form.value(master.weights)
        assert master.lower_bound <= upper
        assert upper - master.lower_bound <= 1e-7 * max(abs(upper), 1.0)
        assert upper == pytest.approx(program.solve(solver="CLARABEL"), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k0": 0}, "k0"),
        ({"n_views": 0}, "n_views"),
        ({"lam": -1.0}, "lam"),
    ],
)
def test_wrong_limits_are_refused(change, message):
    limits = {"lam": 1.0, "k0": 1, "views": VIEWS, "n_views": 1}
    with pytest.raises(ValueError, match=message):
        NestedPenalty.of(**limits | change)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(40))
def test_without_a_ridge_the_master_is_a_linear_program(seed):
    rng = np.random.default_rng(seed)
    q, m = int(rng.integers(1, 7)), int(rng.integers(1, 5))
    cuts = CutPool(q)
    for half in rng.random((m, q)) * 10.0 ** rng.integers(-3, 3, size=(m, 1)):
        cuts.add(float(rng.random()), 2.0 * half, np.zeros((1, 2)))
    view = tuple(rng.integers(0, rng.integers(1, 4), q).tolist())
    form = NestedPenalty.of(0.0, int(rng.integers(1, 4)), view, int(rng.integers(1, 4)))
    master = solve_cut_master(cuts, form)
    rows = np.hstack([-cuts.half_forms, -np.ones((m, 1))])
    simplex = np.append(np.ones(q), 0.0)[None]
    limits = [(0.0, None)] * q + [(None, None)]
    best = linprog(np.eye(q + 1)[q], rows, -cuts.kappa, simplex, [1.0], limits)
    assert master.lower_bound <= best.fun + 1e-9 * abs(best.fun)
    assert master.lower_bound == pytest.approx(best.fun, rel=1e-7, abs=1e-9)
