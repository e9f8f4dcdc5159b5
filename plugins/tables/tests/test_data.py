"""Tables: what is read, and the one sentence for everything that cannot be."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from kernelweave.tables import TableError, choose_target, read_table, read_target
from sklearn.datasets import dump_svmlight_file, load_diabetes, load_iris


def write(path: Path, text: str) -> str:
    path.write_bytes(text.encode())
    return str(path)


GOOD = "a,b,y\n1,2,0\n3.5,4,1\n-5e-1,6,0\n"


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD.replace(",", ";"),
        GOOD.replace(",", "\t"),
        GOOD.replace(",", ", "),
        GOOD.replace("\n", "\r\n"),
        "\ufeff" + GOOD,
        GOOD.replace("a,b", '"a","b"'),
        GOOD.rstrip("\n"),
        GOOD.replace("\n", "\n\n"),
    ],
)
def test_ways_to_write_the_same_csv(tmp_path: Path, text: str) -> None:
    table = read_table(write(tmp_path / "t.csv", text))
    assert table.columns == ["a", "b", "y"]
    np.testing.assert_array_equal(table.inputs(["b", "a"]), [[2, 1], [4, 3.5], [6, -0.5]])


def test_compressed_parquet_and_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = read_table(write(tmp_path / "t.csv", GOOD)).inputs(["a", "b"])
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(GOOD.encode()))
    np.testing.assert_array_equal(read_table(str(tmp_path / "t.csv.gz")).inputs(["a", "b"]), plain)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))
    np.testing.assert_array_equal(read_table("-").inputs(["a", "b"]), plain)
    pytest.importorskip("pyarrow")
    pd.read_csv(io.StringIO(GOOD)).to_parquet(tmp_path / "t.parquet")
    np.testing.assert_array_equal(read_table(str(tmp_path / "t.parquet")).inputs(["a", "b"]), plain)


def test_numbers_survive_to_the_last_digit(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((50, 3)) * 10.0 ** np.arange(-3, 6, 3)
    text = "a,b,c\n" + "\n".join(",".join(map(repr, row)) for row in X.tolist())
    got = read_table(write(tmp_path / "t.csv", text)).inputs(["a", "b", "c"])
    np.testing.assert_allclose(got, X, rtol=5e-16, atol=0)


@pytest.mark.parametrize("name", ["iris", "wine", "breast-cancer-mean", "digits", "diabetes"])
def test_named_data_sets(name: str) -> None:
    table = read_table(name)
    target = read_target(table, choose_target(table, None))
    assert target.task == table.task
    assert table.inputs([each for each in table.columns if each != "target"]).shape[1] >= 4


def test_named_data_sets_are_the_original() -> None:
    bunch = load_iris()
    table = read_table("iris")
    np.testing.assert_array_equal(table.inputs(bunch.feature_names), bunch.data)
    labels = read_target(table, "target").values
    np.testing.assert_array_equal(labels, bunch.target_names[bunch.target])
    assert set(labels) == {"setosa", "versicolor", "virginica"}


def test_a_file_goes_before_a_data_set_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "iris", GOOD)
    monkeypatch.chdir(tmp_path)
    assert read_table("iris").columns == ["a", "b", "y"]


@pytest.mark.parametrize("zero_based", [False, True])
def test_libsvm_files(tmp_path: Path, zero_based: bool) -> None:
    X, y = load_diabetes(return_X_y=True)
    X = np.where(np.abs(X) < 0.01, 0.0, X)
    dump_svmlight_file(X, y, str(tmp_path / "d"), zero_based=zero_based, comment="a\ncomment")
    table = read_table(str(tmp_path / "d"))
    names = [str(j) for j in range(1 - zero_based, 11 - zero_based)]
    assert table.columns == [*names, "target"]
    np.testing.assert_allclose(table.inputs(names), X, rtol=1e-12)
    np.testing.assert_allclose(table.numbers("target"), y)


def test_libsvm_features_that_a_file_never_mentions_are_zero(tmp_path: Path) -> None:
    table = read_table(write(tmp_path / "t.libsvm", "+1 1:2.5\n-1 2:1 # done\n\n+1 1:1\n"))
    np.testing.assert_array_equal(
        table.inputs(["1", "2", "7"]), [[2.5, 0, 0], [0, 1, 0], [1, 0, 0]]
    )
    assert table.where(2) == "line 4"


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        (b"a,b\n1,\x81\n", "t.csv", "is not UTF-8 text (line 2)"),
        (gzip.compress(GOOD.encode(), mtime=0)[:-9], "t.csv.gz", "damaged gzip"),
        (b"PAR1 and then nothing", "t.parquet", "not a sound Parquet file"),
    ],
    ids=["no text", "truncated gzip", "not Parquet"],
)
def test_files_that_are_not_what_they_say(
    tmp_path: Path, content: bytes, name: str, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=said.replace("(", r"\(").replace(")", r"\)")):
        read_table(str(tmp_path / name))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("wein", "no file 'wein' and no data set of that name; did you mean 'wine' or 'penguins'?"),
        ("nowhere.csv", "no file 'nowhere.csv'"),
        (".", "is a folder"),
    ],
)
def test_sources_that_are_not_there(source: str, said: str) -> None:
    with pytest.raises(TableError) as caught:
        read_table(source)
    assert said in str(caught.value)


def test_no_header_counts_the_columns(tmp_path: Path) -> None:
    table = read_table(write(tmp_path / "t.csv", "1,2,0\n3,4,1\n"), header=False)
    assert table.columns == ["0", "1", "2"]
    assert choose_target(table, "2") == "2"
    assert table.where(1) == "line 2"


@pytest.mark.parametrize(("wanted", "column"), [("y", "y"), ("0", "a"), ("2", "y"), ("1", "b")])
def test_target_by_name_or_index(tmp_path: Path, wanted: str, column: str) -> None:
    assert choose_target(read_table(write(tmp_path / "t.csv", GOOD)), wanted) == column


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (None, "--target is missing"),
        ("Y", "did you mean 'y'?"),
        ("z", "the columns are 'a', 'b', 'y'"),
        ("3", "no column '3'"),
        ("-1", "no column '-1'"),
    ],
)
def test_target_that_is_not_there(tmp_path: Path, wanted: str | None, said: str) -> None:
    with pytest.raises(TableError) as caught:
        choose_target(read_table(write(tmp_path / "t.csv", GOOD)), wanted)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("cells", "task", "kind"),
    [
        (["p", "q", "p"], "classification", "U"),
        (["0", "1", "0"], "classification", "i"),
        (["0.5", "1", "0.5"], "classification", "U"),
        (["true", "false", "true"], "classification", "U"),
        (["None", "some", "some"], "classification", "U"),
        (["1", "2", "3"], "regression", "f"),
        (["0", "1", "2"] * 5, "classification", "i"),
        (["0", "1", "3"] * 5, "regression", "f"),
        (["2", "3", "4"] * 5, "regression", "f"),
    ],
)
def test_the_task_follows_the_target(
    tmp_path: Path, cells: list[str], task: str, kind: str
) -> None:
    text = "a,y\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells))
    target = read_target(read_table(write(tmp_path / "t.csv", text)), "y")
    assert target.task == task
    assert target.values.dtype.kind == kind
    assert target.reason


def test_a_target_of_booleans_is_not_called_text() -> None:
    table = read_table(pd.DataFrame({"a": range(6), "y": [True, False] * 3}))
    assert read_target(table, "y").reason == "the target is true or false, 2 classes"


@pytest.mark.parametrize(("ordered", "found"), [(True, ["poor", "fair", "good"]), (False, None)])
def test_the_levels_of_an_ordered_column(ordered: bool, found: list[str] | None) -> None:
    levels = ["never", "poor", "fair", "good"]
    cells = pd.Categorical(["good", "poor", "fair"] * 2, levels, ordered=ordered)
    target = read_target(read_table(pd.DataFrame({"a": range(6), "y": cells})), "y")
    assert target.levels == found
    order = ": poor < fair < good" if ordered else ""
    assert target.reason == f"the target is text, 3 classes{order}"


def test_the_task_can_be_asked_for(tmp_path: Path) -> None:
    table = read_table(write(tmp_path / "t.csv", "a,y\n1,1\n2,2\n3,3\n"))
    assert read_target(table, "y", "classification").values.dtype.kind == "i"
    text = read_table(write(tmp_path / "u.csv", "a,y\n1,p\n2,q\n"))
    with pytest.raises(TableError, match="'p' is not a number"):
        read_target(text, "y", "regression")
    many = "a,y\n" + "".join(f"{i},name{i}\n" for i in range(30))
    with pytest.raises(TableError, match="such as 'name0': too many for classes"):
        read_target(read_table(write(tmp_path / "v.csv", many)), "y")
    mostly = "a,y\n" + "".join(f"{i},{i}.5\n" for i in range(9))
    with pytest.raises(TableError, match="line 11: '-' is not a number, as most cells are"):
        read_target(read_table(write(tmp_path / "w.csv", mostly + "9,-\n")), "y")


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["low", "mid", "top", "never"], ["low", "mid", "top"]),
        ([5, 3, 4, 9], [5, 3, 4]),
        ([1.5, 0.5, 2.0, 9.0], ["1.5", "0.5", "2"]),
    ],
)
def test_ordered_categories_are_classes_in_their_order(names: list[Any], labels: list[Any]) -> None:
    frame = pd.DataFrame({"y": pd.Categorical.from_codes([2, 0, 1, 1], names, ordered=True)})
    dictionary = pa.table({"y": pa.array(frame["y"])})
    target = read_target(read_table(frame), "y")
    assert (target.task, target.levels, target.hint) == ("classification", labels, "")
    assert target.values.tolist() == [labels[k] for k in (2, 0, 1, 1)]
    assert read_target(read_table(dictionary), "y").levels == labels
    arrow = dictionary.to_pandas(types_mapper=pd.ArrowDtype)
    assert read_target(read_table(arrow), "y").levels == labels


def test_ratings_are_told_how_to_get_an_order() -> None:
    for values, said in [
        ([1, 2, 3] * 5, 'rating, whose classes have an order, add --set levels="[1, 2, 3]"'),
        ([2, 4, 5] * 5, '--set levels="[2, 4, 5]" if these have an order'),
    ]:
        target = read_target(read_table(pd.DataFrame({"y": values})), "y")
        assert target.hint.endswith(said)


def test_a_class_that_means_nothing_is_asked_about(tmp_path: Path) -> None:
    text = "a,y\n1,yes\n2,no\n3,NA\n4,NA\n"
    hint = read_target(read_table(write(tmp_path / "t.csv", text)), "y").hint
    assert "'NA' is a class of its own in the target 'y'" in hint
    assert hint.endswith("remove its 2 rows")


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["71.8 kg", "5 kg", "?"], [71.8, 5.0, np.nan]),
        (["12m²", "-3.5m²"], [12.0, -3.5]),
        (["41 680", "1\u202f234 567.5", "7"], [41680.0, 1234567.5, 7.0]),
        (["27 415", "900"], [27415.0, 900.0]),
        (["(78)", "1200", "($3)"], None),
        (["(78)", "1200"], [-78.0, 1200.0]),
        (["($78.50)", "$3"], [-78.5, 3.0]),
        (["7:30", "23:59:30"], [7.5, 24.0 - 1.0 / 120.0]),
    ],
)
def test_numbers_are_read_as_people_write_them(
    tmp_path: Path, cells: list[str], numbers: list[float] | None
) -> None:
    table = read_table(write(tmp_path / "t.csv", "a;b\n" + "".join(f"{c};x\n" for c in cells)))
    if numbers is None:
        assert list(table.frame["a"]) == cells
    else:
        np.testing.assert_allclose(table.frame["a"], numbers)


@pytest.mark.parametrize(
    "cells",
    [["5 kg", "6 lb"], ["1st", "2nd"], ["030 123", "040 567"], ["24:30", "7:00"], ["3-5", "6"]],
)
def test_what_only_looks_like_numbers_stays_words(tmp_path: Path, cells: list[str]) -> None:
    table = read_table(write(tmp_path / "t.csv", "a;b\n" + "".join(f"{c};x\n" for c in cells)))
    assert list(table.frame["a"]) == cells


def test_a_file_of_the_data_folder_goes_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "sets"
    folder.mkdir()
    (folder / "mine.csv").write_text(GOOD)
    (folder / "other.csv.gz").write_bytes(gzip.compress(GOOD.encode()))
    (folder / "iris.csv").write_text(GOOD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERNELWEAVE_DATA", str(folder))
    for name in ("mine", "other"):
        table = read_table(name)
        assert table.source == name
        np.testing.assert_array_equal(table.inputs(["b", "a"]), [[2, 1], [4, 3.5], [6, -0.5]])
    assert read_table("iris").frame.shape == (150, 5)
    with pytest.raises(TableError, match="did you mean 'mine'"):
        read_table("mien")
    monkeypatch.setenv("KERNELWEAVE_DATA", str(tmp_path / "absent"))
    with pytest.raises(TableError, match=r"no data set of that name.*absent, which is no folder"):
        read_table("mine")
    monkeypatch.delenv("KERNELWEAVE_DATA")
    with pytest.raises(TableError, match=r"no data set of that name.*DATA is not set"):
        read_table("mine")
