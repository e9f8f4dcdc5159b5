"""Every numbered table and figure of the five papers: the name that recomputes it, or why none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from kernelweave.papers import tables

JMLR = {
    "Table 1": "tkl-1",
    "Table 2": None,
    "Table 3": "tkl-3",
    "Table 4": "tkl-4",
    **{f"Figure {n}": f"tkl-figure-{n}" for n in (1, 2, 3, 4)},
}
ICML = {
    "Table 1": "tkl-1",
    "Table 2": "tkl-4",
    "Figure 1": "tkl-figure-3",
    "Figure 2": "tkl-2021-figure-2",
    "Figure 3": "tkl-2021-figure-3",
}
SPARSE = {f"Table {n}": f"smkl-{n}" for n in range(1, 11)}
RIDGE = {
    **{f"Table {n}": f"krr-{n}" for n in (1, 2, 3, 4)},
    **{f"Figure {n}": f"krr-figure-{n}" for n in range(1, 13)},
}
MATRIX_VALUED = {"Table 1": "vv-1", **{f"Figure {n}": f"vv-figure-{n}" for n in range(1, 6)}}
PAPERS = {
    "JMLR": JMLR,
    "ICML": ICML,
    "sparse": SPARSE,
    "ridge": RIDGE,
    "matrix-valued": MATRIX_VALUED,
}
REASONS = {
    ("JMLR", "Table 2"): "it lists where the data sets come from",
}
# tables of ours that no paper has
OURS = {
    "large",
    "smkl-proofs",
    "smkl-question",
    "smkl-question-50",
    "smkl-views",
    "smkl-views-digits",
    "smkl-views-phase",
    "study",
    "study-new-rows",
    "study-tables",
    "tkl-exponents",
    "tkl-gas-turbine",
    "vv-graph-decisions",
    "vv-graph-methods",
    "vv-known-graphs",
    "vv-several-outputs",
}


def test_everything_printed_has_a_name_or_a_reason() -> None:
    named = {(paper, item): name for paper, items in PAPERS.items() for item, name in items.items()}
    unnamed = {key for key, name in named.items() if name is None}
    assert len(named) > len(unnamed) > 0
    assert unnamed == {key for key, reason in REASONS.items() if reason}
    assert {name for name in named.values() if name is not None} <= set(tables())


def test_no_table_is_without_a_paper() -> None:
    known = {name for items in PAPERS.values() for name in items.values()}
    assert set(tables()) <= known | OURS
    assert all(spec.paper and spec.summary for spec in tables().values())


@pytest.mark.slow
def test_a_quick_run_of_all_leaves_no_figure_of_ours_empty(shared: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kernelweave.workbench", "tables", "all", "--quick", "--json"]
    folders = ["--subsample", "100", "--data", str(shared / "data"), "--out", str(tmp_path)]
    done = subprocess.run([*command, *folders], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["failed"] == []
    assert found["empty"] == []
    text = (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert all(f"## {name}: " in text for name in tables())
    assert "figures are missing" not in text
    assert "Not run" not in text
