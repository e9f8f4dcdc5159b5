"""The table on ten sets: its plan, one measured cell, and what is shown of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernelweave.papers import MissingDataError, Request
from kernelweave.papers.sparse.baselines import METHODS, table
from kernelweave.papers.sparse.sets import SETS


def test_plan_of_a_quick_and_a_full_run(shared: Path) -> None:
    quick = table(Request(quick=True, folder=shared / "data"))
    full = table(Request(folder=shared / "data"))
    assert len(quick.cells) == len(SETS) * len(METHODS) == 50
    assert len(full.cells) == 5 * 50
    assert all(cell.is_reduced for cell in quick.cells)
    assert not any(cell.is_reduced for cell in full.cells)
    assert max(cell.arguments["n_train"] for cell in quick.cells) == 400
    sizes = {cell.key.split("/")[0]: cell.arguments["n_train"] for cell in full.cells}
    # the training samples of the paper, in the order of its tables
    assert list(sizes.values()) == [120, 142, 455, 280, 3680, 1097, 242, 244, 768, 156]
    assert list(sizes) == list(SETS)


@pytest.mark.parametrize("method", METHODS)
def test_a_cell_and_its_row(method: str, shared: Path) -> None:
    plan = table(Request(quick=True, folder=shared / "data"))
    cell = next(cell for cell in plan.cells if cell.key == f"iris/{method}/0")
    value = cell.compute(**cell.arguments)
    assert value["accuracy"] >= 90.0
    assert 1 <= value["n_kernels"] <= 8
    (sheet,) = plan.present({cell.key: value})
    rows = {(row[0], row[1]): row for row in sheet.rows}
    assert len(rows) == 50
    assert rows["iris", method][2] == value["accuracy"]
    assert rows["wine", method][2] is None
    assert rows["wine", "EasyMKL"][7:] == [97.2, 4, 0.045]
    assert rows["wine", "SimpleMKL"][7:] == [None, None, None]


def test_missing_data_are_named(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match=r"iris\.csv"):
        table(Request(folder=tmp_path))
