"""The conformance kit catches wrong proofs; no two installed algorithms contradict each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from kernelweave.kernels_core import AlgorithmSpec, Needs, Problem, algorithms, get_algorithm
from kernelweave.kernels_core.formula.needs import ROLES
from kernelweave.kernels_core.testing import (
    check_algorithm,
    check_intervals_overlap,
    small_problems,
)

Bounds = tuple[float, float]

# one honest algorithm for each kind of learner and family, with a triple on which it is certified
HONEST = {
    "SVC": ("mkl-simple", ("dictionary", "svc", "simplex")),
    "SVR": ("mkl-simple", ("dictionary", "svr", "simplex")),
    "ridge": ("krr-newton", ("dictionary", "ridge", "lq-ball")),
    "positive-matrix": ("tkl-low-rank", ("polynomial", "svc", "spectahedron")),
    "matrix-valued": ("vv-spg", ("dictionary", "vector-least-squares", "separable-kernels")),
}

LIES: dict[str, Callable[[float, float], Bounds]] = {
    **{
        f"lower-{percent}-percent-high": (
            lambda lower, upper, raised=1.0 + percent / 100.0: (raised * lower, upper)
        )
        for percent in (0.1, 0.5, 2, 3)
    },
    "upper-5-percent-low": lambda lower, upper: (min(lower, 0.95 * upper), 0.95 * upper),
}


def planted(honest: str, triple: tuple[str, str, str], methods: dict[str, Any]) -> AlgorithmSpec:
    """Return the record of an algorithm that replaces methods of an honest one."""
    spec = get_algorithm(honest)
    globals()["Planted"] = type("Planted", (spec.load(),), methods)
    exact = {role: (f"name={name}",) for role, name in zip(ROLES, triple, strict=True)}
    return replace(spec, name="planted", target=f"{__name__}:Planted", needs=Needs(**exact))


def telling(honest: str, lie: Callable[[float, float], Bounds]) -> dict[str, Any]:
    """Return a ``gap`` that changes what the honest one proves."""
    base = get_algorithm(honest).load()
    return {"gap": lambda self, state: lie(*base.gap(self, state))}


def resting(honest: str) -> dict[str, Any]:
    """Return a ``step`` that does nothing and a ``gap`` that claims a gap of a millionth."""
    base = get_algorithm(honest).load()

    def gap(self: Any, state: Any) -> Bounds:
        upper = base.gap(self, state)[1]
        return upper * (1.0 - 1e-6), upper

    return {"gap": gap, "step": lambda self, state: state}


@pytest.mark.parametrize("kind", HONEST)
@pytest.mark.parametrize("lie", LIES)
def test_a_wrong_bound_is_caught(kind: str, lie: str) -> None:
    honest, triple = HONEST[kind]
    with pytest.raises(AssertionError, match=r"do not overlap|above upper|claimed"):
        check_algorithm(planted(honest, triple, telling(honest, LIES[lie])))


@pytest.mark.parametrize("kind", HONEST)
def test_an_algorithm_that_takes_no_step_is_caught(kind: str) -> None:
    honest, triple = HONEST[kind]
    with pytest.raises(AssertionError, match="do not overlap"):
        check_algorithm(planted(honest, triple, resting(honest)))


@pytest.mark.parametrize("kind", HONEST)
def test_the_honest_algorithm_passes(kind: str) -> None:
    honest, triple = HONEST[kind]
    check_algorithm(planted(honest, triple, {}))


def _problems() -> dict[tuple[str, str, str], Problem]:
    return {
        problem.triple: problem
        for spec in algorithms().values()
        for problem in small_problems(spec)
    }


@pytest.mark.faults
@pytest.mark.parametrize("problem", _problems().values(), ids=lambda each: "-".join(each.triple))
def test_all_intervals_of_one_problem_overlap(problem: Problem) -> None:
    assert check_intervals_overlap(problem)
