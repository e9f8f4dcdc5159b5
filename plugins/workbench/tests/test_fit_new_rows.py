"""What a fit says of new groups, near copies and later rows, and how it holds them out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.workbench import load_model
from kernelweave.workbench.sentences import column_remarks, not_shown, other_rows
from kernelweave.workbench.summaries import HeldOutScore, Summary
from sklearn.metrics import r2_score


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    """Twenty patients of five visits each: most of the target is who the patient is."""
    rng, path = np.random.default_rng(0), tmp_path / "visits.csv"
    patient = np.repeat(np.arange(20), 5)
    frame = pd.DataFrame({"patient": [f"p{each}" for each in patient]})
    frame["dose"] = rng.uniform(0.0, 2.0, 100).round(2)
    frame["y"] = (10.0 * rng.normal(size=20)[patient] + frame["dose"] + rng.normal(size=100)).round(
        3
    )
    frame.to_csv(path, index=False)
    return path


def test_new_patients_are_told_apart_from_new_visits(
    run: Callable, visits: Path, tmp_path: Path
) -> None:
    model = tmp_path / "m"
    done = run("fit", visits, "--target", "y", "--no-compare", "--out", model)
    assert "Expected R² by kind of new rows" in done.out
    said = " ".join(done.out.split())
    assert "on rows of a new 'patient'" in said
    assert "fit with --groups='patient'" in said
    # said once, and not in a warning beside it
    assert "warning" not in done.err
    lines = load_model(model).header.new_rows
    assert [row["name"] for row in lines][:2] == ["rows like these", "new patient"]
    assert lines[0]["score"] > 0.8 > 0.3 > lines[1]["score"]


def test_whole_groups_are_held_out_where_asked_for(run: Callable, visits: Path) -> None:
    asked = ["fit", visits, "--target", "y", "--groups", "patient", "--json"]
    found = json.loads(run(*asked).out)
    assert found["held_out"]["score"] < 0.3
    assert found["held_out"]["error"] >= found["new_rows"][0]["error"]
    # the other models are without those patients too
    trees = next(row for row in found["comparison"]["rows"] if row["name"] == "boosting")
    assert trees["score"] < 0.3
    said = run(*asked[:4], "--groups", "patent").error
    assert "has no column 'patent'; did you mean 'patient'?" in said


def test_a_model_without_lines_of_its_own_says_which_rows_are_held_out(
    run: Callable, visits: Path
) -> None:
    pytest.importorskip("kernelweave.ridge_mkl")
    asked = ["fit", visits, "--target", "y", "--groups", "patient"]
    ridge = run(*asked, "--model", "ridge", "--no-compare").out
    assert "R² on similar new rows (new patient): about" in " ".join(ridge.split())


def test_near_copies_are_held_out_together_by_every_model(run: Callable, tmp_path: Path) -> None:
    rng, path = np.random.default_rng(0), tmp_path / "copies.csv"
    who, own = np.repeat(np.arange(40), 3), rng.normal(size=(40, 4))
    X = pd.DataFrame(own[who] + 0.01 * rng.normal(size=(120, 4)), columns=list("abcd"))
    X.assign(y=rng.normal(size=40)[who]).sample(frac=1.0, random_state=0).to_csv(path, index=False)
    options = ["compare", path, "--target", "y", "--models", "evidence,rbf", "--json"]
    at_random = json.loads(run(*options).out)["models"]
    alike = json.loads(run(*options, "--groups", "rows alike").out)
    assert min(row["score"] for row in at_random) > 0.5
    assert max(row["score"] for row in alike["models"]) < 0.3
    assert alike["rows"].endswith("rows that are near copies of no other")


def test_later_rows_are_held_out_where_asked_for(run: Callable, tmp_path: Path) -> None:
    rng, path = np.random.default_rng(0), tmp_path / "walk.csv"
    walk = pd.DataFrame({"day": np.arange(150) + 0.5, "x": rng.normal(size=150)})
    walk["y"] = rng.normal(size=150).cumsum().round(3)
    walk.to_csv(path, index=False)
    for asked in (["--order", "day"], ["--cv", "time"], ["--order", "day", "--drop", "day"]):
        found = json.loads(
            run("fit", path, "--target", "y", *asked, "--max-iter", "5", "--json").out
        )
        assert found["held_out"]["score"] < 0.5
        # of three blocks, each after the rows that a mean is taken of
        y, told = walk["y"].to_numpy(), np.repeat([75, 100, 125], 25)
        means = np.array([y[:n].mean() for n in told])
        dummy = next(row for row in found["comparison"]["rows"] if row["name"] == "baseline")
        assert dummy["score"] == pytest.approx(r2_score(y[75:], means))


def found(kind: type, **known: object) -> Any:
    """Return a summary, or a part of one, of which nothing else is known."""
    return kind(**dict.fromkeys((each.name for each in fields(kind)), None) | known)


def kinds(**worse: bool) -> Summary:
    """Return the summary of a fit whose kinds of new rows are so, beside rows like these."""
    names = {"rows like these": 60, "new shop": 12, "later by day": 6}
    rows = [
        {"name": name, "score": 0.5, "error": 0.1, "n_rows": 60, "n_groups": n}
        | ({"worse": worse.get(name.partition(" ")[0], False)} if worse else {})
        for name, n in names.items()
    ]
    return found(Summary, new_rows=rows, n_samples=60)


def test_blocks_of_time_are_not_called_groups() -> None:
    assert list(other_rows(kinds(new=True, later=True)).values()) == [
        ("0.500 ± 0.100", "on 60 rows"),
        ("at most 0.500 ± 0.100", "on 60 rows of 12 groups"),
        ("at most 0.500 ± 0.100", "on 60 rows of 6 blocks of time"),
    ]
    assert not_shown(kinds(new=True, later=True)) == ""


def test_a_score_of_fewer_rows_names_what_left_the_count() -> None:
    equal = replace(kinds(new=True), n_samples=62, held_out=found(HeldOutScore, n_rows=62))
    assert [on for _, on in other_rows(equal).values()] == [
        "on 60 of 62 rows (equal rows count once)",
        "on 60 of 62 rows of 12 groups",
    ]
    later = replace(kinds(later=True), n_samples=120, held_out=found(HeldOutScore, n_rows=60))
    assert next(iter(other_rows(later).values()))[1] == "on 60 of 120 rows"


def test_kinds_of_new_rows_that_are_not_worse_are_one_line() -> None:
    assert list(other_rows(kinds(new=True))) == ["rows like these", "new shop"]
    verdict = "kind of new rows is expected to be predicted significantly worse"
    assert not_shown(kinds(new=True)) == f"No other {verdict} (checked: later by day)."
    assert other_rows(kinds(new=False)) == {}
    assert not_shown(kinds(new=False)) == f"No {verdict} (checked: new shop, later by day)."
    # a file that an older version wrote does not say it
    assert not_shown(kinds()) == ""


def test_numbers_that_look_like_groups_do_not_lead_the_output(
    run: Callable, tmp_path: Path
) -> None:
    """Ages and incomes of many rows each, where a new one is predicted as well as a known one."""
    rng, model = np.random.default_rng(0), tmp_path / "m"
    frame = pd.DataFrame({"Age": rng.integers(20, 40, 120), "Income": rng.integers(0, 30, 120)})
    frame["y"] = (frame["Age"] + 0.3 * frame["Income"] + rng.normal(size=120)).round(2)
    frame.to_csv(tmp_path / "t.csv", index=False)
    done = run("fit", tmp_path / "t.csv", "--target", "y", "--no-compare", "--out", model)
    said = " ".join(done.out.split())
    assert "at most" not in said
    assert "No kind of new rows is expected to be predicted significantly worse" in said
    assert not any(row["worse"] for row in load_model(model).header.new_rows)
    assert run("report", model, "--out", tmp_path / "page.html").status == 0
    page = (tmp_path / "page.html").read_text()
    tiles = page.partition('<div class="facts">')[2].partition("<h2")[0]
    assert "training rows" in tiles
    assert "at most" not in tiles
    assert "new " not in tiles


def test_columns_with_the_same_remark_are_one_line() -> None:
    remark = {"seen": "category", "sentence": "Two values.", "done": "used"}
    columns = [{"name": f"q{i}", **remark} for i in range(12)]
    columns.insert(3, {"name": "id", "seen": "text", "sentence": "A row ID.", "done": "ignored"})
    columns.append({"name": "plain", "seen": "number", "sentence": "", "done": "used"})
    assert column_remarks(found(Summary, columns=columns)) == {
        "id": "text: A row ID.",
        "q0 and 11 more": "category: Two values.",
    }
    unlike = [{**remark, "name": f"c{i}", "sentence": f"{i} values."} for i in range(15)]
    lines = column_remarks(found(Summary, columns=unlike))
    assert list(lines)[-1] == "..."
    assert lines["..."] == "and 3 more, see the report"
