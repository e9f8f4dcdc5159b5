"""Input files that are damaged: a table, or one sentence that says where."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernelweave.kernels_core import DatasetSpec, KernelWeaveWarning
from kernelweave.tables import Table, TableError, read_table
from kernelweave.tables.sources import read_named

FEW = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
CSV = b"a,b,kind\n1.5,2,x\n-3,4e2,y\n0.1,6,x\n"
LIBSVM = b"1 1:0.5 3:2\n-1 2:1.5\n1 1:-2 2:3 # a note\n"
CELLS = st.sampled_from([b"", b"nan", b"1e999", b'"', b"\xff", b"a,b", b"1:1", b"\n", b"\r", b";"])


def attempt(path: Path) -> tuple[Table | None, str]:
    """Return the table, or the one sentence that refuses it; nothing else may be raised."""
    try:
        with warnings.catch_warnings():
            # bytes of another alphabet are read with a warning
            warnings.simplefilter("ignore", KernelWeaveWarning)
            table = read_table(str(path))
    except TableError as error:
        said = str(error)
    else:
        for column in table.columns:
            assert finite_or_named(table, column)
        return table, ""
    assert said
    assert "\n" not in said
    return None, said


def finite_or_named(table: Table, column: str) -> bool:
    """Whether a column is finite numbers, or refused by its name or a line."""
    try:
        return bool(np.isfinite(table.numbers(column)).all())
    except TableError as error:
        return repr(column) in str(error) or "line " in str(error)


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Return a file with some bytes cut out, put in or exchanged."""
    data = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        length = draw(st.integers(0, 6))
        data[at : at + length] = draw(st.one_of(CELLS, st.binary(max_size=6)))
    return bytes(data)


@pytest.mark.parametrize("content", [CSV, LIBSVM], ids=["csv", "libsvm"])
def test_damaged_text_is_read_or_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "data"

    @FEW
    @given(damaged(content))
    def check(mutant: bytes) -> None:
        path.write_bytes(mutant)
        attempt(path)

    check()


def test_any_bytes_are_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "data"

    @FEW
    @given(st.one_of(st.binary(max_size=200), st.text(max_size=100).map(str.encode)))
    def check(content: bytes) -> None:
        path.write_bytes(content)
        attempt(path)

    check()


def test_damaged_parquet_is_read_or_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "data.parquet"
    pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}).to_parquet(path)
    content = path.read_bytes()

    @FEW
    @given(damaged(content))
    def check(mutant: bytes) -> None:
        path.write_bytes(mutant)
        attempt(path)

    check()
    for length in range(0, len(content), 97):
        path.write_bytes(content[:length])
        assert attempt(path)[0] is None


@pytest.mark.parametrize("content", [CSV, LIBSVM], ids=["csv", "libsvm"])
def test_a_file_cut_short(content: bytes, tmp_path: Path) -> None:
    """Every length of a text: what is left is a table, or it is refused."""
    path = tmp_path / "data"
    for length in range(len(content)):
        path.write_bytes(content[:length])
        attempt(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a,b\n1,2\n3\n", ("line 3", "1 cell ")),
        (b"a,b\n1,2\n3,4,5\n", ("line 3", "3 cells")),
        (b'a,b,c\n1,2,3\n4,"5,6\n7,8,9\n', ("line 3", "2 cells")),
        (b"a,a\n1,2\n", ("'a'",)),
        (b"a,b\n1,2\n\x81,4\n", ("line 3", "UTF-8")),
        (b"1 1:2\n1 1:x\n", ("line 2", "1:x")),
        (b"1 1:2\n1 x:2\n", ("line 2", "x:2")),
        (b"a,\n1,2\n", ("column 2",)),
        (b"a," + b"b" * 200_000 + b"\n1,2\n", ("line 1", "limit")),
        (b"a,b\n1,2\r3,4\n5\r6,7\n", ("line 2", "new-line")),
    ],
)
def test_a_refusal_names_the_place(content: bytes, words: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(content)
    with pytest.raises(TableError) as caught:
        # a row that is too short shows when its cells are read
        read_table(str(path)).numbers("b")
    said = str(caught.value)
    assert all(word in said for word in words), said


@pytest.mark.parametrize("cell", ["", "NaN", "inf", "1e999", "word", "1,5,6"])
def test_a_cell_that_is_no_number_is_named(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text(f'a,b\n1,2\n3,"{cell}"\n')
    with pytest.raises(TableError) as caught:
        read_table(str(path)).numbers("b")
    said = str(caught.value)
    assert "line 3" in said
    assert "'b'" in said


def test_a_parquet_file_without_rows_or_with_a_name_twice(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    tables = {
        "has no rows": pa.table({"a": pa.array([], pa.float64())}),
        "two columns named 'a'": pa.Table.from_arrays([pa.array([1.0])] * 2, names=["a", "a"]),
    }
    for said, table in tables.items():
        path = tmp_path / "t.parquet"
        parquet.write_table(table, path)
        with pytest.raises(TableError, match=said):
            read_table(str(path))


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("sklearn.datasets:load_nothing", "'broken' cannot be loaded: .*load_nothing"),
        ("math:tau", "'broken' cannot be loaded: .*not callable"),
        ("builtins:dict", "'broken' cannot be loaded: 'data'"),
    ],
)
def test_a_named_set_that_fails_is_one_sentence(target: str, said: str) -> None:
    spec = DatasetSpec(name="broken", target=target, task="regression")
    with pytest.raises(TableError, match=said):
        read_named(spec)
