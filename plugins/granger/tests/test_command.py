"""The command, its files and its pictures."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from kernelweave.granger import CausalGraphDisplay, GrangerGraph, plot_output_kernel, plot_weights
from kernelweave.granger.command import granger_command
from kernelweave.kernels_core import commands
from matplotlib.figure import Figure


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


def test_command_is_registered() -> None:
    assert commands()["granger"].load() is granger_command


def test_text_json_edges_and_picture(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drop = ["time"]
    granger_command(str(table), replicate="run", drop=drop, lam=0.1, top=1)
    said = capsys.readouterr().out
    assert "3 series" in said
    assert "a -> b" in said
    edges, picture = tmp_path / "edges.csv", tmp_path / "graph.png"
    granger_command(
        str(table),
        replicate="run",
        drop=drop,
        lam=0.1,
        significance="permutation",
        draws=9,
        edges=edges,
        picture=picture,
        json=True,
    )
    found = json.loads(capsys.readouterr().out)
    assert found["edges"][0]["source"] == "a"
    assert found["edges"][0]["p_value"] == pytest.approx(0.1)
    assert found["largest_gap"] <= 1e-3
    with edges.open() as stream:
        assert next(csv.DictReader(stream))["target"] == "b"
    assert picture.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="--force"):
        granger_command(str(table), edges=edges)


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("a,b\n1,2\n", {"replicate": "run"}, "no column 'run'"),
        ("a,b\n1,x\n", {}, "row 1 of .* has 'x' in column b"),
        ("a,b\n1\n", {}, "row 1 of .* has not 2 cells"),
        ("a,b\n", {}, "at least one row"),
    ],
)
def test_bad_files_are_refused_by_place(
    tmp_path: Path, text: str, arguments: dict[str, str], said: str
) -> None:
    path = tmp_path / "bad.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(ValueError, match=said):
        granger_command(str(path), **arguments)


def test_displays_draw_what_was_found() -> None:
    X = np.random.default_rng(0).standard_normal((50, 3))
    X[1:, 0] += 3 * X[:-1, 1]
    model = GrangerGraph(groups=["p", "p", "q"], lam=0.1, cv=None).fit(X)
    left, middle, right = Figure().subplots(1, 3)
    drawn = CausalGraphDisplay.from_estimator(model, ax=left)
    assert drawn.ax_ is left
    heaviest = max((0, 1), (1, 0), key=lambda each: model.graph_[each])
    assert drawn.edges_[0] == (*heaviest, model.graph_[heaviest])
    assert {text.get_text() for text in left.texts} == {"p", "q"}
    assert len(left.patches) == len(drawn.edges_)
    assert left.get_title() == f"{len(drawn.edges_)} heaviest edges"
    plot_weights(model, middle)
    plot_output_kernel(model, "p", right)
    assert np.asarray(middle.images[0].get_array()).shape == (2, 2)
    np.testing.assert_allclose(right.images[0].get_array(), model.output_kernels_[0])
    with pytest.raises(ValueError, match="needs p-values"):
        drawn.plot(max_p_value=0.05)
    with pytest.raises(ValueError, match="group must be one of"):
        plot_output_kernel(model, "r", right)
    with pytest.raises(ValueError, match="shape"):
        CausalGraphDisplay(np.eye(2), ["one"])


def test_edges_above_a_p_value_are_left_out() -> None:
    graph = [[0.0, 3.0, 2.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    p_values = np.full((3, 3), np.nan)
    p_values[0, 1], p_values[0, 2], p_values[2, 0] = 0.2, 0.01, 0.02
    drawn = CausalGraphDisplay(graph, list("abc"), p_values=p_values, n_draws=99)
    drawn.plot(max_p_value=0.05, ax=Figure().subplots())
    assert drawn.edges_ == [(0, 2, 2.0), (2, 0, 1.0)]
    widths = [arrow.get_linewidth() for arrow in drawn.ax_.patches]
    assert max(widths) == 3.5
    assert "p ≤ 0.05 (99 draws)" in drawn.ax_.get_title()
