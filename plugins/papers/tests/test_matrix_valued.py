"""The plans of the paper's tables: what they compute where it is quick, and how it is shown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kernelweave.papers import Request, tables
from kernelweave.papers.matrix_valued.several_outputs import METHODS, SETS, samples
from kernelweave.papers.plan import Sheet
from matplotlib.figure import Figure


def test_linear_columns_of_the_stocks_table_are_the_printed_ones(shared: Path) -> None:
    plan = tables()["vv-1"].plan(Request(folder=shared / "data"))
    cells = {cell.key: cell for cell in plan.cells}
    found = {key: cells[key].compute(**cells[key].arguments) for key in ("OLS", "Lasso")}
    (sheet,) = plan.present(found)
    for method in found:
        printed = sheet.columns.index(f"{method} (paper)")
        ours = sheet.columns.index(f"{method} ours")
        assert [row[ours] for row in sheet.rows] == [row[printed] for row in sheet.rows]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("name", "methods"), [("vv-figure-1", 5), ("vv-figure-2", 6)])
def test_scaling_figures_draw_what_ran(name: str, methods: int) -> None:
    plan = tables()[name].plan(Request(quick=True, most_samples=90))
    cells = {cell.key: cell for cell in plan.cells}
    assert len(cells) == methods
    key = "cg 0.01, 1000 SDP steps"
    found = {key: cells[key].compute(**cells[key].arguments)}
    sheet, drawing = plan.present(found)
    assert isinstance(sheet, Sheet)
    assert len(sheet.rows) == 4
    drawing.draw(Figure())
    assert 0.0 <= min(found[key]["accuracy"]) <= 1.0


@pytest.mark.parametrize("method", METHODS)
def test_methods_follow_two_smooth_outputs(method: str) -> None:
    pytest.importorskip(METHODS[method].needs)
    X = np.random.RandomState(0).uniform(-1.0, 1.0, (90, 2))
    Y = np.column_stack([np.sin(2.0 * X[:, 0]), X[:, 0] + X[:, 1] ** 2])
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    found = METHODS[method].run(X[:60], Y[:60], X[60:])
    assert found.shape == (30, 2)
    assert ((found - Y[60:]) ** 2).mean() < 0.3


def test_sets_of_several_outputs_are_as_told(shared: Path) -> None:
    path = str(shared / "data" / "gas_turbine.csv.gz")
    for name, n_columns, n_outputs in zip(SETS, (8, 32, 6), (3, 26, 3), strict=True):
        X, Y = samples(name, path, 200, 0)
        assert X.shape == (200, n_columns)
        assert Y.shape == (200, n_outputs)
        assert Y.std(axis=0).min() > 0.0


def test_several_outputs_are_shown_beside_what_is_missing(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(METHODS, "himalaya", METHODS["ours"]._replace(needs="no_such_module"))
    plan = tables()["vv-several-outputs"].plan(Request(folder=shared / "data", repeats=2))
    assert not any("himalaya" in cell.key for cell in plan.cells)
    score, seconds = plan.present({cell.key: {"score": 0.5, "seconds": 2.0} for cell in plan.cells})
    assert score.rows[0][:5] == [SETS[0], 150, "0.500 ± 0.000", "0.500 ± 0.000", "not installed"]
    assert seconds.rows[-1][:3] == [SETS[2], 1000, "2.0 ± 0.0"]
    assert not score.empty()
