"""The tables of views: their plans, a cell of each, and what is shown of them."""

from __future__ import annotations

import json
from importlib.util import find_spec

import numpy as np
import pytest
from kernelweave.papers import Request, tables
from kernelweave.papers.engine.chosen import choose, narrowed
from kernelweave.papers.sparse import proofs, views
from kernelweave.papers.sparse.views import METHODS, NEEDS, digits, made, measure


def test_the_class_depends_on_the_true_views_alone() -> None:
    data = made(200, 12, seed=3)
    at = [column for view in data.true for column in data.columns[view]]
    squares = (data.X_test[:, at] ** 2).sum(axis=1)
    assert np.mean((squares > 9.0) == data.y_test) > 0.95
    assert len(data.columns) == 12
    assert data.X.shape == (200, 36)


def test_the_views_of_digits_cover_the_columns() -> None:
    data = digits(100, seed=0)
    assert sorted(j for at in data.columns.values() for j in at) == list(range(data.X.shape[1]))
    assert len(data.columns) == 9
    assert len(data.y) == 100
    assert np.isfinite(data.X).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", METHODS)
def test_a_cell_of_every_method(name: str) -> None:
    if name.startswith("group lasso"):
        pytest.importorskip(NEEDS)
    found = json.loads(json.dumps(measure(name, 150, 6, 0)))
    # columns alone say nothing of a class that depends on their squares
    assert found["accuracy"] > (40.0 if name == "group lasso" else 50.0)
    if name.endswith("proved"):
        assert found["kept"] == found["true"]
    sheet, _ = tables()["smkl-views"].plan(Request()).present({f"{name}/0": found})
    row = next(row for row in sheet.rows if row[0] == name)
    assert row[1] == found["accuracy"]
    assert row[3] is not None


def test_a_table_of_one_data_set_is_narrowed_to_a_method() -> None:
    name = "three views, proved"
    (part,) = narrowed(choose(["smkl-views"], Request(), tables()), (), [name])
    assert [cell.key for cell in part.plan.cells] == [f"{name}/{seed}" for seed in range(10)]
    (sheet,) = part.plan.present({f"{name}/0": {"accuracy": 80.0, "seconds": 1.0}})
    assert [row[0] for row in sheet.rows] == [name]


def test_a_method_that_is_not_installed_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "find_spec", lambda name: None)
    plan = tables()["smkl-views"].plan(Request())
    assert len(plan.cells) == 10 * (len(METHODS) - 2)
    sheet, leads = plan.present({})
    assert len(leads.rows) == len(METHODS) - 3
    assert all(len(row) == len(sheet.columns) for row in sheet.rows)
    assert sheet.rows[-1][:2] == ["group lasso on squares", "skglm is not installed"]
    found = {"accuracy": 80.0, "seconds": 1.0, "kept": [1, 2], "true": [1, 3]}
    for n_seeds in (1, 2):
        results = {f"{name}/{i}": found for name in list(METHODS)[:-2] for i in range(n_seeds)}
        sheet, leads = plan.present(results)
        assert leads.rows[0][2] == 0.0
        assert leads.rows[0][-1] == "cannot be decided"
        assert not leads.empty()
        shown = sheet.without_empty_columns()
        assert ("±" in shown.columns) == (n_seeds > 1)
        assert not shown.empty()


def test_what_a_proof_costs() -> None:
    plan = tables()["smkl-proofs"].plan(Request(quick=True))
    found = json.loads(json.dumps(proofs.prove(60, 6, k0=2, C=1.0, lam=1.0)))
    assert 0.0 <= found["gap"] <= 1e-4
    assert 0.0 <= found["relaxation (%)"] < 100.0
    (sheet,) = plan.present({plan.cells[1].key: found})
    row = dict(zip(sheet.columns, sheet.rows[1], strict=True))
    assert (row["views"], row["k₀"], row["supports"]) == (40, 5, 658008)
    assert {name: row[name] for name in found} == found
    assert set(sheet.empty()) >= {"40, solves", "200, gap"}


def test_plans_and_pictures() -> None:
    n_methods = len(METHODS) - (0 if find_spec(NEEDS) else 2)
    assert len(tables()["smkl-views"].plan(Request()).cells) == 10 * n_methods
    assert len(tables()["smkl-views-digits"].plan(Request(quick=True)).cells) == len(METHODS) - 3
    plan = tables()["smkl-views-phase"].plan(Request(quick=True))
    cell = plan.cells[-1]
    drawing, sheet = plan.present({cell.key: cell.compute(**cell.arguments)})
    assert sheet.rows[0][:3] == [20, 300, 1.0]
    from matplotlib.figure import Figure

    figure = Figure()
    drawing.draw(figure)
    assert [text.get_text() for text in figure.axes[0].texts] == ["1.0"]
