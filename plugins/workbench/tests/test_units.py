"""Units behind numbers: a model keeps them, and takes no other for the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernelweave.kernels_core import KernelWeaveWarning
from kernelweave.tables import TableError, read_table
from kernelweave.workbench import load_model

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
        "column 'weight' is in lb, and was in kg in the training data: convert it to kg"
    )
    dollars = written(tmp_path / "t.csv", weight=behind(WEIGHT, "kg"), cost=behind(COST, "$"))
    for command in ("certify", "report"):
        assert "column 'cost' is in $, and was in €" in run(command, model, dollars).error
    assert run("predict", model, dollars).status == 0
    euros = written(tmp_path / "e.csv", weight=behind(WEIGHT, "kg"), cost=behind(COST, "€"))
    # before anything is learned
    asked = run("fit", euros, "--target", "cost", "--test", dollars, "--max-time", "600")
    assert "column 'cost' is in $, and was in €" in asked.error


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


def test_a_cell_without_the_unit_of_its_column_is_read_in_it(model: Path, tmp_path: Path) -> None:
    found, cells = load_model(model), np.array(behind(WEIGHT, "kg"))
    known = found.predict(read_table(written(tmp_path / "a.csv", weight=cells)))
    bare, pounds = cells.copy(), cells.copy()
    bare[7:] = WEIGHT[7:].astype(str)
    with pytest.warns(
        KernelWeaveWarning, match="'weight': 53 of 60 rows have no unit and are"
    ) as told:
        few = found.predict(read_table(written(tmp_path / "b.csv", weight=bare, start="6:30")))
    assert len(told) == 1
    pounds[[2, 4, 9]] = ["160 lb", "150 lb", "11 st"]
    pounds[5] = WEIGHT[5]
    with pytest.warns(KernelWeaveWarning) as told:
        some = found.predict(read_table(written(tmp_path / "c.csv", weight=pounds)))
    said = " ".join(str(each.message) for each in told)
    assert "column 'weight': 1 of 60 rows has no unit and is read as kg" in said
    assert "3 of 60 rows hold text, such as '160 lb' in line 4, read as missing values" in said
    same = ~np.isin(np.arange(60), [2, 4, 9])
    np.testing.assert_array_equal(some[same], known[same])
    assert np.isfinite(some).all()
    assert few.shape == known.shape


def test_a_test_that_lacks_columns_is_refused_before_anything_is_learned(
    run: Callable, tmp_path: Path
) -> None:
    table = written(tmp_path / "t.csv", cost=COST, id=range(60))
    asked = ["fit", table, "--target", "cost", "--test"]
    options = ["--no-compare", "--max-iter", "1"]
    short = pd.read_csv(table)
    short.drop(columns=["weight", "id"]).to_csv(tmp_path / "a.csv", index=False)
    assert (
        "lacks 1 of the 3 columns that the model uses: 'weight'"
        in run(*asked, tmp_path / "a.csv", "--max-time", "600").error
    )
    short.drop(columns="cost").to_csv(tmp_path / "b.csv", index=False)
    assert "b.csv has no column 'cost'" in run(*asked, tmp_path / "b.csv").error
    short.drop(columns="id").to_csv(tmp_path / "c.csv", index=False)
    assert run(*asked, tmp_path / "c.csv", *options).status == 0


def test_a_table_without_the_target_is_refused(run: Callable, model: Path, tmp_path: Path) -> None:
    table = written(tmp_path / "t.csv", weight=behind(WEIGHT, "kg"))
    for command in ("certify", "report"):
        assert "has no column 'cost'; the columns are" in run(command, model, table).error


@pytest.mark.parametrize("odd", ["unknown", "150 lb"])
def test_a_word_among_numbers_with_a_unit_is_a_gap(run: Callable, tmp_path: Path, odd: str) -> None:
    cells = behind(WEIGHT, "kg")
    cells[8] = odd
    table = written(tmp_path / "t.csv", weight=cells, y=COST)
    options = ["--target", "y", "--max-iter", "1", "--no-compare", "--out", tmp_path / "m"]
    run("fit", table, *options)
    header = load_model(tmp_path / "m").header
    assert header.units == {"weight": "kg", "start": "h"}
    (weight,) = (row for row in header.prepared if row["name"] == "weight")
    assert f"1 of 60 rows holds text, such as '{odd}' in line 10" in weight["sentence"]
    least, most = np.delete(WEIGHT, 8).min(), np.delete(WEIGHT, 8).max()
    assert (weight["range"], weight["missing"]) == (f"{least:g} to {most:g} kg", 1)


def test_a_column_without_numbers_has_no_unit_to_compare(model: Path, tmp_path: Path) -> None:
    found = load_model(model)
    empty = written(tmp_path / "a.csv", weight=[None] * 60)
    with pytest.warns(KernelWeaveWarning, match="had no missing values in training") as told:
        found.predict(empty)
    assert not any("unit" in str(each.message) for each in told)
    words = written(tmp_path / "b.csv", weight=["heavy"] * 60)
    with pytest.raises((TableError, ValueError), match="text now, such as 'heavy'"):
        found.predict(words)


CELLS = {
    "weight": (["71 kg", "68,5 kg", None], [71.0, 68.5, np.nan]),
    "price": (["1.234,50 €", "99 €", "7,5 €"], [1234.5, 99.0, 7.5]),
    "start": (["12:30", "07:15", "0:00"], [12.5, 7.25, 0.0]),
    "change": (["(12,5)", "3,25", 4], [-12.5, 3.25, 4.0]),
    "people": (["41 680", "27'415", "12"], [41680.0, 27415.0, 12.0]),
    "town": (["Bonn", "Kiel 2", "1,5 or so"], None),
}


@pytest.mark.parametrize("row", ["1st,01067", "2nd,04109"])
def test_one_row_is_read_as_the_column_was(run: Callable, tmp_path: Path, row: str) -> None:
    names, codes = ["1st", "2nd", "3rd"] * 20, ["01067", "04109", "80331", "99084"] * 15
    frame = pd.DataFrame({"place": names, "code": codes, "y": WEIGHT})
    frame.to_csv(tmp_path / "t.csv", index=False)
    options = ["--target", "y", "--max-iter", "3", "--no-compare", "--out", tmp_path / "m"]
    run("fit", tmp_path / "t.csv", *options)
    model = load_model(tmp_path / "m")
    whole = dict(zip(zip(names, codes, strict=True), model.predict(frame), strict=True))
    (tmp_path / "one.csv").write_text(f"place,code\n{row}\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.predict(tmp_path / "one.csv") == pytest.approx([whole[tuple(row.split(","))]])
