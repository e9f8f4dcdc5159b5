"""Files as they come: letters of any country, notes below, totals, archives."""

from __future__ import annotations

import gzip
import io
import re
import struct
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest
from kernelweave.kernels_core import KernelWeaveWarning, config_context
from kernelweave.tables import TableError, read_table, split_by_target
from kernelweave.tables.text import dialect_of

PLACES = {
    "shift_jis": "都市,人口\n東京,13960000\n大阪,8839000\n名古屋,2296000\n",
    "gb18030": "城市,人口\n北京,21893095\n上海,24870895\n",
    "euc_kr": "도시,인구\n서울,9411000\n부산,3349000\n",
    "cp1251": "город,население\nМосква,12655050\nКазань,1257391\n",
    "cp1252": "ville,habitants\nOrléans,116617\nNîmes,148104\nBéziers,79041\n",
}


@pytest.mark.parametrize("encoding", list(PLACES))
def test_letters_of_other_countries_are_found(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "t.csv").write_bytes(PLACES[encoding].encode(encoding))
    with pytest.warns(KernelWeaveWarning, match=r"not UTF-8 text \(line [12]\) and is read as"):
        table = read_table(tmp_path / "t.csv")
    known = pd.read_csv(io.StringIO(PLACES[encoding]))
    pd.testing.assert_frame_equal(table.frame, known, check_dtype=False)


@pytest.mark.parametrize(
    "encoding",
    ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "utf-8-sig"],
)
def test_unicode_needs_no_mark_and_no_warning(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "t.csv").write_bytes("größe;y\n1,5;2\n2,5;3\n".encode(encoding))
    table = read_table(tmp_path / "t.csv")
    assert table.frame.to_dict("list") == {"größe": [1.5, 2.5], "y": [2, 3]}


def test_a_file_of_one_byte_is_no_utf_16(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"\n")
    with pytest.raises(TableError, match=r"t\.csv is empty"):
        read_table(tmp_path / "t.csv")


def test_an_encoding_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("miasto;y\nŁódź;2\nGdańsk;3\n".encode("cp1250"))
    assert read_table(tmp_path / "t.csv", encoding="cp1250").frame["miasto"][0] == "Łódź"
    with pytest.raises(TableError, match=r"is not ascii text \(line 2\)"):
        read_table(tmp_path / "t.csv", encoding="ascii")
    with pytest.raises(TableError, match="there is no encoding 'polish'"):
        read_table(tmp_path / "t.csv", encoding="polish")


SALES = "town,units,price\nUlm,3,1.5\nBonn,4,2.25\nKiel,5,3.75\nJena,6,4.1\n"


@pytest.mark.parametrize("note", ["Source: World Bank", "\n\nNotes\n\nSource: World Bank\n\n"])
def test_notes_below_a_table_are_passed_over(tmp_path: Path, note: str) -> None:
    (tmp_path / "t.csv").write_text(f"{SALES}{note}")
    said = r"line \d+ \('.*'\) is taken for a note below the table"
    with pytest.warns(KernelWeaveWarning, match=said) as told:
        table = read_table(tmp_path / "t.csv")
    at = f"line {6 + note.count(chr(10), 0, note.index('Source'))} ('Source: World Bank')"
    assert at in str(told[0].message)
    assert len(told) == 1 + note.count("Notes")
    assert table.frame["town"].tolist() == ["Ulm", "Bonn", "Kiel", "Jena"]
    assert table.frame["units"].tolist() == [3, 4, 5, 6]


def test_a_short_row_is_no_note(tmp_path: Path) -> None:
    for text, at in ((f"{SALES}Essen,7\n", 6), (f"{SALES}7\n", 6), (f"{SALES}x\nUlm,1,2\n", 6)):
        (tmp_path / "t.csv").write_text(text)
        with pytest.raises(
            TableError, match=rf"t\.csv: line {at} has \d cells? but the header has 3"
        ):
            read_table(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text(SALES.replace("Kiel,5,3.75", "Kiel"))
    with pytest.raises(TableError, match=r"line 4 has 1 cell but the header has 3\. Fix or remove"):
        read_table(tmp_path / "t.csv")


def test_a_note_below_a_sheet_is_passed_over(tmp_path: Path) -> None:
    rows = [*pd.read_csv(io.StringIO(SALES)).to_numpy(object).tolist()]
    cells = [["town", "units", "price"], *rows, [None] * 3, ["Source: World Bank", None, None]]
    pd.DataFrame(cells).to_excel(tmp_path / "t.xlsx", header=False, index=False)
    with pytest.warns(KernelWeaveWarning, match=r"row 7 \('Source.* is taken for a note below"):
        table = read_table(tmp_path / "t.xlsx")
    assert table.frame["units"].tolist() == [3, 4, 5, 6]
    # without an empty row between them it may be a row that lacks the rest
    pd.DataFrame([*cells[:5], ["Essen", None, None]]).to_excel(
        tmp_path / "u.xlsx", header=False, index=False
    )
    assert read_table(tmp_path / "u.xlsx").frame["town"].tolist()[-1] == "Essen"


@pytest.mark.parametrize(
    ("total", "is_total"),
    [
        ("Total,18,11.6", True),
        ("Grand total:,18,", True),
        ("mean,4.5,2.9", True),
        ("Total,18,11.7", False),
        ("Total,,", False),
        ("Totnes,18,11.6", False),
    ],
)
@pytest.mark.parametrize("way", ["CSV", "Excel"])
def test_a_row_that_sums_the_others_is_left_out(
    tmp_path: Path, total: str, is_total: bool, way: str
) -> None:
    text, path = f"{SALES}{total}\n", tmp_path / "t"
    path.write_text(text)
    if way == "Excel":
        path = tmp_path / "t.xlsx"
        pd.read_csv(io.StringIO(text)).to_excel(path, index=False)
    if not is_total:
        assert len(read_table(path).frame) == 5
        return
    with pytest.warns(KernelWeaveWarning, match=r"line 6 says '.*' in column 'town' and is the "):
        assert read_table(path).frame["units"].tolist() == [3, 4, 5, 6]


def test_a_name_may_have_several_lines(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('"price\n(EUR)";size \n1,5;2\n2,5;3\n', encoding="utf-8-sig")
    table = read_table(tmp_path / "t.csv")
    assert table.columns == ["price (EUR)", "size"]
    assert table.where(0) == "line 3"
    pd.DataFrame({"price\n(EUR)": [1.5, 2.5], "size": [2, 3]}).to_excel(
        tmp_path / "t.xlsx", index=False
    )
    assert read_table(tmp_path / "t.xlsx").columns == table.columns
    (tmp_path / "u.csv").write_text('"price\n(EUR)";size\n1;2\n2;3\n4;5;6\n')
    with pytest.raises(TableError, match="line 5 has 3 cells but the header has 2"):
        read_table(tmp_path / "u.csv")
    (tmp_path / "v.csv").write_text('"a\n \nb","c  d"\n1,2\n2,3\n')
    assert read_table(tmp_path / "v.csv").columns == ["a b", "c  d"]


@pytest.mark.parametrize("text", ['""\n', '"  "\nx\ny\n', ' ""\n1\n', '\n \t\n""\n1\n2\n'])
def test_a_quoted_name_may_not_be_blank(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    for read in (read_table, dialect_of):
        with pytest.raises(TableError, match=r"column 1 has no name"):
            read(tmp_path / "t.csv")


def test_blank_lines_above_the_names_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("\n   \n  \r\na,b\n1,2\n")
    (tmp_path / "u.csv").write_text("\n  \n\ta\n5\t1\n6\t2\n")
    assert read_table(tmp_path / "t.csv").columns == ["a", "b"]
    assert dialect_of(tmp_path / "t.csv").names == ["a", "b"]
    assert dialect_of(tmp_path / "u.csv").names == ["index", "a"]
    with pytest.warns(UserWarning, match="column 1 has no name"):
        assert read_table(tmp_path / "u.csv").columns == ["a"]


def test_archives_are_unpacked_within_the_memory_limit(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "t.csv.zip", "w") as archive:
        archive.writestr("t.csv", SALES)
    assert read_table(tmp_path / "t.csv.zip").frame["units"].tolist() == [3, 4, 5, 6]
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.csv", SALES)
        archive.writestr("b.csv", SALES)
    with pytest.raises(TableError, match=r"holds 2 files \(a\.csv, b\.csv\): unpack one"):
        read_table(tmp_path / "two.zip")
    bomb = b"a,b\n" + b"1,2\n" * 2**20
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(bomb))
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.csv", bomb)
    for name in ("t.csv.gz", "bomb.zip"):
        with (
            config_context(memory_limit=2**24),
            pytest.raises(TableError, match=f"{re.escape(name)} unpacks to more than 512 KiB"),
        ):
            read_table(tmp_path / name)


def test_a_large_index_of_libsvm_costs_no_column(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("1 2000000000:1.5\n-1 3:2\n")
    with config_context(memory_limit=2**16):
        table = read_table(tmp_path / "t")
    assert table.columns == ["3", "2000000000", "target"]
    np.testing.assert_array_equal(table.inputs(["3", "2000000000", "7"]), [[0, 1.5, 0], [2, 0, 0]])


def test_files_of_stata_are_read_with_their_labels(tmp_path: Path) -> None:
    frame = pd.read_csv(io.StringIO(SALES)).astype({"town": "category"})
    frame.to_stata(tmp_path / "t.dta", write_index=False)
    table = read_table(tmp_path / "t.dta")
    assert table.frame["town"].tolist() == frame["town"].tolist()
    np.testing.assert_array_equal(table.frame["price"], frame["price"])
    for ending in (".dta", ".sas7bdat", ".xpt"):
        (tmp_path / f"u{ending}").write_bytes(b"no such file")
        with pytest.raises(TableError, match=f"is not a sound {ending} file"):
            read_table(tmp_path / f"u{ending}")


def ibm_double(x: float) -> bytes:
    """Return a number of IBM mainframes: a sign, a power of 16, and 56 bits."""
    power = 0 if x else -64
    while abs(x) >= 1.0:
        x, power = x / 16.0, power + 1
    sign = 128 * (x < 0.0)
    return bytes([sign + 64 + power]) + int(abs(x) * 2**56).to_bytes(7, "big")


def transport_file(columns: Mapping[str, tuple[str, Sequence[float | str]]]) -> bytes:
    """Return a SAS transport file of numbers and words with their formats; NaN is missing."""
    zeros, moment = "0" * 30 + "  ", "01JAN24:00:00:00"

    def cell(x: float | str) -> bytes:
        if isinstance(x, str):
            return x.encode("latin-1").ljust(8)
        return b"." + b"\0" * 7 if np.isnan(x) else ibm_double(x)

    def header(kind: str, tail: str = zeros) -> bytes:
        return f"HEADER RECORD*******{kind:<8}HEADER RECORD!!!!!!!{tail}".ljust(80).encode()

    names = b"".join(
        struct.pack(">hhhh8s40s8shhh2s8shhl52s", 1 + (form[0] == "$"), 0, 8, j + 1,
                    name.encode().ljust(8), b" " * 40, form.encode().ljust(8), 9, 0, 0,
                    b"  ", b" " * 8, 0, 0, 8 * j, b"\0" * 52)
        for j, (name, (form, _)) in enumerate(columns.items())
    )  # fmt: skip
    rows = zip(*(values for _, values in columns.values()), strict=True)
    cells = b"".join(cell(x) for row in rows for x in row)
    head = f"{{}}9.4     Linux   {' ' * 24}{moment}"
    lines = [
        header("LIBRARY"), head.format("SAS     SAS     SASLIB  ").encode(), moment.encode(),
        header("MEMBER", "0" * 17 + "16" + "0" * 8 + "140  "), header("DSCRPTR"),
        head.format("SAS     T       SASDATA ").encode(), moment.encode(),
        header("NAMESTR", f"000000{len(columns):04d}{'0' * 20}  "), names, header("OBS"), cells,
    ]  # fmt: skip
    return b"".join(line + b" " * (-len(line) % 80) for line in lines)


def test_dates_of_sas_transport_files_are_dates(tmp_path: Path) -> None:
    columns: dict[str, tuple[str, Sequence[float | str]]] = {
        "DAY": ("DATE", [23376.0, np.nan, -1.0]),
        "SEEN": ("DATETIME", [23376 * 86400.0 + 3661.0, 0.0, np.nan]),
        "ISO": ("E8601DA", [0.0, 1.0, 2.0]),
        "PARTS": ("DATETIME", [1.75, -0.5, 100.0000001]),
        "LATEST": ("DATE", [2936549.0, -715509.0, 0.5]),
        "CLOCK": ("TIME", [3600.0, 0.0, 1.0]),
        "FAR": ("DATETIME", [1e16, 0.0, np.nan]),
        "NINES": ("DATE", [9999999.0, 0.0, 1.0]),
        "SIZE": ("BEST", [2.0, 3.5, np.nan]),
        "MONTH": ("MONTH", [1.0, 2.0, 3.0]),
        "TOWN": ("$CHAR", ["Orléans", "", "Köln"]),
    }
    (tmp_path / "t.xpt").write_bytes(transport_file(columns))
    frame = read_table(tmp_path / "t.xpt").frame
    day, seen = frame["DAY"], frame["SEEN"]
    assert [str(each)[:10] for each in day] == ["2024-01-01", "NaT", "1959-12-31"]
    assert list(map(str, seen)) == ["2024-01-01 01:01:01", "1960-01-01 00:00:00", "NaT"]
    assert frame["ISO"].dt.day.tolist() == [1, 2, 3]
    assert [f"{each:%S.%f}" for each in frame["PARTS"]] == ["01.750000", "59.500000", "40.000000"]
    latest = ["9999-12-31 00:00:00", "0001-01-01 00:00:00", "1960-01-01 12:00:00"]
    assert list(map(str, frame["LATEST"])) == latest
    assert frame["TOWN"].tolist() == columns["TOWN"][1]
    # what is no moment of the calendar stays a number, and its column with it
    for name in ("CLOCK", "SIZE", "MONTH", "FAR", "NINES"):
        np.testing.assert_array_equal(frame[name], columns[name][1])


@pytest.mark.parametrize("n_columns", [1, 3, 11])
def test_a_sas_transport_file_cut_short_is_refused(tmp_path: Path, n_columns: int) -> None:
    rows = [float(i + 1) for i in range(30)]
    whole = transport_file({f"X{j}": ("BEST", rows) for j in range(n_columns)})
    path = tmp_path / "t.xpt"
    path.write_bytes(whole)
    assert read_table(path).frame["X0"].tolist() == rows
    start = whole.index(b"HEADER RECORD*******OBS") + 80
    for end in range(start + 4, len(whole), 4):
        path.write_bytes(whole[:end])
        n_rows, rest = divmod(end - start, 8 * n_columns)
        # all rows are there, without the blanks behind them, or the cut is between records and rows
        if (end - start) % 80 == 0 and (not rest or not whole[end - rest : end].strip()):
            assert read_table(path).frame["X0"].tolist() == rows[:n_rows]
            continue
        with pytest.raises(
            TableError, match=r"t\.xpt ends in the middle of a row, after \d+ whole"
        ):
            read_table(path)
    path.write_bytes(whole + whole[whole.index(b"HEADER RECORD*******MEMBER") :])
    with pytest.raises(TableError, match=r"t\.xpt holds several tables"):
        read_table(path)


def test_a_sas_transport_file_of_version_8_is_called_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "t.xpt").write_bytes(
        b"HEADER RECORD*******LIBV8   HEADER RECORD!!!!!!!" + b"0" * 32
    )
    with pytest.raises(TableError, match=r"of version 8, and .* save it as \.sas7bdat or CSV"):
        read_table(tmp_path / "t.xpt")


def test_a_file_of_spss_needs_a_package_and_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    (tmp_path / "t.SAV").write_bytes(b"$FL2")
    with pytest.raises(TableError, match="needs pyreadstat: pip install pyreadstat, or save it as"):
        read_table(tmp_path / "t.SAV")


@pytest.mark.parametrize(
    ("cells", "missing"),
    [
        ([1.5, None, 3.0, None], [1, 3]),
        (["1.5", "NA", "3", "?"], [1, 3]),
        (["yes", "", "no", None], [1, 3]),
        (["yes", "NA", "no", "yes"], []),
        ([None, None, None, None], []),
    ],
)
def test_rows_are_parted_by_their_target(cells: list[object], missing: list[int]) -> None:
    frame = pd.DataFrame({"a": range(4), "y": pd.Series(cells, dtype=object)})
    known, unknown = split_by_target(read_table(frame), "y")
    assert known.frame["a"].tolist() == [i for i in range(4) if i not in missing]
    assert (unknown is None) == (not missing)
    if unknown is not None:
        assert unknown.frame["a"].tolist() == missing
        assert [unknown.where(i) for i in range(2)] == ["row 2", "row 4"]


def sheet(path: Path, rows: list[list[object]], *merged: str) -> None:
    """Write a sheet with merged cells."""
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for cells in merged:
        book.active.merge_cells(cells)
    book.save(path)


def test_two_rows_of_names_become_one(tmp_path: Path) -> None:
    rows = [["N", 20.5 + i, 4.0 + i, i] for i in range(5)]
    names = [["Site", "Measured", None, "Result"], [None, "Temp (C)", "pH", "kg"]]
    sheet(tmp_path / "t.xlsx", [*names, *rows], "B1:C1")
    with pytest.warns(UserWarning, match="rows 1 and 2 are taken for two rows of names"):
        table = read_table(tmp_path / "t.xlsx")
    assert table.columns == ["Site", "Measured Temp (C)", "Measured pH", "Result kg"]
    assert table.frame["Measured pH"].tolist() == [4.0, 5.0, 6.0, 7.0, 8.0]
    # a name that is missing, or a title over all columns, names no groups
    sheet(tmp_path / "u.xlsx", [["Site", "note", None], ["N", "dry", "<0.5"], ["S", "wet", 3]])
    with pytest.raises(TableError, match="column 3 has no name"):
        read_table(tmp_path / "u.xlsx")
    sheet(tmp_path / "v.xlsx", [["Report", None], ["x", "y"], [1, 2], [3, 4]], "A1:B1")
    with pytest.raises(TableError, match="column 2 has no name"):
        read_table(tmp_path / "v.xlsx")


def test_two_rows_of_names_of_the_case_are_read(shared: Path) -> None:
    with pytest.warns(UserWarning, match="two rows of names"):
        table = read_table(shared / "cases" / "two_headers.xlsx")
    assert table.columns == ["Site", "Measured Temp (C)", "Measured pH", "Result Yield (kg)"]
    assert table.frame.iloc[0].tolist() == ["S", 23.5, 4.41, 11.88]
