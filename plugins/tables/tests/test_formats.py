"""One table in every way to write it: dialects of CSV, Excel, JSON, Parquet; files and pipes."""

from __future__ import annotations

import datetime
import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.kernels_core import KernelWeaveWarning
from kernelweave.tables import Table, TableError, plan_columns, read_table, read_target
from kernelweave.tables.frames import read_columns
from kernelweave.tables.plans import extent, plan_column
from kernelweave.tables.table import gaps_of

FRAME = pd.DataFrame(
    {"size": [1234.5, -0.5, 7.0], "name": ["Zoë", "Ann, B", "Çem"], "count": [3, 0, 12]}
)


def profile(table: Table, name: str) -> dict[str, object]:
    """Return the range of a column and its gaps, as the plan of its cells has them."""
    rows = read_columns(table.inputs([name]))
    plan, _ = plan_column(name, rows.columns[0], comma=rows.comma)
    return extent(plan, rows.columns[0], rows.comma)


def read(tmp_path: Path, content: bytes, name: str = "t", **options: Any) -> Table:
    path = tmp_path / name
    path.write_bytes(content)
    return read_table(str(path), **options)


def excel(*frames: pd.DataFrame, **options: Any) -> bytes:
    buffer = io.BytesIO()
    with pd.ExcelWriter(buffer) as writer:
        for i, frame in enumerate(frames):
            frame.to_excel(writer, sheet_name=f"sheet {i}", index=False, **options)
    return buffer.getvalue()


def parquet() -> bytes:
    buffer = io.BytesIO()
    FRAME.to_parquet(buffer)
    return buffer.getvalue()


WAYS = {
    "commas": FRAME.to_csv(index=False).encode(),
    "semicolons": FRAME.to_csv(index=False, sep=";").encode(),
    "tabs": FRAME.to_csv(index=False, sep="\t").encode(),
    "bars": FRAME.to_csv(index=False, sep="|").encode(),
    "decimal commas": FRAME.to_csv(index=False, sep=";", decimal=",").encode(),
    "decimal commas, tabs": FRAME.to_csv(index=False, sep="\t", decimal=",").encode(),
    "quoted decimal commas": FRAME.to_csv(index=False, decimal=",", quoting=1).encode(),
    "continental": 'size;name;count\n1.234,5;Zoë;3\n-0,5;"Ann, B";0\n7;Çem;12\n'.encode(),
    "thousands": 'size,name,count\n"1,234.5",Zoë,3\n-0.5,"Ann, B",0\n7,Çem,12\n'.encode(),
    "UTF-16": FRAME.to_csv(index=False, sep="\t").encode("utf-16"),
    "gzip": gzip.compress(FRAME.to_csv(index=False).encode()),
    "Excel": excel(FRAME),
    "Parquet": parquet(),
    "JSON lines": FRAME.to_json(orient="records", lines=True).encode(),
    "JSON": FRAME.to_json(orient="records", force_ascii=False).encode(),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_same_table_however_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(WAYS[way])))
    for table in (read(tmp_path, WAYS[way]), read_table("-")):
        assert table.columns == list(FRAME.columns)
        for name in ("size", "count"):
            np.testing.assert_array_equal(table.numbers(name), FRAME[name])
        assert table.frame["name"].tolist() == FRAME["name"].tolist()


def test_letters_of_windows_are_read_with_a_warning(tmp_path: Path) -> None:
    content = "größe;preis\n1,5;2\n2,5;3\n".encode("cp1252")
    with pytest.warns(KernelWeaveWarning, match=r"not UTF-8 text \(line 1\) .* Windows-1252"):
        table = read(tmp_path, content)
    assert table.columns == ["größe", "preis"]
    assert table.numbers("größe").tolist() == [1.5, 2.5]


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("a;b\n1,234;x\n2,5;y\n", [1.234, 2.5]),
        ('a,b\n"1,234",x\n"12,500",y\n', [1234.0, 12500.0]),
        ('a;b\n"1,234.5";x\n2;y\n', [1234.5, 2.0]),
        ("a;b\n1,5;x\nNA;y\n", [1.5, np.nan]),
    ],
)
def test_what_a_comma_in_a_number_means(tmp_path: Path, text: str, cells: list[float]) -> None:
    found = read(tmp_path, text.encode()).frame["a"]
    np.testing.assert_array_equal(found.astype(float), cells)


@pytest.mark.parametrize("cells", [["1,2", "x"], ["1,2,3", "4,5"], ["01.02.2020", "3,5"]])
def test_what_is_no_number_with_commas_stays_as_it_is(tmp_path: Path, cells: list[str]) -> None:
    text = "a;b\n" + "".join(f"{cell};{i}\n" for i, cell in enumerate(cells))
    assert read(tmp_path, text.encode()).frame["a"].tolist() == cells


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["63.123,45 €", "7,5 €", "-2 €"], [63123.45, 7.5, -2.0]),
        (["$63,123.45", "$7.50", "-$2"], [63123.45, 7.5, -2.0]),
        (["12%", "", "3.5 %"], [12.0, np.nan, 3.5]),
        (["12%", "n.a.", "#N/A"], [12.0, np.nan, np.nan]),
        (["-€5", "€ -3", "- €2"], [-5.0, -3.0, -2.0]),
        (["1.234 €", "980 €"], [1234.0, 980.0]),
        (["1.234.567 €", "980.000 €"], [1234567.0, 980000.0]),
        (["0.459 €", "1.399 €"], [0.459, 1.399]),
        (["1.234 €", "2.5 €"], [1.234, 2.5]),
        (["1.234 %", "2.345 %"], [1.234, 2.345]),
        (["$1,234", "$980"], [1234.0, 980.0]),
        (["$1.234", "$980"], [1234.0, 980.0]),
        (["$1,50", "$2"], [1.5, 2.0]),
        (["EUR 1.234,50", "EUR 7,5", "EUR -2"], [1234.5, 7.5, -2.0]),
        (["USD1,234.50", "USD 7", "USD 2"], [1234.5, 7.0, 2.0]),
        (["BUS 12", "BUS 7"], None),
        (["1€50", "2€30"], None),
        (["12 %", "3 €"], None),
        (["12 %", "3"], None),
        (["a%", "b%"], None),
    ],
)
def test_one_sign_in_every_cell_is_a_unit(
    tmp_path: Path, cells: list[str], numbers: list[float] | None
) -> None:
    text = "a;b\n" + "".join(f"{cell};{i}\n" for i, cell in enumerate(cells))
    read_as = read(tmp_path, text.encode()).frame["a"].tolist()
    np.testing.assert_array_equal(read_as, cells if numbers is None else numbers)


def test_a_point_that_may_be_decimal_is_told(tmp_path: Path) -> None:
    with pytest.warns(
        KernelWeaveWarning, match=r"column 'a': '1\.459 €' is read as 1459, its point"
    ):
        frame = read(tmp_path, "a,b\n1.459 €,1\n1.399 €,2\n".encode()).frame
    assert frame["a"].tolist() == [1459.0, 1399.0]
    assert read(tmp_path, b"a,b\n$1.459,1\n$1.399,2\n").frame["a"].tolist() == [1.459, 1.399]


def test_a_thousand_begins_with_no_zero(tmp_path: Path) -> None:
    frame = read(tmp_path, b'a,b\n"0,125",1\n"1,250",2\n').frame
    assert frame["a"].tolist() == [0.125, 1.25]


@pytest.mark.parametrize(
    ("cells", "is_code"),
    [
        (["01067", "20095", "80331"], True),
        (["01067", "", "80331", "NA"], True),
        (["007", "5", "12"], False),
        (["0", "1", "10"], False),
        (["01.5", "12.5"], False),
        (["-01", "-12"], False),
        (["01067 kg", "20095 kg"], False),
    ],
)
@pytest.mark.parametrize("separator", [",", ";", "\t", '";"', "JSON lines"])
def test_a_code_keeps_its_zero(
    tmp_path: Path, cells: list[str], is_code: bool, separator: str
) -> None:
    """All are digits, and one that a zero leads is as long as another."""
    if separator == "JSON lines":
        text = "".join(json.dumps({"a": cell, "b": i}) + "\n" for i, cell in enumerate(cells))
    else:
        quote = separator[0] if len(separator) > 1 else ""
        rows = [("a", "b"), *((cell, str(i)) for i, cell in enumerate(cells))]
        text = "".join(f"{quote}{separator.join(row)}{quote}\n" for row in rows)
    table = read(tmp_path, text.encode())
    found = table.frame["a"]
    found = found[~gaps_of(found)]
    numbers = pd.api.types.is_numeric_dtype(found)
    if is_code:
        assert not numbers
        assert found.tolist() == [cell for cell in cells if cell not in ("", "NA")]
        assert profile(table, "a")["range"].startswith(f"{found.nunique()}: ")
    elif separator != "JSON lines":
        assert numbers


def test_classes_may_be_codes(tmp_path: Path) -> None:
    text = "a,b\n1,07\n2,12\n3,07\n"
    target = read_target(read(tmp_path, text.encode()), "b")
    assert target.values.tolist() == ["07", "12", "07"]
    assert target.task == "classification"
    target = read_target(read(tmp_path, text.encode()), "b", "regression")
    assert target.values.tolist() == [7.0, 12.0, 7.0]
    with pytest.raises(TableError, match="the value is missing"):
        read_target(read(tmp_path, text.replace("12", "").encode() + b"4,12\n"), "b")


@pytest.mark.parametrize("form", ["%m/%d/%Y %H:%M", "%d.%m.%Y", "%Y-%m-%d", None])
def test_dates_have_a_range_however_they_are_written(form: str | None) -> None:
    days = pd.Series(pd.date_range("2024-02-27", periods=30, freq="27h")[::-1])
    if form:
        days = days.dt.strftime(form)
    days[3] = None
    found = profile(read_table(pd.DataFrame({"day": days, "b": range(30)})), "day")
    assert found == {"range": "2024-02-27 to 2024-03-30", "missing": 1}


def test_dates_and_gaps_of_excel(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.0, None, 3.0], "d": pd.date_range("2020", periods=3)})
    frame["t"] = [True, False, True]
    table = read(tmp_path, excel(pd.DataFrame(), frame))
    assert pd.api.types.is_datetime64_any_dtype(table.frame["d"])
    assert table.frame["t"].dtype.kind == "b"
    np.testing.assert_array_equal(table.frame["a"], frame["a"])
    assert table.where(1) == "line 3"
    bare = read(tmp_path, excel(frame, header=False), header=False)
    assert bare.columns == ["0", "1", "2"]
    with pytest.warns(KernelWeaveWarning, match="has 2 sheets with rows; 'sheet 0' is read"):
        read(tmp_path, excel(frame, frame))
    cover = pd.DataFrame({"Shops of 2020": ["by region"]})
    with pytest.warns(KernelWeaveWarning, match="'sheet 1' is read"):
        assert read(tmp_path, excel(cover, frame)).columns == ["a", "d", "t"]


@pytest.mark.parametrize("in_file", [True, False])
def test_words_among_dates_and_durations(tmp_path: Path, in_file: bool) -> None:
    days = list(pd.date_range("2020-02-27", periods=40, freq="27h"))
    frame = pd.DataFrame({"a": range(40), "day": days}).astype(object)
    frame.loc[3, "day"], frame.loc[4, "day"] = "unknown", "n/a"
    if not in_file:  # pandas writes durations as numbers
        frame["took"] = [datetime.timedelta(minutes=7 * i) for i in range(39)] + ["-"]
    table = read(tmp_path, excel(frame)) if in_file else read_table(frame)
    with pytest.warns(KernelWeaveWarning, match="such as '(unknown|-)' in row"):
        (_, day, *took), found = plan_columns(table.inputs(table.columns)), profile(table, "day")
    assert day.kind == "date"
    assert [(each.kind, each.unit) for each in took] == [("number", "s")] * (not in_file)
    assert found == {"range": "2020-02-27 to 2020-04-10", "missing": 2}


def test_json_objects_may_lack_columns(tmp_path: Path) -> None:
    table = read(tmp_path, b'{"a": 1, "b": "x"}\n\n{"b": "y"}\n')
    np.testing.assert_array_equal(table.frame["a"], [1.0, np.nan])
    assert table.where(1) == "line 3"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"a": 1}\n{"a": \n', "line 2: not JSON"),
        (b'{"a": 1}\n3\n', "line 2: 3 is not an object"),
        (b'[{"a": 1}, 2]', "row 2: 2 is not an object"),
        (b"[{]", "line 1: not JSON"),
        (b"[]", "no rows or no columns"),
        (b"PK\x03\x04 and no archive", "not a sound Excel file"),
        (b"\xd0\xcf\x11\xe0 of 1997", "is an old Excel file: save it as .xlsx"),
        (b"\xff\xfea", "damaged UTF-16"),
        (b"\0\1\2a,b\n1,2\n", "is not text"),
        (b"\0\1\2", "is not text"),
        (b"<!DOCTYPE html>\n<p>Not found</p>\n", "is a web page or XML, not a table"),
        (excel(pd.DataFrame()), "no rows in any sheet"),
        (excel(pd.DataFrame([[1, 2]], columns=["a", None])), "column 2 has no name"),
        (excel(pd.DataFrame([[1, 2]], columns=["a", "a"])), "two columns named 'a'"),
    ],
)
def test_damaged_files_get_a_sentence(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(TableError, match=said):
        read(tmp_path, content)


def test_objects_in_json_are_columns(tmp_path: Path) -> None:
    rows = [
        {"user": {"age": 31, "home": {"zip": "01067"}}, "y": 1},
        {"user": {"age": 40}, "y": 2},
        {"y": 3, "none": None},
    ]
    table = read(tmp_path, json.dumps(rows).encode())
    assert table.columns == ["user.age", "user.home.zip", "y", "none"]
    np.testing.assert_array_equal(table.frame["user.age"], [31, 40, np.nan])
    assert table.frame["user.home.zip"].tolist()[0] == "01067"
    twice = [{"a": {"b": 1}, "a.b": 2}]
    with pytest.raises(TableError, match=r"two columns named 'a\.b'"):
        read(tmp_path, json.dumps(twice).encode())


@pytest.mark.parametrize("n_above", [1, 3])
def test_a_title_above_the_names_is_told(tmp_path: Path, n_above: int) -> None:
    above = [["Report of 2024", None, None], *[[None] * 3] * (n_above - 1)]
    cells = [*above, list(FRAME.columns), *FRAME.to_numpy(object).tolist()]
    content = excel(pd.DataFrame(cells), header=False)
    with pytest.warns(KernelWeaveWarning, match=rf"row 1 \('Report.* from row {n_above + 1}$"):
        table = read(tmp_path, content)
    assert table.columns == list(FRAME.columns)
    assert table.where(0) == f"line {n_above + 2}"


@pytest.mark.parametrize("written", ["Report of 2024", "Report of 2024;;", '"Report;\nof 2024";'])
@pytest.mark.parametrize("between", ["\n", "\n\n", "\nall of them;;\n;;\n"])
def test_a_title_of_a_csv_is_told(tmp_path: Path, written: str, between: str) -> None:
    text = f"{written}{between}{FRAME.to_csv(index=False, sep=';')}"
    at = 1 + (written + between).count("\n")
    with pytest.warns(KernelWeaveWarning, match=rf"line \d \('Report.* from line {at}$"):
        table = read(tmp_path, text.encode())
    assert table.columns == list(FRAME.columns)
    assert table.frame["name"].tolist() == FRAME["name"].tolist()
    assert table.where(0) == f"line {at + 1}"


@pytest.mark.parametrize("way", ["CSV", "quoted", "Excel"])
@pytest.mark.parametrize(
    "index", [range(40), [*range(20), *range(20)], np.arange(40) / 8, [7] * 40, [None, *range(39)]]
)
def test_a_saved_index_of_numbers_is_left_out(tmp_path: Path, way: str, index: Any) -> None:
    """It is whatever it repeats, as tables that were joined or drawn from others have it."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)), index, columns=["a", "y"])
    path = _saved_with_index(frame, tmp_path / "t", way)
    said = "t: column 1 has no name and holds numbers, .*: it is left out; name it to use it$"
    with pytest.warns(KernelWeaveWarning, match=said):
        table = read_table(path)
    assert table.columns == ["a", "y"]
    assert table.where(0) == "line 2"


@pytest.mark.parametrize("way", ["CSV", "quoted", "Excel"])
@pytest.mark.parametrize(
    "index",
    [pd.date_range("2024-01-01", periods=4), list("pqpq"), ["3 kg", "4 kg", "5 kg", "6 kg"]],
)
def test_other_saved_indices_are_called_so(tmp_path: Path, way: str, index: Any) -> None:
    frame = pd.DataFrame({"a": [1, 2, 3, 4]}, index)
    path = _saved_with_index(frame, tmp_path / "t", way)
    with pytest.warns(KernelWeaveWarning, match="column 1 has no name and is called 'index'$"):
        assert read_table(path).columns == ["index", "a"]


@pytest.mark.parametrize("way", ["CSV", "Excel"])
def test_a_saved_index_of_blanks_is_called_so(tmp_path: Path, way: str) -> None:
    frame = pd.DataFrame({"a": [1, 2, 3]}, index=["", "", ""])
    path = _saved_with_index(frame, tmp_path / "t", way)
    if way == "Excel":
        # an empty first column is none, as anywhere in a sheet
        assert read_table(path).columns == ["a"]
    else:
        with pytest.warns(KernelWeaveWarning, match="column 1 has no name and is called 'index'$"):
            assert gaps_of(read_table(path).frame["index"]).all()


def _saved_with_index(frame: pd.DataFrame, path: Path, way: str) -> Path:
    if way == "Excel":
        content = io.BytesIO()
        frame.to_excel(content)
        path.write_bytes(content.getvalue())
    else:
        frame.to_csv(path, quoting=1 if way == "quoted" else 0)
    return path


@pytest.mark.parametrize("text", ["a b y\n1 2,5 x\n3 4 y\n", "  a    b y\n  1  2.5 x\n 3   4 y\n"])
def test_blanks_may_stand_between_columns(tmp_path: Path, text: str) -> None:
    table = read(tmp_path, text.encode())
    assert table.frame.to_dict("list") == {"a": [1, 3], "b": [2.5, 4.0], "y": ["x", "y"]}
    assert read(tmp_path, b"full name\nAnn\nBob\n").columns == ["full name"]


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (["review text", "hello world", "good bye"], ["review text"]),
        (["net weight", "12 kg", "13 kg"], ["net weight"]),
        (["net weight", "12 300", "13 450"], ["net", "weight"]),
        (["town people", "Bonn 330", "Ulm 130"], ["town", "people"]),
        (["town people x", "Bonn 330 a", "Ulm ? b", "Jena 110 c"], ["town", "people", "x"]),
        (["review text", "hello\u2028again world", "good bye"], ["review text"]),
        (["review text", "so\x85so film", '"good\ntwice" bye'], ["review text"]),
    ],
)
def test_blanks_between_words_alone_part_no_columns(
    tmp_path: Path, rows: list[str], columns: list[str]
) -> None:
    assert read(tmp_path, "\n".join(rows).encode()).columns == columns


def test_blank_lines_of_utf_16_are_empty(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="is empty"):
        read(tmp_path, "\n\n".encode("utf-16"))


def test_commas_between_blanks_are_decimal(tmp_path: Path) -> None:
    table = read(tmp_path, b"w y\n70,5 1,25\n71,5 2,75\n")
    assert table.frame.to_dict("list") == {"w": [70.5, 71.5], "y": [1.25, 2.75]}
    with pytest.warns(KernelWeaveWarning, match="'Sales 2024'"):
        assert read(tmp_path, b"Sales 2024\nfirst name,last\nAnn Lee,Fox\n").columns[1] == "last"


def test_blanks_may_end_lines(tmp_path: Path) -> None:
    for end in (b"\n", b"\r\n"):
        table = read(tmp_path, end.join([b"a b ", b"1 2 ", b"3 4", b""]))
        assert table.frame.to_dict("list") == {"a": [1, 3], "b": [2, 4]}


@pytest.mark.parametrize("row", ["5.1,3.5,setosa", "1,2", "1;2,5;x", "70 kg;tall", "x,07:30"])
@pytest.mark.parametrize("names", ["a", "x1 x2 label", "x1 | x2"])
def test_no_row_of_numbers_is_taken_for_names(tmp_path: Path, row: str, names: str) -> None:
    n_cells = len(row.split(";" if ";" in row else ","))
    with pytest.raises(TableError, match=f"line 2 has {n_cells} cells but the header has 1. "):
        read(tmp_path, f"{names}\n{row}\n{row}\n{row}\n".encode())


def test_what_is_no_title(tmp_path: Path) -> None:
    assert read(tmp_path, b"name\nBob\nAnn\n").columns == ["name"]
    with pytest.warns(KernelWeaveWarning, match="'Report'"):
        assert read(tmp_path, b"Report\na,b\n1,2\n").columns == ["a", "b"]
    with pytest.raises(TableError, match="column 2 has no name"):
        read(tmp_path, b"a,\n1,2\n")
    with pytest.raises(TableError, match=r"line 2 has 3 .* has 2.* what stands above the names"):
        read(tmp_path, b"Report, 2024\na,b,c\n1,2,3\n")
    assert read(tmp_path, b"x,,\n1,2,3\n", header=False).columns == ["0", "1", "2"]


def test_nested_json_is_refused_by_column_and_row(tmp_path: Path) -> None:
    rows = [{"a": 1, "y": 1.5}, {"a": {"b": 2}, "y": 2.5}]
    table = read(tmp_path, "\n".join(map(json.dumps, rows)).encode())
    assert isinstance(table.frame["a"][1], dict)
    with pytest.raises(TableError, match=r"column 'a' has \{'b': 2\} \(dict\) in line 2: a value"):
        table.inputs(["a"])


def test_a_wide_text_is_read_without_a_warning_of_pandas(tmp_path: Path) -> None:
    """Columns were replaced one after the other, of which pandas warns at the next one."""
    wide = pd.DataFrame(np.arange(800.0).reshape(2, 400), columns=[f"v{k}" for k in range(400)])
    table = read(tmp_path, wide.to_csv(index=False).encode())
    np.testing.assert_array_equal(table.frame.assign(more=0.0)[wide.columns], wide)
    with pytest.raises(TableError, match="is no Excel file and has no sheet 'a'"):
        read(tmp_path, wide.to_csv(index=False).encode(), sheet="a")
