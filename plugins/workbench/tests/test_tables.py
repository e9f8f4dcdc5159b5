"""Tables: what is read, and the one sentence for everything that cannot be."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from kernelweave.tables import TableError, read_table, read_target
from kernelweave.workbench import load_model
from kernelweave.workbench.machines import encoder_of


def write(path: Path, text: str) -> str:
    path.write_bytes(text.encode())
    return str(path)


def test_lines_that_excel_adds_are_no_rows(tmp_path: Path) -> None:
    """The separator in a first line, and lines of separators between and below the rows."""
    lines = ["sep=;", "a;b,c;y", "1;2;3", ";;", '4;"p', ";;", 'q";6', ";;", ";;", ""]
    path = write(tmp_path / "t.csv", "\r\n".join(lines))
    with pytest.warns(UserWarning, match="all cells of line 4 are empty: such lines are") as said:
        table = read_table(path)
    assert len(said) == 1
    assert table.columns == ["a", "b,c", "y"]
    assert [table.where(row) for row in range(len(table.frame))] == ["line 3", "line 5"]
    assert table.cells["b,c"].tolist() == ["2", "p\r\n;;\r\nq"]


def test_lines_without_a_value_above_a_note_are_no_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "a,b,y\n1,2,3\n,,\n3,4,5\n,,\nSource: me\n")
    with pytest.warns(UserWarning, match=r"line 3 are empty|line 6 \('Source: me'\)") as said:
        table = read_table(path)
    assert len(said) == 2
    assert table.frame.to_numpy().tolist() == [[1, 2, 3], [3, 4, 5]]


@pytest.mark.parametrize(
    "text",
    [
        "a;b;y;\n1;2;3;\n\n3;p;5;\n",
        "a;b;y;;\r\n1;2;3;;\r\n;;;;\r\n3;p;5;;\r\n",
        "a,b,y\n1,2,3,\n\n3,p,5,\n",
        "a\tb\ty\t\n1\t2\t3\t\n\n3\tp\t5\t\n",
    ],
)
@pytest.mark.filterwarnings("ignore:.*all cells of line 3 are empty")
def test_a_separator_may_end_every_row(tmp_path: Path, text: str) -> None:
    table = read_table(write(tmp_path / "t.csv", text))
    assert table.columns == ["a", "b", "y"]
    assert table.cells.to_numpy().tolist() == [[1, "2", 3], [3, "p", 5]]
    assert [table.where(row) for row in range(2)] == ["line 2", "line 4"]


@pytest.mark.parametrize("text", ["a;b;\n1;2;\n3;4;5\n", "a;b;;\n1;2;;\n3;4;;5\n"])
def test_a_column_without_a_name_that_has_a_cell_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(TableError, match="column 3 has no name"):
        read_table(write(tmp_path / "t.csv", text))


def test_a_quoted_separator_is_no_end_of_a_row(tmp_path: Path) -> None:
    table = read_table(write(tmp_path / "t.csv", 'a;b\n1;"p;"\n2;"q;"\n'))
    assert table.cells["b"].tolist() == ["p;", "q;"]


def test_classes_that_differ_in_case_alone_are_said(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "a,y\n1,yes\n2,Yes \n3,no\n4,no\n")
    assert "'yes' of the target 'y' differ only in case" in read_target(read_table(path), "y").hint


def test_a_target_of_dates_is_said_to_be_one() -> None:
    few = pd.to_datetime(["2024-01-31", "2024-02-29"] * 10)
    many = pd.date_range("2024-01-31", periods=30).strftime("%d.%m.%Y")
    for days in (few, few.strftime("%d.%m.%Y")):
        target = read_target(read_table(pd.DataFrame({"a": range(20), "y": days})), "y")
        assert target.task == "classification"
        assert "the classes of the target 'y' are dates: to predict a time" in target.hint
    with pytest.raises(TableError, match=r"30 distinct dates in 30 rows.*days since a fixed day"):
        read_target(read_table(pd.DataFrame({"a": range(30), "y": many})), "y")
    words = read_target(read_table(pd.DataFrame({"a": range(20), "y": ["May", "June"] * 10})), "y")
    assert words.hint == ""


GOOD = "a,b,y\n1,2,0\n3.5,4,1\n-5e-1,6,0\n"


BAD = {
    "inf": ("a,b,y\n1,2,0\n3,-inf,1\n", "column 'b', line 3: the value is infinite"),
    "after a blank line": ("a,b,y\n1,2,0\n\n3,inf,1\n", "column 'b', line 4"),
    "after a quoted break": ('a,b,y\n1,2,"p\nq"\n3,inf,"r"\n', "column 'b', line 4"),
    "too large": ("a,b,y\n1,2,0\n3,1e999,1\n", "line 3: the value is infinite (infinity)"),
    "huge": ("a,b,y\n1,2,0\n3,1e99,1\n", "column 'b', line 3: the value 1e+99 is too large"),
    "no value": (
        "a,b,y\n1,,0\n1,NA,1\n",
        "no column can be used; 'a', for instance: Ignored: constant (1)",
    ),
    "no target": (
        "a,b,y\n1,2,\n3,4,NA\n",
        "the target 'y', line 2: the value is missing, and in 1 other row: fill it in",
    ),
    "two names": ("a,a,y\n1,2,0\n", "two columns named 'a'"),
    "no name": ("a,,y\n1,2,0\n", "column 2 has no name"),
    "two without": (",,b,y\n1,2,3,0\n", "column 1 has no name"),
    "no names": ("1,2,0\n3,4,1\n", "add a line of names, or use --no-header"),
    "nothing": ("", "is empty"),
    "blanks": (" \n\n", "is empty"),
    "a mark": ("\ufeff", "is empty"),
    "a mark and lines": ("\ufeff\n\n", "is empty"),
    "no rows": ("a,b,y\n", "has column names but no rows"),
    "short row": ("a,b,y\n1,2,0\n3,4\n", "line 3 has 2 cells but the header has 3"),
    "long row": ("a,b,y\n1,2,0\n3,4,1,5\n", "line 3 has 4 cells but the header has 3"),
    "long rows": ("a,b,y\n1,2,0,7\n3,4,1,5\n", "line 2 has 4 cells but the header has 3"),
    "one class": ("a,b,y\n1,2,0\n3,4,0\n", "the target 'y' is '0' in every row"),
    "one typing error": ("a,y\n1,1.5\n2,2.5\n3,oops\n4,4.5\n", "column 'y', line 4: 'oops'"),
    "endless target": ("a,y\n1,inf\n2,1\n3,2\n", "column 'y', line 2: the value is inf"),
    "only a target": ("y\n1\n2\n3\n", "no column but the target 'y'"),
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


def ordinary(n_rows: int = 40) -> list[str]:
    """Rows of which every eighth lacks its target."""
    return [f"{i},{i * i % 7},{'' if i % 8 == 3 else 2.5 * i}" for i in range(n_rows)]


def test_rows_without_a_target_are_left_out_and_predicted(run: Callable, tmp_path: Path) -> None:
    rows, known = ordinary(), [row for row in ordinary() if not row.endswith(",")]
    path = write(tmp_path / "t.csv", "\n".join(["a,b,y", *rows]))
    less = write(tmp_path / "u.csv", "\n".join(["a,b,y", *known]))
    options = ("--target", "y", "--max-iter", "3", "--no-compare", "--out")
    wanted = ("--predictions", tmp_path / "p.csv")
    done = run("fit", path, *options, tmp_path / "m.kw", *wanted)
    assert done.status == 0, done.err
    assert "5 of 40 rows of" in done.err
    assert "have no 'y' (the first is line 5) and are left out and predicted into" in done.err
    # the same model as without these rows, and what it predicts of them
    assert run("fit", less, *options, tmp_path / "n.kw").status == 0
    unknown = pd.DataFrame({"a": range(3, 40, 8), "b": [i * i % 7 for i in range(3, 40, 8)]})
    unknown.to_csv(tmp_path / "new.csv", index=False)
    said = run("predict", tmp_path / "n.kw", tmp_path / "new.csv").out.split()[1:]
    found = pd.read_csv(tmp_path / "p.csv")
    assert found.columns.tolist() == ["a", "b", "prediction"]
    assert found.drop(columns="prediction").equals(unknown)
    assert found["prediction"].tolist() == list(map(float, said))
    hint = run("fit", path, "--target", "y", "--test", path, "--max-iter", "1", "--no-compare")
    assert hint.err.count("--predictions FILE to predict them") == 1
    assert hint.err.count("5 of 40 rows of") == 2


def test_encodings_and_sheets_can_be_named(run: Callable, tmp_path: Path) -> None:
    text = "\n".join(["город,y", *(f"{'Казань' if i % 2 else 'Пермь'},{i % 2}" for i in range(30))])
    (tmp_path / "t.csv").write_bytes(text.encode("iso8859_5"))
    options = ("--target", "y", "--max-iter", "1", "--no-compare", "--json")
    done = run("fit", tmp_path / "t.csv", *options, "--encoding", "iso8859_5")
    assert json.loads(done.out)["columns"][0]["name"] == "город"
    assert (
        "no encoding 'latin-99'" in run("fit", tmp_path / "t.csv", "--encoding", "latin-99").error
    )
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        pd.DataFrame({"x": [1, 2], "z": [3, 4]}).to_excel(book, sheet_name="one", index=False)
        frame = pd.DataFrame(
            {"b": [i * i % 31 for i in range(30)], "y": [i % 2 for i in range(30)]}
        )
        frame.to_excel(book, sheet_name="two", index=False)
    done = run("fit", tmp_path / "t.xlsx", *options, "--sheet", "two")
    assert json.loads(done.out)["n_samples"] == 30
    assert "did you mean 'two'?" in run("fit", tmp_path / "t.xlsx", "--sheet", "Two").error
    models = ("--target", "y", "--models", "baseline")
    for sheet, said in (
        ([], "'one' is read: choose another by --sheet"),
        (["--sheet", "two"], ""),
    ):
        done = run("compare", tmp_path / "t.xlsx", *models, *sheet)
        assert said in done.err
        assert (done.status == 0) == bool(sheet)


def test_no_cell_speaks_to_the_terminal_or_computes(run: Callable, tmp_path: Path) -> None:
    word, name = "=cmd|' /C calc'!A0", "red\x1b]0;owned\x07"
    rows = [f"{i * i % 31},{word if i % 2 else 'fine'}" for i in range(30)]
    path = write(tmp_path / "t.csv", "\n".join([f"{name},y", *rows]))
    model = tmp_path / "m.kw"
    done = run("fit", path, "--target", "y", "--max-iter", "3", "--no-compare", "--out", model)
    assert done.status == 0, done.err
    assert "\x1b" not in done.out + done.err
    assert "\x07" not in done.out + done.err
    lines = run("predict", model, path).out.splitlines()
    assert set(lines) <= {"prediction", f"'{word}", "fine"}
    assert set(json.loads(run("predict", model, path, "--json").out)) <= {word, "fine"}


def test_a_column_of_another_case_is_hinted_at(run: Callable, tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.csv", "\n".join(["Age,y", *(f"{i * i % 31},{i % 3}.5" for i in range(30))])
    )
    model = tmp_path / "m.kw"
    options = ("--max-iter", "1", "--no-compare", "--out", model)
    assert "did you mean 'y'?" in run("fit", path, "--target", "Y", *options).error
    assert run("fit", path, "--target", "y", *options).status == 0
    other = write(tmp_path / "u.csv", "age,z\n1,2\n")
    assert run("predict", model, other).error.endswith("uses: 'Age'; did you mean 'age'?")


def test_what_columns_are_can_be_said_and_is_kept(run: Callable, tmp_path: Path) -> None:
    rows = [f"{i % 4},{1000 + i},{20240101 + i % 28},0{i % 9}1,{i}" for i in range(40)]
    head = "dept,shop_id,day,code,y"
    path = write(tmp_path / "t.csv", "\n".join([head, *rows]))
    model = tmp_path / "m.kw"
    options = ("--target", "y", "--max-iter", "3", "--no-compare", "--json", "--force")
    kinds = {"--categorical": "dept", "--numeric": "shop_id", "--date": "day", "--text": "code"}
    found = json.loads(
        run("fit", path, *options, "--out", model, *(x for pair in kinds.items() for x in pair)).out
    )
    columns = {row["name"]: (row["range"], row["sentence"]) for row in found["columns"]}
    assert columns["dept"] == ("4: 0, 1, 2, …", "4 categories.")
    assert columns["shop_id"] == ("1000 to 1039", "")
    assert columns["day"][0] == "2024-01-01 to 2024-01-28"
    assert "components of what they share" in columns["code"][1]
    # of each kind, the cells of a row are read as in training, whatever those of a short table are
    plans = {plan.column: plan.kind for plan in encoder_of(load_model(model).estimator).report_}
    assert plans == {"dept": "category", "shop_id": "number", "day": "date", "code": "text"}
    whole = run("predict", model, path).out.split()
    one = write(tmp_path / "u.csv", f"{head}\n{rows[11]}\n")
    assert float(run("predict", model, one).out.split()[1]) == pytest.approx(float(whole[12]))
    dropped = json.loads(run("fit", path, *options, "--drop", "dept").out)["columns"]
    assert [row["name"] for row in dropped] == ["shop_id", "day", "code"]
    for option in (*kinds, "--drop"):
        assert "did you mean 'dept'" in run("fit", path, *options, option, "Dept").error
    assert "cannot be read as a date" in run("fit", path, *options, "--date", "dept").err
    assert "'y' is the target" in run("fit", path, *options, "--categorical", "y").error


def test_the_day_is_first_where_it_is_said(run: Callable, tmp_path: Path) -> None:
    # no day is above 12, and in no reading are the rows in order
    days = [f"{1 + 5 * i % 12:02d}/{1 + 7 * i % 12:02d}/20{20 + i % 4}" for i in range(40)]
    path = write(
        tmp_path / "t.csv", "\n".join(["day,y", *(f"{d},{i * 7 % 11}" for i, d in enumerate(days))])
    )
    options = ("--target", "y", "--max-iter", "3", "--no-compare", "--json", "--force")
    model = tmp_path / "m.kw"
    plain = run("fit", path, *options, "--out", model)
    assert "month first, and might be meant with the day first" in plain.out
    said = run("fit", path, *options, "--out", model, "--day-first", "day")
    assert said.status == 0
    assert "might be meant" not in said.out
    (plan,) = encoder_of(load_model(model).estimator).report_
    assert plan.parameters["format"] == "%d/%m/%Y"
    # and new dates are read as those of training
    other = write(tmp_path / "u.csv", "day\n25/01/2021")
    assert run("predict", model, other).status == 0
    other = write(tmp_path / "u.csv", "day\n01/25/2021")
    assert "01/25/2021" in run("predict", model, other).error
    assert "did you mean 'day'" in run("fit", path, *options, "--day-first", "Day").error


def test_free_text_is_learned_from_saved_and_predicted(run: Callable, tmp_path: Path) -> None:
    notes = ["the pump does leak again" if i % 3 else "a part is only dry" for i in range(60)]
    rows = [f"{note} {i},{len(note) + i % 2}" for i, note in enumerate(notes)]
    path, model = write(tmp_path / "t.csv", "\n".join(["note,y", *rows])), tmp_path / "m.kw"
    options = ("--target", "y", "--max-iter", "3", "--no-compare", "--json", "--out", model)
    found = json.loads(run("fit", path, *options).out)
    assert "what they share" in found["columns"][0]["sentence"]
    assert found["columns"][0]["name"] == "note"
    other = write(tmp_path / "u.csv", "note\nthe pump does leak again\na part is only dry")
    leak, dry = (float(each) for each in run("predict", model, other).out.split()[1:])
    assert abs(leak - 24.5) < 1.5 < 3.0 < leak - dry
    # and so where it is asked for
    found = json.loads(run("fit", path, *options, "--force", "--text", "note").out)
    assert "what they share" in found["columns"][0]["sentence"]


def test_dates_of_any_format_cost_no_model(run: Callable, tmp_path: Path) -> None:
    days = pd.date_range("2021-02-27", periods=40, freq="17D")
    frame = pd.DataFrame({"when": days.strftime("%d-%b-%y"), "y": [i % 7 + 0.5 for i in range(40)]})
    frame.loc[5, "when"] = "pending"
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = tmp_path / "m.kw"
    options = ("--target", "y", "--max-iter", "1", "--no-compare", "--out", model, "--json")
    done = run("fit", tmp_path / "t.csv", *options)
    assert done.status == 0, done.err
    (when, *_) = json.loads(done.out)["columns"]
    assert when["range"] == f"2021-02-27 to {days.max():%Y-%m-%d}"
    assert model.exists()
