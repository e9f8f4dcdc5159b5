"""Words, dates and gaps: learned from as they are, kept in the model, never a refusal."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import ColumnEncoder
from kernelweave.spectahedron import TessellatedKernelClassifier
from kernelweave.workbench import load_model
from kernelweave.workbench.matrix import TableMatrix
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

QUICK = ("--target", "y", "--model", "tkl", "--tol", "0.1", "--max-iter", "20", "--no-compare")

EVIDENCE = ("--target", "y", "--max-iter", "5", "--no-compare")


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A table with words, dates, a missing number, a missing word and a column of one value."""
    rng = np.random.default_rng(0)
    size, colour = rng.random(60), rng.choice(["red", "green", "blue"], 60)
    days = pd.Series(pd.date_range("2021-03-01", periods=60, freq="9D")).dt.strftime("%d.%m.%Y")
    y = np.where((size > 0.5) ^ (colour == "red"), "yes", "no")
    frame = pd.DataFrame({"size": size.round(3), "colour": colour, "day": days, "one": 1, "y": y})
    frame = frame.astype(object)
    frame.loc[3, "size"] = "NA"
    frame.loc[5, "colour"] = "?"
    path = tmp_path / "mixed.csv"
    frame.to_csv(path, index=False)
    return path


def test_the_steps_are_those_of_the_encoder(run: Callable, mixed: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.kw"
    done = run("fit", mixed, *QUICK, "--out", out, "--json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    told = {row["name"]: row for row in found["columns"]}
    assert told["one"]["done"] == "left out"
    assert "1 of 60 values missing: replaced by the median" in told["size"]["sentence"]
    assert "1 of 60 values missing: a category of their own" in told["colour"]["sentence"]
    assert "%d.%m.%Y" in told["day"]["sentence"]

    frame = pd.read_csv(mixed, na_values="?")
    numeric, codes = ColumnEncoder().fit_transform(frame.drop(columns="y"))
    X = np.hstack([numeric, np.eye(4)[codes[:, 0]]])
    by_hand = TessellatedKernelClassifier(tol=0.1, max_iter=20, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        by_hand.fit(X, frame["y"])
    predicted = run("predict", out, mixed).out.split()[1:]
    assert predicted == by_hand.predict(X).tolist()
    assert list(load_model(out).predict(frame)) == predicted


def test_a_fit_says_what_it_did_with_the_columns(run: Callable, mixed: Path) -> None:
    said = run("fit", mixed, *QUICK).out
    assert "Columns" in said
    assert "numbers: Ignored: constant (1)." in " ".join(said.split())
    plain = run("fit", "iris", "--max-iter", "5", "--no-compare").out
    assert "\nColumns" not in plain


def test_a_prepared_model_certifies_and_reports(run: Callable, mixed: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.kw"
    assert run("fit", mixed, *QUICK, "--out", out).status == 0
    again = json.loads(run("certify", out, mixed, "--json").out)
    assert again["lower_bound"] <= again["objective"] * (1 + 1e-9)
    page = tmp_path / "m.html"
    assert run("report", out, mixed, "--out", page).status == 0
    text = page.read_text()
    assert "3 categories" in text or "4 categories" in text


@pytest.mark.parametrize("options", [QUICK, EVIDENCE], ids=["tkl", "evidence"])
def test_nothing_new_is_refused_at_prediction(
    run: Callable, mixed: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    out = tmp_path / "m.kw"
    run("fit", mixed, *options, "--out", out)
    new = tmp_path / "new.csv"
    new.write_text("colour,size,day,one\npink,0.2,some day,2\n?,,,\nred,0.1,01.02.2022,1\n")
    done = run("predict", out, new)
    assert done.status == 0
    assert len(done.out.split()) == 4
    # a new colour and a later day; what is missing lies inside
    assert (
        "1 of 3 rows has values outside the range of the training data, most often in 'colour'"
        in done.err
    )
    known = run("predict", out, mixed)
    assert "lie outside" not in known.err
    # a column that was left out need not be there
    pd.read_csv(mixed).drop(columns=["one", "y"]).to_csv(new, index=False)
    assert run("predict", out, new).out == known.out
    new.write_text("colour,size,one\nred,0.1,1\n")
    assert "lacks 1 of the 3 columns that the model uses: 'day'" in run("predict", out, new).error
    new.write_text("colour,size,day,one\nred,0.1,,1\nred,inf,,1\n")
    assert "column 'size', line 3: the value is infinite" in run("predict", out, new).error


def test_identifiers_and_typing_errors_are_said(run: Callable, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rng = np.random.default_rng(1)
    rows = [f"{i},n{i},{rng.random():.3f},{i % 2}" for i in range(60)]
    path.write_text("\n".join(["id,name,a,y", *rows, "60,n60,6o,1"]))
    done = run("fit", path, *QUICK)
    assert done.status == 0
    said = " ".join(done.out.split())
    assert "id numbers: Ignored: looks like a row ID (to use it, name it by --numeric)." in said
    assert "name text: Ignored: nearly every value is different" in said
    assert "Numbers, but 1 of 61 rows holds text, such as '6o'" in said


def test_a_matrix_has_an_indicator_a_level() -> None:
    X = pd.DataFrame({"a": [*"uvwuvw"], "b": [*"xyxyyx"], "c": np.arange(6.0) ** 2})
    matrix = TableMatrix().fit(X)
    assert matrix.transform(X).tolist()[:2] == [[0, 1, 0, 0, 0], [1, 0, 1, 0, 1]]
    strange = pd.DataFrame({"a": ["?"], "b": ["?"], "c": [2.0]})
    assert matrix.transform(strange).tolist() == [[2, 0, 0, 0, 0.5]]
    assert matrix.n_features_in_ == 3
    assert not hasattr(clone(matrix), "encoder_")
