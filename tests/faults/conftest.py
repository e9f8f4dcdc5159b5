"""The path to the tables beside this file, and the counts of the matrix at the end of a run."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

CELL = "fault matrix"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder, so that the inner loop can leave them out."""
    here = Path(__file__).resolve().parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.faults)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print how many cells ran, and how the tests that hold them ended."""
    ends: Counter[str] = Counter()
    for outcome in ("passed", "failed", "error", "skipped", "xfailed", "xpassed"):
        for report in terminalreporter.stats.get(outcome, []):
            properties = dict(getattr(report, "user_properties", ()))
            ends[outcome] += int(properties.get(CELL, 0))
    if +ends:
        spoken = ", ".join(f"{count} {outcome}" for outcome, count in (+ends).items())
        terminalreporter.write_line(f"fault matrix: {sum(ends.values())} cells, {spoken}")
