"""The tables that this package registers, run small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernelweave.papers import Request, measuring, tables
from kernelweave.papers.measuring import exponents
from kernelweave.papers.tessellated.convergence import measure_seconds
from kernelweave.spectahedron import TessellatedKernelClassifier


def run(name: str, folder: Path, most_samples: int) -> list[Any]:
    plan = tables()[name].plan(Request(quick=True, folder=folder, most_samples=most_samples))
    results = {cell.key: cell.compute(**cell.arguments) for cell in plan.cells}
    assert all(cell.is_reduced for cell in plan.cells)
    return list(plan.present(results))


def test_gas_turbine(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (sheet,) = run("tkl-gas-turbine", shared / "data", 400)
    # the output belongs to the program that asked
    assert capsys.readouterr().out == ""
    found = {row[0]: row[1] for row in sheet.rows}
    assert found["certified relative gap"] <= 1e-2
    assert found["lower bound"] <= found["upper bound"]
    # the targets have a variance of 244
    assert found["test error (MSE)"] < 10.0
    assert not sheet.empty()


def test_no_first_fit_is_larger_than_those_that_are_timed(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    fit = TessellatedKernelClassifier.fit

    def watched(self: Any, X: Any, y: Any) -> Any:
        sizes.append(len(y))
        return fit(self, X, y)

    monkeypatch.setattr(TessellatedKernelClassifier, "fit", watched)
    measure_seconds(str(shared / "data" / "liver_bupa.csv"), "tkl-sdp", 8, 1)
    assert sizes == [4, 8]


def test_exponents_of_the_parts(shared: Path) -> None:
    growth, each = run("tkl-exponents", shared / "data", 500)
    assert [row[0] for row in growth.rows] == ["Gram", "D", "SMO", "iteration"]
    assert len(each.rows) == 12
    assert sorted({row[1] for row in each.rows}) == [6, 10, 14, 18]
    assert all(value > 0 for row in each.rows for value in row)
    assert not growth.empty()


def test_exponents_are_those_of_a_power_law() -> None:
    m, n_P = np.array([1.0, 2.0, 4.0, 1.0]), np.array([3.0, 3.0, 5.0, 7.0])
    a, b = exponents(m, n_P, 0.1 * m**2.5 * n_P**0.75)
    assert (a, b) == (pytest.approx(2.5), pytest.approx(0.75))


def test_seconds_are_those_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([3.0, 10.0])
    monkeypatch.setattr(measuring.time, "process_time", lambda: next(readings))
    assert measuring.timed(lambda: "done") == ("done", 7.0)
