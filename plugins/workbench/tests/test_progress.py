"""How far a solve has come."""

from __future__ import annotations

import math

import pytest
from kernelweave.workbench.progress import fraction


@pytest.mark.parametrize(
    ("first", "gap", "tol", "done"),
    [
        (1.0, 1.0, 1e-3, 0.0),
        (1.0, 1e-3, 1e-3, 1.0),
        (1.0, 1e-1, 1e-3, 1 / 3),
        (0.1, 0.2, 1e-3, 0.0),
        (math.inf, 0.2, 1e-3, 0.0),
        (0.5, 0.1, 0.0, 0.0),
        (0.5, 0.0, 0.0, 1.0),
    ],
)
def test_fraction(first: float, gap: float, tol: float, done: float) -> None:
    assert fraction(first, gap, tol) == pytest.approx(done)
