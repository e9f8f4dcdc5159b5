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
from kernelweave.spectahedron.apd import PrimalDualSearch
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


@pytest.mark.faults
def test_conformance() -> None:
    check_algorithm("tkl-apd", tol=0.95, max_iter=200)
    check_algorithm("tkl-hybrid", tol=2e-2, max_iter=200)


def test_the_step_constants_are_lipschitz_constants() -> None:
    search = PrimalDualSearch(example(), np.random.RandomState(0))
    oracle = search.oracle
    l_aa = 1.0 / (3.0 * search.tau)
    l_ap = np.sqrt(l_aa / (2.0 * search.sigma))
    rng = np.random.default_rng(0)
    C = oracle.learner.C
    for _ in range(20):
        v = rng.standard_normal((oracle.n_P, 1))
        u, w = rng.uniform(-C, C, size=(2, 1, 30))
        K = oracle.factor_gram(v / np.linalg.norm(v))
        assert np.linalg.norm(K @ (u - w)[0]) <= l_aa * np.linalg.norm(u - w)
        change = 0.5 * (oracle.moment(u) - oracle.moment(w))
        assert np.linalg.norm(change) <= l_ap * np.linalg.norm(u - w)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_proximal_program_is_solved(task: str) -> None:
    problem = example(task, 10)
    search = PrimalDualSearch(problem, np.random.RandomState(0))
    oracle = search.oracle
    search.tau *= 1e3
    K = oracle.public_gram(search.P)
    u = search._proximal(K.copy(), search.u)[0]
    y, C = oracle.targets[0], oracle.learner.C
    width = getattr(oracle.learner, "epsilon", 0.0)
    sides = np.stack([np.ones(10), -np.ones(10)]) if width else y[None]

    def cost(v: np.ndarray) -> float:
        parts = v.reshape(sides.shape)
        w = (sides * parts).sum(axis=0)
        near = np.sum((w - search.u[0]) ** 2) / (2.0 * search.tau)
        return float(0.5 * w @ K @ w - y @ w + width * parts.sum() + near)

    best = minimize(
        cost,
        np.full(sides.size, 0.1 * C),
        method="SLSQP",
        bounds=[(0.0, C)] * sides.size,
        constraints={"type": "eq", "fun": lambda v: (sides * v.reshape(sides.shape)).sum()},
        options={"maxiter": 2000, "ftol": 1e-14},
    )
    w = (sides * best.x.reshape(sides.shape)).sum(axis=0)
    assert_allclose(u, w, atol=2e-4 * C)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_bounds_hold_and_the_gap_falls(task: str) -> None:
    best = solve(example(task), "tkl-low-rank", tol=1e-6)
    slow = run(example(task), "tkl-apd", 200)
    assert slow.lower_bound <= best.upper_bound
    assert slow.upper_bound >= best.lower_bound
    assert slow.history.gap[-1] < slow.history.gap[0]
    assert_allclose(np.trace(slow.parameters), BOX.n_P)
    assert np.linalg.eigvalsh(slow.parameters).min() >= -1e-12


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
