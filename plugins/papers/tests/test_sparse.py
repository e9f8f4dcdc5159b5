import importlib
import json
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from kernelweave.papers import Request, tables
from kernelweave.papers.engine.verdicts import claims_on, verdict
from kernelweave.papers.measuring import settled
from kernelweave.papers.plan import SHIPPED, MissingDataError
from kernelweave.papers.sparse import sets
from kernelweave.papers.sparse.fits import measure_fifty
from kernelweave.papers.sparse.question import BASELINES
from kernelweave.papers.sparse.sets import SETS, set_cell, shuffled, split_of, theirs
from numba import njit

NAMES = [f"smkl-{number}" for number in range(2, 11)]
# by their names in notes, what a table may have as columns
TERMS = {"cross-validated", "soc-random", "3×3", "relaxation", "saddle", "best", "best baseline"}
# no words of plain English
OWN_NAMES = ("cross-validated", "soc-random", "sdp-3x3", "saddle", "best baseline")
TERMS |= {"random", "optimum", "proved by search"}


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
    first, *leads = plan.present({})
    assert len(first.rows) == 10
    for sheet in (first, *leads):
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
    bounds, objectives = plan.present(results)

    def row_of(name):
        rows = [next(r for r in sheet.rows if r[0] == name) for sheet in (bounds, objectives)]
        return dict(zip((*bounds.columns, *objectives.columns), rows[0] + rows[1], strict=True))

    row = row_of("haberman")
    assert row["soc"] == pytest.approx(0.508845, rel=2e-5)
    assert row["saddle"] == pytest.approx(431.969, rel=2e-5)
    assert row["optimum"] == pytest.approx(431.969, rel=1e-4)
    assert row["random"] >= row["optimum"] * (1 - 1e-4)
    assert row["full (paper)"] == 431.97
    large = row_of("banknote")
    assert large["sdp-3x3"] == large["3×3"] == "n > 306"
    (gap,) = tables()["smkl-7"].plan(Request(folder=shared / "data")).present(results)
    shown = next(r for r in gap.rows if r[0] == "haberman")
    shown = dict(zip(gap.columns, shown, strict=True))
    assert shown["best"] == min(shown["random"], shown["relaxation"])
    assert shown["relaxation"] == pytest.approx(0.0, abs=0.02)
    assert shown["best (paper)"] == 0.0
    accuracy = tables()["smkl-2"].plan(Request(folder=shared / "data")).present(results)[0]
    found = next(r for r in accuracy.rows if r[0] == "haberman")
    assert dict(zip(accuracy.columns, found, strict=True))["Algorithm 1 (paper)"] == 67.7


@pytest.mark.filterwarnings("ignore:.*no step of the search")
def test_the_start_by_minors_and_the_best_baseline(shared):
    plan = tables()["smkl-5"].plan(Request(quick=True, folder=shared / "data"))
    wanted = ("iris/3×3", *(f"iris/{method}/0" for method in BASELINES))
    cells = {cell.key: cell for cell in plan.cells}
    assert "heart/3×3" not in cells
    results = {key: cells[key].compute(**{**cells[key].arguments, "limit": 40}) for key in wanted}
    (sheet,) = plan.present(results)
    said = verdict([sheet], claims_on("smkl-5")[0], "")
    assert said[2] == pytest.approx(3.34)  # the lead that the paper prints
    row = dict(zip(sheet.columns, sheet.rows[0], strict=True))
    assert row["3×3"] == results["iris/3×3"]["accuracy"]
    assert row["best baseline"] == max(results[key]["accuracy"] for key in wanted[1:])
    assert row["best baseline (paper)"] == 100.0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("quick", [True, False])
def test_notes_explain_no_column_that_is_not_there(name, quick, shared):
    plan = tables()[name].plan(Request(quick=quick, folder=shared / "data"))
    for sheet in plan.present({}):
        heads = {head.partition(", n ≤")[0] for head in sheet.columns}
        for note in sheet.notes:
            assert quick or "quick" not in note
            explained = {
                term.strip()
                for part in re.split(r"[.;] ", note)
                for term in part.partition(": ")[0].split(",")
                if ": " in part
            }
            assert explained & TERMS <= heads, note
            named = {term for term in OWN_NAMES if term in note}
            assert named <= heads, note


def test_scoring_is_no_part_of_the_seconds(monkeypatch):
    """Only the fit stands between the two readings of the clock."""
    steps = []

    class Model:
        weights_, result_ = np.ones(2), SimpleNamespace(value=1.0, gap=0.0)

        def fit(self, X, y):
            steps.append("fit")

        def predict(self, X):
            steps.append("predict")
            return np.ones(len(X))

    def stopwatch(work):
        steps.append("start")
        found = work()
        steps.append("stop")
        return found, 1.0

    monkeypatch.setattr(sets, "settled", stopwatch)
    found = sets.report(Model(), np.eye(2), np.ones(2), np.eye(3), np.ones(3))
    assert found["seconds"] == 1.0
    assert steps[:3] == ["start", "fit", "stop"]
    assert steps.count("predict") == 1


def loading():
    """Return a function whose first call compiles."""
    return njit(lambda x: x + 1.0)


def test_seconds_hold_no_loading():
    """A fit that compiles or loads is timed by another."""
    added, fits = loading(), []

    class Model:
        weights_, result_ = np.ones(2), SimpleNamespace(value=1.0, gap=0.0)

        def fit(self, X, y):
            fits.append(added(len(fits)))

        def predict(self, X):
            return np.ones(len(X))

    for n_fits in (2, 3):
        sets.report(Model(), np.eye(2), np.ones(2), np.eye(3), np.ones(3))
        assert len(fits) == n_fits


def test_seconds_hold_no_import(monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    calls = []

    def work():
        calls.append(importlib.import_module("colorsys"))

    settled(work)
    assert len(calls) == 2


def test_the_ten_tasks_are_the_paper_s(shared):
    plan = tables()["smkl-1"].plan(Request(folder=shared / "data"))
    (sheet,) = plan.present({cell.key: cell.compute(**cell.arguments) for cell in plan.cells})
    for row in sheet.rows:
        assert row[1:4] == row[6:9]
        assert row[4] == pytest.approx(row[9], abs=0.05)


def test_a_cell_with_more_kernels(shared):
    request = Request(quick=True, most_samples=60, folder=shared / "data")
    settings = set_cell(request, "iris", "fifty", measure_fifty, 1.0, n_kernels=5).arguments
    found = measure_fifty(**settings)
    assert found["optimum"]["accuracy"] >= 90.0
    assert found["optimum"]["gap"] <= 1e-4
    assert 1 <= found["best response"]["n_kernels"] <= 3
    assert np.isfinite(found["best response"]["gap"])


def test_missing_data_are_named(tmp_path):
    plan = tables()["smkl-6"].plan(Request(folder=tmp_path))
    missing = {file for each in plan.cells for file in each.missing_files()}
    shipped = {"iris.csv", "wine.csv", "breastcancer_wdbc.csv"}
    assert missing == {about.file for about in SETS.values()} - shipped
    lost = next(each for each in plan.cells if each.missing_files())
    with pytest.raises(MissingDataError, match=r"ionosphere\.csv is not there"):
        lost.compute(**lost.arguments)


def test_without_a_folder_the_sets_of_scikit_learn_are_run(run, tmp_path, monkeypatch):
    monkeypatch.delenv("KERNELWEAVE_DATA", raising=False)
    done = run("tables", "smkl-4", "--quick", "--jobs", 1, "--out", tmp_path)
    assert done.status == 0, done.said
    assert "18 cells to compute" in done.said
    assert done.said.count("spambase.csv.gz (UCI: Spambase)") == 1
    text = (tmp_path / "tables.md").read_text()
    rows = [[each.strip() for each in line.split("|")[1:-1]] for line in text.splitlines()]
    shown = {row[0]: row[1:7] for row in rows if len(row) > 6}
    for name, about in SETS.items():
        if about.file in SHIPPED:
            assert all(float(each) > 0.0 for each in shown[name])
        else:
            assert shown[name] == ["no data"] * 6
