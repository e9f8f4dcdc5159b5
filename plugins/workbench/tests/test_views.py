"""``kernelweave fit --views``: groups of columns by name, and what a report says of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernelweave.workbench.errors import CommandError
from kernelweave.workbench.matrix import TableMatrix
from kernelweave.workbench.models import load_model
from kernelweave.workbench.views import read_views

COLUMNS = ["a", "b.0", "town", "sensor_1", "sensor_2"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 5)).round(3), columns=COLUMNS)
    frame["town"] = rng.choice(["u", "v", "w"], 60)
    frame["y"] = (frame["a"] + (frame["town"] == "u")).round(4)
    frame.loc[::9, "a"] = None
    path = tmp_path_factory.mktemp("data") / "t.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("v.toml", 'main = ["town", "a"]\nrest = ["sensor_*"]\n'),
        ("v.json", '{"main": ["town", "a"], "rest": ["sensor_*"]}'),
    ],
)
def test_two_kinds_of_file_say_the_same(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    wanted = {"main": ("a", "town"), "rest": ("sensor_1", "sensor_2")}
    assert read_views(path, COLUMNS) == wanted


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("v.txt", "", "must be a .toml or .json file"),
        ("v.toml", "main = [", "v.toml: "),
        ("v.json", '{"main": "a"}', "must give a list of columns for each name"),
        ("v.json", '{"main": ["twn"]}', "no column of main matches 'twn'; did you mean 'town'"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, name: str, text: str, said: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(CommandError, match="--views") as refused:
        read_views(path, COLUMNS)
    assert said in str(refused.value)


def test_every_number_of_a_table_has_the_name_of_its_column(table: Path) -> None:
    frame = pd.read_csv(table).drop(columns="y")
    matrix = TableMatrix().set_output(transform="pandas")
    encoded = matrix.fit_transform(frame)
    assert encoded.shape[1] == TableMatrix().fit_transform(frame).shape[1]
    sources = [name.rpartition(".")[0] for name in encoded.columns]
    assert set(sources) == set(COLUMNS)
    assert [sources.count(each) for each in ("town", "a", "sensor_1")] == [3, 2, 1]


def test_views_are_learned_saved_shown_and_reported(
    run: Callable, table: Path, tmp_path: Path
) -> None:
    pytest.importorskip("kernelweave.mkl_sparse")
    views, model, page = tmp_path / "v.toml", tmp_path / "m.kw", tmp_path / "m.html"
    views.write_text('place = ["town"]\nmain = ["a"]\nrest = ["sensor_*"]\n')
    options = [
        "--target",
        "y",
        "--model",
        "sparse",
        "--views",
        views,
        "--set",
        "k0=cv",
        "--cv",
        "2",
    ]
    found = json.loads(run("fit", table, *options, "--no-compare", "--out", model, "--json").out)
    weights = {row["name"]: row["weight"] for row in found["views"]}
    assert weights["main"] > weights["place"] > 0 == weights["rest"]
    assert sum(weights.values()) == pytest.approx(1.0)
    assert found["n_features"] == 4
    assert found["chosen"]["k0"] >= len(found["kernels"]) >= 2
    loaded = load_model(model)
    assert len(loaded.predict(str(table))) == 60
    options[-4:] = ["--set", "k0=1", "--set", "n_views=1"]
    one = json.loads(run("fit", table, *options, "--no-compare", "--cv", "2", "--json").out)
    assert [row["weight"] for row in one["views"] if row["name"] == "main"] == [1.0]
    run("report", model, "--out", page)
    text = page.read_text()
    for said in ("Selected kernels", "sensor_1, sensor_2", "not used"):
        assert said in text


def test_a_model_without_a_list_of_kernels_refuses_views(
    run: Callable, table: Path, tmp_path: Path
) -> None:
    pytest.importorskip("kernelweave.mkl_sparse")
    views = tmp_path / "v.toml"
    views.write_text('place = ["town"]\n')
    said = run("fit", table, "--target", "y", "--views", views).error
    assert "--model evidence has no --views: it belongs to --model " in said
    assert "sparse" in said
