"""The table of coverage notices a member that falls below what is promised."""

from __future__ import annotations

import json
from pathlib import Path

import coverage_by_member
import pytest


def report(path: Path, name: str, lines: int, branches: int) -> str:
    summary = {
        "num_statements": 100,
        "covered_lines": lines,
        "num_branches": 100,
        "covered_branches": branches,
    }
    file = f"packages/qp-smo/src/kernelweave/qp_smo/{name}"
    path.write_text(json.dumps({"files": {file: {"summary": summary}}}))
    return str(path)


@pytest.mark.parametrize(("lines", "branches", "below"), [(92, 85, 0), (91, 100, 1), (100, 84, 1)])
def test_limits(
    lines: int, branches: int, below: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = coverage_by_member.main([report(tmp_path / "one", "engine.py", lines, branches)])
    assert found == below
    assert ("below" in capsys.readouterr().out) == bool(below)


def test_compiled_files_come_from_the_second_report(tmp_path: Path) -> None:
    one = report(tmp_path / "one", "engine.py", 100, 100)
    two = report(tmp_path / "two", "_njit_smo.py", 90, 80)
    files = {**coverage_by_member.files_of(Path(one)), **coverage_by_member.files_of(Path(two))}
    assert coverage_by_member.rows(files) == [("qp-smo", 95.0, 90.0)]
