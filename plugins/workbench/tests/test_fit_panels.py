"""Groups and an order together, in a terminal: what is printed, and what a file predicts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence.new_rows import AS_THEY_RECUR
from kernelweave.workbench import load_model
from kernelweave.workbench.sentences import other_rows, shown_kinds

KINDS = [
    "known firm, now", "new firm, now", "known firm, later by year", "new firm, later by year",
]  # fmt: skip


@pytest.fixture
def firms(tmp_path: Path) -> Path:
    """Twelve firms in five years: most of the target is which firm it is."""
    rng, path = np.random.default_rng(0), tmp_path / "firms.csv"
    firm = np.repeat(np.arange(12), 5)
    frame = pd.DataFrame({"firm": [f"f{k}" for k in firm], "year": np.tile(range(2000, 2005), 12)})
    frame["size"] = rng.normal(size=60).round(2)
    frame["y"] = (
        3.0 * rng.normal(size=12)[firm] + frame["size"] + 0.3 * rng.normal(size=60)
    ).round(3)
    frame.to_csv(path, index=False)
    return path


def test_a_panel_is_told_of_by_four_lines_and_kinds_of_its_intervals(
    run: Callable, firms: Path, tmp_path: Path
) -> None:
    model, new = tmp_path / "m", tmp_path / "new.csv"
    options = ["--groups", "firm", "--order", "year", "--max-iter", "15", "--no-compare"]
    done = run("fit", firms, "--target", "y", *options, "--out", model)
    assert done.status == 0
    said = " ".join(done.out.split())
    assert "later by year" in said
    for kind in KINDS:
        assert kind in said
    names, years = ["f0", "x", "f0", "x"], [2002, 2002, 2006, 2006]
    pd.DataFrame({"firm": names, "year": years, "size": 0.5}).to_csv(new, index=False)
    rows = json.loads(run("predict", model, new, "--interval", "0.8", "--json").out)
    assert [row["kind"] for row in rows] == KINDS
    widths = [row["high"] - row["low"] for row in rows]
    assert min(widths[1::2]) > 2.0 * max(widths[::2])
    # a file that takes rows knows both columns
    done = run("update", model, firms, "--out", tmp_path / "n")
    assert done.status == 0
    assert [row["name"] for row in load_model(tmp_path / "n").header.new_rows][1:5] == KINDS


def test_lines_of_panels_and_of_rows_that_recur_are_shown() -> None:
    rows = [
        {"name": name, "score": 0.5, "error": 0.1, "n_rows": 60, "n_groups": 12}
        for name in ("later by year", *KINDS, "new size", AS_THEY_RECUR.name)
    ]
    facts: Any = SimpleNamespace(held_out=None, new_rows=rows, n_samples=60)
    shown = [row["name"] for row in shown_kinds(facts)]
    assert shown == ["later by year", *KINDS, AS_THEY_RECUR.name]
    lines = other_rows(facts)
    assert lines[KINDS[1]][0].startswith("at most")
    assert "groups or blocks of time" in lines[KINDS[1]][1]
    assert not lines[AS_THEY_RECUR.name][0].startswith("at most")


def test_whole_groups_as_folds_take_no_order(run: Callable, firms: Path) -> None:
    options = ["--groups", "firm", "--order", "year", "--cv", "group"]
    said = run("fit", firms, "--target", "y", *options).error
    assert "--cv group holds out whole groups, and --order later rows of all" in said
