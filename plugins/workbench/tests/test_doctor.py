"""What doctor finds, also where something is wrong."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from kernelweave.workbench import diagnosis as probe
from kernelweave.workbench.diagnosis import mosek_licence, numba_cache


def test_it_reports_on_this_machine(run: Callable) -> None:
    found = json.loads(run("doctor", "--json").out)
    assert found["versions"]["python"].startswith(f"{sys.version_info[0]}.")
    assert found["versions"]["kernelweave-workbench"] == "0.1.0"
    assert found["threads"]["used by kernels"] >= 1
    assert 0 < found["memory"]["limit"] <= found["memory"]["machine"]
    assert found["plugins"]["workbench"] == "loaded"
    assert run("doctor").status == 0


@pytest.mark.parametrize(
    ("code", "state"),
    [
        ("", "installed, but it does not load"),
        ("raise ImportError('libmosek64.so')", "it does not load (ImportError: libmosek64.so)"),
        (
            "class feature: pton = 0\n"
            "class Env:\n"
            "    def __enter__(self): return self\n"
            "    def __exit__(self, *_): pass\n"
            "    def checkoutlicense(self, _): raise ValueError('License cannot be located')",
            "installed without a licence",
        ),
        (
            "class feature: pton = 0\n"
            "class Env:\n"
            "    def __enter__(self): return self\n"
            "    def __exit__(self, *_): pass\n"
            "    def checkoutlicense(self, _): pass",
            "licensed",
        ),
    ],
)
def test_states_of_the_mosek_licence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, state: str
) -> None:
    (tmp_path / "mosek.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert state in mosek_licence()
    assert "mosek" not in sys.modules


def test_a_licence_server_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mosek.py").write_text("import time; time.sleep(60)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(probe, "_PATIENCE", 0.2)
    assert "did not answer" in mosek_licence()


def test_absent_mosek(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe.importlib.util, "find_spec", lambda _: None)
    assert mosek_licence().startswith("absent")


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
