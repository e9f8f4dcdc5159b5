"""What doctor finds, also where something is wrong."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from kernelweave.workbench.diagnosis import numba_cache, versions


def test_it_reports_on_this_machine(run: Callable) -> None:
    found = json.loads(run("doctor", "--json").out)
    assert found["versions"]["python"].startswith(f"{sys.version_info[0]}.")
    assert found["versions"]["kernelweave-workbench"] == "0.2.0"
    assert found["versions"]["numpy"] == np.__version__
    assert found["threads"]["used by kernels"] >= 1
    assert 0 < found["memory"]["limit"] <= found["memory"]["machine"]
    assert found["plugins"]["workbench"] == "loaded"
    assert run("doctor").status == 0


@pytest.mark.parametrize("finder", ["of Python", "importlib_metadata"])
def test_versions_are_of_what_is_imported(
    finder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither a broken installation nor an older version further down the path changes them.

    Whoever imports `importlib_metadata` replaces the finder, as dask does in some versions.
    """
    if finder != "of Python":
        pytest.importorskip(finder)
    before = versions()
    (tmp_path / "broken-1.0.dist-info").mkdir()
    older = tmp_path / "NumPy-0.0.1.dist-info"
    older.mkdir()
    (older / "METADATA").write_text("Metadata-Version: 2.1\nName: NumPy\nVersion: 0.0.1\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert versions() == before
    assert before["numpy"] == np.__version__


def test_a_cache_that_cannot_be_written_is_a_problem(
    run: Callable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    occupied = tmp_path / "file"
    occupied.touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(occupied / "cache"))
    assert numba_cache()["writable"] is False
    problems = json.loads(run("doctor", "--json").out)["problems"]
    assert any("NUMBA_CACHE_DIR" in line for line in problems)
    assert "problem:" in run("doctor").out


def test_the_cache_is_beside_the_sources_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    assert numba_cache()["folder"].endswith("__pycache__")
