"""Metrics are scikit-learn's, whatever model they judge, and baselines get what they need."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernelweave.workbench.errors import CommandError
from kernelweave.workbench.scoring.comparison import Row, verdict
from kernelweave.workbench.scoring.held_out import HeldOut
from kernelweave.workbench.scoring.metrics import Metric, also_scored, check_metric
from kernelweave.workbench.scoring.other_models import other_models
from kernelweave.workbench.scoring.rbf import TunedRBF
from sklearn import metrics


def classes(n: int, labels: tuple[str, ...], noise: float, seed: int = 0) -> HeldOut:
    """Return predictions of labels with probabilities, in three folds."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, len(labels), n)
    logits = np.eye(len(labels))[codes] + noise * rng.normal(size=(n, len(labels)))
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    names = np.array(labels)
    return HeldOut(
        np.arange(n), np.arange(n) % 3, names[codes], names[proba.argmax(axis=1)], np.ones(n),
        "classification", proba, labels=names,
    )  # fmt: skip


def numbers(n: int, noise: float, seed: int = 0) -> HeldOut:
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    predicted = y + noise * rng.normal(size=n)
    return HeldOut(np.arange(n), np.arange(n) % 3, y, predicted, np.ones(n), "regression")


def test_values_are_those_of_scikit_learn() -> None:
    two, three = classes(150, ("no", "yes"), 1.0), classes(150, ("a", "b", "c"), 1.0)
    share = two.proba[:, 1]
    assert Metric("roc_auc").value(two) == metrics.roc_auc_score(two.truth == "yes", share)
    assert Metric("neg_log_loss").value(three) == pytest.approx(
        -metrics.log_loss(three.truth, three.proba)
    )
    assert Metric("f1_macro").value(three) == metrics.f1_score(
        three.truth, three.predicted, average="macro"
    )
    with pytest.raises(ValueError, match="neg_log_loss needs probabilities"):
        Metric("neg_log_loss").value(replace(two, proba=None))
    weighted = replace(numbers(90, 0.3), weight=np.arange(90.0))
    assert Metric("neg_mean_absolute_error").value(weighted) == pytest.approx(
        -metrics.mean_absolute_error(weighted.truth, weighted.predicted, sample_weight=range(90))
    )
    # without a name the measures whose errors are known in closed form
    assert Metric().value(weighted) == pytest.approx(Metric("r2").value(weighted))
    assert Metric().value(two) == pytest.approx(Metric("accuracy").value(two))


def test_what_people_ask_for_beside_the_score() -> None:
    rows, two = numbers(80, 0.5), classes(120, ("no", "yes"), 1.0)
    assert also_scored(rows) == pytest.approx(
        {
            "RMSE": metrics.root_mean_squared_error(rows.truth, rows.predicted),
            "MAE": metrics.mean_absolute_error(rows.truth, rows.predicted),
        }
    )
    assert also_scored(two) == pytest.approx(
        {
            "log loss": metrics.log_loss(two.truth, two.proba),
            "AUC": metrics.roc_auc_score(two.truth == "yes", two.proba[:, 1]),
            "balanced": metrics.balanced_accuracy_score(two.truth, two.predicted),
        }
    )
    by_decision = replace(two, proba=None, decision=np.log(two.proba))
    assert also_scored(by_decision)["AUC"] == pytest.approx(also_scored(two)["AUC"])
    assert set(also_scored(replace(two, proba=None))) == {"balanced"}


@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_answers_all_rows_of_a_fold_alike_ranks_none(n_classes: int) -> None:
    """Each fold gives the shares of its own training rows, which rank rows of other folds."""
    rows = classes(90, ("a", "b", "c")[:n_classes], 1.0)
    shares = [
        np.mean(rows.truth[rows.fold != k][:, None] == rows.classes, axis=0) for k in range(3)
    ]
    constant = replace(rows, proba=np.stack(shares)[rows.fold])
    assert also_scored(constant)["AUC"] == 0.5
    # not where one row of a fold stands above the others
    proba = constant.proba.copy()
    proba[0] = proba[1]
    assert also_scored(replace(constant, proba=proba))["AUC"] != 0.5


def test_an_error_is_the_spread_over_samples() -> None:
    """Of the mean absolute error: the standard deviation of |residual| over √n; of a lead too."""
    rows, metric = numbers(400, 0.5), Metric("neg_mean_absolute_error")
    away = np.abs(rows.truth - rows.predicted)
    assert metric.score(rows).error == pytest.approx(away.std() / 20.0, rel=0.15)
    worse = replace(rows, predicted=rows.truth + 1.5 * (rows.predicted - rows.truth))
    ahead = metric.lead(rows, worse)
    assert ahead.value == pytest.approx(0.5 * away.mean())
    assert ahead.error == pytest.approx(0.5 * away.std() / 20.0, rel=0.15)
    low, high = metric.lead_over_folds(rows, worse)
    assert low < ahead.value < high


@pytest.mark.parametrize(
    ("name", "y", "task", "said"),
    [
        ("rocauc", ["a", "b"], "classification", "did you mean 'roc_auc'"),
        ("f1", ["a", "b"], "classification", "f1_macro suits classes of any name"),
        ("average_precision", ["a", "b"], "classification", "['a' 'b']"),
        ("roc_auc", [1.0, 2.5, 3.5], "regression", "does not suit this target (regression)"),
        ("accuracy", [1.0, 2.0, 3.0], "regression", "; the metrics that suit it are 'd2_"),
        ("neg_mean_squared_log_error", [-1.0, 2.0], "regression", "does not suit this target"),
    ],
)
def test_a_metric_that_does_not_suit_is_refused_before_the_fit(
    name: str, y: list, task: str, said: str
) -> None:
    with pytest.raises(CommandError) as caught:
        check_metric(name, np.array(y * 3), task)
    assert said in str(caught.value)


@pytest.fixture
def rare(tmp_path: Path) -> Path:
    rng, path = np.random.default_rng(0), tmp_path / "rare.csv"
    frame = pd.DataFrame(rng.normal(size=(150, 2)), columns=["a", "b"])
    frame["y"] = np.where(frame["a"] + 0.5 * rng.normal(size=150) > 1.2, "ill", "well")
    frame.to_csv(path, index=False)
    return path


def test_a_fit_is_judged_by_the_metric(run: Callable, rare: Path, tmp_path: Path) -> None:
    asked = ["fit", rare, "--target", "y", "--max-iter", "5", "--metric", "roc_auc"]
    model, others = tmp_path / "m", tmp_path / "others.csv"
    pd.read_csv(rare).assign(b=lambda frame: frame["b"] + 0.01).to_csv(others, index=False)
    found = json.loads(run(*asked, "--out", model, "--test", others, "--json").out)
    assert found["measure"] == "roc_auc"
    assert found["held_out"]["score"] == pytest.approx(found["held_out"]["also"]["AUC"])
    for row in found["comparison"]["rows"]:
        assert row["score"] == pytest.approx(row["also"]["AUC"])
        assert row["behind"] == pytest.approx(found["held_out"]["score"] - row["score"])
    assert found["test"]["score"] == pytest.approx(found["test"]["also"]["AUC"])
    assert "rows of" in found["certificate"]
    assert "roc_auc" in found["certificate"]


def test_models_that_a_metric_cannot_judge_are_one_note(run: Callable, rare: Path) -> None:
    """Some classes have decision values only; where a metric takes neither, a note says so."""
    pytest.importorskip("kernelweave.baselines")
    said = run("compare", rare, "--target", "y", "--models", "rbf", "cka", "baseline", "--metric",
               "neg_log_loss")  # fmt: skip
    assert "tuned RBF SVM, CKA are skipped: neg_log_loss needs probabilities\n" in said.err
    wrong = run("fit", rare, "--target", "y", "--metric", "r2").error
    assert "could not convert string to float: '" in wrong
    assert "neg_log_loss on 150 rows" in said.out


def test_of_a_rare_class_what_matters_stands_first(run: Callable, rare: Path) -> None:
    lines = run("fit", rare, "--target", "y", "--max-iter", "5", "--no-compare").out.splitlines()
    head = next(line.split() for line in lines if "AUC" in line)
    assert head == ["log", "loss", "AUC", "balanced", "accuracy", "seconds"]


def test_errors_stand_in_the_unit_of_the_target(run: Callable, tmp_path: Path) -> None:
    rng, path = np.random.default_rng(0), tmp_path / "t.csv"
    a = rng.normal(size=60)
    frame = pd.DataFrame({"a": a, "cost": [f"{20 + 5 * each:.2f} kg" for each in a]})
    frame.to_csv(path, index=False)
    said = run("fit", path, "--target", "cost", "--max-iter", "5", "--no-compare").out
    assert "RMSE [kg]" in said


def test_a_column_of_many_categories_does_not_blind_the_rbf_machine() -> None:
    """120 categories of five rows each, one-hot, are a machine without anything to learn from."""
    rng = np.random.default_rng(0)
    code = np.repeat(np.arange(120), 5)
    X = pd.DataFrame({"town": [f"t{each}" for each in code], "a": rng.normal(size=600)})
    y = rng.normal(size=120)[code] + 0.2 * rng.normal(size=600)
    test = np.arange(600) % 5 == 0
    model = TunedRBF("regression", 0).fit(X[~test], y[~test])
    assert metrics.r2_score(y[test], model.predict(X[test])) > 0.7


def test_a_baseline_that_learned_nothing_is_not_called_beaten() -> None:
    rows = [
        Row("rbf", "tuned RBF SVM", 0.0, 0.01, 0.5, 0.01, 300, learned=False),
        Row("baseline", "mean", 0.0, 0.01, 0.5, 0.01, 300),
    ]
    said = verdict("kernel", rows, "R²")
    assert said == "No other model is significantly better than a constant prediction."
    trees = Row("boosting", "Trees", 0.4, 0.01, 0.1, 0.01, 300)
    assert "the next is Trees" in verdict("kernel", [*rows, trees], "R²")
    names = [each.name for each in other_models()]
    assert names[-1] == "baseline"
