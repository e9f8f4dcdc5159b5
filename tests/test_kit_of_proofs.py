"""The conformance kit catches wrong proofs; no two installed algorithms contradict each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from kernelweave.kernels_core import Needs, Problem, algorithms, get_algorithm
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


def truth(lower: float, upper: float) -> Bounds:
    return lower, upper


def planted(kind: str, lie: Callable[[float, float], Bounds], *, rests: bool = False) -> Any:
    """Return the record of an algorithm that asks an honest one and lies about its bounds."""
    honest, triple = HONEST[kind]
    spec = get_algorithm(honest)
    base = spec.load()

    class Planted:
        settings = getattr(base, "settings", None)

        def __init__(self, *problem: Any, **settings: Any) -> None:
            self.honest = base(*problem, **settings)

        @property
        def lower(self) -> float:
            return lie(self.honest.lower, self.honest.upper)[0]

        @property
        def upper(self) -> float:
            return lie(self.honest.lower, self.honest.upper)[1]

        def step(self) -> None:
            if not rests:
                self.honest.step()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.honest, name)

    globals()["Planted"] = Planted
    exact = {role: (f"name={name}",) for role, name in zip(ROLES, triple, strict=True)}
    return replace(spec, name="planted", target=f"{__name__}:Planted", needs=Needs(**exact))


@pytest.mark.parametrize("kind", HONEST)
@pytest.mark.parametrize("lie", LIES)
def test_a_wrong_bound_is_caught(kind: str, lie: str) -> None:
    with pytest.raises(AssertionError, match=r"do not overlap|above upper|claimed"):
        check_algorithm(planted(kind, LIES[lie]))


@pytest.mark.parametrize("kind", HONEST)
def test_an_algorithm_that_takes_no_step_is_caught(kind: str) -> None:
    def claim(lower: float, upper: float) -> Bounds:
        return upper * (1.0 - 1e-6), upper

    with pytest.raises(AssertionError, match="do not overlap"):
        check_algorithm(planted(kind, claim, rests=True))


@pytest.mark.parametrize("kind", HONEST)
def test_the_honest_algorithm_passes(kind: str) -> None:
    check_algorithm(planted(kind, truth))


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
