import json

import numpy as np
import pytest
from kernelweave.papers import MissingDataError, Request, tables
from kernelweave.papers.sparse.fifty import measure as measure_fifty
from kernelweave.papers.sparse.sets import SETS, cell, theirs
from kernelweave.papers.sparse.shuffle import shuffled, split_of

NAMES = [*(f"smkl-{number}" for number in range(2, 11)), "smkl-optima"]


def test_the_shuffle_is_that_of_the_published_splits(shared):
    assert (shuffled(10) + 1).tolist() == [8, 9, 3, 4, 1, 6, 5, 7, 2, 10]
    settings = json.loads((shared / "golden" / "smkl_settings.json").read_text())["sets"]
    for setting in settings.values():
        train, test = split_of(len(setting["train"]) + len(setting["test"]))
        assert train.tolist() == setting["train"]
        assert test.tolist() == setting["test"]


def test_the_printed_rows_are_the_published_figures(shared):
    settings = json.loads((shared / "golden" / "smkl_settings.json").read_text())["sets"]
    assert set(SETS) == set(settings)
    for name, row in SETS.items():
        setting, figures = settings[name], settings[name]["published"]
        assert (row.file, row.C, row.lam, row.k0) == tuple(
            setting[key] for key in ("file", "C", "lam", "k0")
        )
        assert row.columns == setting["columns"]
        assert theirs(6)["random"][name] == pytest.approx(figures["algorithm1_objective"], abs=6e-3)
        accuracy = 100 * figures["algorithm1_test_accuracy"]
        assert theirs(2)["Algorithm 1"][name] == pytest.approx(accuracy, abs=4.0)
        if name in theirs(6)["full"]:
            assert theirs(6)["full"][name] == pytest.approx(figures["full_sdp_bound"], abs=6e-3)


@pytest.mark.parametrize("name", NAMES)
def test_plans(name, shared):
    plan = tables()[name].plan(Request(quick=True, folder=shared / "data"))
    assert len({cell.key for cell in plan.cells}) == len(plan.cells)
    assert all(cell.is_reduced for cell in plan.cells)
    for sheet in plan.present({}):
        assert len(sheet.rows) == 10
        assert all(len(row) == len(sheet.columns) for row in sheet.rows)


def test_cells_and_their_rows(shared):
    plan = tables()["smkl-6"].plan(Request(folder=shared / "data"))
    wanted = [f"haberman/{what}" for what in ("soc", "saddle", "random", "relaxation", "optimum")]
    results = {
        cell.key: cell.compute(**json.loads(json.dumps(dict(cell.arguments))))
        for cell in plan.cells
        if cell.key in wanted
    }
    json.dumps(results)
    (sheet,) = plan.present(results)
    row = dict(zip(sheet.columns, next(r for r in sheet.rows if r[0] == "haberman"), strict=True))
    assert row["soc"] == pytest.approx(0.508845, rel=2e-5)
    assert row["saddle"] == pytest.approx(431.969, rel=2e-5)
    assert row["optimum"] == pytest.approx(431.969, rel=1e-4)
    assert row["random"] >= row["optimum"] * (1 - 1e-4)
    assert row["sdp-3x3"] == "n > 160"
    assert row["full (paper)"] == 431.97
    gap = tables()["smkl-7"].plan(Request(folder=shared / "data")).present(results)[0]
    shown = next(r for r in gap.rows if r[0] == "haberman")
    assert shown[3] == pytest.approx(0.0, abs=0.02)
    accuracy = tables()["smkl-2"].plan(Request(folder=shared / "data")).present(results)[0]
    assert next(r for r in accuracy.rows if r[0] == "haberman")[-1] == 67.7


def test_what_an_optimum_costs(shared):
    plan = tables()["smkl-optima"].plan(Request(folder=shared / "data"))
    cell = next(cell for cell in plan.cells if cell.key == "heart/optima")
    value = json.loads(json.dumps(cell.compute(**cell.arguments)))
    row = next(r for r in plan.present({cell.key: value})[0].rows if r[0] == "heart")
    assert row[1] == pytest.approx(69.9484, rel=2e-5)
    assert row[2] <= 1e-5
    assert row[4] == pytest.approx(69.9484, rel=1e-4)
    assert row[6] <= 25
    assert row[7] == 98.75
    assert row[-1] == "Linear(), RBF(gamma=0.5)"


def test_a_cell_with_more_kernels(shared):
    request = Request(quick=True, most_samples=60, folder=shared / "data")
    settings = cell(request, "iris", "fifty", measure_fifty, 1.0, n_kernels=5).arguments
    found = measure_fifty(**settings)
    assert found["optimum"]["accuracy"] >= 90.0
    assert found["optimum"]["gap"] <= 1e-4
    assert 1 <= found["best response"]["n_kernels"] <= 3
    assert np.isfinite(found["best response"]["gap"])


def test_missing_data_are_named(tmp_path):
    with pytest.raises(MissingDataError, match=r"iris\.csv"):
        tables()["smkl-6"].plan(Request(folder=tmp_path))
