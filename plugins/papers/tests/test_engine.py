"""``kernelweave tables``: plans, kept cells, pages, failures."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernelweave.papers import Request
from kernelweave.papers.data import read, values, where_from
from kernelweave.papers.engine.chosen import Chosen, narrowed
from kernelweave.papers.engine.running import CellOutcome, KeptCells, compute, compute_all
from kernelweave.papers.engine.sections import shown, table_text
from kernelweave.papers.plan import (
    SHIPPED,
    Cell,
    Drawing,
    MissingDataError,
    PaperTable,
    Plan,
    Sheet,
)

CALLS: list[int] = []


def square(number: int) -> dict[str, Any]:
    CALLS.append(number)
    if number == 13:
        raise ValueError("unlucky\nnumber")
    return {"number": number, "square": number**2}


def present(results: Mapping[str, Any]) -> list[Sheet | Drawing]:
    rows = [(key, value["number"], value["square"] / 3) for key, value in results.items()]
    sheet = Sheet("Squares <b>", ("key", "number", "third"), rows, ("Nothing is compared.",))
    return [sheet, Drawing("Line", "A rising line", lambda figure: figure.subplots().plot([1, 2]))]


def plan(request: Request) -> Plan:
    numbers = (1, 2) if request.quick else (1, 2, 3)
    cells = [Cell(key=f"n{n}", compute=square, arguments={"number": n}) for n in numbers]
    return Plan(cells, present)


def bad_plan(request: Request) -> Plan:
    cell = Cell(key="n13", compute=square, arguments={"number": 13})
    return Plan([cell, *plan(request).cells], present)


def needs_data(request: Request) -> Plan:
    cell = Cell(key="n1", compute=path_of, arguments={"path": request.data_file("nowhere.csv")})
    return Plan([cell], present)


def path_of(path: str) -> dict[str, Any]:
    return {"number": len(path), "square": 3}


def needs_some_data(request: Request) -> Plan:
    def show(results: Mapping[str, Any]) -> list[Sheet]:
        found = {name: results.get(f"{name}/SVM", {}) for name in ("wine", "nowhere")}
        rows = [
            (name, each.get("number"), None, each.get("square")) for name, each in found.items()
        ]
        total = Sheet("Total", ("what", "sum"), [("all", len(results))], is_aggregate=True)
        return [Sheet("Some", ("data", "length", "±", "n (paper)"), rows), total]

    cells = [
        Cell(
            key=f"{name}/SVM", compute=path_of, arguments={"path": request.data_file(f"{name}.csv")}
        )
        for name in ("wine", "nowhere")
    ]
    return Plan(cells, show)


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    CALLS.clear()
    targets = {"good": plan, "unlucky": bad_plan, "homeless": needs_data}
    specs = {
        name: PaperTable(
            name=name,
            target=f"{__name__}:{target.__name__}",
            summary=f"a {name} table",
            paper="Nobody, Nowhere",
        )
        for name, target in targets.items()
    }
    monkeypatch.setattr("kernelweave.papers.plan.tables", lambda: specs)
    monkeypatch.delenv("KERNELWEAVE_DATA", raising=False)


def test_the_page_holds_the_table_and_its_picture(run: Callable, tmp_path: Path) -> None:
    done = run("tables", "good", "--out", tmp_path / "t")
    assert done.status == 0
    assert "3 cells to compute" in done.said
    assert sorted(CALLS) == [1, 2, 3]
    text = (tmp_path / "t" / "tables.md").read_text()
    assert "| n2    |        2 |   1.333 |" in text
    assert "![A rising line](good-2.svg)" in text
    assert (tmp_path / "t" / "good-2.svg").read_bytes().startswith(b"<?xml")


def test_a_second_run_computes_nothing_and_fresh_computes_all(
    run: Callable, tmp_path: Path
) -> None:
    out = ("--out", tmp_path / "t")
    run("tables", "good", *out)
    first = (tmp_path / "t" / "tables.md").read_bytes()
    assert "0 cells to compute, 3 kept" in run("tables", "good", *out).said
    assert (tmp_path / "t" / "tables.md").read_bytes() == first
    assert len(CALLS) == 3
    run("tables", "good", *out, "--fresh")
    assert len(CALLS) == 6


def test_two_cells_of_one_key_are_refused() -> None:
    cell = Cell(key="n1", compute=square, arguments={"number": 1})
    with pytest.raises(ValueError, match="got 'n1' more than once"):
        Plan([cell, cell], present)


def test_a_damaged_result_is_computed_again(run: Callable, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "t")
    run("tables", "good", *out)
    sorted((tmp_path / "t" / "cells").iterdir())[0].write_text('{"value": 1')
    assert "1 cells to compute" in run("tables", "good", *out).said


def test_tables_share_what_is_the_same(run: Callable, tmp_path: Path) -> None:
    done = run("tables", "good", "unlucky", "--out", tmp_path)
    assert sorted(CALLS) == [1, 2, 3, 13]
    assert "4 cells to compute" in done.said
    text = (tmp_path / "tables.md").read_text()
    assert text.count("| n3    |") == 2
    assert "A full run: 4 cells, " in text


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ((), "full"),
        (("--quick", "--jobs", 1), "quick"),
        (("--subsample", 50), "restricted"),
        (("--repeats", 2), "restricted"),
    ],
)
def test_the_page_says_what_kind_of_run_it_was(
    run: Callable, tmp_path: Path, asked: tuple[object, ...], kind: str
) -> None:
    done = run("tables", "good", "--out", tmp_path, *asked)
    assert done.status == 0, done.said
    assert f"A {kind} run: " in (tmp_path / "tables.md").read_text()


def test_a_failed_cell_costs_itself_alone(run: Callable, tmp_path: Path) -> None:
    done = run("tables", "unlucky", "--out", tmp_path / "t")
    assert done.status == 2
    assert "1 cells failed, among them unlucky: n13" in done.said
    text = (tmp_path / "t" / "tables.md").read_text()
    assert "**n13 failed: ValueError: unlucky number**" in text
    assert "| n3    |" in text
    run("tables", "unlucky", "--out", tmp_path / "t")
    assert CALLS.count(13) == 2
    assert CALLS.count(1) == 1


def test_all_goes_on_without_data_and_a_name_does_not(run: Callable, tmp_path: Path) -> None:
    assert "homeless: nowhere.csv is needed" in run("tables", "homeless", "--out", tmp_path).error
    done = run("tables", "all", "--out", tmp_path)
    assert done.status == 2
    assert "1 cells failed, among them unlucky: n13" in done.said
    text = (tmp_path / "tables.md").read_text()
    assert "**Not run: nowhere.csv is needed and no data folder is set" in text
    assert "| n3    |" in text


def test_what_has_data_is_run_and_the_rest_says_no_data(
    run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(monkeypatch, "some", needs_some_data)
    done = run("tables", "some", "homeless", "--out", tmp_path)
    assert done.status == 0, done.said
    assert done.said.count("nowhere.csv is needed and no data folder is set") == 1
    assert "1 cells to compute" in done.said
    text = (tmp_path / "tables.md").read_text()
    assert "**1 cells have no data: nowhere.csv is needed and no data folder is set" in text
    shown = [[each.strip() for each in line.split("|")[1:-1]] for line in text.splitlines()]
    assert ["wine", "22", "3"] in [row[:2] + row[-1:] for row in shown if "wine" in row]
    assert ["nowhere", "no data", "–"] in shown
    assert "figures are missing" not in text
    assert "Total: not shown, 1 cells have no data." in text
    assert "±" not in text
    listed = json.loads(run("tables", "some", "--estimate", "--json", "--out", tmp_path).out)
    assert (listed[0]["cells"], listed[0]["without_data"]) == (1, 1)
    # one set of them alone: what was asked for by name cannot be run
    asked = ("tables", "some", "--dataset", "nowhere", "--out", tmp_path)
    assert "some: nowhere.csv is needed" in run(*asked).error
    (tmp_path / "nowhere.csv").write_text("a,target\n1,1\n")
    assert (
        "1 cells to compute, 1 kept"
        in run("tables", "some", "--data", tmp_path, "--out", tmp_path).said
    )


def test_a_missing_file_says_where_it_comes_from(tmp_path: Path) -> None:
    files = ["sonar.csv", "granger/dream3_size10_yeast1.csv", "granger/dream3_size10_yeast2.csv"]
    assert where_from(files, None).startswith(
        "sonar.csv (UCI: Connectionist Bench (Sonar)), granger/dream3_size10_yeast1.csv, "
        "granger/dream3_size10_yeast2.csv (DREAM3 in-silico network challenge: size 10) are "
        "needed and no data folder is set: set KERNELWEAVE_DATA"
    )
    inside = Request(folder=tmp_path)
    assert where_from(["ccpp.csv"], tmp_path) == (
        f"ccpp.csv (UCI: Combined Cycle Power Plant) is not in the data folder {tmp_path}"
    )
    with pytest.raises(MissingDataError, match=r"ccpp\.csv is not there: set KERNELWEAVE_DATA"):
        read(inside.data_file("ccpp.csv"))
    nested = Cell(key="a", compute=dict, arguments={"x": [[inside.data_file("ccpp.csv")], 1]})
    assert nested.missing_files() == ["ccpp.csv"]


@pytest.mark.parametrize("name", SHIPPED)
def test_samples_of_scikit_learn_are_those_of_the_file(shared: Path, name: str) -> None:
    """Cell by cell, iris with the two samples that differ in UCI's file."""
    ours = Request().data_file(name)
    assert ours == f"scikit-learn: {name}"
    assert Request(folder=shared / "data").data_file(name) == str(shared / "data" / name)
    lines = (shared / "data" / name).read_text().splitlines()
    table = [[float(value) for value in line.split(",")] for line in lines[1:]]
    assert values(ours).tolist() == table


def test_no_name_lists_what_there_is(run: Callable, tmp_path: Path) -> None:
    done = run("tables", "--json", "--data", tmp_path)
    listed = {row["name"]: row for row in json.loads(done.out)}
    assert listed["good"]["cells"] == 3
    assert "nowhere.csv is not in the data folder" in listed["homeless"]["missing"]
    assert not CALLS
    assert "3 cells, 0 kept" in run("tables").out


def test_quick_says_what_is_reduced(
    run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run("tables", "good", "--quick", "--jobs", "1", "--out", tmp_path, "--json")
    assert sorted(CALLS) == [1, 2]
    assert Path(json.loads(done.out)["page"]).name == "tables.md"


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (["god"], "no table 'god'; did you mean 'good'?"),
        (["good", "--jobs", "0"], "--jobs must be at least 1, got 0"),
        (["--max-time", "-1"], "--max-time must be at least 0, got -1"),
        (["good", "--subsample", "7"], "--subsample must be at least 50, got 7"),
        (["good", "--data", "nowhere"], "the data folder nowhere does not exist"),
    ],
)
def test_bad_arguments(run: Callable, tmp_path: Path, tokens: list[str], said: str) -> None:
    assert run("tables", *tokens, "--out", tmp_path).error == said


def test_processes_give_what_one_gives(tmp_path: Path) -> None:
    import statistics

    cells = [
        Cell(key=str(n), compute=statistics.fmean, arguments={"data": [n, n + 1]}) for n in range(5)
    ]
    kept = KeptCells(tmp_path)
    found = {cell.key: outcome for cell, outcome in compute_all(cells, kept, 2)}
    assert {key: outcome.value for key, outcome in found.items()} == {
        str(n): n + 0.5 for n in range(5)
    }
    assert kept.get(cells[3]).value == 3.5
    other = Cell(key="3", compute=statistics.fmean, arguments={"data": [3, 5]})
    assert kept.get(other) is None


def test_no_cell_starts_after_the_time() -> None:
    cells = [Cell(key="1", compute=square, arguments={"number": 1})]
    assert list(compute_all(cells, KeptCells(Path("unused")), 1, max_time=0.0)) == []
    assert CALLS == []


def arrays() -> dict[str, Any]:
    return {"a": np.arange(2), "b": np.float32(1), "c": (np.bool_(True), np.nan), 3: None}


def test_what_json_cannot_hold_is_kept_as_numbers(tmp_path: Path) -> None:
    cell, kept = Cell(key="a", compute=arrays), KeptCells(tmp_path)
    kept.put(cell, compute(cell, None))
    found = kept.get(cell).value
    assert np.isnan(found["c"].pop())
    assert found == {"a": [0, 1], "b": 1.0, "c": [True], "3": None}


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.000123456, "0.0001235"), (float("nan"), "none"), (True, "yes"), (3, "3")],
)
def test_values_are_short(value: object, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        ([100.0, 97.3684, 66.1290], ["100.00", "97.37", "66.13"]),
        ([93.0, 94.4, None, 100], ["93.0", "94.4", "–", "100.0"]),
        ([0.335, 0.33461, "none fits"], ["0.3350", "0.3346", "none fits"]),
        ([0.018111, 0.05354, 0.26193], ["0.01811", "0.05354", "0.26193"]),
        ([0.0001, 0.01, 1.0], ["0.0001", "0.01", "1"]),  # settings: of many sizes
        ([2.5e-5, 14.25, float("nan")], ["2.5e-05", "14.25", "none"]),
        ([3, 12, 1500000], ["3", "12", "1500000"]),
    ],
)
def test_the_numbers_of_a_column_have_equally_many_decimals(column: list, texts: list) -> None:
    _, rule, *rows = table_text(Sheet("t", ("value",), [(value,) for value in column])).splitlines()
    assert [row.strip("| ") for row in rows] == texts
    assert rule.endswith("-:|")


def half_plan(request: Request) -> Plan:
    def present(results: Mapping[str, Any]) -> list[Sheet]:
        rows = [("a", 1.0, None, None), ("b", float("nan"), 2.0, None)]
        return [Sheet("Half", ("data", "ours", "theirs (paper)", "±"), rows)]

    cell = Cell(key="n1", compute=square, arguments={"number": 1})
    return Plan([cell], present)


def broken_plan(request: Request) -> Plan:
    raise ImportError("no module\nof that name")


def add(monkeypatch: pytest.MonkeyPatch, name: str, target: Callable) -> None:
    spec = PaperTable(
        name=name, target=f"{__name__}:{target.__name__}", summary="another", paper="Nowhere"
    )
    from kernelweave.papers import plan

    known = plan.tables()
    monkeypatch.setattr(plan, "tables", lambda: {**known, name: spec})


def test_a_figure_of_ours_that_is_missing_is_named(
    run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(monkeypatch, "half", half_plan)
    done = run("tables", "half", "--out", tmp_path)
    assert done.status == 2
    assert "1 figures are missing, among them half: b, ours" in done.said
    text = (tmp_path / "tables.md").read_text()
    assert "**1 figures are missing: b, ours.**" in text
    assert "| a      |      1 |                – |" in text
    assert "±" not in text


def test_one_data_set_alone(run: Callable, tmp_path: Path) -> None:
    done = run("tables", "good", "--dataset", "N2", "--out", tmp_path)
    assert done.status == 0
    assert CALLS == [2]
    text = (tmp_path / "tables.md").read_text()
    assert "| n2    |" in text
    assert "| n1    |" not in text
    assert "rising line" not in text
    assert "2 kept" not in run("tables", "good", "--dataset", "n3", "--out", tmp_path).said
    assert "2 kept" in run("tables", "good", "--out", tmp_path).said


def test_data_sets_and_methods_together(run: Callable, tmp_path: Path) -> None:
    """The second part of a key is the method; a table without methods has none to ask for."""

    def of(*names: str) -> Plan:
        return Plan(
            [Cell(key=name, compute=square, arguments={"number": 1}) for name in names], present
        )

    known = of("a/SVM/0", "a/trees/0", "b/SVM/0", "c/SVM/0")
    chosen = [Chosen(PaperTable(name="t", target="m:f", summary="", paper=""), known)]
    (kept,) = narrowed(chosen, ["A", "c"], ["svm"])
    assert [cell.key for cell in kept.plan.cells] == ["a/SVM/0", "c/SVM/0"]
    (kept,) = narrowed(chosen, (), ["trees"])
    assert [cell.key for cell in kept.plan.cells] == ["a/trees/0"]
    done = run("tables", "good", "--method", "SVM", "--out", tmp_path)
    assert "no table that was asked for has the method 'SVM'" in done.error


def test_a_data_set_that_no_table_has(run: Callable, tmp_path: Path) -> None:
    done = run("tables", "all", "--dataset", "n9", "--out", tmp_path)
    assert done.status == 2
    assert "no table that was asked for has the data set 'n9'" in done.error
    assert "n1" in done.error


def test_a_table_that_cannot_be_planned_costs_itself_alone(
    run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(monkeypatch, "broken", broken_plan)
    assert "no module" in run("tables", "broken", "--out", tmp_path).error
    run("tables", "all", "--out", tmp_path)
    text = (tmp_path / "tables.md").read_text()
    assert "**Not run: it cannot be planned: ImportError: no module of that name**" in text
    assert "| n3    |" in text


def test_a_run_that_was_cut_short_says_what_is_left(run: Callable, tmp_path: Path) -> None:
    done = run("tables", "good", "--max-time", "0", "--jobs", "1", "--out", tmp_path)
    assert done.status == 0
    assert "**3 of 3 cells are not computed yet.**" in (tmp_path / "tables.md").read_text()


def test_ctrl_c_keeps_what_is_done(
    run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stops(cells: list, *_: object) -> Any:
        cell = cells[0]
        outcome = CellOutcome(square(**cell.arguments), 0.1)
        KeptCells(tmp_path / "cells").put(cell, outcome)
        yield cell, outcome
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("kernelweave.papers.engine.running.compute_all", stops)
        done = run("tables", "good", "--out", tmp_path)
    assert done.status == 130
    assert "what is computed is kept" in done.said
    assert "2 cells to compute, 1 kept" in run("tables", "good", "--out", tmp_path).said
