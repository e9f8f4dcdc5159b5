"""The one engine of verdicts: figures beside the paper's, and its sentences."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kernelweave.papers import Request, tables
from kernelweave.papers.data import printed
from kernelweave.papers.engine.chosen import choose
from kernelweave.papers.engine.running import CellOutcome
from kernelweave.papers.engine.sections import section
from kernelweave.papers.engine.verdicts import (
    FAILS,
    HOLDS,
    OPEN,
    Claim,
    Compared,
    Pair,
    claims_on,
    compare_with_theirs,
    compared_in,
    decide,
    verdict,
    with_verdicts,
)
from kernelweave.papers.plan import Cell, PaperTable, Plan, Sheet
from scipy.stats import ttest_rel

LESS = Claim("t", "a is less than b", "a", ("b",))


@pytest.mark.parametrize(
    ("ours", "theirs", "spread", "better", "said"),
    [
        (1.40, 1.41, 0.44, "less", "within the printed deviation"),
        (1.90, 1.41, 0.44, "less", "worse"),
        (0.90, 1.41, 0.44, "less", "better"),
        (90.0, 84.6, 2.0, "more", "better"),
        (84.614, 84.61, None, "more", "as printed"),
        (84.60, 84.61, None, "more", "worse"),
        (455, 455, None, "same", "as printed"),
        (456, 455, None, "same", "higher"),
        (454, 455, None, "same", "lower"),
        (None, 84.6, 2.0, "more", None),
        ("n > 306", 84.6, 2.0, "more", None),
        (float("nan"), 84.6, 2.0, "more", None),
        (84.6, None, None, "more", None),
    ],
)
def test_a_figure_beside_the_printed_one(
    ours: Any, theirs: Any, spread: Any, better: str, said: str | None
) -> None:
    assert compare_with_theirs(ours, theirs, spread, better) == said


@pytest.mark.parametrize(
    ("pairs", "exact", "said"),
    [
        ([(1, 2), (1, 2), (3, 3)], True, HOLDS),
        ([(2, 1), (1, 1)], True, FAILS),
        ([(1, 2), (2, 1)], True, OPEN),
        ([(3, 3)], True, OPEN),
        ([(5, float("inf"))], True, HOLDS),
        ([(1, 2)], False, OPEN),
    ],
)
def test_claims_of_few_or_exact_figures(
    pairs: list[tuple[float, float]], exact: bool, said: str
) -> None:
    assert decide([Pair(*pair) for pair in pairs], LESS._replace(exact=exact))[0] == said


def test_two_noisy_pairs_count_beyond_their_deviations() -> None:
    assert decide([Pair(1.0, 2.0, 0.5)], LESS)[0] == HOLDS
    assert decide([Pair(1.0, 2.0, 1.5)], LESS)[0] == OPEN
    assert decide([Pair(1.0, 2.0, 0.5), Pair(1.0, 2.0, 1.5)], LESS)[0] == OPEN
    assert decide([Pair(2.0, 1.0, 0.5), Pair(2.0, 1.0, 1.5)], LESS)[0] == FAILS
    assert decide([Pair(2.0, 1.0, 0.5), Pair(1.0, 2.0, 0.5)], LESS)[0] == OPEN


@pytest.mark.parametrize("shift", [-3.0, -0.2, 0.0, 3.0])
def test_an_interval_decides_as_a_paired_test_does(shift: float) -> None:
    first = [80.0, 85.0, 91.0, 70.0, 66.0]
    second = [79.0, 85.5, 90.0, 70.5, 66.5]
    first = [value + shift for value in first]
    more = LESS._replace(better="more")
    found = decide([Pair(*pair) for pair in zip(first, second, strict=True)], more)[0]
    p = ttest_rel(first, second).pvalue
    expected = OPEN if p > 0.05 else HOLDS if shift > 0 else FAILS
    assert found == expected


def test_a_verdict_stands_beside_every_compared_column() -> None:
    heads = ("data", "error", "error (paper)", "± (paper)")
    sheet = Sheet("t", heads, [("a", 1.0, 2.0, 0.1), ("b", 3.0, 2.0, 0.1), ("c", 1.0, 2.0, 0.1)])
    compared = [Compared("t", "error", "error (paper)", "less")]
    unreduced = [*sheet.rows[:2], ("c", 1.5, 2.0, 0.1)]
    found = with_verdicts(sheet, compared, unreduced)
    assert found.columns[-1] == "verdict"
    assert [row[-1] for row in found.rows] == ["better", "worse", None]
    assert with_verdicts(sheet, [Compared("t", "x", "y", "less")], sheet.rows).columns == heads


def test_rows_are_paired_by_what_else_names_them() -> None:
    heads = ("task", "rank", "steps", "±")
    rows = [("r", 1, 100, 5.0), ("r", 8, 40, 5.0), ("c", 1, 10, 1.0), ("c", 8, 4, 1.0)]
    claim = Claim("t", "rank 1 is fastest", "1", ("2", "8"), "less", "steps")
    said = verdict([Sheet("t", heads, rows)], claim, "")
    assert said == ["rank 1 is fastest", "0 as said, 2 the other way, 0 equal", None, FAILS]
    assert verdict([Sheet("t", heads, rows)], claim, "a reduced run")[1:] == [
        *("a reduced run", None),
        OPEN,
    ]
    assert verdict([], claim, "")[-1] == OPEN


def test_every_row_of_the_data_is_of_a_table(shared: Path) -> None:
    """And names columns and rows that this table has."""
    known = tables()
    request = Request(folder=shared / "data")
    for name in {
        row["table"] for file in ("claims.csv", "compared.csv") for row in printed("", file)
    }:
        sheets = [item for item in known[name].plan(request).present({}) if isinstance(item, Sheet)]
        heads = {head for sheet in sheets for head in sheet.columns}
        for each in compared_in(name):
            assert {each.ours, each.theirs} <= heads, (name, each)
        for claim in claims_on(name):
            wanted = {claim.column} if claim.column else {claim.first, *claim.second}
            assert wanted - {""} <= heads, (name, claim)
            assert {f"{each} (paper)" for each in claim.printed} <= heads, (name, claim)


def test_no_table_of_a_paper_is_without_a_verdict() -> None:
    names = [
        *("tkl-1", "tkl-3", "tkl-4", "tkl-figure-1", "tkl-figure-2", "tkl-figure-3"),
        *("tkl-figure-4", "tkl-2021-figure-2", "tkl-2021-figure-3"),
        *(f"smkl-{number}" for number in range(1, 11)),
        *("vv-1", *(f"vv-figure-{number}" for number in range(1, 6))),
    ]
    assert [name for name in names if not (claims_on(name) or compared_in(name))] == []


@pytest.mark.parametrize("reduced", [("IKL", "OKL", "IOKL"), ("OLS",), ()])
def test_a_column_of_reduced_cells_has_no_verdict(
    reduced: Sequence[str], shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where rows are stocks and columns methods, a reduced method is one column of every row."""
    chosen = choose(["vv-1"], Request(folder=shared / "data"), tables())[0]
    cells = [replace(cell, is_reduced=cell.key in reduced) for cell in chosen.plan.cells]
    chosen = replace(chosen, plan=replace(chosen.plan, cells=cells))
    done = section(chosen, {cell.key: CellOutcome([0.1] * 9, 1.0) for cell in cells})
    counted, claimed = done.verdicts
    words = counted.partition("with the paper: ")[2].split()
    n_judged = sum(int(word) for word in words if word.isdigit())
    assert n_judged == 10 * (5 - len(reduced))
    assert ("a reduced run" in claimed) == bool(reduced)
    assert any("no figure of theirs" in each for each in done.problems) == bool(reduced)


def fit(score: float) -> dict[str, float]:
    return {"score": score}


def planned(request: Request) -> Plan:
    scores = {"a/ours/0": 1.0, "a/other/0": 2.0, "b/ours/0": 1.0, "b/other/0": 3.0}

    def present(results: Mapping[str, Any]) -> list[Sheet]:
        rows = [
            (data, method, results.get(f"{data}/{method}/0", {}).get("score"), 1.5)
            for data in "ab"
            for method in ("ours", "other")
        ]
        heads = ("data", "method", "MSE", "MSE (paper)")
        total = Sheet("Total", ("what", "mean"), [("all", len(results))], is_aggregate=True)
        return [Sheet("Errors", heads, rows), total]

    cells = [
        Cell(key=key, compute=fit, arguments={"score": score}, is_reduced=request.quick)
        for key, score in scores.items()
    ]
    return Plan(cells, present)


@pytest.fixture
def pages(run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable:
    spec = PaperTable(name="t", target=f"{__name__}:planned", summary="errors", paper="Nobody")
    monkeypatch.setattr("kernelweave.papers.plan.tables", lambda: {"t": spec})
    monkeypatch.delenv("KERNELWEAVE_DATA", raising=False)
    claim = Claim("t", "ours is best", "ours", ("other",), "less", "MSE", exact=True)
    home = "kernelweave.papers.engine.sections"
    monkeypatch.setattr(f"{home}.claims_on", lambda _: [claim])
    compared = [Compared("t", "MSE", "MSE (paper)", "less")]
    monkeypatch.setattr(f"{home}.compared_in", lambda _: compared)

    def made(*asked: object) -> tuple[Any, str]:
        done = run("tables", "t", "--jobs", 1, "--out", tmp_path, *asked)
        return done, (tmp_path / "tables.md").read_text()

    return made


def test_verdicts_are_on_the_page_and_in_the_terminal(pages: Callable) -> None:
    done, text = pages()
    assert done.status == 0
    assert "t: ours is best: holds (2 as said, 0 the other way, 0 equal)" in done.out
    assert "t: Errors, compared with the paper: 2 better, 2 worse" in done.out
    assert "### What the paper says" in text
    assert "### Total" in text
    assert "better" in text
    assert json.loads(pages("--json")[0].out)["verdicts"]["t"][1].startswith("ours is best: holds")


def test_a_part_withholds_what_is_over_all_and_ends_well(pages: Callable) -> None:
    done, text = pages("--method", "ours")
    assert done.status == 0
    assert "### Total" not in text
    assert "cannot be decided" in text
    assert "| a      | ours" in text
    assert "other" not in text.partition("### What")[0]


def test_a_reduced_run_decides_nothing(pages: Callable) -> None:
    done, text = pages("--quick")
    assert done.status == 0
    assert "ours is best: cannot be decided (a reduced run)" in done.out
    assert "better" not in text.partition("### What")[0]


def test_a_run_cut_short_withholds_what_is_over_all(pages: Callable) -> None:
    _, text = pages("--max-time", 0)
    assert "### Total" not in text
    assert "Total: not shown, 4 cells have no result." in text
