import sys

import cvxpy as cp
import numpy as np
import pytest
from kernelweave.qp_smo import SVR, solve_svc
from kernelweave.relaxations import lower_bound, solve_global
from kernelweave.relaxations.conic import attempts
from kernelweave.relaxations.model import base_model, couple_matrix
from kernelweave.relaxations.sparse_problem import as_problem


def solved(model):
    return next(attempts(model.problem, None)).value


def commuting(n=12, q=3, seed=0):
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.standard_normal((n, n)))[0]
    grams = np.stack([(U * rng.random(n)) @ U.T for _ in range(q)])
    grams = 0.5 * (grams + grams.transpose(0, 2, 1))
    y = np.where(rng.random(n) > 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return grams, y


@pytest.mark.parametrize("seed", range(3))
def test_the_full_program_has_the_value_of_the_saddle_on_commuting_grams(seed):
    grams, y = commuting(seed=seed)
    setting = {"C": 2.0, "lam": 0.5, "k0": 2}
    full = lower_bound(grams, y, relaxation="full-sdp", **setting)
    saddle = lower_bound(grams, y, tol=1e-8, **setting)
    assert full.bound == pytest.approx(saddle.bound, rel=1e-5)
    assert full.bound <= saddle.value


def test_the_matrix_form_of_the_learner_is_the_learner(problem):
    grams, y, _ = problem
    one = as_problem(grams[3:4], y, C=5.0, lam=1.0, k0=1)
    value = solved(base_model(one, couple_matrix(one)))
    svm = solve_svc(grams[3], y, C=5.0, tol=1e-8)
    assert value == pytest.approx(svm.upper_bound + 1.0, rel=1e-5)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_10_with_a_pseudoinverse_is_11_with_a_matrix_inequality(problem):
    """K(β) of rank 3: γ must lie in its range, and both forms say so."""
    _, y, X = problem
    K = X @ X.T
    n, C = y.size, 5.0
    values, vectors = np.linalg.eigh(K)
    root = vectors[:, -3:] * np.sqrt(values[-3:])
    w, eta, sigma = cp.Variable(3), cp.Variable(), cp.Variable(n, nonneg=True)
    # γ = root w runs over the range of K, and γᵀK†γ = ‖w‖²
    ten = cp.Problem(
        cp.Minimize(C * cp.sum(sigma) + 0.5 * cp.sum_squares(w)),
        [sigma >= 1 - cp.multiply(y, root @ w + eta)],
    ).solve(solver="CLARABEL")
    gamma, theta = cp.Variable(n), cp.Variable()
    column = cp.reshape(gamma, (n, 1), order="F")
    corner = cp.reshape(theta, (1, 1), order="F")
    eleven = cp.Problem(
        cp.Minimize(C * cp.sum(sigma) + 0.5 * theta),
        [
            sigma >= 1 - cp.multiply(y, gamma + eta),
            cp.bmat([[corner, column.T], [column, K]]) >> 0,
        ],
    ).solve(solver="CLARABEL")
    assert eleven == pytest.approx(ten, rel=1e-5)
    assert ten == pytest.approx(solve_svc(K, y, C=C, tol=1e-8).upper_bound, rel=1e-5)


def test_enumerating_the_programs_of_the_supports_is_the_global_search(problem):
    grams, y, _ = problem
    values = []
    for support in ([0, 1], [0, 2], [1, 2]):
        part = as_problem(grams[support], y, C=5.0, lam=1.0, k0=2)
        values.append(solved(base_model(part, couple_matrix(part))))
    s = solve_global(grams[:3], y, C=5.0, lam=1.0, k0=2, tol=1e-6)
    assert s.upper_bound == pytest.approx(min(values), rel=1e-5)


@pytest.mark.parametrize("name", ["saddle", "soc", "full-sdp"])
def test_regression_has_bounds_too(problem, name):
    grams, _, X = problem
    y = np.sin(X[:, 0])
    learner = SVR(C=2.0, epsilon=0.1)
    b = lower_bound(grams, y, learner=learner, lam=1.0, k0=1, relaxation=name)
    s = solve_global(grams, y, learner=learner, lam=1.0, k0=1)
    assert b.bound <= s.upper_bound
    assert abs(b.gap) <= 1e-4


def test_a_bound_survives_a_sloppy_solver(problem, monkeypatch):
    grams, y, _ = problem
    exact = lower_bound(grams, y, C=5.0, lam=1.0, k0=2, relaxation="soc")
    original = cp.Problem.solve

    def sloppy(self, *args, **kwargs):
        value = original(self, *args, **kwargs)
        for constraint in self.constraints:
            for variable in constraint.dual_variables:
                variable.save_value(1.07 * variable.value + 0.01)
        return value

    monkeypatch.setattr(cp.Problem, "solve", sloppy)
    worse = lower_bound(grams, y, C=5.0, lam=1.0, k0=2, relaxation="soc")
    assert worse.bound <= exact.value
    best = solve_global(grams, y, C=5.0, lam=1.0, k0=2)
    assert worse.bound <= best.upper_bound


def test_another_solver_by_name(problem):
    grams, y, _ = problem
    b = lower_bound(grams, y, C=1.0, lam=1.0, k0=1, relaxation="soc", solver="scs")
    assert b.solver == "SCS"
    with pytest.raises(ValueError, match="not installed"):
        lower_bound(grams, y, C=1.0, lam=1.0, k0=1, relaxation="soc", solver="NOSUCH")
    with pytest.raises(ValueError, match="relaxation must be"):
        lower_bound(grams, y, C=1.0, lam=1.0, k0=1, relaxation="best")


def test_saddle_needs_no_cvxpy(problem, monkeypatch):
    grams, y, _ = problem
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    assert lower_bound(grams, y, C=1.0, lam=1.0, k0=1).bound > 0
    with pytest.raises(ImportError, match="cvxpy"):
        lower_bound(grams, y, C=1.0, lam=1.0, k0=1, relaxation="soc")
