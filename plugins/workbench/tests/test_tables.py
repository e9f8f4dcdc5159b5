"""Tables: what is read, and the one sentence for everything that cannot be."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from kernelweave.tables import read_table, read_target


def write(path: Path, text: str) -> str:
    path.write_bytes(text.encode())
    return str(path)


GOOD = "a,b,y\n1,2,0\n3.5,4,1\n-5e-1,6,0\n"


BAD = {
    "inf": ("a,b,y\n1,2,0\n3,-inf,1\n", "column 'b', line 3: the value is infinite"),
    "after a blank line": ("a,b,y\n1,2,0\n\n3,inf,1\n", "column 'b', line 4"),
    "after a quoted break": ('a,b,y\n1,2,"p\nq"\n3,inf,"r"\n', "column 'b', line 4"),
    "too large": ("a,b,y\n1,2,0\n3,1e999,1\n", "line 3: the value is infinite (infinity)"),
    "huge": ("a,b,y\n1,2,0\n3,1e99,1\n", "column 'b', line 3: the value 1e+99 is too large"),
    "no value": ("a,b,y\n1,,0\n1,NA,1\n", "no column of X can be used; 'a', for instance: It is 1"),
    "no target": ("a,b,y\n1,2,0\n3,4,NA\n", "the target 'y', line 3: the value is missing"),
    "two names": ("a,a,y\n1,2,0\n", "two columns named 'a'"),
    "no name": ("a,,y\n1,2,0\n", "column 2 has no name"),
    "two without": (",,b,y\n1,2,3,0\n", "column 1 has no name"),
    "no names": ("1,2,0\n3,4,1\n", "begins with numbers (1, 2, 0, ...)"),
    "nothing": ("", "is empty"),
    "blanks": (" \n\n", "is empty"),
    "a mark": ("\ufeff", "is empty"),
    "a mark and lines": ("\ufeff\n\n", "is empty"),
    "no rows": ("a,b,y\n", "has column names but no rows"),
    "short row": ("a,b,y\n1,2,0\n3,4\n", "line 3: 2 cells where the header has 3"),
    "long row": ("a,b,y\n1,2,0\n3,4,1,5\n", "line 3: 4 cells where the header has 3"),
    "long rows": ("a,b,y\n1,2,0,7\n3,4,1,5\n", "line 2: 4 cells where the header has 3"),
    "one class": ("a,b,y\n1,2,0\n3,4,0\n", "the target 'y' is '0' in every row"),
    "no targets": (
        "a,b,y\n1,2,\n3,4,NA\n5,6,1\n7,8,2\n",
        "the target 'y', line 2: the value is missing, and in 1 other row: fill it in",
    ),
    "no label": ("a,b,y\n1,2,p\n3,4,\n5,6,q\n", "the target 'y', line 3: the value is missing"),
    "one typing error": ("a,y\n1,1.5\n2,2.5\n3,oops\n4,4.5\n", "column 'y', line 4: 'oops'"),
    "endless target": ("a,y\n1,inf\n2,1\n3,2\n", "column 'y', line 2: the value is inf"),
    "only a target": ("y\n1\n2\n3\n", "no column beside the target 'y'"),
    "binary": ("a,b,y\n1,2\0,0\n", "is not text"),
    "libsvm": ("+1 1:2\n-1 1:x\n", "line 2: '1:x' is not index:value"),
    "libsvm inf": ("+1 1:2\n-1 1:inf\n", "column '1', line 2: the value is infinite"),
}


@pytest.mark.parametrize("name", list(BAD))
def test_bad_tables_are_one_sentence(run: Callable, tmp_path: Path, name: str) -> None:
    text, said = BAD[name]
    path = tmp_path / "model"
    path.write_text("precious")
    column = [] if "libsvm" in name else ["--target", "y"]
    done = run("fit", write(tmp_path / "t.csv", text), *column, "--out", path, "--force")
    assert said in done.error
    assert done.out == ""
    assert path.read_text() == "precious"
    assert {each.name for each in tmp_path.iterdir()} == {"model", "t.csv"}


def test_few_whole_numbers_may_be_classes(run: Callable, tmp_path: Path) -> None:
    text = "a,y\n" + "".join(f"{i * i % 7},{2 * (i % 3)}\n" for i in range(30))
    path = write(tmp_path / "t.csv", text)
    target = read_target(read_table(path), "y")
    assert target.task == "regression"
    assert "3 distinct whole numbers" in target.hint
    assert read_target(read_table(path), "y", "regression").hint == ""
    assert read_target(read_table("diabetes"), "target").hint == ""
    done = run("fit", path, "--target", "y", "--max-iter", "5", "--no-compare")
    assert "add --task classification" in done.err
    path = write(tmp_path / "u.csv", text.replace(",4\n", ",1\n"))
    target = read_target(read_table(path), "y")
    assert target.task == "classification"
    assert "add --task regression" in target.hint
    assert read_target(read_table(path), "y", "classification").hint == ""


def test_list_shows_the_files_of_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Callable
) -> None:
    for name in ("mine.csv", "mine.parquet", "iris.csv", "notes.txt"):
        (tmp_path / name).write_text(GOOD)
    monkeypatch.setenv("KERNELWEAVE_DATA", str(tmp_path))
    done = run("list", "--kind", "datasets")
    assert done.said == ""
    assert re.search(r"^  mine +mine\.csv *$", done.out, re.MULTILINE)
    assert re.search(r"^  wine +.*; scikit-learn's *$", done.out, re.MULTILINE)
    assert "notes" not in done.out
    assert "iris.csv (by its path: the name is taken)" in done.out
    rows = json.loads(run("list", "--json").out)["datasets"]
    assert {row["name"]: row["file"] for row in rows if "file" in row} == {
        "mine": str(tmp_path / "mine.csv"),
        "iris": str(tmp_path / "iris.csv"),
    }
    monkeypatch.delenv("KERNELWEAVE_DATA")
    assert "KERNELWEAVE_DATA is not set" in run("list", "--kind", "datasets").said
    assert run("list").said == ""
