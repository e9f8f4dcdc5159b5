"""The demo: both machines on one split, the proof, and the picture."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from kernelweave.workbench.displays import is_demo_picture
from matplotlib.image import imread
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_demo_is_honest(run: Callable, here: Path) -> None:
    done = run("demo", "--json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert found["lower_bound"] <= found["upper_bound"]
    assert found["gap"] <= found["tol"] == 1e-3
    assert found["n_features"] <= 13

    # the rival's score, computed here on the same split and grid
    X, y = load_breast_cancer(return_X_y=True)
    labels = load_breast_cancer().target_names[y]
    a, b, c, d = train_test_split(X[:, :10], labels, test_size=0.3, random_state=0, stratify=labels)
    grid = {"svc__C": np.logspace(-1, 3, 5), "svc__gamma": np.logspace(-3, 1, 5)}
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=folds).fit(a, c)
    assert found["rbf"]["score"] == search.score(b, d)
    assert found["held_out_score"] > found["rbf"]["score"] - 0.05
    assert is_demo_picture(here / "kernelweave-demo.png")


def test_the_demo_on_flowers(run: Callable, here: Path) -> None:
    done = run("demo", "--dataset", "iris")
    assert done.status == 0, done.err
    for said in ("held-out accuracy", "RBF kernel", "lower bound", "upper bound", "relative gap"):
        assert said in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    picture = imread(here / "kernelweave-demo.png")
    assert picture.shape[0] >= 600
    assert picture.shape[1] >= 1200
    assert len(np.unique(picture.reshape(-1, picture.shape[2]), axis=0)) > 100


def test_the_picture_of_another_demo_is_replaced_and_nothing_else(
    run: Callable, here: Path
) -> None:
    path = here / "kernelweave-demo.png"
    path.write_text("a picture of my cat")
    options = ["demo", "--dataset", "iris"]
    assert "was not written by the demo" in run(*options).error
    assert path.read_text() == "a picture of my cat"
    assert run(*options, "--force").status == 0
    assert is_demo_picture(path)
    assert run(*options).status == 0
    assert "add --force" in run(*options, "--out", path).error


def test_a_data_set_with_many_features_is_refused(run: Callable, here: Path) -> None:
    assert "has 64 features, the demo takes at most 13" in run("demo", "--dataset", "digits").error
    assert list(here.iterdir()) == []
