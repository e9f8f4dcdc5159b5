"""The certified problems, as `Problem` values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import Problem, TessellatedFamily
from kernelweave.qp_smo import SVC, SVR
from kernelweave.spectahedron import Spectahedron


def as_problem(case: dict[str, Any]) -> Problem:
    family = TessellatedFamily(case["d"], lower=case["a"], upper=case["b"])
    learner = (
        SVC(C=case["C"])
        if case["task"] == "classification"
        else SVR(C=case["C"], epsilon=case["epsilon"])
    )
    return Problem(
        family, learner, Spectahedron(), np.array(case["x"], float), np.array(case["y"], float)
    )


@pytest.fixture(scope="session")
def certified(golden: Callable[[str], Any]) -> dict[str, tuple[dict[str, Any], Problem]]:
    """Return (golden case, problem) by name."""
    return {case["name"]: (case, as_problem(case)) for case in golden("tk_golden_opt")}
