"""Words and missing values: refused with the remedy, or turned into numbers and kept so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernelweave.spectahedron import TessellatedKernelClassifier
from kernelweave.workbench import load_model
from kernelweave.workbench.data import Preparation, read_table
from kernelweave.workbench.data.preparation import is_text
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

QUICK = ("--target", "y", "--tol", "0.1", "--max-iter", "20")


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A table with a column of words, a missing number and a missing word."""
    rng = np.random.default_rng(0)
    size, colour = rng.random(60), rng.choice(["red", "green", "blue"], 60)
    y = np.where((size > 0.5) ^ (colour == "red"), "yes", "no")
    frame = pd.DataFrame({"size": size.round(3), "colour": colour, "y": y}).astype(object)
    frame.loc[3, "size"] = ""
    frame.loc[5, "colour"] = "NA"
    path = tmp_path / "mixed.csv"
    frame.to_csv(path, index=False)
    return path


def test_both_are_refused_with_the_remedy(run: Callable, mixed: Path) -> None:
    said = run("fit", mixed, *QUICK, "--drop", "colour").error
    assert "column 'size', line 5: the value is missing" in said
    assert "--impute" in said
    whole = mixed.with_name("whole.csv")
    whole.write_text("\n".join(line for line in mixed.read_text().split("\n") if ",," not in line))
    frame = pd.read_csv(mixed, keep_default_na=False)
    frame[(frame["size"] != "") & (frame["colour"] != "NA")].to_csv(whole, index=False)
    said = run("fit", whole, *QUICK).error
    assert "column 'colour', line 2:" in said
    assert "--encode" in said
    assert "--drop 'colour'" in said
    assert "--impute" in run("fit", mixed, *QUICK, "--encode").error


def test_the_stated_steps_are_those_of_scikit_learn(
    run: Callable, mixed: Path, tmp_path: Path
) -> None:
    out = tmp_path / "m.kw"
    done = run("fit", mixed, *QUICK, "--encode", "--impute", "--out", out, "--json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert "colour (3 words)" in found["preparation"]
    assert "median" in found["preparation"]

    frame = pd.read_csv(mixed)
    words = SimpleImputer(strategy="most_frequent").fit_transform(frame[["colour"]].astype(object))
    steps = make_column_transformer((SimpleImputer(strategy="median"), ["size"]))
    X = np.hstack(
        [steps.fit_transform(frame), OneHotEncoder(sparse_output=False).fit_transform(words)]
    )
    by_hand = TessellatedKernelClassifier(tol=0.1, max_iter=20, random_state=0).fit(X, frame["y"])
    predicted = run("predict", out, mixed).out.split()[1:]
    assert predicted == by_hand.predict(X).tolist()
    assert found["training_score"] == by_hand.score(X, frame["y"])


def test_a_prepared_model_certifies_and_reports(run: Callable, mixed: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.kw"
    assert run("fit", mixed, *QUICK, "--encode", "--impute", "--out", out).status == 0
    again = json.loads(run("certify", out, mixed, "--json").out)
    assert again["lower_bound"] <= again["objective"] * (1 + 1e-9)
    page = tmp_path / "m.html"
    assert run("report", out, mixed, "--out", page).status == 0
    text = page.read_text()
    assert "colour (3 words)" in text
    assert "The learned kernel" in text


def test_a_word_that_is_new_is_refused_by_place(run: Callable, mixed: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.kw"
    run("fit", mixed, *QUICK, "--encode", "--impute", "--out", out)
    new = tmp_path / "new.csv"
    new.write_text("colour,size\nred,0.1\npink,0.2\n")
    said = run("predict", out, new).error
    assert "column 'colour', line 3: 'pink' did not occur" in said
    assert "'blue', 'green', 'red'" in said
    new.write_text("colour,size\nred,0.1\n?,\n")
    assert run("predict", out, new).status == 0
    new.write_text("colour\nred\n")
    assert "lacks 1 of the 2 columns" in run("predict", out, new).error


def test_older_programs_read_what_needs_no_preparation(run: Callable, tmp_path: Path) -> None:
    run("fit", "iris", "--tol", "0.1", "--max-iter", "5", "--out", tmp_path / "m.kw")
    header = load_model(tmp_path / "m.kw").header
    assert json.loads(header.to_json())["format"] == 1
    assert not header.preparation.is_needed


def test_a_mistyped_number_is_no_word_and_names_are_no_categories(
    run: Callable, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "".join(f"{i},n{i},{i % 2}\n" for i in range(60)) + "6o,x,1\n")
    assert (
        "column 'a', line 62: '6o' is not a number"
        in run("fit", path, *QUICK, "--encode", "--drop", "b").error
    )
    said = run("fit", path, *QUICK, "--encode", "--drop", "a").error
    assert "column 'b' has 61 different words, more than 50" in said
    path.write_text("a,b,y\n1,,0\n2,,1\n3,NA,1\n")
    assert "column 'b' has no value at all" in run("fit", path, *QUICK, "--impute").error


def test_what_is_text() -> None:
    assert is_text(pd.Series(["a", "b", None]))
    assert not is_text(pd.Series([1.0, np.nan]))
    assert not is_text(pd.Series([True, False]))
    assert not is_text(pd.Series(pd.to_datetime(["2020-01-01"])))


def test_nothing_is_asked_for_nothing_is_done() -> None:
    table = read_table("iris")
    columns = table.columns[:-1]
    plain = Preparation.of(table, columns, encode=True, impute=False)
    assert not plain.is_needed
    np.testing.assert_array_equal(plain.inputs(table), table.features(columns))
