"""`fit --increasing` and `--decreasing`: predictions keep to them, and the page shows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernelweave.workbench import load_model

Run = Callable[..., object]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(size=(40, 2)).round(2), columns=["dose, mg", "age"])
    frame["kind"] = rng.choice(["a", "b"], 40)
    frame["reply"] = frame["dose, mg"] - 0.5 * frame["age"] + rng.normal(0.0, 0.6, 40)
    frame.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def test_predictions_keep_their_direction(run: Run, table: Path, tmp_path: Path) -> None:
    model, page = tmp_path / "m.kw", tmp_path / "m.html"
    signs = ("--increasing", "dose, mg", "--decreasing", "age")
    done = run("fit", table, "--target", "reply", "--no-compare", *signs, "--out", model)
    assert done.status == 0, done.err
    loaded = load_model(model)
    rows = pd.DataFrame({"dose, mg": np.linspace(-0.1, 1.1, 200), "age": 0.4, "kind": "a"})
    assert (np.diff(loaded.predict(rows)) >= 0.0).all()
    aged = rows.assign(age=rows["dose, mg"], **{"dose, mg": 0.5})
    assert (np.diff(loaded.predict(aged)) <= 0.0).all()
    assert run("report", model, "--out", page).status == 0
    text = page.read_text()
    assert "Columns with a direction" in text
    assert "Predictions rise with dose, mg and fall with age" in text
    assert "without that it would be" in text


def test_directions_that_cannot_be_kept(run: Run, table: Path) -> None:
    fit = ("fit", table, "--target", "reply", "--no-compare")
    assert "did you mean 'age'" in run(*fit, "--increasing", "kind,agee").error
    assert "both increasing and decreasing" in (
        run(*fit, "--increasing", "age", "--decreasing", "kind, age").error
    )
    assert "'kind'" in run(*fit, "--increasing", "kind").error
    assert "'reply' is the target" in run(*fit, "--decreasing", "age,reply").error
    tkl = run(*fit, "--model", "tkl", "--increasing", "age").error
    assert "--model tkl has no --increasing" in tkl


def test_the_page_says_which_class_rises(run: Run, table: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(table)
    frame["reply"] = np.where(frame["reply"] > frame["reply"].median(), "well", "ill")
    frame.to_csv(tmp_path / "c.csv", index=False)
    model, page = tmp_path / "c.kw", tmp_path / "c.html"
    fit = (
        "fit",
        tmp_path / "c.csv",
        "--target",
        "reply",
        "--no-compare",
        "--increasing",
        "dose, mg",
    )
    assert run(*fit, "--out", model).status == 0
    assert run("report", model, "--out", page).status == 0
    assert "Probabilities of well rise with dose, mg, for any two rows" in page.read_text()
