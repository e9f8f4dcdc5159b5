"""What ``nox -s plant`` plants: one wrong thing in a function, and the file as before."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import plant
import pytest
from workspace import ROOT

SOURCE = '''LIMIT = 3


def within(value: int, more: int = 2) -> bool:
    """Return whether é < 4."""
    return value + more < LIMIT and not value * 2 == (
        more
    )
'''


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr("workspace.ROOT", tmp_path)
    path = tmp_path / "module.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def test_faults_are_in_functions_alone_and_parse(module: Path) -> None:
    found = list(plant.faults(module))
    said = [str(fault).partition(": ")[2] for fault in found]
    assert said == [
        "and -> or",
        "< -> >=",
        "not  -> ",
        "+ -> -",
        "* -> /",
        "2 -> (2 + 1)",
    ]
    for fault in found:
        planted = fault.planted(SOURCE)
        assert planted != SOURCE
        ast.parse(planted)
    assert found[1].planted(SOURCE) == SOURCE.replace("more < LIMIT", "more >= LIMIT")


@pytest.mark.parametrize(
    ("body", "fails"), [("assert module.within(0)", False), ("assert not module.within(2)", True)]
)
def test_a_fault_is_noticed_or_not_and_the_file_is_whole(
    module: Path, body: str, fails: bool
) -> None:
    turned = next(fault for fault in plant.faults(module) if fault.before == "+")
    tests = module.with_name("test_module.py")
    tests.write_text(f"import module\n\n\ndef test_it():\n    {body}\n", encoding="utf-8")
    found = plant.noticed(turned, [str(tests)], 600)
    assert found.startswith("FAILED") if fails else not found
    assert module.read_text(encoding="utf-8") == SOURCE


def test_tests_that_do_not_end_are_said(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*given: object, timeout: float, **named: object) -> None:
        assert module.read_text(encoding="utf-8") != SOURCE
        raise subprocess.TimeoutExpired("pytest", timeout)

    monkeypatch.setattr("subprocess.run", run)
    assert plant.noticed(next(plant.faults(module)), [], 1) == plant.UNENDED
    assert module.read_text(encoding="utf-8") == SOURCE


def test_draws_are_in_different_modules_and_come_again() -> None:
    found = plant.drawn(3, 9)
    assert len({fault.path for fault in found}) == 9
    assert found == plant.drawn(3, 9)
    assert all(
        fault.path.is_relative_to(ROOT / "packages") or "plugins" in fault.path.parts
        for fault in found
    )
