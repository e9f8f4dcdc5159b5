"""What a file takes of memory is known, and refused, before it is taken."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest
from kernelweave.kernels_core import config_context
from kernelweave.tables import TableError, read_table, read_target

LIMIT = 2**24
TEXT = LIMIT // 32
SHEET, STYLES = "xl/worksheets/sheet1.xml", "xl/styles.xml"
STRINGS, TYPES = "xl/sharedStrings.xml", "[Content_Types].xml"


def xlsx(cells: dict[str, object], n_sheets: int = 1) -> bytes:
    """Return an Excel file of some cells, in each of its sheets."""
    book, buffer = openpyxl.Workbook(), io.BytesIO()
    for _ in range(n_sheets - 1):
        book.create_sheet()
    for sheet in book.worksheets:
        for place, value in cells.items():
            sheet[place] = value
    book.save(buffer)
    return buffer.getvalue()


def with_part(content: bytes, name: str, change: Callable[[str], str]) -> bytes:
    """Return an Excel file in which a part is changed."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for each in old.namelist():
            part = old.read(each)
            new.writestr(each, change(part.decode()) if each == name else part)
    return buffer.getvalue()


def with_texts(content: bytes, texts: str) -> bytes:
    """Return an Excel file that has texts of its own part, as Excel writes them."""
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    part = f'<Override PartName="/{STRINGS}" ContentType="{kind}"/></Types>'
    content = with_part(content, TYPES, lambda types: types.replace("</Types>", part))
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive:
        space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
        archive.writestr(STRINGS, f'<sst xmlns="{space}">{texts}</sst>')
    return buffer.getvalue()


def parquet(frame: pd.DataFrame, **options: object) -> bytes:
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False, **options)
    return buffer.getvalue()


def polars_parquet(texts: list[str]) -> bytes:
    import polars

    buffer = io.BytesIO()
    polars.DataFrame({"a": texts, "b": range(len(texts))}).write_parquet(buffer)
    return buffer.getvalue()


def stata(n_rows: int) -> bytes:
    buffer = io.BytesIO()
    pd.DataFrame({"a": np.zeros(n_rows)}).to_stata(buffer, write_index=False)
    return buffer.getvalue()


SQUARE = xlsx({"A1": "a", "B1": "b", "A2": 1, "B2": 2, "A3": 3, "B3": 4})
KEYS = [{f"k{i}": i} for i in range(1500)]
ROWS = b"a,b\n" + b"1,2\n" * TEXT
WIDE = ",".join(f"c{i}" for i in range(4000))

TOO_LARGE = {
    "CSV": (ROWS, "has 2 MiB"),
    "gzip": (gzip.compress(ROWS), "unpacks to more than 512 KiB"),
    "columns": (f"{WIDE}\n{','.join('1' * 4000)}\n".encode(), "has 4,000 columns"),
    "JSON lines": (
        "\n".join(map(json.dumps, KEYS)).encode(),
        "has 1,500 rows and 1,500 columns",
    ),
    "JSON": (json.dumps(KEYS).encode(), "has 1,500 rows and 1,500 columns"),
    "nested JSON": (
        json.dumps([{"a": each} for each in KEYS]).encode(),
        "has 1,500 rows and 1,500 columns",
    ),
    "LIBSVM": (
        "\n".join(f"{i % 2} {i}:1" for i in range(1500)).encode(),
        "has 1,500 rows of 1,500 features, and kernels need all of them",
    ),
    "diagonal of a sheet": (
        xlsx({openpyxl.utils.get_column_letter(i) + str(i): 1 for i in range(1, 1501)}),
        r"has [\d,]+ rows or more of [\d,]+ columns",
    ),
    "a row of a sheet": (
        with_part(SQUARE, SHEET, lambda part: part.replace("</row>", "<c/>" * TEXT + "</row>", 1)),
        r"has [\d,]+ bytes in a sheet without the end of a row",
    ),
    "what stands beside the rows of a sheet": (
        with_part(SQUARE, SHEET, lambda part: part.replace("<sheetData>", "<a><row/></a>" * TEXT)),
        r"has [\d,]+ bytes in a sheet without the end of a row",
    ),
    "texts of a sheet": (
        with_texts(SQUARE, "<si/>" * TEXT),
        r"has [\d,]+ bytes of names, texts and styles",
    ),
    "numbers of a sheet": (
        xlsx({f"{'ABCD'[j]}{i}": i + j for i in range(1, 15_000) for j in range(4)}),
        r"has [\d,]+ rows or more of 4 columns",
    ),
    "all sheets": (
        xlsx({f"{'ABCD'[j]}{i}": i + j for i in range(1, 8_000) for j in range(4)}, n_sheets=2),
        r"has [\d,]+ rows or more of 4 columns",
    ),
    "styles": (
        with_part(SQUARE, STYLES, lambda part: part.replace("<xf ", "<xf/>" * 30_000 + "<xf ", 1)),
        r"has [\d,]+ bytes of names, texts and styles",
    ),
    "Parquet": (
        parquet(pd.DataFrame({"a": np.zeros(10**6)})),
        "has 1,000,000 rows of 1 columns",
    ),
    "a long text": (
        parquet(pd.DataFrame({"a": ["x" * 2000] * 1000, "b": range(1000)})),
        "has 1,000 rows of 2 columns with long texts",
    ),
    "a long text of polars": (
        polars_parquet(["x" * 2000] * 1000),
        "has 1,000 rows of 2 columns with long texts",
    ),
}


@pytest.mark.parametrize("kind", TOO_LARGE)
def test_what_takes_too_much_is_refused_before_it_is_taken(tmp_path: Path, kind: str) -> None:
    content, said = TOO_LARGE[kind]
    (tmp_path / "t").write_bytes(content)
    # what is imported at the first file of a kind is not counted
    with config_context(memory_limit=LIMIT), pytest.raises(TableError):
        read_table(tmp_path / "t")
    tracemalloc.start()
    try:
        with (
            config_context(memory_limit=LIMIT),
            pytest.raises(TableError, match=rf"/t {said}: reading it may take .* limit of 16 MiB"),
        ):
            read_table(tmp_path / "t")
        assert tracemalloc.get_traced_memory()[1] < LIMIT
    finally:
        tracemalloc.stop()


FITTING = {
    "numbers": b"a,b\n" + b"1,2\n" * (TEXT // 4 - 200),
    "codes": b"a,b\n" + b"007,1\n" * (TEXT // 6 - 200),
    "columns": f"{WIDE[: WIDE.index(',c2500')]}\n{','.join('1' * 2500)}\n".encode(),
    "JSON lines": b'{"a":1,"b":2}\n' * (TEXT // 18),
    "JSON": b"[" + b'{"a":1,"b":2},' * (TEXT // 18) + b'{"a":1,"b":2}]',
    "keys": "\n".join(json.dumps({f"k{i}": i}) for i in range(600)).encode(),
    "sheet": xlsx({f"{'AB'[j]}{i}": i + j for i in range(1, 19_000) for j in (0, 1)}),
    "wide sheet": xlsx(
        {
            f"{openpyxl.utils.get_column_letter(j)}{i}": i + 0.123456789 * j
            for i in range(1, 1800)
            for j in range(1, 31)
        }
    ),
    "texts of a sheet": xlsx({f"A{i}": f"a text of row {i}" for i in range(1, 9000)}),
    "blanks in a sheet": with_part(SQUARE, SHEET, lambda part: part + " " * TEXT),
}


@pytest.mark.parametrize("kind", FITTING)
def test_what_is_read_stays_within_the_limit(tmp_path: Path, kind: str) -> None:
    (tmp_path / "t").write_bytes(FITTING[kind])
    read_table(tmp_path / "t", header=kind != "sheet")
    tracemalloc.start()
    try:
        with config_context(memory_limit=LIMIT):
            read_table(tmp_path / "t", header=kind != "sheet")
        assert tracemalloc.get_traced_memory()[1] < LIMIT
    finally:
        tracemalloc.stop()


def test_a_file_without_an_end_is_refused() -> None:
    zeros = Path("/dev/zero")
    if not zeros.exists():
        pytest.skip("there is no /dev/zero")
    with (
        config_context(memory_limit=LIMIT),
        pytest.raises(TableError, match="/dev/zero has more than 512 KiB: reading it may take"),
    ):
        read_table(zeros)


def test_a_file_of_stata_is_refused_by_its_size(tmp_path: Path) -> None:
    (tmp_path / "t.dta").write_bytes(stata(10**5))
    with config_context(memory_limit=LIMIT), pytest.raises(TableError, match="has more cells than"):
        read_table(tmp_path / "t.dta")


def test_standard_input_is_refused_by_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(ROWS)))
    with (
        config_context(memory_limit=LIMIT),
        pytest.raises(TableError, match="standard input has more than 512 KiB"),
    ):
        read_table("-")


def test_cells_far_apart_cost_what_they_are(tmp_path: Path) -> None:
    cells = {"A1": "a", "XFD1": "y", "A2": 1, "XFD2": 2, "A1048576": 3, "XFD1048576": 4}
    (tmp_path / "t.xlsx").write_bytes(xlsx(cells))
    (tmp_path / "u.xlsx").write_bytes(SQUARE)
    read_table(tmp_path / "u.xlsx")
    tracemalloc.start()
    try:
        with config_context(memory_limit=LIMIT):
            table = read_table(tmp_path / "t.xlsx")
        assert tracemalloc.get_traced_memory()[1] < LIMIT
    finally:
        tracemalloc.stop()
    assert table.frame.to_dict("list") == {"a": [1, 3], "y": [2, 4]}
    assert table.where(1) == "line 1048576"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda part: part.replace("</sheetData>", ""), "mismatched tag"),
        (lambda part: part[: len(part) // 2], "no element found|unclosed token"),
        (lambda part: part.replace('r="B3"', 'r="XFE3"'), "column 16385, and Excel ends at row"),
        (lambda part: part.replace("</row>", "<c/>" * 16384 + "</row>"), "a row of 16,386 cells"),
    ],
)
def test_a_sheet_that_excel_would_not_read(
    tmp_path: Path, change: Callable[[str], str], said: str
) -> None:
    (tmp_path / "t.xlsx").write_bytes(with_part(SQUARE, SHEET, change))
    with pytest.raises(TableError, match=rf"t\.xlsx is not a sound Excel file: .*({said})"):
        read_table(tmp_path / "t.xlsx")


def test_a_damaged_excel_file_is_read_or_refused(tmp_path: Path) -> None:
    """Bytes changed anywhere, in compressed parts too."""
    rng, path, refused = np.random.default_rng(0), tmp_path / "t.xlsx", 0
    for _ in range(60):
        content = bytearray(SQUARE)
        for at in rng.integers(0, len(content), 4):
            content[at] = rng.integers(0, 256)
        path.write_bytes(content)
        try:
            read_table(path)
        except TableError as error:
            refused += "\n" not in str(error)
    assert refused > 20


@pytest.mark.parametrize("kind", ["gzip", "zip"])
def test_a_damaged_archive_is_called_by_its_kind(tmp_path: Path, kind: str) -> None:
    text = "a,b\n" + "".join(f"{i},{i * i % 97}\n" for i in range(500))
    content = gzip.compress(text.encode())
    if kind == "zip":
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("t.csv", text)
        content = buffer.getvalue()
    # the first block has a type that no stream has
    start = 10 if kind == "gzip" else 35
    (tmp_path / "t").write_bytes(content[:start] + b"\xff" + content[start + 1 :])
    with pytest.raises(TableError, match=f"t is a damaged {kind} file"):
        read_table(tmp_path / "t")


@pytest.mark.parametrize("line", [2, 400, 5000])
def test_a_nul_byte_is_named_by_its_line(tmp_path: Path, line: int) -> None:
    rows = [b"a,b"] + [b"1,2"] * 6000
    rows[line - 1] = b"1,\x002"
    (tmp_path / "t").write_bytes(b"\n".join(rows))
    for encoding in (None, "utf-8"):
        with pytest.raises(TableError, match=f"t, line {line}: there is a NUL byte"):
            read_table(tmp_path / "t", encoding=encoding)


def test_damaged_utf_32_is_called_by_its_name(tmp_path: Path) -> None:
    content = "a,b\n1,2\n".encode("utf-32")
    (tmp_path / "t").write_bytes(content[:-1])
    with pytest.raises(TableError, match="t is damaged UTF-32 text: save it as UTF-8"):
        read_table(tmp_path / "t")


def test_an_entry_that_is_called_as_another_column(tmp_path: Path) -> None:
    for row in ({"user": {"age": 1}, "user.age": 2}, {"a": {"b": {"c": 1}, "b.c": 2}}):
        (tmp_path / "t").write_text(json.dumps(row))
        with pytest.raises(TableError, match=r"t has two columns named '(user|b|a\.b)\.(age|c)'"):
            read_table(tmp_path / "t")


def test_formulas_without_results_are_told(tmp_path: Path) -> None:
    cells: dict[str, object] = {"A1": "a", "B1": "b", "C1": "y"}
    cells |= {f"A{i}": i for i in range(2, 6)} | {f"B{i}": 2 * i for i in range(2, 6)}
    cells |= {f"C{i}": f"=A{i}+B{i}" for i in range(2, 6)}
    (tmp_path / "t.xlsx").write_bytes(xlsx({**cells, "C2": 6}))
    said = r"column 'y' holds formulas without results \(row 3 and 2 more\): open the file"
    with pytest.raises(TableError, match=said):
        read_target(read_table(tmp_path / "t.xlsx"), "y")
    (tmp_path / "u.xlsx").write_bytes(xlsx({"A1": "=1+1", "B2": "=A1"}))
    with pytest.raises(TableError, match="no rows in any sheet, but formulas without results"):
        read_table(tmp_path / "u.xlsx")
