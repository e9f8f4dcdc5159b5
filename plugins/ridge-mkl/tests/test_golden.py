"""The recorded optima of independent solvers, by every algorithm that accepts the problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import Status, get_algorithm, solve
from kernelweave.qp_smo import Ridge, SquaredHingeSVC
from kernelweave.ridge_mkl import LqBall, Orthant

from .ridge_problems import ridge_objective, stack_problem

LINEAR = ("krr-auto", "krr-newton", "krr-spg", "krr-mm", "krr-iia", "krr-riia", "krr-rpgd")
OTHERS = ("krr-pgd", "krr-gmkl", "svm-gmkl", "krr-trust-region", "krr-pgd2")
N_CASES = dict.fromkeys((*LINEAR, *OTHERS), 12) | {
    **dict.fromkeys(("krr-auto", "krr-spg"), 84),
    **dict.fromkeys(("krr-newton", "krr-mm", "krr-gmkl"), 72),
    "krr-pgd": 48,
    "krr-iia": 36,
    "krr-trust-region": 30,
}


def make(record: dict[str, Any], case: dict[str, Any]) -> tuple[Any, float]:
    hinge = case["family"].startswith("svm")
    degree = 2 if case["family"] == "quadratic" else 1
    # the recorded objectives are twice ours
    lam = case["lam"]
    learner: Any = SquaredHingeSVC(C=0.5 / lam) if hinge else Ridge(C=1.0 / lam)
    constraint: Any
    if "beta" in case:
        constraint = Orthant(beta=0.5 * case["beta"])
    else:
        constraint = LqBall(q=case["q"], radius=case["Lam"], center=case["mu0"])
    wanted = next(case[k] for k in ("value", "value_slsqp", "value_conic") if k in case)
    return stack_problem(record["K"], record["y"], learner, constraint, degree=degree), 0.5 * wanted


def accepted(name: str, problem: Any) -> bool:
    ball = problem.constraint
    if not get_algorithm(name).accepts(problem):
        return False
    if name == "krr-iia":
        return bool(ball.q > 1)
    return name != "krr-trust-region" or bool(ball.q == 2)


def cases(data: dict[str, Any], name: str) -> list[tuple[Any, float]]:
    pairs = [make(record, case) for record in data["problems"] for case in record["cases"]]
    return [(problem, wanted) for problem, wanted in pairs if accepted(name, problem)]


@pytest.mark.parametrize("name", [*LINEAR, *OTHERS])
def test_recorded_optimum(name: str, golden: Callable[[str], Any]) -> None:
    found = cases(golden("krr_golden"), name)
    assert len(found) == N_CASES[name]
    for problem, wanted in found:
        result = solve(problem, name, tol=1e-7, max_iter=2000, random_state=0)
        assert result.value == pytest.approx(wanted, rel=1e-6)
        assert result.status is Status.CONVERGED
        assert result.lower_bound <= wanted * (1 + 1e-9)


def test_recorded_weights_give_the_recorded_value(golden: Callable[[str], Any]) -> None:
    for record in golden("krr_golden")["problems"]:
        for case in record["cases"]:
            if case["family"] in ("linear", "quadratic"):
                value = ridge_objective(
                    record["K"],
                    record["y"],
                    case["mu"],
                    lam=case["lam"],
                    degree=1 if case["family"] == "linear" else 2,
                )
                assert value == pytest.approx(case.get("value", case.get("value_slsqp")), rel=1e-6)


def test_a_wrong_value_would_be_seen(golden: Callable[[str], Any]) -> None:
    problem, wanted = cases(golden("krr_golden"), "krr-newton")[0]
    result = solve(problem, "krr-newton", tol=1e-9)
    assert result.value != pytest.approx(wanted * (1 + 1e-5), rel=1e-6)
    assert np.isfinite(result.gap)
