"""``kernelweave compare``: the same rows for all, and who wins is said plainly."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial, wraps
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import ColumnEncoder, EvidenceKernelRegressor
from kernelweave.tables import Target
from kernelweave.workbench import console
from kernelweave.workbench.commands import compare, fit
from kernelweave.workbench.comparing import _chosen
from kernelweave.workbench.fitting import WeightedModel
from kernelweave.workbench.machines import kernel_machine
from kernelweave.workbench.model_catalog import fit_model, make_model
from kernelweave.workbench.scoring.comparison import (
    CrossValidatedModel,
    Row,
    cross_validate_models,
    ended_after,
    verdict,
)
from kernelweave.workbench.scoring.held_out import Folds, HeldOut, cross_predict, folds_by, folds_of
from kernelweave.workbench.scoring.other_models import other_models
from kernelweave.workbench.scoring.rbf import TunedRBF
from kernelweave.workbench.scoring.scores import Score, lead, score
from kernelweave.workbench.scoring.trees import with_missing
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, TimeSeriesSplit
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(90).round(3), "b": rng.choice(["u", "v"], 90)})
    frame["y"] = (np.sin(6 * frame["a"]) + (frame["b"] == "u") + 0.05 * rng.normal(size=90)).round(
        4
    )
    frame.loc[::9, "a"] = None
    path = tmp_path_factory.mktemp("data") / "t.csv"
    frame.to_csv(path, index=False)
    return path


def test_the_best_stands_first(run: Callable, table: Path) -> None:
    pytest.importorskip("kernelweave.ridge_mkl")
    options = ["--target", "y", "--models", "baseline", "evidence", "boosting", "ridge"]
    found = json.loads(run("compare", table, *options, "--json").out)
    rows = found["models"]
    assert [row["name"] for row in rows][:1] == ["evidence"]
    assert rows[-1]["name"] == "baseline"
    assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)
    assert rows[0]["behind"] == 0.0
    assert rows[1]["behind"] == pytest.approx(rows[0]["score"] - rows[1]["score"])
    # three folds of 30 rows leave as much to chance
    assert "has the best score, but its lead of" in found["verdict"]

    frame = pd.read_csv(table)
    fold = folds_of(frame["y"].to_numpy(), "regression", 3, 0)
    own = np.empty(90)
    for k in range(3):
        model = EvidenceKernelRegressor().fit(frame.loc[fold != k, ["a", "b"]], frame.y[fold != k])
        own[fold == k] = model.predict(frame.loc[fold == k, ["a", "b"]])
    assert rows[0]["score"] == pytest.approx(r2_score(frame["y"], own), abs=1e-9)


def test_the_evidence_kernel_is_told_the_order_of_levels() -> None:
    levels = ["poor", "fair", "good"]
    target = Target("y", np.array(levels), "classification", "", levels=levels)
    made = _chosen(["evidence", "tkl"], target, None, 3, False, {})
    evidence, tessellated = (kernel_machine(each.make("classification", 0)._model) for each in made)
    assert evidence.levels == levels
    assert "levels" not in tessellated.get_params()


def test_people_see_names_and_a_verdict(run: Callable, table: Path) -> None:
    done = run("compare", table, "--target", "y", "--models", "rbf,baseline", "tkl", "--cv", "2")
    assert done.status == 0
    for said in (
        "tuned RBF SVM",
        "tessellated kernel",
        "difference",
        "R² on 90 rows, cross-validated in 2",
    ):
        assert said in done.out
    assert (
        "did you mean 'baseline'"
        in run("compare", table, "--target", "y", "--models", "basline").error
    )


def test_blanks_may_stand_beside_the_commas_between_models(run: Callable, table: Path) -> None:
    asked = ["compare", table, "--target", "y", "--cv", "2", "--json", "--models"]
    for names in ("baseline, boosting", " boosting,,baseline,"):
        done = run(*asked, names)
        assert {row["name"] for row in json.loads(done.out)["models"]} == {"baseline", "boosting"}
    assert "--models names no model: leave it out" in run(*asked, " ,").error


def test_scores_and_leads_are_the_usual_ones() -> None:
    rng = np.random.default_rng(0)
    y, one, other = rng.normal(size=(3, 400))
    one, other, weight = y + 0.3 * one, y + 0.6 * other, rng.integers(1, 4, 400).astype(float)
    assert score(y, one, weight, "regression").value == pytest.approx(
        r2_score(y, one, sample_weight=weight)
    )
    ahead = lead(y, one, other, weight, "regression")
    assert ahead.value > 5 * ahead.error > 0
    right = score(y > 0, one > 0, weight, "classification").value
    assert right == pytest.approx(accuracy_score(y > 0, one > 0, sample_weight=weight))
    # a standard error is the spread of the score over samples
    drawn = [rng.choice(400, 400) for _ in range(300)]
    spread = np.std([score(y[d], one[d], np.ones(400), "regression").value for d in drawn])
    assert score(y, one, np.ones(400), "regression").error == pytest.approx(spread, rel=0.2)


@pytest.mark.parametrize(
    ("value", "error", "said"),
    [
        (
            0.1,
            0.01,
            "is significantly better than all others (the next is Other, by 0.100 ± 0.010)",
        ),
        (0.1, 0.1, "no significant difference"),
        (-0.1, 0.01, "Other is better than the kernel by 0.100 ± 0.010 in R²"),
    ],
)
def test_a_verdict_says_who_is_ahead(value: float, error: float, said: str) -> None:
    other = Row("other", "Other", 0.5, 0.1, value, error, 300)
    assert said in verdict("kernel", [other], "R²")


def test_a_verdict_names_all_that_cannot_be_told_apart() -> None:
    rows = [
        Row("a", "A", 0.5, 0.1, 0.01, 0.02, 300),
        Row("b", "B", 0.4, 0.1, 0.03, 0.02, 300),
        Row("c", "C", 0.3, 0.1, 0.2, 0.02, 300),
    ]
    assert "no significant difference between the kernel, A and B." in verdict("kernel", rows, "R²")
    named = Row("rbf", "tuned RBF SVM", 0.9, 0.01, -0.3, 0.01, 300)
    assert verdict("SimpleMKL", [named], "R²").startswith("The tuned RBF SVM is better")
    # one that is better for sure is named before a higher score that may be luck
    surely = Row("d", "D", 0.45, 0.1, -0.05, 0.01, 300)
    assert verdict("kernel", [*rows, surely], "R²").startswith("D is better")


def test_two_folds_leave_a_lead_of_twenty_errors_as_it_is() -> None:
    """Student's quantile of one degree of freedom is 12.7: nothing would ever be significant."""
    rng = np.random.default_rng(4)
    y, fold = rng.normal(size=40_000), np.arange(40_000) % 2
    near, far = (y + each * rng.normal(size=40_000) for each in (0.5, 0.6))
    first, other = (
        HeldOut(np.arange(40_000), fold, y, each, np.ones(40_000), "regression")
        for each in (near, far)
    )
    model = next(each for each in other_models() if each.name == "boosting")
    row = Row.of(CrossValidatedModel(model, other, 0.0, False), first)
    assert row.behind_low is None
    assert row.two_folds
    assert row.is_significantly_behind
    said = verdict("kernel", [row], "R²")
    assert "significantly better than all others" in said
    assert "two folds do not tell how fits vary" in said


def test_a_lead_that_folds_leave_to_chance_is_not_called_ahead() -> None:
    """By hand: differences of folds d have d̄ ± t·s·√(1/3 + 1/2), and t of two degrees is 4.303."""
    rng = np.random.default_rng(4)
    y, fold = rng.normal(size=90), np.arange(90) % 3
    # our errors are the same in every fold, the other's nearly as small in one of them
    mine = y + 0.1 * np.sign(rng.normal(size=90))
    other = y + np.array([0.1, 0.5, 0.5])[fold] * np.sign(rng.normal(size=90))
    rows = [
        HeldOut(np.arange(90), fold, y, each, np.ones(90), "regression") for each in (mine, other)
    ]
    model = next(each for each in other_models() if each.name == "boosting")
    row = Row.of(CrossValidatedModel(model, rows[1], 0.0, False), rows[0])
    d = np.array(
        [r2_score(y[fold == k], mine[fold == k]) - r2_score(y[fold == k], other[fold == k])
         for k in range(3)]
    )  # fmt: skip
    half = 4.302653 * d.std(ddof=1) * np.sqrt(1 / 3 + 1 / 2)
    ends = row.behind_low, row.behind_high
    assert ends == pytest.approx((row.behind - half, row.behind + half))
    assert row.behind > 2.0 * row.behind_error
    assert row.behind_low < 0.0
    said = verdict("kernel", [row], "R²")
    assert "has the best score, but its lead of" in said
    assert "ahead" not in said
    assert Row(**row.as_json()) == row


def test_where_all_are_right_the_rule_of_three_gives_the_error() -> None:
    y, ones = np.repeat(["p", "q"], 75), np.ones(150)
    for guess in (y, y[::-1]):
        found = score(y, guess, ones, "classification")
        assert found.value == float(guess is y)
        assert 2 * found.error == pytest.approx(3 / 150)
    level = lead(y, y, y, ones, "classification")
    assert (level.value, 2 * level.error) == (0.0, pytest.approx(3 / 150))
    # rows that count twice tell less than twice as many
    assert score(y, y, ones + np.arange(150) % 2, "classification").error > found.error


def test_a_small_error_is_not_written_as_zero() -> None:
    assert str(Score(0.99991, 0.00004)) == "0.99991 ± 0.00004"
    assert Score(-0.0, 0.0).formatted(sign="+") == "+0.0000 ± 0.0000"
    assert Score(-0.0003, 0.01).formatted(3) == "0.000 ± 0.010"


@pytest.mark.parametrize("error", [1e-30, 1.1e-7, 9e-7])
def test_what_nobody_reads_has_no_digits(error: float) -> None:
    assert str(Score(0.5, error)) == "0.5000 ± 0.0000"
    assert Score(-1.2e-8, error).formatted(3, sign="+") == "+0.000 ± 0.000"
    assert Score(0.99, 1e-6).formatted(3) == "0.990000 ± 0.000001"


@pytest.mark.parametrize("width", [60, 80])
def test_a_narrow_screen_cuts_no_score(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    row = {
        "name": "boosting", "title": "HistGradientBoosting", "score": -0.7933, "error": 0.0331,
        "behind": -0.0333, "behind_error": 0.0123, "seconds": 1234.5, "cut": False, "ours": False,
        "also": {"log loss": 0.31, "AUC": 0.912345, "balanced": 0.5},
    }  # fmt: skip
    found: dict[str, Any] = {
        "measure": "accuracy", "rows": "150 rows in 2 folds", "verdict": "", "model": "evidence",
        "task": "classification", "target": "y", "data": "t.csv", "models": [row, dict(row)],
        "held_out": {"score": 0.9, "error": 0.02, "rows": "150 rows", "rare": False},
        "seconds": 1234.5, "comparison": {"rows": [row]}, "test": None, "unit": "", "rare": True,
        "half_known": "",
    }  # fmt: skip
    compare._show(found)
    fitted: Any = SimpleNamespace(
        **{name: value for name, value in found.items() if name not in ("seconds", "held_out")},
        held_out=SimpleNamespace(**found["held_out"]),
    )
    fit._show_scores(console.out(), fitted, 1234.5)
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= width
    assert "…" not in said
    assert said.count("-0.793 ± 0.033") == 3
    assert said.count("+0.033 ± 0.012") == 2
    # names, and never letters below each other
    assert "HistGradientBoosting" in said.split()


def test_classes_keep_their_shares_and_probabilities_their_order() -> None:
    rng = np.random.default_rng(0)
    y = np.array(["p"] * 30 + ["q"] * 60 + ["r"] * 3)
    fold = folds_of(y, "classification", 3, 0)
    assert [int((y[fold == k] == "p").sum()) for k in range(3)] == [10, 10, 10]
    X = pd.DataFrame({"a": rng.normal(size=93)})
    dummy = other_models()[-1]
    make = lambda: dummy.make("classification", 0)  # noqa: E731
    found = cross_predict(make, X, y, "classification", Folds(fold), np.ones(93))
    np.testing.assert_allclose(found.proba.sum(axis=1), 1.0)
    assert set(found.predicted) == {"q"}


def test_others_are_left_out_where_a_fold_learns_from_one_class(
    run: Callable, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,y", "1,yes", *(f"{i * i % 31},no" for i in range(1, 40))]))
    done = run("fit", path, "--target", "y", "--max-iter", "1")
    said = "HistGradientBoosting, tuned RBF SVM are skipped: the training rows of a fold have only"
    assert done.status == 0
    assert done.err.count(said) == 1
    assert "most frequent class" in done.out


def test_decision_values_are_held_out_where_there_are_no_probabilities() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    two = np.where(X["a"] > 0, "yes", "no")
    three = np.where(X["b"] > 1, "high", two)
    for y in (two, three):
        fold = folds_of(y, "classification", 3, 0)
        found = cross_predict(LinearSVC, X, y, "classification", Folds(fold), np.ones(60))
        assert found.proba is None
        np.testing.assert_array_equal(np.unique(y)[found.decision.argmax(axis=1)], found.predicted)
        again = HeldOut.from_json(json.loads(json.dumps(found.as_json())))
        np.testing.assert_array_equal(again.decision, found.decision)
    # a fit without a class decides nothing about it
    lonely = np.where(np.arange(60) == 0, "once", two)
    fold = np.where(np.arange(60) == 0, 0, fold)
    found = cross_predict(LinearSVC, X, lonely, "classification", Folds(fold), np.ones(60))
    assert found.proba is None
    assert found.decision is None


def test_trees_see_gaps_and_unknown_words() -> None:
    X = pd.DataFrame({"a": [1.0, None, 3.0, 4.0], "b": ["u", "v", "u", "v"]})
    encoder = ColumnEncoder(min_frequency=1).fit(X)
    new = pd.DataFrame({"a": [None, 2.0], "b": ["w", "u"]})
    numbers, codes = with_missing(encoder, new)
    np.testing.assert_array_equal(numbers, [[np.nan], [2.0]])
    np.testing.assert_array_equal(codes[:, 0], [np.nan, encoder.transform(new)[1][1, 0]])


class _Majority:
    """Stands for an estimator of a library that is not installed here."""

    def __init__(self, **settings: object) -> None:
        self.settings = settings

    def fit(self, X: object, y: object, *_: object, **__: object) -> _Majority:
        self.value = np.median(np.asarray(y))
        return self

    def predict(self, X: object) -> np.ndarray:
        return np.full(len(X), self.value)


@pytest.mark.parametrize(
    ("name", "module", "names"),
    [
        ("catboost", "catboost", ("CatBoostRegressor",)),
        ("lightgbm", "lightgbm", ("LGBMRegressor",)),
        ("xgboost", "xgboost", ("XGBRegressor",)),
    ],
)
def test_models_of_other_libraries_take_part_where_they_are_installed(
    run: Callable,
    table: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    module: str,
    names: tuple,
) -> None:
    fake = ModuleType(module)
    fake.__spec__ = ModuleSpec(module, None)
    for each in names:
        setattr(fake, each, _Majority)
    monkeypatch.setitem(sys.modules, module, fake)
    done = run("compare", table, "--target", "y", "--models", name, "baseline", "--json")
    assert {row["name"] for row in json.loads(done.out)["models"]} == {name, "baseline"}


def test_another_model_that_is_not_done_in_time_is_left_out(
    run: Callable, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "kernelweave.workbench.scoring.rbf.TunedRBF.fit", lambda *_: threading.Event().wait(60.0)
    )
    done = run(
        "compare", table, "--target", "y", "--models", "rbf", "baseline", "--max-time", "0.05"
    )
    assert "tuned RBF SVM is skipped: not done after 0.15 s" in done.err
    assert "baseline" in done.out


def test_the_rbf_machine_of_many_numbers_is_ridge_regression(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kernelweave.workbench.scoring.rbf.TUNED", 300)
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(2300, 2)), columns=["a", "b"])
    y = 2e5 + 1e4 * (np.sin(2 * X["a"]) * X["b"] + 0.1 * rng.normal(size=2300)).to_numpy()
    many = TunedRBF("regression", 0).fit(X[:2100], y[:2100])
    assert "alpha" in many._machine.get_params()
    assert r2_score(y[2100:], many.predict(X[2100:])) > 0.95


def test_a_tuned_rbf_machine_is_called_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelweave.workbench.scoring.rbf._SUPPORT", 50)
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(90, 2)), columns=["a", "b"])
    y = np.sin(2 * X["a"]).to_numpy()
    for rows, title in ((90, "tuned RBF kernel ridge"), (75, "tuned RBF SVM")):
        done = list(
            cross_validate_models(
                [each for each in other_models() if each.name == "rbf"], X[:rows], y[:rows],
                "regression", weight=np.ones(rows), folds=Folds(np.arange(rows) % 3), seed=0,
                on_failure=lambda *_: None,
            )
        )  # fmt: skip
        assert [each.model.title for each in done] == [title]


def test_a_limit_ends_a_wait_that_runs_no_python() -> None:
    waited_for = threading.Event()
    rescue = threading.Timer(20.0, waited_for.set)
    rescue.start()
    with pytest.raises(TimeoutError, match=r"not done after 0\.05 s"), ended_after(0.05):
        waited_for.wait()
    rescue.cancel()
    assert not waited_for.is_set()


@pytest.mark.parametrize("before", [signal.SIG_IGN, signal.SIG_DFL])
def test_a_limit_holds_where_a_shell_ignores_ctrl_c(before: signal.Handlers) -> None:
    kept = signal.signal(signal.SIGINT, before)
    waited = []
    try:
        with pytest.raises(TimeoutError, match=r"not done after 0\.05 s"), ended_after(0.05):
            waited.append(threading.Event().wait(20.0))
        assert signal.getsignal(signal.SIGINT) is before
    finally:
        signal.signal(signal.SIGINT, kept)
    assert waited == []


def test_a_limit_is_told_where_the_block_keeps_what_it_has() -> None:
    with (
        pytest.raises(TimeoutError, match=r"not done after 0\.05 s"),
        ended_after(0.05),
        suppress(KeyboardInterrupt),
    ):
        threading.Event().wait(20.0)


def test_off_the_main_thread_a_limit_is_told_at_the_end() -> None:
    ended = []

    def wait() -> None:
        with ended_after(0.01):
            ended.append(threading.Event().wait(0.05))

    with ThreadPoolExecutor() as pool, pytest.raises(TimeoutError, match=r"not done after 0\.01 s"):
        pool.submit(wait).result()
    assert ended == [False]


def test_ctrl_c_is_not_taken_for_a_limit() -> None:
    with pytest.raises(KeyboardInterrupt), ended_after(60.0):
        raise KeyboardInterrupt
    with ended_after(60.0):
        pass


def test_whole_groups_and_later_rows_are_held_out() -> None:
    X = pd.DataFrame({"who": np.repeat(list("abcdef"), 4), "at": np.arange(24.0)})
    y = X["at"].to_numpy() ** 2
    asked = {"y": y, "task": "regression", "n_folds": 3, "seed": 0, "weight": np.ones(24)}
    for groups in ("who", X["who"].to_numpy()):
        folds = folds_by(X, **asked, groups=groups)
        assert len(np.unique(folds.fold)) == 3
        assert (pd.Series(folds.fold).groupby(X["who"]).nunique() == 1).all()
        assert not set(X["who"][folds.training(1)]) & set(X["who"][folds.fold == 1])
    later = folds_by(X, **asked, order="at")
    assert later.fold.tolist() == [-1] * 12 + [0] * 4 + [1] * 4 + [2] * 4
    mean = next(each for each in other_models() if each.name == "baseline")
    make = lambda: mean.make("regression", 0)  # noqa: E731
    found = cross_predict(make, X, y, "regression", later, np.ones(24))
    np.testing.assert_allclose(found.predicted[::4], [y[:12].mean(), y[:16].mean(), y[:20].mean()])
    # what a group or a block has in common is one draw
    np.testing.assert_array_equal(found.groups, found.fold)


def test_errors_are_over_what_is_drawn_together() -> None:
    rng = np.random.default_rng(0)
    truth, said, other = rng.normal(size=(3, 40))
    ones, twice = np.ones(40), np.repeat(np.arange(40), 2)
    alone = score(truth, said, ones, "regression")
    copies = truth[twice], said[twice], np.ones(80), "regression"
    # of 40 draws with their mean, and not of 40 with a known one
    together, spread = score(*copies, twice), np.sqrt(40.0 / 39.0)
    assert together.value == pytest.approx(alone.value)
    assert together.error == pytest.approx(spread * alone.error)
    assert score(*copies).error == pytest.approx(alone.error / np.sqrt(2.0))
    paired = lead(truth[twice], said[twice], other[twice], np.ones(80), "regression", twice)
    each = lead(truth, said, other, ones, "regression")
    assert paired.value == pytest.approx(each.value)
    assert paired.error == pytest.approx(spread * each.error)


def test_every_model_is_without_the_groups_held_out(run: Callable, tmp_path: Path) -> None:
    rng, path = np.random.default_rng(0), tmp_path / "t.csv"
    who = np.repeat(np.arange(12), 6)
    frame = pd.DataFrame({"who": [f"w{each}" for each in who]})
    frame["a"] = rng.normal(size=72).round(2)
    frame["y"] = (5.0 * rng.normal(size=12)[who] + frame["a"]).round(3)
    frame.to_csv(path, index=False)
    options = ["compare", path, "--target", "y", "--json", "--models"]
    at_random = json.loads(run(*options, "evidence,rbf").out)["models"]
    found = json.loads(run(*options, "evidence,rbf", "--groups", "who", "--cv", "4").out)
    assert found["rows"] == "72 rows, cross-validated in 4 folds: rows of a new 'who'"
    assert min(row["score"] for row in at_random) > 0.6
    assert max(row["score"] for row in found["models"]) < 0.3
    # a column that is not learned from may name them
    dropped = json.loads(run(*options, "rbf", "--groups", "who", "--drop", "who").out)
    assert max(row["score"] for row in dropped["models"]) < 0.3


def test_of_several_groups_the_first_are_held_out(
    run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The evidence kernel is told of all, and other models of those that are held out."""
    told: list[object] = []
    fit = EvidenceKernelRegressor.fit

    @wraps(fit)
    def spied(model: Any, X: pd.DataFrame, y: Any, **more: Any) -> Any:
        told.append(more["groups"])
        return fit(model.set_params(precisions=(5.0,), max_iter=2), X, y, **more)

    monkeypatch.setattr(EvidenceKernelRegressor, "fit", spied)
    path = tmp_path / "t.csv"
    who = np.arange(32) // 4
    frame = pd.DataFrame({"who": [f"w{each}" for each in who], "where": [*"abcd"] * 8})
    frame.assign(y=np.sin(np.arange(32.0))).to_csv(path, index=False)
    options = ["compare", path, "--target", "y", "--cv", "2", "--json", "--models"]
    done = run(*options, "evidence,rbf", "--groups", "who, where")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert found["rows"] == "32 rows, cross-validated in 2 folds: rows of a new 'who'"
    assert {row["name"] for row in found["models"]} == {"evidence", "rbf"}
    assert told == [["who", "where"]] * 2
    refused = run(*options, "rbf", "--groups", "who,were")
    assert refused.status == 2
    assert "has no feature 'were'; did you mean 'where'" in refused.err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--cv", "1"], "--cv must be at least 2, group or time, got 1"),
        (["--cv", "abc"], "--cv must be a whole number, group or time, got 'abc'"),
        (["--cv", "2.5"], "--cv must be a whole number, group or time, got '2.5'"),
        (["--cv", "1000"], "--cv must be at most the number of rows, "),
        (["--max-time", "soon"], "--max-time must be a number, got 'soon'"),
        (["--max-time=-1"], "--max-time must be a number > 0, got -1"),
        (["--seed=-1"], "--seed must be an integer >= 0 and <= 4294967295, got -1"),
        (["--task", "x"], "--task must be auto, classification or regression, got 'x'"),
        (["--drop", "y"], "--drop 'y' is the target"),
        (["--categorical", "B"], "--categorical: "),
        (["--categorical", "y"], "'y' is the target: use --task to say what it is"),
        (["--cv", "group"], "--cv group needs --groups COLUMN"),
        (["--order", "A"], "has no column 'A'; did you mean 'a'?"),
        (["--order", "b"], "--order must hold numbers or dates, got 'v' in line 2"),
    ],
)
@pytest.mark.parametrize("command", ["fit", "compare"])
def test_divisions_that_contradict_are_refused(
    run: Callable, table: Path, command: str, asked: list[str], said: str
) -> None:
    assert said in run(command, table, "--target", "y", *asked).error


def test_trees_tell_more_categories_apart_than_they_have_bins() -> None:
    rng = np.random.default_rng(0)
    levels = rng.permutation(np.repeat(np.arange(400), 5))
    X = pd.DataFrame({"town": [f"t{each}" for each in levels], "b": rng.normal(size=2000)})
    y = rng.normal(size=400)[levels] + 0.1 * X["b"].to_numpy()
    trees = next(each for each in other_models() if each.name == "boosting").make("regression", 0)
    trees.fit(X[:1600], y[:1600], np.ones(1600))
    # 254 of the 400 categories hold less than this
    assert r2_score(y[1600:], trees.predict(X[1600:])) > 0.85


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_folds_within_a_kernel_machine_hold_whole_groups_out(task: str) -> None:
    ridge_mkl = pytest.importorskip("kernelweave.ridge_mkl")
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat(np.arange(6), 8))
    X = pd.DataFrame(0.3 * rng.standard_normal((48, 2)) + groups[:, None], columns=["a", "b"])
    y = rng.standard_normal(6)[groups] + 0.1 * rng.standard_normal(48)
    target = y if task == "regression" else np.where(y > np.median(y), "high", "low")
    make = partial(make_model, "ridge", task, {"lam": "cv"}, seed=0)
    weight = rng.uniform(0.5, 1.5, 48)
    model = WeightedModel(make, True, columns={"groups": "who"}).fit(X, target, weight, groups)
    # the folds are told by hand, and the scales of columns and target are those of all rows
    kind = GroupKFold if task == "regression" else StratifiedGroupKFold
    splits = list(kind(5).split(X, target, groups))
    Z = StandardScaler().fit_transform(X)
    z = (y - y.mean()) / y.std() if task == "regression" else target
    name = "RidgeMKLRegressor" if task == "regression" else "RidgeMKLClassifier"
    plain = getattr(ridge_mkl, name)(lam="cv", cv=splits).fit(Z, z, weight)
    np.testing.assert_allclose(
        kernel_machine(model).cv_results_["mean_test_score"],
        plain.cv_results_["mean_test_score"],
        rtol=0.05,
    )
    random = fit_model(make(), X, target, weight)
    means = kernel_machine(random).cv_results_["mean_test_score"]
    assert means.max() > plain.cv_results_["mean_test_score"].max() + 0.2


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_folds_within_a_kernel_machine_hold_later_rows_out(task: str) -> None:
    ridge_mkl = pytest.importorskip("kernelweave.ridge_mkl")
    rng = np.random.default_rng(0)
    order = rng.permutation(60).astype(np.float64)
    X = pd.DataFrame({"t": order, "x": rng.standard_normal(60)})
    y = np.sin(order / 3.0) + 0.1 * rng.standard_normal(60)
    target = y if task == "regression" else np.where(y > 0.0, "high", "low")
    make = partial(make_model, "ridge", task, {"lam": "cv"}, seed=0)
    model = WeightedModel(make, True).fit(X, target, np.ones(60), order=order)
    by = np.argsort(order)
    # scikit-learn's blocks of sorted rows are the oracle: 5 of the later half, 6 rows each
    splits = [(by[a], by[b]) for a, b in TimeSeriesSplit(5, test_size=6).split(by)]
    Z = StandardScaler().fit_transform(X)
    z = (y - y.mean()) / y.std() if task == "regression" else target
    name = "RidgeMKLRegressor" if task == "regression" else "RidgeMKLClassifier"
    plain = getattr(ridge_mkl, name)(lam="cv", cv=splits).fit(Z, z)
    found = kernel_machine(model).cv_results_["mean_test_score"]
    np.testing.assert_allclose(found, plain.cv_results_["mean_test_score"], rtol=0.05)
    random = kernel_machine(fit_model(make(), X, target, np.ones(60)))
    assert random.cv_results_["mean_test_score"].max() > found.max() + 0.1
