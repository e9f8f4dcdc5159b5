"""Twelve fits are counted in instructions, and a fit that does a fifth more work fails the gate."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "asv_bench"))

from gate import compare, fits, instructions

BENCH = Path(instructions.__file__).parents[1]
PLANTED = """
from gate.fits import gram

def honest():
    run = gram()
    return lambda: [run() for _ in range(5)]

def slowed():
    run = gram()
    return lambda: [run() for _ in range(6)]

def broken():
    raise RuntimeError("no such family")
"""


@pytest.mark.slow  # callgrind: imports alone take 20 CPU seconds
@pytest.mark.skipif(not instructions.is_available(), reason=instructions.ABSENT)
def test_a_slowdown_of_a_fifth_fails_the_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "planted.py").write_text(PLANTED)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{BENCH}")
    found = instructions.count(["planted:honest", "planted:slowed", "planted:broken"])
    assert set(found) == {"planted:honest", "planted:slowed"}
    again = instructions.count(["planted:honest"])
    honest, slowed = found["planted:honest"], found["planted:slowed"]
    assert again["planted:honest"] == pytest.approx(honest, rel=0.01)
    assert slowed == pytest.approx(1.2 * honest, rel=0.03)
    before = {"instructions/gram": {"instructions": honest}}
    after = {"instructions/gram": {"instructions": slowed}}
    (worse,) = compare.regressions(before, after)
    assert worse.count == "instructions"
    same = {"instructions/gram": {"instructions": again["planted:honest"]}}
    assert compare.regressions(before, same) == []


@pytest.mark.parametrize(("rise", "is_worse"), [(1.04, False), (1.06, True), (1.2, True)])
def test_five_per_cent_more_instructions_are_worse(rise: float, is_worse: bool) -> None:
    before = {"instructions/svc": {"instructions": 1e8}}
    after = {"instructions/svc": {"instructions": rise * 1e8}}
    assert bool(compare.regressions(before, after)) is is_worse


def test_a_fit_that_no_longer_runs_is_worse() -> None:
    before = {f"instructions/{name}": {"instructions": 1e8} for name in ("svc", "gram")}
    after = {"instructions/svc": {"instructions": 1e8}}
    assert [each.problem for each in compare.regressions(before, after)] == ["instructions/gram"]


@pytest.mark.parametrize("make", fits.FITS.values(), ids=fits.FITS)
@pytest.mark.filterwarnings("ignore")
def test_every_fit_runs(make: Callable[[], fits.Run]) -> None:
    assert make()() is not None


def test_there_are_twelve() -> None:
    assert len(fits.FITS) == 12


def test_without_valgrind_the_reason_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    from gate import __main__ as command

    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["gate", "instructions", str(tmp_path / "found.json")])
    assert command.main() == 0
    assert "valgrind is not installed" in capsys.readouterr().out
    assert (tmp_path / "found.json").read_text() == "{}"
