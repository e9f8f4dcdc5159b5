"""Units behind numbers: a model keeps them, and takes no other for the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernelweave.kernels_core import KernelWeaveWarning
from kernelweave.workbench import load_model, read_table
from kernelweave.workbench.errors import CommandError

RNG = np.random.default_rng(0)
WEIGHT = RNG.normal(75.0, 10.0, 60).round(1)
HEIGHT = RNG.normal(175.0, 8.0, 60).round()
COST = (WEIGHT + 0.1 * HEIGHT).round(2)
CLOCK = [f"{i % 24}:{i % 60:02d}" for i in range(60)]


def written(path: Path, **columns: object) -> Path:
    known = {"weight": WEIGHT, "height": HEIGHT, "start": CLOCK}
    pd.DataFrame(known | columns).to_csv(path, index=False)
    return path


def behind(values: object, unit: str) -> list[str]:
    return [f"{value} {unit}" for value in np.asarray(values).tolist()]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Weights in kg, times of day, heights without a unit, costs in euro."""
    from kernelweave.workbench.app import run

    folder = tmp_path_factory.mktemp("units")
    table = written(folder / "t.csv", weight=behind(WEIGHT, "kg"), cost=behind(COST, "€"))
    options = ["--target", "cost", "--max-iter", "3", "--no-compare"]
    assert run(["fit", str(table), *options, "--out", str(folder / "model")]) == 0
    return folder / "model"


def test_the_model_keeps_units_and_the_page_shows_them(model: Path) -> None:
    header = load_model(model).header
    assert header.units == {"weight": "kg", "start": "h", "cost": "€"}
    ranges = {row["name"]: row["range"] for row in header.prepared}
    assert ranges["weight"] == f"{WEIGHT.min():g} to {WEIGHT.max():g} kg"
    assert ranges["height"] == f"{HEIGHT.min():g} to {HEIGHT.max():g}"


def test_another_unit_is_refused_by_its_column(run: Callable, model: Path, tmp_path: Path) -> None:
    pounds = written(tmp_path / "t.csv", weight=behind(WEIGHT, "lb"))
    assert run("predict", model, pounds).error.endswith(
        "column 'weight' is in lb, and was in kg where the model learned: convert it to kg"
    )
    dollars = written(tmp_path / "t.csv", weight=behind(WEIGHT, "kg"), cost=behind(COST, "$"))
    for command in ("certify", "report"):
        assert "column 'cost' is in $, and was in €" in run(command, model, dollars).error
    assert run("predict", model, dollars).status == 0


def test_a_unit_on_one_side_only_is_warned_of(model: Path, tmp_path: Path) -> None:
    found = load_model(model)
    same = read_table(written(tmp_path / "a.csv", weight=behind(WEIGHT, "kg")))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known = found.predict(same)
    with pytest.warns(KernelWeaveWarning, match="'weight' has no unit, and was in kg .* as kg"):
        np.testing.assert_array_equal(found.predict(written(tmp_path / "b.csv")), known)
    units = {"weight": behind(WEIGHT, "kg"), "height": behind(HEIGHT, "cm")}
    with pytest.warns(KernelWeaveWarning, match="'height' is in cm, and had no unit"):
        np.testing.assert_array_equal(found.predict(written(tmp_path / "c.csv", **units)), known)


def test_a_column_without_numbers_has_no_unit_to_compare(model: Path, tmp_path: Path) -> None:
    found = load_model(model)
    empty = written(tmp_path / "a.csv", weight=[None] * 60)
    with pytest.warns(KernelWeaveWarning, match="had no gaps in training") as told:
        found.predict(empty)
    assert not any("unit" in str(each.message) for each in told)
    words = written(tmp_path / "b.csv", weight=["heavy"] * 60)
    with pytest.raises((CommandError, ValueError), match="words now, such as 'heavy'"):
        found.predict(words)
