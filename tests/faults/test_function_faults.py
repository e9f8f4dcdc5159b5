"""Every public function of vectors, matrices and numbers, each argument wrong in turn."""

from __future__ import annotations

from typing import Any

import pytest
from cells import judge
from functions import Function, functions


@pytest.mark.parametrize("function", functions(), ids=lambda each: each.name)
def test_function(function: Function, record_property: Any) -> None:
    def sound() -> Any:
        return function.run(function.case())

    faults = list(function.faults())
    record_property("fault matrix", len(faults))
    found = {each.name: judge(each, function.case(), function.run, sound) for each in faults}
    problems = [f"{name}: {problem}" for name, problem in found.items() if problem]
    assert not problems, "\n".join(problems)
