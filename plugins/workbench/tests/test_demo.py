"""The demo: three models on one split, and the picture."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_demo_pays(run: Callable, here: Path) -> None:
    done = run("demo", "--json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    scores = {label: each["score"] for label, each in found["scores"].items()}
    assert scores["evidence kernel"] > max(scores["tuned RBF SVM"], scores["HistGradientBoosting"])
    assert abs(found["held_out_score"] - scores["evidence kernel"]) < 0.05
    assert 0.86 < found["coverage"]["share"] < 0.98
    tessellated, sparse = found["proved"].values()
    assert 0.93 < tessellated["score"] < scores["evidence kernel"]
    assert sparse["score"] > scores["tuned RBF SVM"] - 0.1
    assert all(0.0 <= each["gap"] <= 1e-3 for each in (tessellated, sparse))
    assert (here / "kernelweave-demo.png").read_bytes().startswith(b"\x89PNG")


def test_the_demo_on_flowers(run: Callable, here: Path) -> None:
    """A picture of the demo is replaced and no other file; boosting is scored again here."""
    path = here / "kernelweave-demo.png"
    path.write_text("a picture of my cat")
    options = ["demo", "--dataset", "iris"]
    assert "add --force" in run(*options).error
    assert path.read_text() == "a picture of my cat"
    done = run(*options, "--force")
    assert done.status == 0, done.err
    for said in (
        "Test accuracy",
        "tuned RBF SVM",
        "HistGradientBoosting",
        "cross-validated",
        "top columns",
        "proved gap",
        "CPU s",
    ):
        assert said in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    picture = imread(path)
    assert picture.shape[0] >= 500
    assert picture.shape[1] >= 1200
    assert len(np.unique(picture.reshape(-1, picture.shape[2]), axis=0)) > 100
    written = path.stat().st_mtime_ns

    done = run(*options, "--json")
    assert done.status == 0, done.err
    assert path.stat().st_mtime_ns > written
    X, y = load_iris(return_X_y=True)
    a, b, c, d = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    boosting = HistGradientBoostingClassifier(random_state=0).fit(a, c)
    assert json.loads(done.out)["scores"]["HistGradientBoosting"]["score"] == boosting.score(b, d)
    other = path.rename(here / "mine.png")
    assert "add --force" in run(*options, "--out", other).error


def test_a_data_set_with_many_features_is_refused(run: Callable, here: Path) -> None:
    assert (
        "has 64 features, and the demo takes at most 13" in run("demo", "--dataset", "digits").error
    )
    assert list(here.iterdir()) == []
