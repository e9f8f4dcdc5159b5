"""The plans of the paper's tables: what they compute where it is quick, and how it is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernelweave.papers import Request, Sheet, tables
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
