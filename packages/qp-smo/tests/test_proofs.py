"""Both ends of the interval, and exact feasibility, in rational arithmetic."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kernelweave.kernels_core.grams.psd import negative_part
from kernelweave.qp_smo import SVC, SVR, solve_svc, solve_svr, svm
from kernelweave.qp_smo.bounds import best_intercept
from kernelweave.qp_smo.point import starting_point, to_grid
from kernelweave.qp_smo.problem import classification, regression
from sklearn.exceptions import ConvergenceWarning
from svm_problems import (
    exact,
    exact_bound,
    exact_dual,
    exact_primal,
    rbf,
    real_targets,
    two_classes,
)


def assert_exactly_feasible(u, lower, upper):
    values = exact(u)
    assert sum(values) == 0
    assert float(u.sum()) == 0.0
    assert float(u[::-1].sum()) == 0.0
    assert math.fsum(u) == 0.0
    assert all(a <= x <= b for a, x, b in zip(exact(lower), values, exact(upper), strict=True))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("C", [0.1, 1 / 3, 100.0, 1e8])
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-8])
def test_svc_ends_hold_in_exact_arithmetic(C, tol, dtype):
    X, y = two_classes(n=24, seed=7)
    K = rbf(X, 0.7).astype(dtype)
    weight = np.random.default_rng(0).uniform(0.1, 1.9, size=24)
    s = solve_svc(K, y, C=C, sample_weight=weight, tol=tol)
    bound = C * weight
    lower, upper = np.minimum(y * bound, 0.0), np.maximum(y * bound, 0.0)
    assert_exactly_feasible(s.dual_coef, lower, upper)
    value = exact_dual(K, y, 0, s.dual_coef)
    primal = exact_primal(K, y, 0, lower, upper, s.dual_coef, s.intercept)
    assert Fraction(s.lower_bound) <= value
    least = exact_bound(K, y, lower, upper, s)
    assert value <= primal
    assert value <= least <= Fraction(s.upper_bound)
    assert s.upper_bound <= float(primal) + 1e-13 * (float(primal) + float(bound.sum()))
    assert Fraction(s.kappa) == sum(exact(s.alpha))
    size = float(np.abs(s.dual_coef) @ np.abs(K) @ np.abs(s.dual_coef)) + abs(s.kappa)
    assert float(value) - s.lower_bound <= 1e-13 * size
    assert s.upper_bound - float(least) <= 1e-13 * (size + float(bound.sum()))


def test_a_stretched_point_saves_the_losses_on_the_margin_when_C_is_large():
    X, y = two_classes(n=24, seed=7)
    K = rbf(X, 5.0)
    loose, tight = solve_svc(K, y, C=1e8, tol=1e-3), solve_svc(K, y, C=1e8, tol=1e-10)
    assert 0.0 < loose.stretch < 1e-2
    assert loose.gap < 1e-2
    assert loose.lower_bound <= tight.upper_bound <= loose.upper_bound


@pytest.mark.parametrize("C", [0.1, 10.0, 1e6])
def test_the_interval_holds_for_every_matrix_within_the_error_of_the_gram(C):
    X, y = two_classes(n=24, seed=3)
    K = rbf(X, 0.7)
    rng = np.random.default_rng(0)
    near = K + 1e-5 * np.diag(rng.uniform(0.0, 1.0, size=24))
    stated = SVC(C=C).solve(K, y, tol=1e-9, gram_error=1e-5)
    there = SVC(C=C).solve(near, y, tol=1e-9)
    assert stated.lower_bound <= there.lower_bound
    assert there.upper_bound <= stated.upper_bound


@pytest.mark.parametrize("C", [0.1, 100.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("tol", [1e-1, 1e-8])
def test_svr_ends_hold_in_exact_arithmetic(C, epsilon, tol):
    X, y = real_targets(n=24, seed=7)
    K = rbf(X, 0.7)
    s = solve_svr(K, y, C=C, epsilon=epsilon, tol=tol)
    upper = np.full(24, C)
    assert_exactly_feasible(s.alpha, -upper, upper)
    value = exact_dual(K, y, epsilon, s.alpha)
    primal = exact_primal(K, y, epsilon, -upper, upper, s.alpha, s.intercept)
    assert Fraction(s.lower_bound) <= value <= primal <= Fraction(s.upper_bound)
    linear = exact_dual(np.zeros((24, 24)), y, epsilon, s.alpha)
    assert Fraction(s.kappa) <= linear
    assert s.kappa == pytest.approx(float(linear), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("max_iter", [1, 2, 5, 20])
def test_ends_hold_when_stopped_early(max_iter):
    X, y = two_classes(n=24, seed=11)
    K = X @ X.T
    with pytest.warns(match="max_iter"):
        s = solve_svc(K, y, C=50.0, tol=1e-9, max_iter=max_iter)
    reference = solve_svc(K, y, C=50.0, tol=1e-9)
    assert s.lower_bound <= reference.upper_bound
    assert s.upper_bound >= reference.lower_bound
    assert Fraction(s.lower_bound) <= exact_dual(K, y, 0, s.dual_coef)


def rounded_gram(kind, X):
    """Matrices that are positive semidefinite but for their rounding."""
    if kind == "outer":
        return np.outer(X[:, 0], X[:, 0])
    return X @ X.T if kind == "product" else (1.0 + X @ X.T) ** 2


# the first two had an upper bound below a dual point
@pytest.mark.parametrize(
    ("seed", "kind", "C"),
    [(81, "outer", 1e10), (108, "outer", 1e12)]
    + [
        (seed, kind, 10.0 ** (9 + (seed + 2 * i) % 6))
        for seed in range(4)
        for i, kind in enumerate(["outer", "product", "power"])
    ],
)
def test_no_dual_point_lies_above_the_bound_where_rounding_made_the_gram_indefinite(seed, kind, C):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(8, 26)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, d))
    y = np.sign(X[:, 0] + rng.choice([0, 0.3, 1.0]) * rng.normal(size=n))
    y[:2] = 1.0, -1.0
    K = rounded_gram(kind, X)
    rng.integers(9, 15)
    weight = rng.uniform(0.1, 2.0, n)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for backend in ("smo", "interior-point"):
            for tol in (1e-3, 1e-9):
                settings = {"C": C, "sample_weight": weight, "tol": tol, "backend": backend}
                settings["max_iter"] = 20_000
                found.append(solve_svc(K, y, **settings))
    best = max(exact_dual(K, y, 0, s.dual_coef) for s in found)
    assert best <= Fraction(min(s.upper_bound for s in found))
    tols = 2 * [1e-3, 1e-9]
    assert all((s.status == "converged") == (s.gap <= t) for s, t in zip(found, tols, strict=True))


def test_the_gap_decides_and_not_the_violation():
    X, y = two_classes(n=20, seed=1, noise=1.0)
    with pytest.warns(ConvergenceWarning, match=r"stalled.*the relative gap is 0\.\d+ \(tol=0.001"):
        wide = solve_svc(X @ X.T, y, C=1e10, tol=1e-3)
    assert wide.kkt_violation <= 1e-3 < wide.gap
    assert wide.status == "stalled"
    loose = solve_svc(rbf(X, 0.5), y, C=1e4, tol=1e-6)
    assert loose.gap <= 1e-6
    assert loose.status == "converged"


def is_definite(K):
    """Whether a matrix of rationals is positive semidefinite, by elimination without rounding."""
    K = [row[:] for row in K]
    for k in range(len(K)):
        if K[k][k] < 0 or (K[k][k] == 0 and any(K[k][j] != 0 for j in range(k, len(K)))):
            return False
        for i in range(k + 1, len(K)):
            if K[k][k] != 0 and K[i][k] != 0:
                factor = K[i][k] / K[k][k]
                K[i] = [a - factor * b for a, b in zip(K[i], K[k], strict=True)]
    return True


def test_what_a_gram_lacks_to_a_definite_one_is_proved():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, 2))
    cases = {
        "outer": rounded_gram("outer", X),
        "product": X @ X.T,
        "power": rounded_gram("power", X),
        "single": (X @ X.T).astype(np.float32),
        "sigmoid": np.tanh(X @ X.T - 1.0),
        "scales": rounded_gram("product", X * 10.0 ** rng.integers(-9, 9, size=(9, 1))),
        "zeros": np.pad(rounded_gram("product", X), (0, 2)),
        "definite": rbf(X, 3.0),
    }
    for name, K in cases.items():
        delta = negative_part(K)
        exactly = [[Fraction(float(v)) for v in row] for row in K]
        for i, more in enumerate(delta):
            exactly[i][i] += Fraction(float(more))
        assert is_definite(exactly), name
        eigenvalue = float(np.linalg.eigvalsh(K.astype(float))[0])
        least = max(0.0, -eigenvalue)
        assert delta.max() <= 2.0 * least + 1e-12 * np.abs(K).max(), name
    assert not negative_part(cases["definite"]).any()
    assert negative_part(np.zeros((3, 3))).max() == 0.0


def test_an_indefinite_gram_is_charged_and_not_called_solved():
    X, y = two_classes(n=12, seed=5)
    K = X @ X.T - 0.1 * np.eye(12)
    corner = SVC(C=1.0).problem(K, y)
    with pytest.warns(ConvergenceWarning, match="relative gap"):
        s = solve_svc(K, y, C=1.0)
    assert s.negative_part == pytest.approx(0.1, rel=0.05)
    # the maximum of a function that is not concave: many local searches from corners
    best, rng = 0.0, np.random.default_rng(0)
    for _ in range(200):
        u = starting_point(rng.choice([0.0, 1.0], 12) * y, corner.lower, corner.upper)
        point = to_grid(u, corner.lower, corner.upper)
        best = max(best, float(exact_dual(K, y, 0, point.u)))
    assert 0.0 < best <= s.upper_bound


def test_asymmetry_widens_the_interval_as_it_must():
    X, y = two_classes(n=20, seed=2)
    K = rbf(X, 0.5)
    skew = K + 1e-9 * np.triu(np.random.default_rng(0).normal(size=K.shape), 1)
    with pytest.warns(ConvergenceWarning, match="relative gap"):
        s = solve_svc(skew, y, C=1.0, tol=1e-9)
    symmetric = 0.5 * (skew + skew.T)
    upper = np.maximum(y, 0.0)
    primal = exact_primal(symmetric, y, 0, np.minimum(y, 0.0), upper, s.dual_coef, s.intercept)
    value = exact_dual(symmetric, y, 0, s.dual_coef)
    assert Fraction(s.lower_bound) <= value <= primal <= Fraction(s.upper_bound)
    assert s.gap < 1e-6


reals = st.floats(-1.0, 1.0, allow_nan=False)


@settings(max_examples=150, deadline=None)
@example(u=[2.0937218611755596e-07, 2.220446049250313e-16, -1.0], scale=1e-200, signed=False)
@example(u=[0.0, 1.0], scale=1e-200, signed=False)
@given(
    u=st.lists(reals, min_size=2, max_size=40),
    scale=st.sampled_from([1e-200, 1e-9, 0.1, 1.0, 7.3, 1e9, 1e200]),
    signed=st.booleans(),
)
def test_grid_points_are_feasible_whatever_comes_in(u, scale, signed):
    u = np.array(u) * scale * 1.7
    bound = np.full(u.size, scale)
    bound[::3] *= 0.37
    lower = -bound
    if not signed:
        lower, bound = np.where(u > 0, 0.0, -bound), np.where(u > 0, bound, 0.0)
    point = to_grid(starting_point(u, lower, bound), lower, bound)
    assert_exactly_feasible(point.u, lower, bound)
    assert np.all(point.lower >= lower)
    assert np.all(point.upper <= bound)
    balanced = starting_point(u, lower, bound)
    finest = 2.0**-1000
    allowed = 1e-12 * np.abs(balanced).sum() + abs(math.fsum(balanced)) + u.size * finest
    assert np.abs(point.u - balanced).max() <= allowed


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_intercept_minimises_the_primal(epsilon):
    rng = np.random.default_rng(3)
    y = np.where(rng.random(31) > 0.4, 1.0, -1.0)
    f, bound = rng.normal(size=31), rng.uniform(0.1, 2.0, size=31)
    K = np.eye(31)
    problem = (
        classification(K, y, bound) if epsilon == 0.0 else regression(K, y + f, bound, epsilon)
    )

    def loss(b):
        r = problem.p - f - b
        above, below = np.maximum(r - epsilon, 0), np.maximum(-r - epsilon, 0)
        return problem.upper @ above - problem.lower @ below

    best = loss(best_intercept(problem, f))
    assert best <= min(loss(b) for b in np.linspace(-4, 4, 4001)) + 1e-12


def test_a_flat_intercept_is_the_middle():
    problem = classification(np.eye(2), np.array([1.0, -1.0]), np.ones(2))
    assert best_intercept(problem, np.array([3.0, -2.0])) == pytest.approx(-0.5)


def test_cut_is_valid_for_another_gram():
    X, y = two_classes(n=30, seed=1)
    learner = SVC(C=2.0)
    solution = learner.solve(rbf(X, 0.5), y)
    u = solution.dual_coef[0]
    for gamma in (0.1, 1.0, 3.0):
        other = rbf(X, gamma)
        cut = solution.kappa - 0.5 * float(u @ other @ u)
        assert cut <= learner.solve(other, y).upper_bound
        upper, _ = learner.primal_at(y, u, [other @ u], np.full(1, 1e-12))
        assert upper >= learner.solve(other, y).lower_bound


def test_multi_task_sums_are_rounded_outwards():
    X, y = real_targets(n=30)
    targets = np.stack([y, -2.0 * y, y**2])
    learner = SVR(C=2.0, epsilon=0.05)
    together = learner.solve(rbf(X, 0.5), targets, tol=1e-6)
    assert together.dual_coef.shape == (3, 30)
    parts = [learner.solve(rbf(X, 0.5), t, tol=1e-6) for t in targets]
    assert Fraction(together.kappa) <= sum(exact([p.kappa for p in parts]))
    assert Fraction(together.lower_bound) <= sum(exact([p.lower_bound for p in parts]))
    assert Fraction(together.upper_bound) >= sum(exact([p.upper_bound for p in parts]))
    assert together.upper_bound == pytest.approx(sum(p.upper_bound for p in parts), rel=1e-12)


def rounded_apart(K, ulps, seed):
    """A matrix whose two halves are set apart by rounding, as ``rbf_kernel`` leaves them."""
    units = np.random.default_rng(seed).integers(-ulps, ulps + 1, size=K.shape)
    return K * (1.0 + np.triu(units, 1) * 2.0**-53)


@pytest.mark.parametrize("C", [0.1, 10.0, 1e4])
@pytest.mark.parametrize("tol", [1e-3, 1e-8])
@pytest.mark.parametrize("ulps", [2, 100])
def test_ends_hold_for_the_symmetric_part_of_what_rounding_set_apart(ulps, tol, C):
    X, y = two_classes(n=24, seed=4)
    K = rounded_apart(rbf(X, 0.7), ulps, seed=1)
    assert not np.array_equal(K, K.T)
    s = solve_svc(K, y, C=C, tol=tol)
    lower, upper = np.minimum(C * y, 0.0), np.maximum(C * y, 0.0)
    value = exact_dual(K, y, 0, s.dual_coef)
    whole = [[Fraction(float(v)) for v in row] for row in K]
    symmetric = [[(whole[i][j] + whole[j][i]) / 2 for j in range(24)] for i in range(24)]
    assert Fraction(s.lower_bound) <= value
    assert value <= exact_bound(symmetric, y, lower, upper, s)
    assert exact_bound(symmetric, y, lower, upper, s) <= Fraction(s.upper_bound)
    assert s.status == "converged"


def test_no_factor_is_made_where_its_room_is_nothing_beside_the_tolerance(monkeypatch):
    made = []

    def counted(K):
        made.append(len(K))
        return negative_part(K)

    monkeypatch.setattr(svm, "negative_part", counted)
    X, y = two_classes(n=200, seed=2)
    K = rbf(X, 0.5)
    for C in (1.0, 1e4):
        s = solve_svc(K, y, C=C)
        assert s.status == "converged"
        assert s.negative_part is None
    assert made == []
    # 2n²uC is above a hundredth of the tolerance
    s = solve_svc(K, y, C=1e7, tol=1e-3)
    assert made == [200]
    assert s.negative_part is not None


def test_what_is_charged_for_rounding_is_proved_where_it_alone_leaves_the_gap_open(monkeypatch):
    X, y = two_classes(n=150, seed=2)
    K = rbf(X, 5.0)
    monkeypatch.setattr(svm, "_NOTHING", np.inf)
    loose, tight = (solve_svc(K, y, C=1e5, tol=tol) for tol in (1e-7, 1e-10))
    assert loose.negative_part is None
    assert tight.negative_part == 0.0
    assert tight.gap <= 1e-10 < 1e-9 < loose.gap


@pytest.mark.parametrize("seed", range(3))
def test_the_charge_covers_matrices_that_rounding_made_indefinite(seed, monkeypatch):
    monkeypatch.setattr(svm, "_SMALL", 10)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 3))
    y = np.sign(X[:, 0] + 0.5 * rng.normal(size=30))
    K = X @ X.T
    assert np.linalg.eigvalsh(K)[0] < 0.0
    loose, tight = (solve_svc(K, y, C=1.0, tol=tol) for tol in (1e-3, 1e-7))
    assert loose.negative_part is None
    best = max(exact_dual(K, y, 0, s.dual_coef) for s in (loose, tight))
    assert best <= Fraction(loose.upper_bound)
