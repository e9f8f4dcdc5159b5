"""The table of the best three columns: its draws, the price of a column, a cell of each method."""

from __future__ import annotations

import json

import numpy as np
import pytest
from kernelweave.papers import Request, tables
from kernelweave.papers.sparse.best_subset import DESIGNS, METHODS, made, measure, price


@pytest.mark.parametrize("design", DESIGNS)
def test_columns_have_the_correlation_of_the_design(design: str) -> None:
    data = made(design, 4000, 6, seed=0)
    found = np.corrcoef(data.X, rowvar=False)
    at = np.arange(6)
    distance = np.abs(at[:, None] - at)
    wanted = DESIGNS[design] ** (distance if design == "Toeplitz" else np.sign(distance))
    np.testing.assert_allclose(found, wanted, atol=0.06)
    coef = np.linalg.lstsq(data.X, data.y, rcond=None)[0]
    assert data.true == [1, 3, 5]
    np.testing.assert_allclose(1.0 - np.var(data.y - data.X @ coef), 10 / 11, atol=0.02)


@pytest.mark.parametrize("classes", [False, True])
def test_at_the_price_the_true_columns_are_better_than_fewer_and_one_more(classes: bool) -> None:
    from sklearn.linear_model import Ridge

    data = made("equicorrelated", 200, 20, seed=0)
    y = np.sign(data.y) if classes else data.y
    charge = price(data.X, y, data.true, classes=classes)
    assert charge > 0.0
    if classes:
        return

    def value(at: list[int]) -> float:
        w = Ridge(30.0, fit_intercept=False).fit(data.X[:, at], y).coef_
        rest = y - data.X[:, at] @ w
        return float(0.5 * rest @ rest + 15.0 * w @ w + charge * len(at))

    best = value(data.true)
    assert all(best < value(data.true[:i] + data.true[i + 1 :]) for i in range(3))
    assert all(best < value([*data.true, j]) for j in range(20) if j not in data.true)


@pytest.mark.parametrize("name", METHODS)
def test_a_cell_of_every_method(name: str) -> None:
    pytest.importorskip(METHODS[name].needs)
    found = json.loads(json.dumps(measure(name, "equicorrelated", 300, 15, 0)))
    assert sorted(found["kept"]) == found["true"]
    assert found["gap"] <= 1e-4
    # R² without noise in the fit is 10/11
    assert 75.0 < found["score"] < 100.0
    (sheet,) = (
        tables()["best-subset"].plan(Request()).present({f"equicorrelated/300/100/{name}/0": found})
    )
    row = next(row for row in sheet.rows if list(row[:4]) == ["equicorrelated", 300, 100, name])
    assert list(row[4:8]) == [3.0, 3.0, found["score"], "1 of 1"]


def test_what_is_not_run_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelweave.papers.measuring.find_spec", lambda name: None)
    plan = tables()["best-subset"].plan(Request())
    assert not plan.cells
    (sheet,) = plan.present({})
    assert sheet.rows[1][4:] == ["el0ps is not installed", *["not run"] * 4]
    monkeypatch.setattr("kernelweave.papers.measuring.find_spec", lambda name: name)
    keys = [cell.key for cell in tables()["best-subset"].plan(Request()).cells]
    assert any("1000/OKRidge" in key for key in keys)
    assert not any("10000/OKRidge" in key for key in keys)
