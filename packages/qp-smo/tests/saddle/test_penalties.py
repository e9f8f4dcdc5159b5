import cvxpy as cp
import numpy as np
import pytest
from kernelweave.qp_smo.saddle import KSupport


def k_support(beta, k):
    """Solve min Σβ²/z over z by a conic solver."""
    z = cp.Variable(beta.size)
    cost = sum(b * b * cp.inv_pos(z[j]) for j, b in enumerate(beta) if b > 0)
    problem = cp.Problem(cp.Minimize(cost), [cp.sum(z) <= k, z <= 1, z >= 1e-9])
    return problem.solve(solver="CLARABEL")


@pytest.mark.parametrize("k0", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_k_support_value_is_the_least_over_the_shares(k0, seed):
    beta = np.random.default_rng(seed).dirichlet(np.full(5, 0.5))
    value = KSupport(2.0, k0).on(5).value(beta)
    assert value == pytest.approx(2.0 * k_support(beta, k0), rel=1e-6)


def test_k_support_is_the_ridge_on_sparse_weights():
    beta = np.array([0.7, 0.0, 0.3])
    assert KSupport(1.0, 2).on(3).value(beta) == pytest.approx(0.58, rel=1e-14)
    assert KSupport(1.0, 3).on(3).value(beta) == KSupport(1.0).on(3).value(beta)


PENALTIES = [
    KSupport(0.0),
    KSupport(0.3),
    KSupport(1e-6),
    KSupport(0.7, 2),
    KSupport(1e-4, 1),
]


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@pytest.mark.parametrize("scale", [1.0, 1e12])
def test_best_response_is_a_bound_that_its_weights_attain(penalty, scale):
    form = penalty.on(5)
    rng = np.random.default_rng(3)
    c = scale * rng.random(5)
    weights, low = form.best_response(c)
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    own = form.value(weights) - c @ weights
    assert low <= own
    assert own - low <= 1e-9 * max(abs(own), scale)
    for beta in rng.dirichlet(np.full(5, 0.3), size=200):
        assert low <= form.value(beta) - c @ beta


def test_branches_require_and_exclude():
    form = KSupport(1.0, 2).on(4)
    required = np.array([True, False, False, False])
    excluded = np.array([False, True, False, False])
    branch = form.restricted(required, excluded)
    assert branch.capacity == 1
    assert branch.allowed.tolist() == [True, False, True, True]
    weights, _ = branch.best_response(np.array([0.0, 9.0, 1.0, 2.0]))
    assert weights.tolist() == [0.0, 0.0, 0.0, 1.0]
    full = branch.restricted(np.array([True, False, True, False]), excluded)
    assert full.allowed.tolist() == [True, False, True, False]


@pytest.mark.parametrize(
    ("penalty", "message"),
    [
        (KSupport(-1.0), "lam"),
        (KSupport(1.0, 0), "k0"),
        (KSupport(np.nan, 1), "lam"),
    ],
)
def test_bad_parameters_are_named(penalty, message):
    with pytest.raises(ValueError, match=message):
        penalty.on(3)
