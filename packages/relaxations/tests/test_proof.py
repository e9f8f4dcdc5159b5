"""Proof files of sparse optima: checked by the other distribution, against enumeration."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from kernelweave.qp_smo import SVC, SVR, UnprovedError, solve_svc
from kernelweave.relaxations import prove_sparse, solve_global
from kernelweave_check import check


def problem(seed: int, n: int, q: int) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, q, 2))
    y = np.where(X[:, 0].sum(1) + X[:, 1, 0] * X[:, 1, 1] + 0.3 * rng.standard_normal(n) > 0, 1, -1)
    grams = [
        np.exp(-0.5 * ((X[:, None, j] - X[None, :, j]) ** 2).sum(-1))
        if j % 2
        else X[:, j] @ X[:, j].T
        for j in range(q)
    ]
    return grams, y.astype(float)


def best_by_cvxpy(
    grams: list[np.ndarray], y: np.ndarray, C: float, lam: float, supports: list[tuple[int, ...]]
) -> float:
    """Return the least objective over supports: the saddle as one conic program each."""
    values = []
    for support in supports:
        u, t, bounds = cp.Variable(y.size), cp.Variable(len(support)), []
        tau = cp.Variable()
        for j, each in zip(support, t, strict=True):
            values_, vectors = np.linalg.eigh(grams[j])
            root = vectors * np.sqrt(np.maximum(values_, 0.0))
            bounds.append(0.5 * cp.sum_squares(root.T @ u) <= each)
        # min over β of λ‖β‖² − hᵀβ is −τ − Σ(h − τ)₊²/4λ at the best τ
        least = -tau - cp.sum_squares(cp.pos(t - tau)) / (4.0 * lam)
        box = [cp.multiply(y, u) >= 0, cp.multiply(y, u) <= C, cp.sum(u) == 0]
        program = cp.Problem(cp.Maximize(y @ u + least), [*bounds, *box])
        values.append(program.solve(solver="CLARABEL"))
    return float(min(values))


@pytest.mark.parametrize(
    ("q", "k0", "C", "lam"), [(4, 1, 1.0, 0.1), (5, 2, 10.0, 1.0), (4, 4, 5.0, 0.3)]
)
def test_the_interval_holds_the_optimum(
    tmp_path: Path, q: int, k0: int, C: float, lam: float
) -> None:
    grams, y = problem(q, 20, q)
    proof = prove_sparse(grams, y, C=C, lam=lam, k0=k0, tol=1e-6)
    proof.save(tmp_path / "proof")
    found = check(tmp_path / "proof")
    supports = list(combinations(range(q), k0))
    truth = best_by_cvxpy(grams, y, C, lam, supports)
    assert float(found.lower) <= truth * (1 + 1e-6)
    assert truth * (1 - 1e-6) <= float(found.upper)
    assert found.upper - found.lower <= 2e-6 * found.upper
    assert (found.n_leaves, len(found.cuts)) == (proof.n_leaves, proof.n_cuts)


def test_views(tmp_path: Path) -> None:
    grams, y = problem(1, 20, 6)
    views, C, lam = ["a", "a", "b", "b", "c", "c"], 3.0, 0.5
    proof = prove_sparse(grams, y, C=C, lam=lam, k0=1, views=views, n_views=2, tol=1e-5)
    proof.save(tmp_path / "proof")
    found = check(tmp_path / "proof")
    supports = [s for s in combinations(range(6), 2) if views[s[0]] != views[s[1]]]
    truth = best_by_cvxpy(grams, y, C, lam, supports)
    assert float(found.lower) - 1e-5 <= truth <= float(found.upper) + 1e-5


def test_the_dual_of_one_machine_and_of_a_regression(tmp_path: Path) -> None:
    grams, y = problem(2, 40, 2)
    path = tmp_path / "proof"
    prove_sparse(grams[1:], y, C=10.0, lam=0.0, k0=1, tol=1e-8).save(path)
    found = check(path)
    dual = solve_svc(grams[1], y, C=10.0, tol=1e-9)
    assert float(found.lower) <= dual.upper_bound
    assert dual.lower_bound <= float(found.upper)
    weight = np.linspace(0.0, 2.0, y.size)
    target = y + 0.1 * np.arange(y.size)
    prove_sparse(
        grams, target, learner=SVR(C=2.0, epsilon=0.1), lam=0.1, k0=1, sample_weight=weight
    ).save(path)
    svr = solve_global(
        grams, target, learner=SVR(C=2.0, epsilon=0.1), lam=0.1, k0=1, sample_weight=weight
    )
    found = check(path)
    assert float(found.lower) <= svr.upper_bound
    assert svr.lower_bound <= float(found.upper)


def test_tasks_share_the_weights(tmp_path: Path) -> None:
    grams, y = problem(3, 24, 4)
    both = np.stack([y, np.roll(y, 5)])
    optimum = solve_global(grams, both, learner=SVC(C=2.0), lam=0.2, k0=2)
    prove_sparse(grams, both, learner=SVC(C=2.0), lam=0.2, k0=2, optimum=optimum).save(
        tmp_path / "proof"
    )
    found = check(tmp_path / "proof")
    assert float(found.lower) <= optimum.upper_bound
    assert optimum.lower_bound <= float(found.upper)


def test_a_gap_that_rounding_forbids_is_said() -> None:
    grams, y = problem(4, 30, 3)
    with pytest.raises(UnprovedError, match="raise tol"):
        prove_sparse([1e3 * K for K in grams], y, C=1e5, lam=0.1, k0=1, tol=1e-15)
