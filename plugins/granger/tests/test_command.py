"""The command, its files and its pictures."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from kernelweave.granger.command import granger_command
from kernelweave.granger.files import read_series
from kernelweave.granger.page import verdict
from kernelweave.kernels_core import commands
from kernelweave.kernels_core.exceptions import KernelWeaveWarning


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    X[1:, 1] = np.cos(2.0 * X[:-1, 0]) + 0.2 * X[1:, 1]
    rows = ["time,run,a,b,c"]
    rows += [f"{t},{'x' if t < 30 else 'y'},{a},{b},{c}" for t, (a, b, c) in enumerate(X)]
    path = tmp_path / "series.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.exceptions.KernelWeaveWarning")
@pytest.mark.parametrize("adjust", ["bh", "max-t"])
def test_nothing_is_promised_of_p_values_that_may_be_too_small(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], adjust: Literal["bh", "max-t"]
) -> None:
    """Random walks look like causes of one another: no share of false edges is printed."""
    X = np.random.default_rng(1).standard_normal((80, 3))
    driven = X.copy()
    driven[1:, 1] += 2.0 * X[:-1, 0]
    said, pages = [], []
    for name, series in (("driven", driven), ("walks", X.cumsum(axis=0))):
        path, page = tmp_path / f"{name}.csv", tmp_path / f"{name}.html"
        pd.DataFrame(series, columns=list("abc")).to_csv(path, index=False)
        granger_command(
            str(path), lam=1.0, significance="permutation", draws=79, adjust=adjust, report=page
        )
        said.append(" ".join(capsys.readouterr().out.split()))
        pages.append(page.read_text())
    promise = "are expected to be false" if adjust == "bh" else "is false is at most 0.05"
    assert promise in said[0]
    assert promise not in said[1]
    assert "not known, because series look nonstationary" in said[1]
    assert "not known, because series look nonstationary" in pages[1]
    assert "not known" not in pages[0]


def test_no_edge_is_no_share_of_false_ones() -> None:
    nothing: Any = SimpleNamespace(
        level=0.05, adjusted_p_values_=np.full((2, 3), 0.5), edges_=pd.DataFrame({"passes": []}),
        n_draws_=40, p_values_doubted_=True, adjust="bh",
    )  # fmt: skip
    assert verdict(nothing) == (
        "none of 6 edges passes at 0.05, 40 draws per series: that does not show that no series "
        "drives another"
    )


def test_command_is_registered() -> None:
    assert commands()["granger"].load() is granger_command


def test_text_json_edges_and_picture(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drop = ["time"]
    granger_command(str(table), replicate="run", drop=drop, lam=0.1, top=1)
    said = " ".join(capsys.readouterr().out.split())  # lines break where the path is long
    assert "3 series" in said
    assert "a -> b" in said
    edges, picture = tmp_path / "edges.csv", tmp_path / "graph.png"
    page, graph = (tmp_path / f"graph.{ending}" for ending in ("html", "graphml"))
    granger_command(
        str(table),
        replicate="run",
        drop=drop,
        lam=0.1,
        significance="permutation",
        draws=60,
        edges=edges,
        picture=picture,
        report=page,
        graph=graph,
        json=True,
    )
    found = json.loads(capsys.readouterr().out)
    assert found["edges"][0]["source"] == "a"
    assert found["edges"][0]["p_value"] == pytest.approx(1 / 121)
    assert found["edges"][0]["adjusted_p_value"] == pytest.approx(6 / 121)
    assert found["edges"][0]["passes"]
    assert found["largest_gap"] <= 1e-3
    with edges.open() as stream:
        assert next(csv.DictReader(stream))["target"] == "b"
    assert picture.read_bytes().startswith(b"\x89PNG")
    text = page.read_text(encoding="utf-8")
    for said in ("data:image/svg+xml", "<td>a</td><td>b</td>", "adjusted p", "edges pass at 0.05"):
        assert said in text
    assert "Which series drive which: series.csv" in text
    with pytest.raises(ValueError, match="--force"):
        granger_command(str(table), report=page)
    assert nx.read_graphml(graph, force_multigraph=True).has_edge("a", "b")
    with pytest.raises(ValueError, match="--force"):
        granger_command(str(table), edges=edges)
    with pytest.raises(ValueError, match="there is no folder"):
        granger_command(str(table), edges=tmp_path / "missing" / "edges.csv")
    new = tmp_path / "new"
    for outputs in ({"edges": table}, {"edges": new, "report": new}):
        # a table that is read, and what is written, would be lost
        with pytest.raises(ValueError, match="is read, or written twice"):
            granger_command(str(table), force=True, **outputs)
    with pytest.raises(ValueError, match=r"must end in one of .*png"):
        granger_command(str(table), picture=tmp_path / "graph.txt")
    with pytest.raises(ValueError, match=r"must end in \.graphml"):
        granger_command(str(table), graph=tmp_path / "graph.txt")


def test_letters_that_the_font_lacks_are_text_or_said(table: Path, tmp_path: Path) -> None:
    """On a page and in an SVG the reader's program draws them; a PNG has squares."""
    table.write_text(table.read_text().replace("a,b,c", "売上,b,c"), encoding="utf-8")
    page, svg, png = (tmp_path / f"graph.{ending}" for ending in ("html", "svg", "png"))
    told = {"replicate": "run", "drop": ["time"], "lam": 0.1}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        granger_command(str(table), report=page, picture=svg, **told)
    assert "売上" in svg.read_text(encoding="utf-8")
    pictures = re.findall(r"data:image/svg\+xml;base64,([^\"]*)", page.read_text(encoding="utf-8"))
    assert "売上" in base64.b64decode(pictures[0]).decode()
    with pytest.warns(KernelWeaveWarning, match="lacks letters of some names") as said:
        granger_command(str(table), picture=png, **told)
    assert len(said) == 1


def test_no_jobs_are_refused(table: Path) -> None:
    told = {"replicate": "run", "drop": ["time"], "lam": 0.1}
    with pytest.raises(ValueError, match=r"n_jobs must be .*an integer other than 0, got 0"):
        granger_command(str(table), jobs=0, **told)


def test_edges_stand_in_columns(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table.write_text(table.read_text().replace("a,b,c", "a,longer,c"))
    granger_command(str(table), replicate="run", drop=["time"], lam=0.01)
    edges = [line for line in capsys.readouterr().out.splitlines() if " -> " in line]
    assert len(edges) > 2
    assert len({len(line) for line in edges}) == 1


def test_names_are_no_formulas_and_dates_are_whole(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edges, dates = tmp_path / "edges.csv", tmp_path / "dates.csv"
    table.write_text(table.read_text().replace("a,b,c", "=a,b\x1b[31m,c"))
    granger_command(str(table), replicate="run", drop=["time"], lam=0.01, edges=edges)
    assert "\x1b" not in capsys.readouterr().out
    with edges.open() as stream:
        assert {row["source"] for row in csv.DictReader(stream)} == {"'=a", "b\x1b[31m", "c"}
    days = [f"{day:02}.01.2020,{day % 7},{day % 5}" for day in range(1, 31)]
    dates.write_text("\n".join(["day,a,b", *days]).replace("04.01.2020", "unknown"))
    with pytest.raises(ValueError, match="column 'day' has no date in line 5: correct it"):
        granger_command(str(dates))


def test_columns_have_roles(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    roles: dict[str, Any] = {"exogenous": ["c"], "never_target": ["a"], "forbid": ["b:a"]}
    granger_command(str(table), drop=["time", "run"], lam=0.1, json=True, **roles)
    found = json.loads(capsys.readouterr().out)
    assert found["n_nodes"] == 2
    assert {(edge["source"], edge["target"]) for edge in found["edges"]} == {("a", "b")}
    with pytest.raises(ValueError, match=r"--forbid must be source:target.*got 'a-b'"):
        granger_command(str(table), forbid=["a-b"])


def test_lags_have_edges_of_their_own(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    granger_command(str(table), drop=["time", "run"], lam=0.1, lags=2, per_lag=True, json=True)
    found = json.loads(capsys.readouterr().out)
    assert {edge["lag"] for edge in found["edges"]} == {1, 2}


def test_lags_are_listed_or_chosen(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drop = ["time", "run"]
    granger_command(str(table), drop=drop, lam=0.1, lags="1,3")
    assert "3 series, lags 1, 3, lambda" in " ".join(capsys.readouterr().out.split())
    granger_command(str(table), drop=drop, lags="cv", json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["lags"] == [1]
    assert found["lam_end"] == ""
    with pytest.raises(ValueError, match="--lags must be such as 3, 1,2,12 or cv, got 'two'"):
        granger_command(str(table), lags="two")


def test_candidates_of_lambda(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    granger_command(str(table), drop=["time", "run"], lams=[3.0, 0.3, 0.03], json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["lam"] == 0.3
    with pytest.raises(ValueError, match=r"^lams must be a finite number > 0"):
        granger_command(str(table), drop=["time", "run"], lams=[1.0, -1.0])
    with pytest.raises(ValueError, match="give one of the two"):
        granger_command(str(table), drop=["time", "run"], lam=0.1, lams=[1.0, 0.1])


def test_gaps_are_refused_or_skipped(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = table.read_text().splitlines()
    lines[5] = lines[5].rsplit(",", 1)[0] + ","
    table.write_text("\n".join(lines))
    with pytest.raises(
        ValueError,
        match=r"column 'c', line 6: the value is missing; --missing skip leaves such rows out",
    ):
        granger_command(str(table), drop=["time", "run"], lam=0.1)
    granger_command(str(table), drop=["time", "run"], lam=0.1, missing="skip")
    assert "a -> b" in capsys.readouterr().out


def test_a_comma_may_be_the_decimal_sign(tmp_path: Path) -> None:
    path = tmp_path / "series.csv"
    path.write_text("a;b\n1,5;2\n2,5;-3,25\n")
    np.testing.assert_array_equal(read_series(str(path), None, []).frame, [[1.5, 2], [2.5, -3.25]])


@pytest.mark.parametrize(
    ("significance", "said"),
    [
        (None, "--significance permutation tests them"),
        ("permutation", "of 6 edges pass at 0.1, 58 draws per series: of those that pass"),
    ],
)
def test_the_screen_says_how_to_read_its_numbers(
    table: Path, capsys: pytest.CaptureFixture[str], significance: Any, said: str
) -> None:
    drop = ["time", "run"]
    granger_command(str(table), drop=drop, lam=1.0, significance=significance, draws=60, level=0.1)
    lines = capsys.readouterr().out.splitlines()
    assert said in " ".join(map(str.strip, lines))
    # no line but that with the name of the file, which is not cut
    assert [line for line in lines if len(line) > 80 and str(table) not in line] == []


def test_a_short_list_says_what_it_leaves_out(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    granger_command(str(table), drop=["time", "run"], lam=0.1, top=1)
    assert "5 lighter edges: --top" in capsys.readouterr().out


@pytest.mark.parametrize(("lags", "lam", "needed"), [(70, 0.1, 72), (58, None, 63)])
def test_a_table_shorter_than_its_lags_is_refused(
    table: Path, lags: int, lam: float | None, needed: int
) -> None:
    with pytest.raises(ValueError, match=f"has 60 rows: --lags {lags} needs at least {needed}"):
        granger_command(str(table), drop=["time", "run"], lags=lags, lam=lam)


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("a,b\n1,2\n", {"replicate": "run"}, "no column 'run'"),
        ("a,b\n1,x\n", {}, "column 'b', line 2: 'x' is not a number.*--drop 'b'"),
        ("a,b\n1\n", {}, "line 2 has 1 cell but the header has 2"),
        ("a,b\n1,2,3\n", {}, "line 2 has 3 cells but the header has 2"),
        ("a,b\n", {}, "has column names but no rows"),
        ("a,b,a\n1,2,3\n", {}, "two columns named 'a'"),
        ("a,,b\n0,1,2\n", {}, "column 2 has no name"),
        ("0.1,2\n1,2\n", {}, "begins with numbers .*: add a line of names"),
        (
            "a,b\n1,2\n1,NaN\n",
            {},
            "column 'b', line 3: the value is missing .'NaN'.; --missing skip .*--drop 'b'",
        ),
        ("a,b\n1,2\n2,2\n", {}, "at least two series that vary, it has 1: a constant column"),
        ("a,b\n1,2\n", {"drop": ["b"]}, "at least two series, it has 1"),
    ],
)
def test_bad_files_are_refused_by_place(
    tmp_path: Path, text: str, arguments: dict[str, Any], said: str
) -> None:
    path = tmp_path / "bad.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(ValueError, match=said):
        granger_command(str(path), **arguments)


@pytest.mark.parametrize(
    ("header", "separator", "encoding"),
    [("Δp,雨", ",", "utf-8-sig"), ("a b;c", ";", "utf-8"), ("0\t1", "\t", "utf-8")],
)
def test_files_of_other_programs_are_read(
    tmp_path: Path, header: str, separator: str, encoding: str
) -> None:
    path = tmp_path / "series.csv"
    path.write_text(f"{header}\n1{separator}2\n\n3{separator}5\n", encoding=encoding)
    table = read_series(str(path), None, [])
    assert list(table.frame) == header.split(separator)
    np.testing.assert_array_equal(table.frame, [[1.0, 2.0], [3.0, 5.0]])


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input_is_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], pack: Callable
) -> None:
    rows = np.random.default_rng(0).normal(size=(20, 2))
    text = "a;b\n" + "\n".join(";".join(f"{cell:.3f}" for cell in row) for row in rows)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(pack(text.encode()))))
    granger_command("stdin:", lam=0.1)
    assert capsys.readouterr().out.startswith("standard input: 2 series, lag 1")


def test_what_is_no_text_or_no_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "series.csv"
    with pytest.raises(ValueError, match=r"there is no file .*series\.csv"):
        read_series(str(path), None, [])
    packed = tmp_path / "series.csv.gz"
    packed.write_bytes(gzip.compress(b"a,b\n1,2\n3,5\n")[:-12])
    with pytest.raises(ValueError, match=r"series\.csv\.gz is a damaged gzip file"):
        read_series(str(packed), None, [])
    # what a file holds decides, not its name
    packed.write_bytes(b"a,b\n1,2\n3,5\n")
    assert read_series(str(packed), None, []).frame["b"].tolist() == [2.0, 5.0]
    path.write_text("température,b\n1,2\n3,5\n", encoding="latin-1")
    with pytest.warns(KernelWeaveWarning, match=r"series\.csv is not UTF-8 text"):
        assert list(read_series(str(path), None, []).frame) == ["température", "b"]


@pytest.mark.parametrize("ending", ["xlsx", "parquet", "json"])
def test_series_are_read_from_every_kind_of_table(tmp_path: Path, ending: str) -> None:
    days = pd.date_range("2020-01-01", periods=12, freq="MS").strftime("%d.%m.%Y")
    frame = pd.DataFrame({"day": days, "load": [f"{i * i % 7} kW" for i in range(12)]})
    frame["b"] = np.arange(12) % 5 / 2
    path = tmp_path / f"series.{ending}"
    if ending == "xlsx":
        frame.to_excel(path, index=False)
    elif ending == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records")
    table = read_series(str(path), None, [])
    assert table.frame["load"].tolist() == [float(i * i % 7) for i in range(12)]
    assert table.frame.index.tolist() == pd.date_range("2020-01-01", periods=12, freq="MS").tolist()


def test_a_column_of_dates_is_the_time(tmp_path: Path) -> None:
    path = tmp_path / "series.csv"
    path.write_text("run,a,day,b\nx,1,2024-01-03,4\nx,2,2024-01-02,6\ny,3,2024-01-01,5\n")
    with pytest.warns(KernelWeaveWarning, match="not in order of time.*sorted by column day"):
        table = read_series(str(path), "run", [])
    assert table.replicates == ["x", "x", "y"]
    assert table.frame["a"].tolist() == [2.0, 1.0, 3.0]
    assert isinstance(table.frame.index, pd.DatetimeIndex)
    assert table.frame.index.name == "day"
    assert read_series(str(path), "run", ["day"]).frame["a"].tolist() == [1.0, 2.0, 3.0]


def test_a_time_that_was_not_dropped_is_noticed(table: Path) -> None:
    with pytest.warns(KernelWeaveWarning, match="column time rises in every row.*--drop 'time'"):
        read_series(str(table), "run", [])
    assert read_series(str(table), "run", ["time"]).frame.columns.tolist() == ["a", "b", "c"]


def test_a_time_that_begins_again_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"run": np.repeat([1, 2, 3], 9), "t": np.tile(np.arange(9) * 10.0, 3)})
    frame.assign(a=rng.normal(size=27), on=rng.integers(0, 2, 27)).to_csv(path, index=False)
    with pytest.warns(KernelWeaveWarning, match="column t counts .* begins again.*--drop 't'.*--r"):
        read_series(str(path), None, [])
    assert read_series(str(path), "run", ["t"]).frame.columns.tolist() == ["a", "on"]
    frame.assign(a=frame["t"] % 20, run=rng.normal(size=27), t=0.5).to_csv(path, index=False)
    assert read_series(str(path), None, ["t"]).frame["a"].max() == 10.0
    # a column that rises throughout is the one that the sentence names
    frame.drop(columns="run").assign(row=np.arange(27.0)).to_csv(path, index=False)
    with pytest.warns(KernelWeaveWarning, match="column row rises in every row"):
        read_series(str(path), None, [])


@pytest.mark.filterwarnings("error")
def test_one_row_has_no_time(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    pd.DataFrame({"a": [1.0], "b": [2.0]}).to_csv(path, index=False)
    assert len(read_series(str(path), None, []).frame) == 1


@pytest.mark.parametrize(
    ("form", "step"),
    [("%d.%m.%Y", "MS"), ("%d.%m.%Y", "D"), ("%d/%m/%Y", "D"), ("%m/%d/%Y", "D"), ("%Y-%m", "MS")],
)
def test_dates_are_read_whichever_part_stands_first(tmp_path: Path, form: str, step: str) -> None:
    days = pd.date_range("2020-01-01", periods=24, freq=step)
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(24, 2)), columns=["a", "b"])
    path = tmp_path / "series.csv"
    frame.assign(day=days.strftime(form)).to_csv(path, index=False)
    assert read_series(str(path), None, []).frame.index.tolist() == days.tolist()


def test_a_month_that_may_be_a_day_is_told(tmp_path: Path) -> None:
    path = tmp_path / "series.csv"
    path.write_text("day,a,b\n01/01/2020,1,4\n01/02/2020,2,6\n01/03/2020,3,5\n")
    with pytest.warns(KernelWeaveWarning, match="such as 01/02/2020 are read with the month first"):
        table = read_series(str(path), None, [])
    assert table.frame.index[1] == pd.Timestamp("2020-01-02")
