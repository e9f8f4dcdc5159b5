"""Every public solver on Gram matrices against every fault."""

from __future__ import annotations

import functools
import inspect
import warnings
from typing import Any

import pytest
from cells import judge
from functions import functions
from solver_faults import SOLVERS, sound_grams
from solvers import ELSEWHERE, Solver, solvers
from subjects import public_names


@functools.cache
def sound_outcome(name: str) -> Any:
    solver = next(each for each in solvers() if each.name == name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solver.run(sound_grams(solver.task))


@pytest.mark.parametrize("solver", solvers(), ids=lambda each: each.name)
def test_solver(solver: Solver, record_property: Any) -> None:
    faults = [fault for fault in SOLVERS if solver.takes(fault)]
    record_property("fault matrix", len(faults))
    problems = []
    for fault in faults:
        outcome = functools.partial(sound_outcome, solver.name)
        if problem := judge(fault, sound_grams(solver.task), solver.run, outcome):
            problems.append(f"{fault.name}: {problem}")
    assert not problems, "\n".join(problems)


def test_every_public_function_has_its_place() -> None:
    """A new one gets cells, or is tested where we say; two packages may use one name."""
    public = {
        (module.rpartition(".")[2], name): it
        for module, name, it in public_names()
        if inspect.isfunction(it) and it.__module__.startswith(module)
    }
    seen = {each.name for each in solvers()}
    others = {each.name for each in functions()}
    elsewhere = set().union(*ELSEWHERE.values())
    places = {
        (package, name): [name in seen, f"{package}.{name}" in others, name in elsewhere]
        for package, name in public
        if not name.startswith("kernelweave_register")
    }
    assert [place for place, found in places.items() if sum(found) == 0] == []
    assert not seen & elsewhere
    assert len(places) > 50
