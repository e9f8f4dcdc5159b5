"""The papers' first question: plans, a cell of every method, leads and their verdicts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from kernelweave.papers import Request, tables
from kernelweave.papers.engine.chosen import choose, narrowed
from kernelweave.papers.engine.running import CellOutcome
from kernelweave.papers.engine.sections import section
from kernelweave.papers.sparse.question import (
    ALGORITHM_1,
    METHODS,
    OPTIMUM,
    dictionary,
    lead_in_the_paper,
    measure,
)
from kernelweave.papers.sparse.sets import SETS, read


def test_the_printed_lead_is_the_paper_s() -> None:
    assert lead_in_the_paper(8, "best baseline of the set") == pytest.approx(3.34, abs=0.005)
    assert lead_in_the_paper(8, "SimpleMKL") is None
    assert lead_in_the_paper(50, "EasyMKL") > 5.0


def test_the_first_split_is_the_authors_and_the_others_differ(shared: Path) -> None:
    path = str(shared / "data" / "iris.csv")
    first, again, other = (read(path, [0, 1], None, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.X, again.X)
    assert first.X.shape == other.X.shape
    assert not np.array_equal(first.y, other.y)


@pytest.mark.parametrize("name", ["smkl-question", "smkl-question-50"])
def test_plans(name: str, shared: Path) -> None:
    request = Request(folder=shared / "data", repeats=2)
    plan = tables()[name].plan(request)
    assert len(plan.cells) == len(SETS) * len(METHODS) * 2
    accuracy, leads = plan.present({})
    assert len(accuracy.rows) == len(SETS)
    assert all(row[-1] is None for row in leads.rows)


@pytest.mark.filterwarnings("ignore:.*set to zero")
def test_kernels() -> None:
    assert len(dictionary(8).names) == 8
    assert len(dictionary(50).names) == 50


@pytest.mark.parametrize("method", METHODS)
def test_a_cell_of_every_method(method: str, shared: Path) -> None:
    settings = {"path": str(shared / "data" / "iris.csv"), "columns": [0, 1], "limit": 45}
    found = json.loads(json.dumps(measure(**settings, method=method, n_kernels=8, seed=0)))
    assert found["accuracy"] > 80.0
    if method == OPTIMUM:
        assert found["gap"] <= 1e-4


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "Splits of each set: 3; training rows: all."),
        ({"repeats": 2, "subsample": 200}, "Splits of each set: 2; training rows: at most 200."),
    ],
)
def test_the_page_says_what_it_is_made_of(asked: dict[str, int], said: str, shared: Path) -> None:
    plan = tables()["smkl-question"].plan(Request(folder=shared / "data", **asked))
    assert said in plan.present({})[0].notes


def test_leads_are_means_over_the_sets(shared: Path) -> None:
    plan = tables()["smkl-question"].plan(Request(folder=shared / "data", repeats=1))
    ours = {"iris": 2.0, "wine": 4.0, "heart": 3.0}
    results = {
        f"{name}/{method}/0": {"accuracy": 90.0 + (lead if method == ALGORITHM_1 else 0.0)}
        for name, lead in ours.items()
        for method in METHODS
    }
    _, leads = plan.present(results)
    row = dict(zip(leads.columns, leads.rows[0], strict=True))
    assert row["second"] == "best baseline of the set"
    assert row["lead"] == pytest.approx(3.0)
    assert row["from"] == pytest.approx(3.0 - 4.302652729911275 / np.sqrt(3.0))
    assert row["lead (paper)"] == pytest.approx(3.34, abs=0.005)
    assert row["verdict"] == "holds"


def test_leads_of_some_sets_stay(shared: Path) -> None:
    request = Request(folder=shared / "data", repeats=1)
    chosen = choose(["smkl-question"], request, tables())
    (few,) = narrowed(chosen, ["iris", "wine"])
    results = {cell.key: {"accuracy": 90.0} for cell in few.plan.cells}
    accuracy, leads = few.plan.present(results)
    shown = section(few, {key: CellOutcome(value, 0.0) for key, value in results.items()})
    assert [part.splitlines()[0] for part in shown.parts[:2]] == [
        f"### {accuracy.title}",
        f"### {leads.title} (partial: only a part was asked for)",
    ]
    assert [row[0] for row in accuracy.rows] == ["iris", "wine"]
    assert leads.rows[0][:3] == [ALGORITHM_1, "best baseline of the set", 0.0]
    # a single method leads nobody
    (alone,) = narrowed(chosen, ["iris"], ["EasyMKL"])
    assert len(alone.plan.present({"iris/EasyMKL/0": {"accuracy": 90.0}})) == 1
