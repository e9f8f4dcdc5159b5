"""Results, gaps and certificates."""

from __future__ import annotations

import math

import pytest
from kernelweave.kernels_core import (
    Certificate,
    ContradictoryBoundsError,
    Result,
    Status,
    relative_gap,
)
from kernelweave.kernels_core.result import History, check_bounds


@pytest.mark.parametrize(
    ("lower", "upper", "gap"),
    [
        (9.0, 10.0, 0.1),
        (0.0, 0.0, 0.0),
        (-10.0, -9.0, 0.1),
        (-1.0, 1.0, 2.0),
        (1.0, math.inf, math.inf),
    ],
)
def test_relative_gap(lower: float, upper: float, gap: float) -> None:
    assert relative_gap(lower, upper) == pytest.approx(gap)


@pytest.mark.parametrize(
    ("lower", "upper"),
    [(1.0, 1.0 - 1e-9), (math.inf, 1.0), (1.0, -math.inf), (1e-300, 0.0), (-1.0, -2.0)],
)
def test_a_lower_bound_above_an_upper_one_is_refused(lower: float, upper: float) -> None:
    with pytest.raises(ContradictoryBoundsError, match="mine: the lower bound"):
        check_bounds("mine", lower, upper)


@pytest.mark.parametrize(
    ("lower", "upper"),
    [(0.1 + 0.2, 0.3), (-math.inf, math.inf), (0.0, 0.0), (math.nan, 1.0), (-1.0, 1.0)],
)
def test_what_rounding_leaves_is_not(lower: float, upper: float) -> None:
    check_bounds("mine", lower, upper)


def test_every_status_says_what_to_try_unless_it_succeeded() -> None:
    for status in Status:
        assert status.label == status.name.lower()
        assert len(status.value) > 20
    assert [s for s in Status if s.success] == [Status.CONVERGED]


def test_result_and_certificate_agree() -> None:
    result = Result(2.0, 1.5, 2.0, 0.25, Status.CONVERGED, 3, History(), algorithm="x")
    certificate = Certificate(1.5, 2.0, "dual", "primal")
    assert result.dual_gap == 0.5
    assert certificate.gap == result.gap
    assert "x: " in result.message
    assert "[1.5, 2]" in str(certificate)


def test_a_result_is_shown_in_a_few_lines() -> None:
    result = Result(2.0, 1.5, 2.0, 0.25, Status.CONVERGED, 3, History(), [1.0] * 5000, "a" * 9000)
    lines = repr(result).splitlines()
    assert lines[0] == "Result"
    assert "  status: converged" in lines
    assert "  bounds: [1.5, 2]" in lines
    assert max(map(len, lines)) < 60
