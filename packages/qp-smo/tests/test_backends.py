"""LIBSVM, the interior point, and the choice between them."""

from __future__ import annotations

import builtins
import sys
import warnings

import numpy as np
import pytest
from kernelweave.kernels_core import NotPSDError, SolveStatus
from kernelweave.kernels_core.config import config_context
from kernelweave.kernels_core.exceptions import KernelWeaveWarning, MemoryBudgetError
from kernelweave.qp_smo import (
    SVC,
    SquaredHingeSVC,
    engine,
    solve_svc,
    solve_svr,
)
from svm_problems import rbf, real_targets, two_classes


def test_libsvm_svc_agrees_for_both_first_labels():
    X, y = two_classes(n=80)
    K = rbf(X, 0.5)
    for labels in (y, -y):
        ours = solve_svc(K, labels, C=3.0, tol=1e-5)
        theirs = solve_svc(K, labels, C=3.0, tol=1e-5, backend="libsvm")
        assert theirs.backend == "libsvm"
        assert theirs.kkt_violation <= 1.01e-5
        assert theirs.objective == pytest.approx(ours.objective, rel=1e-8)
        np.testing.assert_allclose(theirs.dual_coef, ours.dual_coef, atol=1e-3)
        assert theirs.lower_bound <= ours.upper_bound


def test_libsvm_takes_weights_of_classes_only():
    X, y = two_classes(n=60)
    K = rbf(X, 0.5)
    weight = np.where(y > 0, 2.0, 0.5)
    ours = solve_svc(K, y, C=1.0, sample_weight=weight, tol=1e-5)
    theirs = solve_svc(K, y, C=1.0, sample_weight=weight, tol=1e-5, backend="libsvm")
    assert theirs.objective == pytest.approx(ours.objective, rel=1e-8)
    weight[3] = 7.0
    with pytest.raises(ValueError, match="equal inside each class"):
        solve_svc(K, y, C=1.0, sample_weight=weight, backend="libsvm")
    with pytest.raises(ValueError, match="equal inside each class"):
        solve_svr(K, y, C=1.0, epsilon=0.1, sample_weight=weight, backend="libsvm")


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_libsvm_svr_agrees(epsilon):
    X, y = real_targets(n=70)
    K = rbf(X, 0.5)
    ours = solve_svr(K, y, C=2.0, epsilon=epsilon, tol=1e-5)
    theirs = solve_svr(K, y, C=2.0, epsilon=epsilon, tol=1e-5, backend="libsvm")
    assert theirs.objective == pytest.approx(ours.objective, rel=1e-8)


def test_libsvm_is_not_believed():
    X, y = two_classes(n=60)
    K = 1e4 * rbf(X, 0.5)
    with pytest.warns(match="stalled"):
        solution = solve_svc(K, y, C=1.0, tol=1e-9, backend="libsvm")
    assert solution.status is SolveStatus.STALLED
    assert solution.kkt_violation > 1e-9


def test_libsvm_says_that_it_ignores_a_start():
    X, y = two_classes(n=40)
    with pytest.warns(KernelWeaveWarning, match="alpha0 is ignored"):
        solve_svc(rbf(X, 0.5), y, C=1.0, alpha0=np.zeros(40), backend="libsvm")


def test_libsvm_asks_for_its_memory_first():
    X, y = two_classes(n=60)
    with (
        config_context(memory_limit=16 * 60 * 60 - 1),
        pytest.raises(MemoryBudgetError, match="16 bytes an entry"),
    ):
        solve_svc(rbf(X, 0.5), y, C=1.0, backend="libsvm")


def test_a_missing_libsvm_is_named(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] == "libsvm":
            raise ImportError("No module named 'libsvm'")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    for name in [m for m in sys.modules if m.split(".")[0] == "libsvm"]:
        monkeypatch.delitem(sys.modules, name)
    X, y = two_classes(n=20)
    with pytest.raises(ImportError, match=r"pip install kernelweave-qp-smo\[libsvm\]"):
        solve_svc(rbf(X, 0.5), y, C=1.0, backend="libsvm")
    assert solve_svc(rbf(X, 0.5), y, C=1.0).status is SolveStatus.CONVERGED


def test_interior_point_asks_for_its_memory_first():
    X, y = two_classes(n=100)
    K = rbf(X, 0.5)
    with config_context(memory_limit=2 * 8 * 100 * 100):
        with pytest.raises(MemoryBudgetError, match="interior point"):
            solve_svc(K, y, C=1.0, backend="interior-point")
        assert solve_svc(K, y, C=1.0).backend == "smo"


def test_auto_turns_to_the_interior_point_and_says_so(monkeypatch):
    X, y = two_classes(n=120, d=6, noise=3.0)
    K = X @ X.T
    monkeypatch.setattr(engine, "_smo_budget", lambda n: 50)
    solution = solve_svc(K, y, C=1000.0, tol=1e-3)
    assert solution.backend == "interior-point"
    assert solution.status is SolveStatus.CONVERGED
    assert [line.split(":")[0] for line in solution.log] == ["smo", "interior-point", "smo"]
    assert "max_iter" in solution.log[0]
    assert solution.kkt_violation <= 1e-3
    monkeypatch.undo()
    reference = solve_svc(K, y, C=1000.0, tol=1e-3, backend="smo")
    assert solution.lower_bound <= reference.upper_bound
    assert reference.lower_bound <= solution.upper_bound


def test_auto_respects_a_small_max_iter():
    X, y = two_classes(n=120, d=6, noise=3.0)
    with pytest.warns(match="max_iter"):
        solution = solve_svc(X @ X.T, y, C=1000.0, max_iter=30)
    assert solution.backend == "smo"
    assert solution.n_iter <= 30


def test_an_indefinite_kernel_does_not_break_the_interior_point():
    X, y = two_classes(n=40)
    K = np.tanh(X @ X.T - 1.0)
    with pytest.raises(NotPSDError, match="rows 3 and 35"):
        solve_svc(K, y, C=10.0)
    settings = {"backend": "interior-point", "max_iter": 200, "check": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = solve_svc(K, y, C=10.0, **settings)
    assert np.linalg.eigvalsh(K)[0] < -1.0
    u = solution.dual_coef
    assert solution.lower_bound <= np.abs(u).sum() - 0.5 * u @ K @ u + 1e-12


def test_heart_linear_at_large_c(shared):
    file = shared / "data" / "heart_cleveland.csv"
    table = np.loadtxt(file, delimiter=",", skiprows=1)
    X, y = table[:, :-1], table[:, -1]
    X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    K = X @ X.T
    solutions = [
        solve_svc(K, y, C=100.0, tol=1e-3, backend=b) for b in ("auto", "smo", "interior-point")
    ]
    for one in solutions:
        assert one.kkt_violation <= 1e-3
        assert one.gap < 1e-4
        for other in solutions:
            assert one.lower_bound <= other.upper_bound


def test_german_numeric_hard_gram(shared):
    table = np.loadtxt(shared / "data" / "german_numeric.csv", delimiter=",", skiprows=1)
    X, y = table[::2, :-1], table[::2, -1]
    X = (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-12)
    reach = np.prod(1.1 - np.maximum(X[:, None], X[None]), axis=2)
    K = reach * (X @ X.T + 1.0) / reach.max()
    K = 0.5 * (K + K.T)
    ours = solve_svc(K, y, C=1000.0, tol=1e-4)
    check = solve_svc(K, y, C=1000.0, tol=1e-4, backend="interior-point")
    assert ours.kkt_violation <= 1e-4
    assert ours.lower_bound <= check.upper_bound
    assert check.lower_bound <= ours.upper_bound


def squared_hinge_dual(K, y, bound):
    import cvxpy as cp

    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    alpha = cp.Variable(y.size)
    penalty = cp.sum(cp.multiply(1 / (4 * bound), cp.square(alpha)))
    value = cp.sum(alpha) - 0.5 * cp.sum_squares(root.T @ cp.multiply(y, alpha)) - penalty
    return cp.Problem(cp.Maximize(value), [alpha >= 0, y @ alpha == 0])


@pytest.mark.parametrize("C", [0.05, 1.0, 200.0])
def test_squared_hinge_matches_clarabel_and_its_primal(C, conic_optimum):
    X, y = two_classes(n=70, seed=6)
    K = rbf(X, 0.5)
    weight = np.random.default_rng(0).uniform(0.2, 2.0, size=70)
    s = SquaredHingeSVC(C=C).solve(K, y, sample_weight=weight)
    reference, digits = conic_optimum(squared_hinge_dual(K, y, C * weight), 1e-11)
    assert s.details.objective == pytest.approx(reference, rel=max(1e-7, digits))
    assert s.lower_bound <= s.details.objective <= s.upper_bound
    assert s.gap < 1e-9 * s.upper_bound
    u = s.dual_coef[0]
    margin = y * (s.function_values + s.intercept[:, None])[0]
    np.testing.assert_allclose(y * u, 2 * C * weight * np.maximum(1 - margin, 0), atol=1e-6)
    primal = 0.5 * u @ K @ u + (C * weight) @ np.maximum(1 - margin, 0) ** 2
    assert s.upper_bound == pytest.approx(primal, rel=1e-9)


def test_squared_hinge_conversion_to_the_unscaled_form():
    X, y = two_classes(n=40, seed=6)
    K, lam = rbf(X, 0.5), 0.3
    s = SquaredHingeSVC(C=1 / (2 * lam)).solve(K, y)
    u = s.dual_coef[0]
    unscaled = 2 * np.abs(u).sum() - u @ (K + lam * np.eye(40)) @ u
    assert 2 * s.details.objective == pytest.approx(unscaled, rel=1e-12)


def test_squared_hinge_weight_zero_equals_removal():
    X, y = two_classes(n=60, seed=6)
    K = rbf(X, 0.5)
    weight = np.ones(60)
    weight[4:20] = 0.0
    keep = weight > 0.0
    whole = SquaredHingeSVC(C=2.0).solve(K, y, sample_weight=weight)
    part = SquaredHingeSVC(C=2.0).solve(K[np.ix_(keep, keep)], y[keep])
    np.testing.assert_array_equal(whole.dual_coef[:, keep], part.dual_coef)
    np.testing.assert_allclose(whole.function_values[0], K @ whole.dual_coef[0], rtol=1e-12)
    assert not whole.dual_coef[:, ~keep].any()
    assert whole.upper_bound == part.upper_bound


def test_a_learner_can_be_told_the_backend():
    X, y = two_classes(n=40)
    solution = SVC(C=2.0).solve(rbf(X, 0.5), np.stack([y, -y]), backend="interior-point")
    assert {task.backend for task in solution.details} == {"interior-point"}
