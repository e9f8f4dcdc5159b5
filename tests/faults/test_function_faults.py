"""Every public function of vectors, matrices and numbers, each argument wrong in turn."""

from __future__ import annotations

from typing import Any

import pytest
from cells import judge
from expectations import Fault
from functions import Function, functions


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        pytest.param(each, fault, id=f"{each.name}: {fault.name}")
        for each in functions()
        for fault in each.faults()
    ],
)
def test_function(function: Function, fault: Fault, record_property: Any) -> None:
    record_property("fault matrix", True)
    problem = judge(fault, function.case(), function.run, lambda: function.run(function.case()))
    assert problem is None, problem
