"""Numbers of rows from which a fit works otherwise: those that the page on large tables names.

Tests of what happens beyond them set them lower, so that nothing else says where they are.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernelweave.evidence.learn import METRIC_ROWS, SHARED_METRIC
from kernelweave.evidence.read_table import ReadTable
from kernelweave.evidence.rows import Rows

PAGE = Path(__file__).resolve().parents[1] / "docs" / "large.md"


def sizes(pattern: str) -> list[int]:
    """Return the numbers of rows in the one sentence or line of the page that is so."""
    (found,) = re.findall(pattern, " ".join(PAGE.read_text(encoding="utf-8").split()))
    return [int(each.replace(",", "")) for each in ([found] if isinstance(found, str) else found)]


def are_many(n: int, *, half_known: bool) -> bool:
    ends = np.zeros((2, n)) if half_known else None
    rows = Rows(np.zeros((n, 1)), np.zeros((n, 0), dtype=np.intp), np.zeros((1, n)), ends=ends)
    nothing: Any = None
    return ReadTable(rows, np.arange(n), nothing, nothing, nothing).are_many


@pytest.mark.parametrize("half_known", [False, True])
def test_more_rows_than_the_page_says_are_learned_by_landmarks(half_known: bool) -> None:
    (half,) = sizes(r"with targets known by half at most ([\d,]+) rows, or [\d,]+ where a column")
    (pairs,) = sizes(r"With up to ([\d,]+) rows, the predictor uses all pairs")
    most = half if half_known else pairs
    assert not are_many(most, half_known=half_known)
    assert are_many(most + 1, half_known=half_known)


def test_one_kernel_serves_all_folds_of_more_rows_than_the_page_says() -> None:
    said = sizes(
        r"Up to ([\d,]+), each fold learns a kernel of its own, from at most [\d,]+ of its rows; "
        r"above, ([\d,]+) rows learn one kernel for all folds"
    )
    assert said == [SHARED_METRIC, METRIC_ROWS]
