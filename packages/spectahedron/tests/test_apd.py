"""The accelerated primal-dual method and the hybrid: valid constants, exact subproblems."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import Problem, Result, TessellatedFamily, solve
from kernelweave.kernels_core.testing import check_algorithm, make_classification, make_regression
from kernelweave.qp_smo import SVC, SVR
from kernelweave.spectahedron import Spectahedron
from kernelweave.spectahedron.first_order import PrimalDualSearch
from numpy.testing import assert_allclose
from scipy.optimize import minimize

BOX = TessellatedFamily(1, lower=[-0.5] * 2, upper=[1.5] * 2)


def example(task: str = "classification", m: int = 30) -> Problem:
    if task == "classification":
        X, y = make_classification(m)
        return Problem(BOX, SVC(C=1.0), Spectahedron(), X, y)
    X, y = make_regression(m)
    return Problem(BOX, SVR(C=1.0, epsilon=0.1), Spectahedron(), X, y)


def run(problem: Problem, algorithm: str, max_iter: int = 40, **params: Any) -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solve(problem, algorithm, tol=1e-9, max_iter=max_iter, **params)


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize("name", ["tkl-hybrid", "tkl-apd"])
def test_conformance(name: str) -> None:
    check_algorithm(name, tol=1e-2, max_iter=200)


def test_every_step_passes_the_local_test() -> None:
    """The norms come from the family's blocks, pair by pair."""
    problem = example(m=10)
    search = PrimalDualSearch(problem, np.random.RandomState(0))
    blocks = np.array([[BOX.block(x, z) for z in problem.X] for x in problem.X])
    blocks /= search.oracle.scale
    K = np.einsum("klii->kl", blocks)
    for _ in range(30):
        before, ratio = search.u, search.ratio
        search.step()
        du = search.u - before
        D = [np.einsum("tk,klij,tl->ij", u, blocks, u) for u in (before, search.u)]
        change = 0.5 * (D[1] - D[0])
        tau = search.last_tau * np.sqrt(search.ratio / ratio)
        moved = np.einsum("tk,kl,tl->", du, K, du)
        assert ratio * tau**2 * np.sum(change**2) <= moved * (1.0 + 1e-6)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_proximal_program_is_solved(task: str) -> None:
    problem = example(task, 10)
    search = PrimalDualSearch(problem, np.random.RandomState(0))
    oracle, tau = search.oracle, 0.3
    v = np.ones((BOX.n_P, 1)) / np.sqrt(BOX.n_P)
    P = oracle.matrix(v)
    K = np.array(oracle.gram(P))
    near = np.array(oracle.gram(np.eye(BOX.n_P)))
    u = search._proximal(P, tau)[0]
    y, C = oracle.targets[0], oracle.learner.C
    width = getattr(oracle.learner, "epsilon", 0.0)
    sides = np.stack([np.ones(10), -np.ones(10)]) if width else y[None]

    def cost(v: np.ndarray) -> float:
        parts = v.reshape(sides.shape)
        w = (sides * parts).sum(axis=0)
        pull = (w - search.u[0]) @ near @ (w - search.u[0]) / (2.0 * tau)
        return float(0.5 * w @ K @ w - y @ w + width * parts.sum() + pull)

    best = minimize(
        cost,
        np.full(sides.size, 0.1 * C),
        method="SLSQP",
        bounds=[(0.0, C)] * sides.size,
        constraints={"type": "eq", "fun": lambda v: (sides * v.reshape(sides.shape)).sum()},
        options={"maxiter": 2000, "ftol": 1e-14},
    )
    found = np.concatenate([np.maximum(side * u, 0.0) for side in sides])
    assert cost(found) <= best.fun + 1e-5 * abs(best.fun)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_gap_closes(task: str) -> None:
    best = solve(example(task), "tkl-low-rank", tol=1e-6)
    found = solve(example(task), "tkl-apd", tol=1e-5, max_iter=500)
    assert found.lower_bound <= best.upper_bound
    assert found.upper_bound >= best.lower_bound
    assert found.gap <= 1e-5
    assert_allclose(np.trace(found.parameters), BOX.n_P)
    assert np.linalg.eigvalsh(found.parameters).min() >= -1e-12


@pytest.mark.parametrize("algorithm", ["tkl-apd", "tkl-hybrid"])
def test_fewer_solves_than_frank_wolfe(
    algorithm: str, certified: dict[str, tuple[dict[str, Any], Problem]]
) -> None:
    golden, problem = certified["reg_n3_d1_rank2"]
    plain = run(problem, "tkl-frank-wolfe", 60)
    found = solve(problem, algorithm, tol=float(plain.gap), max_iter=500)
    assert found.history.counts["n_solves"][-1] < plain.history.counts["n_solves"][-1]
    assert found.lower_bound <= golden["opt_upper"]
    assert found.upper_bound >= golden["opt_lower"]


@pytest.mark.parametrize(("switch", "threshold"), [("gap", 0.05), ("step", 0.5)])
def test_the_hybrid_switches_by_either_rule(
    switch: str, threshold: float, certified: dict[str, tuple[dict[str, Any], Problem]]
) -> None:
    problem = certified["reg_n3_d1_rank2"][1]
    best = solve(problem, "tkl-low-rank", tol=1e-6)
    result = run(problem, "tkl-hybrid", switch=switch, threshold=threshold)
    stages = result.history.counts["stage"]
    assert stages[0] == 1
    assert stages[-1] == 2
    assert result.lower_bound <= best.upper_bound
    assert result.upper_bound >= best.lower_bound
    if switch == "gap":
        first = stages.index(2)
        assert result.history.gap[first - 1] > threshold >= result.history.gap[first]


def test_rules_are_checked() -> None:
    with pytest.raises(ValueError, match="switch"):
        run(example(), "tkl-hybrid", switch="time")
    with pytest.raises(ValueError, match="threshold"):
        run(example(), "tkl-hybrid", threshold=0.0)


def test_min_eig_is_kept() -> None:
    X, y = make_classification(25)
    problem = Problem(BOX, SVC(C=1.0), Spectahedron(min_eig=0.3), X, y)
    result = run(problem, "tkl-apd", 30)
    assert np.linalg.eigvalsh(result.parameters).min() >= 0.3 - 1e-10
    best = solve(problem, "tkl-low-rank", tol=1e-5)
    assert result.lower_bound <= best.upper_bound
    assert result.upper_bound >= best.lower_bound
