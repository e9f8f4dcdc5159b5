"""The plans of the figures on causality: what they hold and how it is shown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kernelweave.papers import Request, tables
from kernelweave.papers.granger.genes import load
from kernelweave.papers.granger.known_graphs import METHODS, decide, dream3, measure_method
from matplotlib.figure import Figure


def test_dream3_networks_have_their_edges(shared: Path) -> None:
    stem = str(shared / "data" / "granger" / "dream3_size10_ecoli1")
    X, replicates, truth = dream3(f"{stem}.csv", f"{stem}_edges.csv")
    assert X.shape == (84, 10)
    assert len(set(replicates)) == 4
    assert truth.sum() == 11
    assert not truth.diagonal().any()


def test_gene_groups_are_complete(shared: Path) -> None:
    X, groups = load(str(shared / "data" / "granger" / "drosophila_lifecycle.csv.gz"))
    assert X.shape == (66, len(groups))
    assert len(set(groups)) == 10


@pytest.mark.parametrize("name", ["vv-figure-3", "vv-figure-4", "vv-figure-5"])
def test_gene_figures_draw_what_was_found(shared: Path, name: str) -> None:
    plan = tables()[name].plan(Request(quick=True, folder=shared / "data"))
    result = {"rmse": [0.5, 1.0], "graph": [[1.0]], "groups": ["a"], "output": [[1.0]]}
    drawings = [
        shown for shown in plan.present({plan.cells[0].key: result}) if hasattr(shown, "draw")
    ]
    assert drawings
    for drawing in drawings:
        figure = Figure()
        drawing.draw(figure)
        assert any(ax.has_data() for ax in figure.axes)


def test_known_graphs_are_summed_up_by_set_and_network(shared: Path) -> None:
    plan = tables()["vv-known-graphs"].plan(Request(folder=shared / "data"))
    names = ("kernel", "lasso", "lasso_shared", "lasso_best", "kernel_aupr", "lasso_aupr")
    found = {
        cell.key: dict.fromkeys(
            names, [0.4, 0.5, 0.6, 0.7, 0.3] if cell.arguments["files"] else [0.01 * at]
        )
        for at, cell in enumerate(plan.cells)
    }
    (sheet,) = plan.present(found)
    assert [row[0] for row in sheet.rows] == [
        "DREAM3, size 10",
        *(f"of which {name}" for name in ("ecoli1", "ecoli2", "yeast1", "yeast2", "yeast3")),
        "Lorenz-96",
    ]
    assert sheet.rows[0][2] == "0.500 ± 0.000"
    assert sheet.rows[4][2] == "0.700 ± 0.000"
    # five seeds 0.05 to 0.09: mean 0.07, 2.776 standard errors of 0.01 * sqrt(2.5 / 5)
    assert sheet.rows[6][2] == "0.070 ± 0.020"


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_a_strong_link_and_its_direction(method: str) -> None:
    pytest.importorskip(METHODS[method].needs)
    X = np.random.RandomState(0).standard_normal((80, 3))
    X[1:, 0] = 2.0 * X[:-1, 2] + 0.3 * X[1:, 0]
    graph = METHODS[method].run(X)
    assert graph.shape == (3, 3)
    assert np.argmax(np.where(np.eye(3, dtype=bool), -np.inf, graph)) == 2


def test_methods_are_measured_and_shown_beside_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = measure_method("lasso VAR", 10.0, 0.1, seed=0, n_nodes=5, n_times=60)
    assert 0.0 <= found["auroc"] <= 1.0
    assert found["seconds"] > 0.0
    monkeypatch.setitem(METHODS, "PCMCI, ParCorr", METHODS["lasso VAR"]._replace(needs="no_such"))
    plan = tables()["vv-graph-methods"].plan(Request(quick=True))
    assert not any("/PCMCI, ParCorr/" in cell.key for cell in plan.cells)
    (sheet,) = plan.present({cell.key: found for cell in plan.cells})
    rows = {row[0]: row[1:] for row in sheet.rows}
    assert rows["PCMCI, ParCorr"] == ["not installed"] * 12
    assert rows["lasso VAR"] == [found["auroc"], found["auroc"], found["seconds"]] * 4


def test_decisions_are_counted_and_summed_up() -> None:
    found = decide({"kind": "linear"}, 0, n_nodes=3, n_times=60, n_draws=30)
    assert found["found"] <= found["edges"] == 6 - found["without"]
    assert found["false"] <= found["without"]
    plan = tables()["vv-graph-decisions"].plan(Request(repeats=2))
    counts = {"edges": 4, "found": 3, "false": 1, "null": 2, "without": 16, "seconds": 1.0}
    nothing = {"edges": 0, "found": 0, "false": 0, "null": 0, "without": 20, "seconds": 1.0}
    (sheet,) = plan.present(
        {cell.key: nothing if "none" in cell.key else counts for cell in plan.cells}
    )
    assert sheet.rows[0][1:5] == [2, "0.750 ± 0.000", "0.250 ± 0.000", 2]
    assert sheet.rows[-1][1:5] == [2, "no edges", "0.000 ± 0.000", 0]
    assert not sheet.empty()
