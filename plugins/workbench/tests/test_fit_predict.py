"""From a table to a model to predictions, on the command line."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernelweave.spectahedron import TessellatedKernelClassifier, TessellatedKernelRegressor
from kernelweave.workbench.fitting import Choices, make_estimator
from sklearn.datasets import load_diabetes, load_iris


@pytest.fixture(scope="module")
def csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The irises as a file, with the species in words."""
    bunch = load_iris(as_frame=True)
    frame = bunch.frame.rename(columns={"target": "species"})
    frame["species"] = bunch.target_names[frame["species"]]
    path = tmp_path_factory.mktemp("data") / "iris.csv"
    frame.to_csv(path, index=False)
    return path


def test_fit_and_predict_are_what_the_estimator_does(
    run: Callable, csv: Path, tmp_path: Path
) -> None:
    model, predictions = tmp_path / "model", tmp_path / "predictions.csv"
    done = run("fit", csv, "--target", "species", "--tol", "0.05", "--out", model)
    assert done.status == 0, done.err
    assert done.said == ""
    assert "classification of species (the target is text, 3 classes)" in done.out
    assert "No kernel of this family has an objective below" in done.out

    assert run("predict", model, csv, "--out", predictions).out == ""
    X, y = load_iris(return_X_y=True)
    own = TessellatedKernelClassifier(tol=0.05, random_state=0).fit(X, load_iris().target_names[y])
    written = pd.read_csv(predictions)
    assert list(written.columns) == ["prediction"]
    np.testing.assert_array_equal(written["prediction"], own.predict(X))

    printed = run("predict", model, "iris")
    assert printed.out == predictions.read_text()
    assert run("predict", model, csv, "--out", predictions).error.endswith("choose another")
    assert json.loads(run("predict", model, "iris", "--json").out) == own.predict(X).tolist()
    told = run("predict", model, "iris", "--out", predictions, "--force", "--json").out
    assert json.loads(told) == {"predictions": str(predictions), "n_rows": 150}


def test_regression_keeps_every_digit(run: Callable, tmp_path: Path) -> None:
    model = tmp_path / "model"
    options = ["--C", "0.001", "--epsilon", "5", "--tol", "0.2", "--degree", "0"]
    found = json.loads(run("fit", "diabetes", *options, "--out", model, "--json").out)
    assert found["task"] == "regression"
    assert found["lower_bound"] <= found["upper_bound"]
    assert found["gap"] <= 0.2
    assert found["model"] == str(model)
    X, y = load_diabetes(return_X_y=True)
    own = TessellatedKernelRegressor(C=0.001, epsilon=5.0, tol=0.2, degree=0, random_state=0).fit(
        X, y
    )
    lines = run("predict", model, "diabetes").out.splitlines()
    assert lines[0] == "prediction"
    np.testing.assert_array_equal([float(line) for line in lines[1:]], own.predict(X))
    assert found["training_score"] == pytest.approx(own.score(X, y))


def test_dropping_columns_and_counting_them(run: Callable, csv: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    drop = ["--drop", "petal width (cm)", "--drop", "petal length (cm)"]
    done = run("fit", csv, "--target", "4", *drop, "--tol", "0.2", "--out", model)
    assert "2 features" in done.out
    lacking = tmp_path / "sepals.csv"
    pd.read_csv(csv).iloc[:, :2].to_csv(lacking, index=False)
    assert run("predict", model, lacking).status == 0
    assert "has no column 'petal'" in run("fit", csv, "--target", "4", "--drop", "petal").error
    assert "is the target" in run("fit", csv, "--target", "4", "--drop", "species").error


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--C", "-1"], "C must be"),
        (["--C", "0"], "C must be"),
        (["--C", "nan"], "C must be"),
        (["--tol", "-1"], "tol must be"),
        (["--max-iter", "-3"], "max_iter must be"),
        (["--max-time", "0"], "max_time must be"),
        (["--degree", "-1"], "degree must be"),
        (["--delta", "nan"], "delta must be"),
        (["--epsilon", "1"], "--epsilon belongs to regression"),
        (["--algorithm", "tkl-frank"], "'tkl-frank-wolfe'?"),
        (["--out", "no/model"], "there is no folder no"),
    ],
)
def test_options_that_make_no_sense(run: Callable, options: list[str], said: str) -> None:
    assert said in run("fit", "iris", *options).error


def test_an_existing_model_is_refused_before_the_work(
    run: Callable, csv: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    model.write_text("precious")
    assert "add --force" in run("fit", "no such data", "--out", model).error
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
    done = run("fit", "wine", "--algorithm", "tkl-frank-wolfe", "--max-iter", "1")
    assert done.status == 0
    assert done.said.startswith("kernelweave: warning: tkl-")
    assert "max_iter was reached" in done.said
    assert done.said.count("\n") == 1


def test_options_reach_the_estimator() -> None:
    choices = Choices(C=3.0, tol=0.1, max_iter=7, max_time=2.0, degree=2, delta=0.1, seed=5)
    params = make_estimator("regression", choices).get_params()
    wanted = {"C": 3.0, "tol": 0.1, "max_iter": 7, "max_time": 2.0, "degree": 2, "delta": 0.1}
    assert wanted.items() <= params.items()
    assert params["random_state"] == 5


def test_an_algorithm_over_kernels_runs_behind_a_scaler(run: Callable, csv: Path) -> None:
    pytest.importorskip("kernelweave_template")
    options = ["--target", "species", "--algorithm", "template-exponentiated-gradient"]
    found = json.loads(run("fit", csv, *options, "--tol", "0.05", "--json").out)
    assert found["estimator"] == "KernelLearningClassifier"
    assert found["training_score"] > 0.9
    assert (
        "learns no positive matrix: drop --degree"
        in run("fit", csv, *options, "--degree", "2").error
    )


def test_no_bar_in_a_pipe_and_csv_from_standard_input(shell: Callable, csv: Path) -> None:
    done = shell("fit", "-", "--target", "species", "--tol", "0.05", stdin=csv.read_bytes())
    assert done.status == 0, done.err
    assert done.said == ""
    assert "\x1b" not in done.out
    assert "standard input: 150 samples" in done.out


def test_a_bar_on_a_terminal(tmp_path: Path) -> None:
    host, terminal = pty.openpty()
    command = [sys.executable, "-m", "kernelweave.workbench", "fit", "wine"]
    command += ["--algorithm", "tkl-frank-wolfe", "--max-iter", "20"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=terminal, env=environment, cwd=tmp_path
    ) as process:
        os.close(terminal)
        said = _read_all(host)
        assert process.wait() == 0
    assert b"classification, 178 samples" in said
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
