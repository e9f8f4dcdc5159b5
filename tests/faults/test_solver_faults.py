"""Every public solver on Gram matrices against every fault."""

from __future__ import annotations

import functools
import inspect
import warnings
from typing import Any

import pytest
from cells import judge
from expectations import Fault
from solver_faults import SOLVERS, sound_grams
from solvers import ELSEWHERE, INNER, OTHER_ARGUMENTS, Solver, solvers
from subjects import public_names


@functools.cache
def sound_outcome(name: str) -> Any:
    solver = next(each for each in solvers() if each.name == name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solver.run(sound_grams(solver.task))


@pytest.mark.parametrize(
    ("solver", "fault"),
    [
        pytest.param(solver, fault, id=f"{solver.name}: {fault.name}")
        for solver in solvers()
        for fault in SOLVERS
        if solver.takes(fault)
    ],
)
def test_solver(solver: Solver, fault: Fault, record_property: Any) -> None:
    record_property("fault matrix", True)
    sound = functools.partial(sound_outcome, solver.name)
    problem = judge(fault, sound_grams(solver.task), solver.run, sound)
    assert problem is None, problem


def test_every_public_function_has_its_place() -> None:
    """A new one is a solver of the matrix, an inner part of one, or tested where we say."""
    functions = {
        name
        for module, name, it in public_names()
        if module.startswith("kernelweave.") and inspect.isfunction(it)
    }
    places = [{solver.name for solver in solvers()}, INNER, *ELSEWHERE.values()]
    assert functions - set().union(*places) == set()
    assert sum(map(len, places)) == len(set().union(*places))


def test_every_function_on_gram_matrices_is_known() -> None:
    """A new public function that takes Gram matrices is put in one list or the other."""
    known = {solver.name for solver in solvers()} | INNER
    functions = {
        name: it
        for module, name, it in public_names()
        if module.startswith("kernelweave.") and inspect.isfunction(it)
    }
    unknown = {
        name
        for name, it in functions.items()
        if OTHER_ARGUMENTS & set(inspect.signature(it).parameters) and name not in known
    }
    assert unknown == set()
