"""The study of evidence kernels: sets, intervals, plan, and what it says of planted results."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from kernelweave.papers import Request, measuring, tables
from kernelweave.papers.plan import Drawing, MissingDataError, Plan, Sheet
from kernelweave.papers.study import large, methods, sets
from kernelweave.papers.study.comparison import SizeResults, drawing, scores, shares, verdict
from kernelweave.papers.study.methods import (
    METHODS,
    OURS,
    measure,
    reason_not_run,
    rows_trained,
)
from kernelweave.papers.study.sets import PROBLEMS, SETS, address, make, samples
from kernelweave.workbench.pages import figure_svg
from kernelweave.workbench.scoring.scores import mean_interval
from sklearn.base import BaseEstimator, ClassifierMixin


def test_the_interval_is_scipys_with_the_corrected_variance() -> None:
    stats = pytest.importorskip("scipy.stats")
    d = np.random.default_rng(0).normal(1.0, 2.0, size=10)
    wider = np.sqrt(d.var(ddof=1) * (1.0 / 10.0 + 1.0 / 4.0))
    low, high = stats.t.interval(0.95, 9, loc=d.mean(), scale=wider)
    assert mean_interval(d, 0.25) == pytest.approx((d.mean(), low, high), rel=1e-12)
    plain = stats.ttest_1samp(d, 0.0).confidence_interval(0.95)
    assert mean_interval(d)[1:] == pytest.approx(tuple(plain), rel=1e-12)


def test_the_corrected_interval_holds_where_folds_share_their_training_part() -> None:
    """The mean's variance under correlation ρ/(1 + ρ), the one that the correction assumes."""
    rng = np.random.default_rng(1)
    k, share = 5, 0.25
    r = share / (1.0 + share)
    common, own = rng.standard_normal((4000, 1)), rng.standard_normal((4000, k))
    d = np.sqrt(r) * common + np.sqrt(1.0 - r) * own
    inside = np.mean([mean_interval(row, share).sign == 0 for row in d])
    naive = np.mean([mean_interval(row).sign == 0 for row in d])
    assert inside == pytest.approx(0.95, abs=0.015)
    assert naive < 0.92


@pytest.mark.parametrize("bad", [[1.0], [[1.0, 2.0]]])
def test_too_few_differences_are_refused(bad: list) -> None:
    with pytest.raises(ValueError, match="two or more"):
        mean_interval(bad, 0.25)


def test_the_sets_are_what_the_table_says(shared: Path) -> None:
    request = Request(folder=shared / "data")
    for name, source in SETS.items():
        X, y = samples(address(source, request))
        assert X.shape == (source.n_rows, source.n_columns), name
        assert not source.n_classes or len(np.unique(y)) == source.n_classes, name
        assert np.isfinite(X).all(), name


def test_every_set_of_the_folder_is_there_but_a_finer_picture_of_one(shared: Path) -> None:
    with (shared / "data" / "MANIFEST.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    found = {
        row["file"]
        for row in rows
        if row["task"] in {"classification", "regression"} and int(row["n_samples"]) >= 150
    }
    assert found - {source.where for source in SETS.values()} == {"grand_canyon_native.csv.gz"}


def test_the_formulas_have_values_known_otherwise() -> None:
    """A light aircraft's wing as the literature prints it, and limits that can be done by hand."""
    wing = np.array([174.0, 252.0, 7.52, 0.0, 34.0, 0.672, 0.12, 3.8, 2000.0, 0.064])
    assert sets._wing(wing) == pytest.approx(233.9 + 174.0 * 0.064, abs=0.1)
    short = np.array([1.0, np.e, 5.0, 3.0, 5.0, 1.0, 0.0, 1.0])
    assert sets._borehole(short) == pytest.approx(np.pi * 5.0 * 2.0)
    great_gain = np.array([50.0, 50.0, 2.0, 4.0, 1.0, 1e12])
    assert sets._circuit(great_gain) == pytest.approx(6.0 + 0.74 + 0.74 * 2.0 / 4.0)
    assert sets._arm(np.repeat([0.0, 1.0], 4)) == pytest.approx(4.0)
    assert sets._welch(np.zeros(20)) == 0.0


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_formula_gives_the_same_rows_again(name: str) -> None:
    first, again = make(name), make(name)
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0], make(name, 1)[0])


def planted(lead: float = 2.0) -> dict[str, dict[str, float]]:
    """Evidence is ``lead`` ± .1 points ahead of every other, 3 behind CatBoost on one set."""
    found = {}
    for name in SETS:
        for method in METHODS:
            for fold in range(4):
                ours = (lead + 0.1 * (-1) ** fold) if method == OURS else 0.0
                ours += 5.0 * (method == "CatBoost" and name == "pima")
                found[f"{name}/{method}/300/{fold}"] = {"score": 80.0 + fold + ours, "seconds": 1.0}
    return found


def test_what_is_planted_is_found() -> None:
    found = SizeResults(planted(), 300, list(SETS), list(METHODS))
    sheet = verdict(found)
    by_method = {str(row[0]): dict(zip(sheet.columns, row, strict=True)) for row in sheet.rows}
    n = len(SETS)
    assert by_method["RBF-SVM"]["ahead on"] == n
    assert by_method["RBF-SVM"]["significantly ahead"] == n
    assert by_method["CatBoost"]["significantly behind"] == 1
    assert by_method["GP"]["median"] == "+2.0"
    assert next(row[2:4] for row in shares(found).rows) == [f"{100 * (n - 1) / n:.0f} %"] * 2
    first, second = scores(found)
    assert first.rows[0][0] == "pima"
    assert first.rows[0][4] == "-3.0"
    assert len(first.rows) + len(second.rows) == n
    assert figure_svg(drawing(found).draw).startswith(b"<?xml")
    assert not any(each.empty() for each in (sheet, shares(found), first, second))


def test_equal_scores_are_not_ahead() -> None:
    results = {key: {**each, "score": 80.0} for key, each in planted().items()}
    for key in results:
        if f"/{OURS}/" in key:
            results[key]["score"] += 1e-13
    found = SizeResults(results, 300, list(SETS), list(METHODS))
    assert {row[3] for row in verdict(found).rows if row[0] != OURS} == {0}
    assert {row[3] for row in shares(found).rows} == {"0 %"}


def test_what_was_not_computed_is_missing_and_not_zero() -> None:
    results = {key: each for key, each in planted().items() if not key.startswith("pima/GP")}
    found = SizeResults(results, 300, list(SETS), list(METHODS))
    assert scores(found)[0].empty() == ["pima, GP"]
    assert len(found.differences("GP")) == len(SETS) - 1
    nothing = SizeResults({}, 300, list(SETS), list(METHODS))
    assert verdict(nothing).empty()
    assert figure_svg(drawing(nothing).draw).startswith(b"<?xml")


def test_a_peer_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, shared: Path
) -> None:
    lost = {"catboost", "xrfm", "interpret"}
    monkeypatch.setattr(measuring, "find_spec", lambda name: None if name in lost else name)
    plan = tables()["study"].plan(Request(folder=shared / "data"))
    methods = {cell.key.split("/")[1] for cell in plan.cells}
    assert methods == set(METHODS) - {"CatBoost", "xRFM", "EBM"}
    results = {key: each for key, each in planted().items() if key.split("/")[1] in methods}
    sheet: Sheet = next(item for item in plan.present(results) if isinstance(item, Sheet))
    assert ["CatBoost", "not installed"] in [list(row[:2]) for row in sheet.rows]
    assert "kernelweave-papers[others]" in " ".join(sheet.notes)
    assert not sheet.empty() or "1000" in sheet.title


def test_what_a_method_is_not_for_is_said() -> None:
    assert reason_not_run("TKL", SETS["digits"]) == "many columns"
    assert reason_not_run("SimpleMKL", SETS["iris"]) == "two classes only"
    assert reason_not_run("RBF-SVM", SETS["digits"]) == ""


class _Words(ClassifierMixin, BaseEstimator):
    """Answers with words where the labels were not whole numbers, as interpret does."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> _Words:
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        kind = self.classes_.dtype.kind
        return np.full(len(X), self.classes_[1] if kind in "iu" else str(self.classes_[1]))


def test_classes_come_back_as_they_were_given() -> None:
    X, y = np.zeros((4, 1)), np.array([-1.0, 1.0, -1.0, 1.0])
    of_words = lambda n_columns, **settings: _Words()  # noqa: E731
    found = methods._fitted(of_words, X, y, X, classes=True, quick=True)
    assert found.dtype == y.dtype
    assert found.tolist() == [1.0] * 4


def test_every_method_sees_the_same_samples(shared: Path) -> None:
    plan: Plan = tables()["study"].plan(Request(folder=shared / "data"))
    by_fold: dict[tuple, set] = {}
    for cell in plan.cells:
        arguments = dict(cell.arguments)
        method = arguments.pop("method")
        by_fold.setdefault(tuple(arguments.values()), set()).add(method)
    large = [name for name in SETS if rows_trained(SETS[name], 1000) > 300]
    assert len(by_fold) == 5 * (len(SETS) + len(large))
    assert all({OURS, "RBF-SVM", "HistGB", "GP"} <= methods for methods in by_fold.values())
    assert not any(cell.is_reduced for cell in plan.cells)


def test_missing_data_are_named(tmp_path: Path) -> None:
    cells = tables()["study"].plan(Request(folder=tmp_path)).cells
    lost = {cell.key.split("/")[0]: cell for cell in cells if cell.missing_files()}
    assert set(lost) == {name for name, source in SETS.items() if ".csv" in source.where} - {
        *("iris, one class", "wine, one class", "WDBC"),
    }
    with pytest.raises(MissingDataError, match=r"sonar\.csv"):
        lost["sonar"].compute(**lost["sonar"].arguments)


def test_a_quick_run_computes_and_shows(tmp_path: Path) -> None:
    """Without a data folder: its sets are scikit-learn's and a formula."""
    plan = tables()["study"].plan(Request(quick=True))
    cells = [cell for cell in plan.cells if "/HistGB/" in cell.key or "Wahba" in cell.key]
    results = {cell.key: cell.compute(**cell.arguments) for cell in cells}
    assert all(each["seconds"] > 0.0 for each in results.values())
    shown = plan.present(results)
    assert any(isinstance(item, Drawing) for item in shown)
    table = next(item for item in shown if isinstance(item, Sheet))
    assert table.rows[0][0] == "RBF-SVM"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", [name for name in METHODS if name != OURS])
def test_a_method_computes(method: str) -> None:
    pytest.importorskip(METHODS[method].needs)
    found = measure("load_iris", "classification", method, 0, 90, True)
    assert 85.0 <= found["score"] <= 100.0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", [name for name in METHODS if name != OURS])
def test_a_method_computes_numbers(method: str) -> None:
    pytest.importorskip(METHODS[method].needs)
    found = measure("make Gu and Wahba", "regression", method, 0, 80, True)
    assert 25.0 <= found["score"] <= 90.0


@pytest.mark.filterwarnings("ignore")
def test_the_table_of_many_rows_computes_and_shows(shared: Path) -> None:
    plan = tables()["large"].plan(Request(quick=True, most_samples=200))
    assert all(cell.arguments["n_rows"] == 200 for cell in plan.cells)
    plain = [cell for cell in plan.cells if cell.arguments["method"] in {"linear", "HistGB"}]
    results = {cell.key: cell.compute(**cell.arguments) for cell in plain}
    (sheet,) = plan.present(results)
    (row,) = sheet.rows
    found = dict(zip(sheet.columns, row, strict=True))
    assert 30.0 <= float(found["linear"]) <= 80.0
    assert found["evidence"] is None
    assert float(found["HistGB, MiB"]) >= 0.0
    whole = tables()["large"].plan(Request(folder=shared / "data"))
    assert len({cell.arguments["where"] for cell in whole.cells}) == 7
    assert max(cell.arguments["n_rows"] for cell in whole.cells) == 10**6


@pytest.mark.filterwarnings("ignore")
def test_landmarks_and_ridge_are_tuned() -> None:
    found = large.measure("make twonorm", "classification", "Nystroem + ridge", 400, 0)
    assert 90.0 <= found["score"] <= 100.0
