"""The study of new groups and later rows: its tasks, its splits, and what it says of results."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from kernelweave.papers import Request, tables
from kernelweave.papers.study.new_rows import METHODS, Came, _splits, judged, reason_not_run
from kernelweave.papers.study.new_rows_tables import TASKS


def test_tasks_are_of_every_kind() -> None:
    counts = Counter(task.kind for task in TASKS.values())
    assert min(counts.values()) >= 5
    assert len(counts) == 4


@pytest.mark.parametrize("name", TASKS)
def test_rows_to_meet_are_of_other_groups_or_later(name: str) -> None:
    task = TASKS[name]
    if "real" in task.kind:
        pytest.importorskip("statsmodels")
        pytest.importorskip("linearmodels")
    X, y = task.table(0)
    assert np.isfinite(y).all() if not task.classes else set(y) == {"yes", "no"}
    splits = list(_splits(task, X, task.draws - 1, 6))
    for own, new in splits:
        keys = X[task.column].iloc[own], X[task.column].iloc[new]
        if task.by == "groups":
            assert keys[0].nunique() == task.n_train
            assert not set(keys[0]) & set(keys[1])
        else:
            assert keys[0].max() < keys[1].min()
    assert len(splits) == (1 if task.by == "groups" else 3)


def test_the_error_of_an_accuracy_is_that_of_a_mean() -> None:
    stats = pytest.importorskip("scipy.stats")
    state = np.random.default_rng(0)
    right = state.random((12, 5)) < 0.7
    truth = np.where(right, "a", "b").ravel()
    parts = np.repeat(np.arange(12), 5)
    score, error = judged(truth, np.full(60, "a"), parts, classes=True)
    assert score == pytest.approx(right.mean())
    assert error == pytest.approx(stats.sem(right.mean(axis=1)))


def test_agreement_is_counted_where_something_was_expected() -> None:
    one = {"expected": 0.5, "error": 0.03, "n_groups": 50.0, "share": 1.25, "held": 0.9}
    one |= {"realised": 0.6, "realised error": 0.04, "realised groups": 9.0}
    # Welch's degrees of freedom are 18.6, of which Student's quantile is 2.096
    far, nothing = {**one, "realised": 0.61}, {**one, "expected": np.nan, "held": np.nan}
    assert Came([one, far, nothing]).row == ["0.50", "0.60", "1 of 2", "2 of 2", "0.90"]
    few = {**far, "realised groups": 3.0}
    assert Came([few]).row[2] == "1 of 1"
    assert Came([]).row == [None] * 5


def test_what_a_method_is_not_for_is_said() -> None:
    assert reason_not_run("MixedLM", TASKS["persons, two classes"]) == (
        "numbers in groups only" if METHODS["MixedLM"].is_installed else "not installed"
    )
    assert reason_not_run("HistGB", TASKS["random walk"]) == ""


def test_a_quick_run_computes_and_shows() -> None:
    plan = tables()["study-new-rows"].plan(Request(quick=True))
    cells = [cell for cell in plan.cells if "HistGB" in cell.key]
    results = {cell.key: cell.compute(**cell.arguments) for cell in cells}
    results |= {"wine/warned": True, "diabetes/warned": False}
    by_task, by_method, warned = plan.present(results)
    assert [row[0] for row in by_task.rows] == ["cities that do not matter", "rows in no order"]
    told = {(row[0], row[1]): row[2:] for row in by_method.rows}
    assert 0.6 < float(str(told["new groups, made", "HistGB, passed"][1])) < 0.95
    assert told["later rows, made", "HistGB"][4] == "no intervals"
    assert [list(row) for row in warned.rows] == [[2, 1, "wine"]]
