"""From a table to a model to predictions, on the command line."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import EvidenceKernelClassifier
from kernelweave.spectahedron import TessellatedKernelRegressor
from kernelweave.workbench import load_model
from kernelweave.workbench.choices import Choices
from kernelweave.workbench.machines import kernel_machine
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.preprocessing import StandardScaler

SPARSE = (
    "it belongs to --model sparse"
    if find_spec("kernelweave.mkl_sparse")
    else "no installed model has this parameter"
)


@pytest.fixture(scope="module")
def csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The irises as a file, with the species in words."""
    bunch = load_iris(as_frame=True)
    frame = bunch.frame.rename(columns={"target": "species"})
    frame["species"] = bunch.target_names[frame["species"]]
    path = tmp_path_factory.mktemp("data") / "iris.csv"
    frame.to_csv(path, index=False)
    return path


QUICK = ("--max-iter", "5")


def test_fit_and_predict_are_what_the_estimator_does(
    run: Callable, csv: Path, tmp_path: Path
) -> None:
    model, predictions = tmp_path / "model", tmp_path / "predictions.csv"
    done = run("fit", csv, "--target", "species", *QUICK, "--no-compare", "--out", model)
    assert done.status == 0, done.err
    assert done.said == ""
    assert "warning: --max-iter of 5 ended 4 of 5 searches of the scales" in done.err
    # it stands among the details of the fit
    assert "not a proof" not in " ".join(done.out.split())
    assert "classification of species (the target is text, 3 classes)" in done.out
    assert "accuracy on 147 rows" in done.out or "accuracy on 150 rows" in done.out

    assert run("predict", model, csv, "--out", predictions).out == ""
    X, y = load_iris(return_X_y=True)
    own = EvidenceKernelClassifier(max_iter=5).fit(X, load_iris().target_names[y])
    written = pd.read_csv(predictions)
    assert list(written.columns) == ["prediction"]
    np.testing.assert_array_equal(written["prediction"], own.predict(X))
    assert f"{own.held_out_score_:.3f} ± " in done.out

    printed = run("predict", model, "iris")
    assert printed.out == predictions.read_text()
    assert run("predict", model, csv, "--out", predictions).error.endswith("choose another name")
    assert json.loads(run("predict", model, "iris", "--json").out) == own.predict(X).tolist()
    told = run("predict", model, "iris", "--out", predictions, "--force", "--json").out
    assert json.loads(told) == {"predictions": str(predictions), "n_rows": 150}


def test_intervals_and_probabilities(run: Callable, csv: Path, tmp_path: Path) -> None:
    model, prices = tmp_path / "model", tmp_path / "prices.csv"
    run("fit", csv, "--target", "species", *QUICK, "--no-compare", "--out", model)
    frame = pd.read_csv(io.StringIO(run("predict", model, csv, "--proba").out))
    names = ["setosa", "versicolor", "virginica"]
    assert list(frame.columns) == ["prediction", *(f"proba_{name}" for name in names)]
    shares = frame.iloc[:, 1:].to_numpy()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert frame["prediction"].tolist() == [names[k] for k in shares.argmax(axis=1)]
    rows = json.loads(run("predict", model, csv, "--proba", "--json").out)
    assert rows == frame.to_dict("records")
    assert "has no intervals: regression" in run("predict", model, csv, "--interval", "0.9").error
    assert "has no quantiles: regr" in run("predict", model, csv, "--quantiles", "0.9").error
    sets = pd.read_csv(io.StringIO(run("predict", model, csv, "--set", "0.99").out))
    each = [row.split("|") for row in sets["set"]]
    assert all(best in own for best, own in zip(sets["prediction"], each, strict=True))
    assert {name for own in each for name in own} <= set(names)
    listed = json.loads(run("predict", model, csv, "--set", "0.99", "--json").out)
    assert [row["set"] for row in listed] == each

    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X.assign(y=y).iloc[:100].to_csv(prices, index=False)
    run("fit", prices, "--target", "y", *QUICK, "--no-compare", "--out", model, "--force")
    for option in ("--interval", "--set"):
        refused = run("predict", model, prices, option, "90").error
        assert refused == f"{option} must be between 0 and 1, such as 0.9, got 90"
    endless = run("predict", model, prices, "--quantiles", ".9999")
    assert "too few for this level, so some ends are infinite" in endless.err
    assert "inf" in endless.out
    assert "has no sets: classification" in run("predict", model, prices, "--set", "0.9").error
    X.assign(y=y, bmi=["much", *X.bmi[1:]]).iloc[:100].to_csv(prices, index=False)
    done = run("predict", model, prices, "--interval", "0.8")
    assert done.err.count("1 of 100 rows holds text, such as 'much' in line 2") == 1
    frame = pd.read_csv(io.StringIO(done.out))
    assert list(frame.columns) == ["prediction", "low", "high"]
    asked = run("predict", model, prices, "--quantiles", ".1,.5,.9")
    quantiles = pd.read_csv(io.StringIO(asked.out))
    assert list(quantiles.columns)[1:] == ["quantile_0.1", "quantile_0.5", "quantile_0.9"]
    assert (np.diff(quantiles.to_numpy()[:, 1:], axis=1) >= 0).all()
    for wrong in (".1,x", "10,90", "1"):
        refused = run("predict", model, prices, "--quantiles", wrong).error
        assert f"between 0 and 1, as in .1,.5,.9, got {wrong}" in refused
    assert np.mean((frame["low"] <= y[:100]) & (y[:100] <= frame["high"])) > 0.7


def test_reasons_are_the_strongest_columns_of_each_row(
    run: Callable, csv: Path, tmp_path: Path
) -> None:
    model, prices = tmp_path / "model", tmp_path / "prices.csv"
    run("fit", csv, "--target", "species", *QUICK, "--no-compare", "--out", model)
    frame = pd.read_csv(io.StringIO(run("predict", model, csv, "--explain", "2").out))
    assert list(frame.columns) == ["prediction", "reason_1", "reason_2"]
    # every flower is likelier of its own class for what is most unlike the mean flower
    for row in (0, 75, 149):
        assert re.fullmatch(r"petal (length|width) \(cm\) = [\d.]+: \+0\.\d+", frame.reason_1[row])

    state = np.random.default_rng(0)
    X = pd.DataFrame(state.normal(size=(60, 3)).round(2), columns=list("abc"))
    X.assign(y=10 * X.a - 3 * X.b).to_csv(prices, index=False)
    run("fit", prices, "--target", "y", *QUICK, "--no-compare", "--out", model, "--force")
    done = run("predict", model, prices, "--explain", "5", "--json")
    assert "--explain 5: the model has 3 columns" in done.err
    rows = json.loads(done.out)
    first = X.iloc[0]
    assert rows[0]["reason_1"].startswith(f"a = {first.a:g}: ")
    change = float(rows[0]["reason_1"].rpartition(" ")[2].replace("−", "-"))
    assert change == pytest.approx(10 * (first.a - X.a.mean()), rel=0.1)
    assert list(rows[0]) == ["prediction", "reason_1", "reason_2", "reason_3"]
    assert run("predict", model, prices, "--explain", "0").error.startswith("--explain must be")
    run("fit", prices, "--target", "y", "--model", "tkl", "--no-compare", "--out", model, "--force")
    assert "has no reasons for its" in run("predict", model, prices, "--explain", "1").error


@pytest.mark.parametrize(("task", "answer"), [("classification", "class"), ("regression", "mean")])
def test_noise_is_said_to_be_noise(run: Callable, tmp_path: Path, task: str, answer: str) -> None:
    rng, path = np.random.default_rng(0), tmp_path / "noise.csv"
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    frame["y"] = rng.integers(0, 2, 60) if task == "classification" else rng.normal(size=60)
    frame.to_csv(path, index=False)
    said = run("fit", path, "--target", "y", *QUICK, "--no-compare").out
    assert f"{answer} (0." in " ".join(said.split())
    assert "no better than the" in " ".join(said.split())


def test_other_models_learn_probabilities_where_asked_to(
    run: Callable, csv: Path, tmp_path: Path
) -> None:
    pytest.importorskip("kernelweave.baselines")
    model = tmp_path / "model"
    options = ["--target", "species", "--model", "average", "--no-compare", "--out", model]
    run("fit", csv, *options)
    assert (
        "fitted with --set probability=true, has them"
        in run("predict", model, csv, "--proba").error
    )
    run("fit", csv, *options, "--set", "probability=true", "--force")
    frame = pd.read_csv(io.StringIO(run("predict", model, csv, "--proba").out))
    np.testing.assert_allclose(frame.iloc[:, 1:].sum(axis=1), 1.0)
    wrong = run("fit", csv, "--target", "0", "--model", "ridge", "--set", "probability=true").error
    assert "--set probability is for classification" in wrong


def test_other_models_are_scored_on_folds_too(run: Callable, tmp_path: Path) -> None:
    """Prices: the target is learned in units of its spread, whatever its size."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    path, model = tmp_path / "prices.csv", tmp_path / "model"
    X.iloc[:150, [2, 3, 8]].assign(price=200_000 + 50_000 * y).to_csv(path, index=False)
    options = ["--model", "tkl", "--tol", "0.1", "--set", "degree=0", "--no-compare", "--cv", "2"]
    found = json.loads(
        run("fit", path, "--target", "price", *options, "--out", model, "--json").out
    )
    assert found["task"] == "regression"
    assert found["lower_bound"] <= found["upper_bound"]
    assert found["gap"] <= 0.1
    assert found["file"] == str(model)
    assert 0.1 < found["held_out"]["score"] < 0.7
    assert found["held_out"]["rows"].startswith("150 rows, cross-validated in 2 folds")
    own = TransformedTargetRegressor(
        TessellatedKernelRegressor(tol=0.1, degree=0, random_state=0), transformer=StandardScaler()
    )
    frame = pd.read_csv(path)
    own.fit(frame.iloc[:, :3], frame["price"])
    lines = run("predict", model, path).out.splitlines()
    assert lines[0] == "prediction"
    np.testing.assert_array_equal(
        [float(line) for line in lines[1:]], own.predict(frame.iloc[:, :3])
    )


def test_others_are_scored_on_the_same_rows(run: Callable) -> None:
    found = json.loads(run("fit", "iris", *QUICK, "--json").out)
    names = [row["name"] for row in found["comparison"]["rows"]]
    assert names == ["rbf", "boosting", "baseline"]
    for row in found["comparison"]["rows"]:
        assert row["behind"] == pytest.approx(found["held_out"]["score"] - row["score"])
        assert row["seconds"] > 0
    assert found["comparison"]["rows"][-1]["score"] == pytest.approx(1 / 3, abs=0.02)
    assert found["verdict"]


def test_the_scores_of_a_fit_stand_in_lines_of_their_own(run: Callable) -> None:
    lines = run("fit", "iris", *QUICK).out.splitlines()
    head = next(at for at, line in enumerate(lines) if line.split()[-1:] == ["difference"])
    assert [line.count("±") for line in lines[head + 1 : head + 5]] == [1, 2, 2, 2]
    assert max(map(len, lines)) <= 80


def test_labels_that_mean_nothing_are_said_to(run: Callable, tmp_path: Path) -> None:
    rng, path = np.random.default_rng(0), tmp_path / "t.csv"
    frame = pd.DataFrame(rng.normal(size=(80, 3)), columns=["a", "b", "c"])
    frame.assign(y=rng.choice(["p", "q"], 80)).to_csv(path, index=False)
    done = run("fit", path, "--target", "y", *QUICK)
    assert "is not significantly better than always predicting the most frequent class" in " ".join(
        done.out.split()
    )


def test_another_file_is_scored(run: Callable, csv: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(csv)
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    frame[::2].to_csv(train, index=False)
    frame[1::2].to_csv(test, index=False)
    options = ["--target", "species", *QUICK, "--no-compare", "--test", test]
    model = tmp_path / "model.kw"
    found = json.loads(run("fit", train, *options, "--out", model, "--json").out)
    assert found["test"]["rows"] == 75
    assert found["test"]["score"] > 0.9
    said = run("fit", train, *options).out
    assert "Test accuracy" in said
    # the sets that the command predicts hold as many labels as it says
    sets = pd.read_csv(io.StringIO(run("predict", model, test, "--set", "0.9").out))["set"]
    held = [
        label in row.split("|") for label, row in zip(frame["species"][1::2], sets, strict=True)
    ]
    level, _ = found["test"]["coverage"]
    assert (level["level"], level["share"]) == (0.9, np.mean(held))
    rows = found["test"]["by_class"]["classes"]
    assert [each["n_rows"] for each in rows] == [25, 25, 25]
    assert sum(each["held"] for each in rows) == sum(held)
    words = f"{np.mean(held):.1%} of the targets are in their 90 % sets of classes"
    assert words in " ".join(said.split())


def test_another_file_may_lack_what_the_model_does_not_use(run: Callable, tmp_path: Path) -> None:
    rng, train, test = np.random.default_rng(0), tmp_path / "train.csv", tmp_path / "test.csv"
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    frame["y"] = frame.a + frame.b
    frame.to_csv(test, index=False)
    options = ["fit", train, "--target", "y", *QUICK, "--no-compare", "--test", test]
    for more in ([], ["--weights", "n"]):
        # a copy of a column is left out
        extra = frame.assign(n=np.arange(60) % 3) if more else frame.assign(copy=frame.a)
        extra.to_csv(train, index=False)
        done = run(*options, *more)
        assert "Test R²" in done.out, done.err
    coverage = json.loads(run(*options, *more, "--json").out)["test"]["coverage"]
    assert [each["level"] for each in coverage] == [0.5, 0.8, 0.9, 0.95]
    # sixty rows are quarters of fifteen, too few to be told of
    assert all(each["share"] > 0.4 and each["where"] == "" for each in coverage)
    frame.assign(copy=frame.a).to_csv(train, index=False)
    frame.drop(columns="a").to_csv(test, index=False)
    assert "lacks 1 of the 2 columns that the model uses: 'a'" in run(*options).error


@pytest.mark.parametrize(
    ("species", "reason"),
    [
        (
            ["setosa", "virginica", "rosa"],
            "the model has no class 'rosa'; its classes are 'setosa', ",
        ),
    ],
)
def test_a_test_file_that_cannot_be_scored_costs_no_model(
    run: Callable, csv: Path, tmp_path: Path, species: list[str], reason: str
) -> None:
    test, plain, model = tmp_path / "test.csv", tmp_path / "plain", tmp_path / "model"
    pd.read_csv(csv)[:3].assign(species=species).to_csv(test, index=False)
    options = ["fit", csv, "--target", "species", *QUICK, "--no-compare", "--json"]
    without = json.loads(run(*options, "--out", plain).out)
    done = run(*options, "--test", test, "--out", model)
    assert done.status == 0
    assert f"kernelweave: note: --test {test} is not scored: " in done.err
    found = json.loads(done.out)
    assert found["test"] is None
    (said,) = (each for each in found["notes"] if "is not scored" in each)
    assert said.startswith(f"--test {test} is not scored: {reason}")
    assert found["certificate"] == without["certificate"]
    assert model.read_bytes() == plain.read_bytes()


def test_classes_may_be_numbers_with_decimals(run: Callable, tmp_path: Path) -> None:
    rng, path, model = np.random.default_rng(0), tmp_path / "t.csv", tmp_path / "m"
    frame = pd.DataFrame({"a": rng.normal(size=60)})
    frame.assign(y=np.where(frame.a > 0.0, "1,5", "2,5")).to_csv(path, index=False)
    done = run("fit", path, "--target", "y", *QUICK, "--no-compare", "--out", model)
    assert "classification of y (the target has two distinct values)" in done.out
    assert set(run("predict", model, path).out.split()[1:]) == {"1.5", "2.5"}
    assert run("report", model, path).status == 0


def test_weights_of_rows_and_classes(run: Callable, csv: Path, tmp_path: Path) -> None:
    frame, path, model = pd.read_csv(csv), tmp_path / "t.csv", tmp_path / "m"
    frame["n"] = np.arange(150) % 3
    frame.to_csv(path, index=False)
    options = ["--target", "species", *QUICK, "--no-compare"]
    done = run("fit", path, *options, "--weights", "n", "--out", model)
    X, y = frame.iloc[:, :4], frame["species"]
    own = EvidenceKernelClassifier(max_iter=5).fit(X, y, sample_weight=frame["n"])
    assert run("predict", model, csv).out.split()[1:] == own.predict(X).tolist()
    assert f"{own.held_out_score_:.3f} ± " in done.out
    found = json.loads(run("fit", path, *options, "--class-weight", "balanced", "--json").out)
    assert found["measure"] == "class-weighted accuracy"
    frame.assign(n=-1).to_csv(path, index=False)
    said = run("fit", path, *options, "--weights", "n").error
    assert "weights must be >= 0, not all 0, got -1 in line 2" in said
    lacking = run("fit", path, *options, "--weights", "nn").error
    assert "--weights: " in lacking
    assert "did you mean 'n'" in lacking


def test_dropping_columns_and_counting_them(run: Callable, csv: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    drop = ["--drop", "petal width (cm)", "--drop", "petal length (cm)"]
    every = [*drop, "--drop", "sepal width (cm)", "--drop", "sepal length (cm)"]
    refused = run("fit", csv, "--target", "species", *every).error
    assert "has no column but the target 'species' without those of --drop" in refused
    options = [*drop, *QUICK, "--no-compare", "--out", model, "--json"]
    assert json.loads(run("fit", csv, "--target", "4", *options).out)["n_features"] == 2
    lacking = tmp_path / "sepals.csv"
    pd.read_csv(csv).iloc[:, :2].to_csv(lacking, index=False)
    assert run("predict", model, lacking).status == 0
    assert "has no column 'petal'" in run("fit", csv, "--target", "4", "--drop", "petal").error
    assert "is the target" in run("fit", csv, "--target", "4", "--drop", "species").error


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--set", "C=-1"], "C must be"),
        (["--seed", "-1"], "--seed"),
        (["--set", "random_state=1"], "--set random_state is not for the command: use --seed"),
        (["--views", "no.toml"], "--views no.toml: No such file or directory"),
        (["--set", "C=0"], "C must be"),
        (["--set", "C=nan"], "C must be"),
        (["--tol", "-1"], "tol must be"),
        (["--max-iter", "-3"], "--max-iter must be"),
        (["--max-time", "0"], "--max-time must be"),
        (["--set", "degree=-1"], "degree must be"),
        (["--set", "delta=nan"], "delta must be"),
        (["--set", "epsilon=1"], "--set epsilon is for regression"),
        (["--algorithm", "tkl-frank"], "'tkl-frank-wolfe'?"),
        (["--set", "k0=2"], f"--model tkl has no --set k0: {SPARSE}"),
        (["--model", "evidence", "--set", "C=1"], "--model evidence has no --set C"),
        (["--cv", "1"], "--cv must be at least 2"),
        (["--model", "evidence", "--set", "probability=false"], "--set probability must be true"),
        (["--metric", "roc_auc"], "did you mean 'roc_auc_ovr'"),
        (["--set", "n_landmarks=auto"], "--model tkl has no --set n_landmarks"),
        (["--out", "no/model"], "there is no folder no"),
    ],
)
def test_options_that_make_no_sense(run: Callable, options: list[str], said: str) -> None:
    model = [] if "--algorithm" in options or "--model" in options else ["--model", "tkl"]
    assert said in run("fit", "iris", *model, *options).error


@pytest.mark.parametrize(
    ("changed", "options", "said"),
    [
        (
            {"y": 1e200},
            [],
            "column 'y', line 5: the value is 1e+200, too large: give at most 1e+50",
        ),
        (
            {"t": ""},
            ["--order", "t"],
            "a value of --order is missing in line 5 of column 't': say when it was",
        ),
        ({"t": "?x"}, ["--order", "t"], "must hold numbers or dates, got '?x' in line 5"),
        ({}, ["--groups", "g"], "--groups 'g' is 'one' in every row: at least two groups"),
        ({}, ["--groups", "g", "--drop", "g"], "--groups 'g' is 'one' in every row"),
        ({}, ["--weights", "w"], "the target 'y' is 9 in every row that counts"),
        ({}, ["--out", "x" * 252], "File name too long"),
    ],
)
def test_what_is_wrong_with_a_column_names_it(
    run: Callable, tmp_path: Path, changed: dict, options: list[str], said: str
) -> None:
    """Cells that other rows or columns make right are called by their line, before any fit."""
    path = tmp_path / "t.csv"
    frame = pd.DataFrame(
        {"a": np.arange(30.0) ** 0.5, "y": np.r_[np.arange(10), 20 * [9]], "g": "one"}
    )
    frame["t"] = pd.date_range("2024-01-01", periods=30).astype(str)
    frame["w"] = np.r_[np.zeros(10), np.ones(20)]
    frame = frame.astype(object)
    for name, cell in changed.items():
        frame.loc[3, name] = cell
    frame.to_csv(path, index=False)
    done = run("fit", path, "--target", "y", *options)
    assert done.status == 2
    assert said in done.err.splitlines()[-1]


def test_ctrl_c_after_the_fit_keeps_the_model(
    run: Callable, csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kernelweave.workbench.fitting.importance_of", stop)
    model = tmp_path / "model"
    done = run("fit", csv, "--target", "species", *QUICK, "--no-compare", "--out", model)
    assert done.status == 130
    assert f"interrupted; the best model so far is in {model}" in done.err
    assert run("report", model).status == 0


def test_two_rows_have_one_baseline(run: Callable, tmp_path: Path) -> None:
    """The last sentence names the score that the table of models shows."""
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,p\n2,q\n")
    done = " ".join(run("fit", path, "--target", "y", *QUICK).out.split())
    assert "most frequent class 0.000" in done
    assert "no better than the most frequent class (0.000)" in done


def test_an_existing_model_is_refused_before_the_work(
    run: Callable, csv: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    model.write_text("precious")
    refused = run("fit", "no such data", "--out", model).error
    assert refused == f"{model} exists: add --force to overwrite it, or choose another name"
    for tokens in (("fit", model), ("predict", "no model", model), ("predict", model, "iris")):
        said = run(*tokens, "--out", model, "--force").error
        assert said == f"{model} is read from, and would be lost: choose another name"
    same = ("--predictions", tmp_path / ".." / tmp_path.name / "model", "--force")
    assert "is written twice" in run("fit", "iris", "--out", model, *same).error
    assert model.read_text() == "precious"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not a model"),
        (b"PK\x03\x04 and so on", "damaged"),
        (b"\x80\x04.", "is not a model"),
    ],
)
def test_bad_models_are_one_sentence(
    run: Callable, csv: Path, tmp_path: Path, content: bytes, said: str
) -> None:
    model, out = tmp_path / "model", tmp_path / "out.csv"
    model.write_bytes(content)
    out.write_text("precious")
    done = run("predict", model, csv, "--out", out, "--force")
    assert said in done.error
    assert out.read_text() == "precious"


def test_stopping_early_is_said_in_one_line(run: Callable) -> None:
    options = ["--algorithm", "tkl-frank-wolfe", "--max-iter", "1", "--no-compare"]
    done = run("fit", "wine", *options)
    assert done.status == 0
    first = done.said.splitlines()[0]
    assert first.startswith("kernelweave: warning: tkl-")
    assert "--max-iter was reached" in first


def test_options_reach_the_estimator() -> None:
    settings = {"C": 3.0, "tol": 0.1, "max_iter": 7, "max_time": 2.0, "degree": 2, "delta": 0.1}
    name, make = Choices("tkl", settings | {"k0": None}, seed=5).maker("regression")
    params = kernel_machine(make()).get_params()
    assert name == "tkl"
    assert settings.items() <= params.items()
    assert params["random_state"] == 5
    name, make = Choices(cv=4).maker("regression")
    assert (name, make().n_folds) == ("evidence", 4)


def test_levels_of_a_file_reach_the_estimator(run: Callable, csv: Path, tmp_path: Path) -> None:
    levels = ["versicolor", "setosa", "virginica"]
    frame, table, model = pd.read_csv(csv), tmp_path / "irises.parquet", tmp_path / "model"
    frame["species"] = pd.Categorical(frame["species"], levels, ordered=True)
    frame.to_parquet(table)
    options = ["--target", "species", "--out", model, "--no-compare"]
    done = run("fit", table, *options, *QUICK)
    assert done.status == 0, done.err
    assert "3 classes: versicolor < setosa < virginica" in " ".join(done.out.split())
    assert kernel_machine(load_model(model).estimator).levels_.tolist() == levels
    # what the user says comes first, and is all that a file of text has
    assert (
        Choices(settings={"levels": levels[::-1]}).maker("classification", levels)[1]().levels
        == (levels[::-1])
    )
    asked = ["--set", f"levels={levels}", "--force"]
    assert run("fit", csv, *options, *QUICK, *asked).status == 0
    assert kernel_machine(load_model(model).estimator).levels_.tolist() == levels


def test_an_algorithm_over_kernels_runs_behind_a_scaler(run: Callable, csv: Path) -> None:
    pytest.importorskip("kernelweave_template")
    options = ["--target", "species", "--algorithm", "template-exponentiated-gradient"]
    options += ["--no-compare"]
    found = json.loads(run("fit", csv, *options, "--tol", "0.05", "--json").out)
    assert found["estimator"] == "KernelLearningClassifier"
    assert found["held_out"]["score"] > 0.9
    assert "has no --set degree" in run("fit", csv, *options, "--set", "degree=2").error


def test_no_bar_in_a_pipe_and_csv_from_standard_input(shell: Callable, csv: Path) -> None:
    options = ["--target", "species", *QUICK, "--no-compare"]
    done = shell("fit", "-", *options, stdin=csv.read_bytes())
    assert done.status == 0, done.err
    assert done.said == ""
    assert "\x1b" not in done.out
    assert "standard input: 150 rows" in done.out


def test_a_bar_on_a_terminal(tmp_path: Path) -> None:
    host, terminal = pty.openpty()
    command = [sys.executable, "-m", "kernelweave.workbench", "fit", "wine"]
    command += ["--algorithm", "tkl-frank-wolfe", "--max-iter", "20", "--no-compare"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=terminal, env=environment, cwd=tmp_path
    ) as process:
        os.close(terminal)
        said = _read_all(host)
        assert process.wait() == 0
    assert b"fitting 178 rows" in said
    assert b"iteration" in said
    assert b"gap" in said


def _read_all(handle: int) -> bytes:
    """Return what is said until the other end is closed."""
    said = b""
    while True:
        try:
            chunk = os.read(handle, 65536)
        except OSError:
            break
        if not chunk:
            break
        said += chunk
    os.close(handle)
    return said


def test_no_column_is_called_strong_for_nothing() -> None:
    from kernelweave.workbench.commands.fit import _strongest

    worth = {"a": (0.4, 0.1), "b": (0.0004, 0.0001), "c": (0.1, 0.2)}
    rows = [
        {"name": name, "value": value, "error": error} for name, (value, error) in worth.items()
    ]
    assert _strongest(rows) == "a (0.400)"


def test_a_profile_that_fails_costs_no_model(
    run: Callable, csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a column holds and what it is worth are notes; the model is saved before them."""

    def broken(*_: object, **__: object) -> None:
        raise ValueError("no format for column None")

    model = tmp_path / "model"
    monkeypatch.setattr("kernelweave.workbench.models.model.extent", broken)
    monkeypatch.setattr(
        "kernelweave.evidence.EvidenceKernelClassifier.importance_", property(broken)
    )
    done = run("fit", csv, "--target", "species", *QUICK, "--no-compare", "--out", model)
    assert done.status == 0
    assert done.err.count("is not known: no format for column None") >= 2
    assert load_model(model).held_out is not None


def test_a_limit_of_time_holds_for_what_columns_are_worth(
    run: Callable, csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 5,000 columns it took minutes after a fit of five seconds."""
    monkeypatch.setattr("kernelweave.workbench.fitting._left_of", lambda *_: 0.0)
    done = run("fit", csv, "--target", "species", *QUICK, "--no-compare")
    assert done.status == 0
    assert "importance of the columns is not known: time was up after 0 of 4 columns" in done.err


def test_the_model_is_saved_before_others_are_compared(
    run: Callable, csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise SystemExit(137)

    model = tmp_path / "model"
    monkeypatch.setattr("kernelweave.workbench.fitting._fit_other_models", killed)
    with pytest.raises(SystemExit):
        run("fit", csv, "--target", "species", *QUICK, "--out", model)
    assert load_model(model).held_out is not None


def test_a_test_file_of_one_class_is_scored(run: Callable, tmp_path: Path) -> None:
    rng, paths = np.random.default_rng(0), [tmp_path / name for name in ("t.csv", "one.csv")]
    frame = pd.DataFrame({"a": rng.normal(size=(60)).round(3)})
    frame["y"], frame["size"] = np.where(frame["a"] > 0, "yes", "no"), 3.0 + frame["a"]
    frame.to_csv(paths[0], index=False)
    frame[frame["y"] == "yes"].assign(size=2.5, a=frame["a"] + 0.001).to_csv(paths[1], index=False)
    options = [
        paths[0],
        "--test",
        paths[1],
        "--no-compare",
        "--max-iter",
        "5",
        "--json",
        "--target",
    ]
    done = run("fit", *options, "y", "--drop", "size")
    found = json.loads(done.out)["test"]
    assert found["score"] > 0.9
    assert "AUC" not in found["also"]
    assert done.said == ""
    done = run("fit", *options, "size", "--drop", "y")
    assert json.loads(done.out)["test"] is None
    assert "the target 'size' is 2.5 in every row, and R² needs at least two" in done.said


def test_a_model_that_learned_nothing_is_marked_as_others_are(
    run: Callable, tmp_path: Path
) -> None:
    path, rng = tmp_path / "noise.csv", np.random.default_rng(0)
    pd.DataFrame({"x": rng.normal(size=40), "y": rng.normal(size=40)}).to_csv(path, index=False)
    done = run("fit", path, "--target", "y", "--no-compare", *QUICK)
    assert "evidence kernel † " in done.out
    assert "† not significantly better than a constant prediction" in done.out
