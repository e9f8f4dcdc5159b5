"""Units behind numbers: a model keeps them, and takes no other for the same."""

from __future__ import annotations

import datetime
import io
import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernelweave.kernels_core import KernelWeaveWarning
from kernelweave.workbench import load_model, read_table
from kernelweave.workbench.data.csv import read_csv
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
    assert "c.csv: column 'weight': 1 of 60 rows has no unit and is read as kg" in said
    assert "3 of 60 rows hold words, such as '160 lb' in line 4, which count as gaps" in said
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


@pytest.mark.parametrize(
    ("cells", "numbers", "unit"),
    [
        (["7,5 kg", "8,25", "9,5 kg"], [7.5, 8.25, 9.5], "kg"),
        (["€ 7", "8", "9 EUR"], [7.0, 8.0, 9.0], "€"),
        (["7:30", "8:15", "9"], [7.5, 8.25, 9.0], "h"),
        (["7 kg", 8, "9 kg"], [7.0, 8.0, 9.0], "kg"),
        (["7 kg", "8", "9 lb"], None, ""),
        (["7 kg", "8", "9"], None, ""),
    ],
)
def test_most_rows_say_the_unit(
    cells: list[object], numbers: list[float] | None, unit: str
) -> None:
    frame = pd.DataFrame({"a": cells})
    if numbers is None:
        assert read_table(frame).frame["a"].tolist() == cells
        return
    with pytest.warns(
        KernelWeaveWarning,
        match=f"^the table: column 'a': 1 of 3 rows has no unit and is read as {unit}",
    ):
        table = read_table(frame)
    assert (table.frame["a"].tolist(), table.units) == (numbers, {"a": unit})


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
    assert f"1 of 60 rows holds words, such as '{odd}' in line 10" in weight["sentence"]
    least, most = np.delete(WEIGHT, 8).min(), np.delete(WEIGHT, 8).max()
    assert (weight["range"], weight["gaps"]) == (f"{least:g} to {most:g} kg", 1)


def test_a_column_without_numbers_has_no_unit_to_compare(model: Path, tmp_path: Path) -> None:
    found = load_model(model)
    empty = written(tmp_path / "a.csv", weight=[None] * 60)
    with pytest.warns(KernelWeaveWarning, match="had no gaps in training") as told:
        found.predict(empty)
    assert not any("unit" in str(each.message) for each in told)
    words = written(tmp_path / "b.csv", weight=["heavy"] * 60)
    with pytest.raises((CommandError, ValueError), match="words now, such as 'heavy'"):
        found.predict(words)


CELLS = {
    "weight": (["71 kg", "68,5 kg", None], [71.0, 68.5, np.nan]),
    "price": (["1.234,50 €", "99 €", "7,5 €"], [1234.5, 99.0, 7.5]),
    "start": (["12:30", "07:15", "0:00"], [12.5, 7.25, 0.0]),
    "change": (["(12,5)", "3,25", 4], [-12.5, 3.25, 4.0]),
    "people": (["41 680", "27'415", "12"], [41680.0, 27415.0, 12.0]),
    "town": (["Bonn", "Kiel 2", "1,5 or so"], None),
}


@pytest.mark.parametrize("way", ["Excel", "JSON lines", "JSON", "Parquet", "a frame"])
def test_cells_with_texts_are_read_as_in_a_csv(tmp_path: Path, way: str) -> None:
    cells = {name: written for name, (written, _) in CELLS.items()}
    frame, path = pd.DataFrame(cells, dtype=object), tmp_path / "t"
    rows = frame.to_dict("records")
    if way == "Excel":
        content = io.BytesIO()
        frame.to_excel(content, index=False)
        path.write_bytes(content.getvalue())
    elif way == "Parquet":
        frame.astype({"change": str}).to_parquet(path)
    else:
        path.write_text("\n".join(map(json.dumps, rows)) if "lines" in way else json.dumps(rows))
    table = read_table(frame if way == "a frame" else path)
    for name, (written, numbers) in CELLS.items():
        if numbers is None:
            assert table.frame[name].tolist() == written
        else:
            np.testing.assert_array_equal(table.frame[name].astype(float), numbers)
    assert table.units == {"weight": "kg", "price": "€", "start": "h"}


@pytest.mark.parametrize(
    ("cell", "unit"),
    [
        *[("EUR 7.5", "€"), ("7.5 EUR", "€"), ("USD7.5", "$"), ("CHF 7.5", "CHF")],
        *[("A$7.5", "A$"), ("US$ 7.5", "$"), ("7.5 HK$", "HK$"), ("₹7.5", "₹"), ("INR 7.5", "₹")],
    ],
)
def test_a_currency_has_one_name(cell: str, unit: str) -> None:
    table = read_table(pd.DataFrame({"a": [cell, cell.replace("7", "8")]}))
    assert table.units == {"a": unit}
    assert table.frame["a"].tolist() == [7.5, 8.5]


def test_thousands_in_dollars_of_any_country_and_in_rupees() -> None:
    cells = {
        "a": ["A$1,040,783", "A$999"],
        "b": ["₹12,34,567.50", "₹5,000"],
        "c": ["R$ 1.234,50", "R$ 9"],
    }
    table = read_table(pd.DataFrame(cells))
    assert table.frame.to_dict("list") == {
        "a": [1040783.0, 999.0],
        "b": [1234567.5, 5000.0],
        "c": [1234.5, 9.0],
    }


def test_times_of_twelve_hours_are_hours() -> None:
    table = read_table(pd.DataFrame({"a": ["12:30 AM", "1:15 pm", "12:45 p.m.", "9:00 a.m."]}))
    assert (table.frame["a"].tolist(), table.units) == ([0.5, 13.25, 12.75, 9.0], {"a": "h"})


def test_times_of_a_sheet_are_hours(tmp_path: Path) -> None:
    times = [datetime.time(12, 30), datetime.time(7, 15, 36), None]
    frame = pd.DataFrame({"start": times, "a": [1, 2, 3]})
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    table = read_table(tmp_path / "t.xlsx")
    np.testing.assert_array_equal(table.frame["start"], [12.5, 7.26, np.nan])
    assert table.units == {"start": "h"}


@pytest.mark.parametrize(
    ("other", "number"), [("1,5", 1.234), ("0,125", 1.234), ("2.5", 1234.0), ("4,567", 1234.0)]
)
def test_what_a_comma_means_without_a_separator(other: str, number: float) -> None:
    frame = pd.DataFrame({"a": ["1,234", "5,678"], "b": [other, "7"]})
    if number == 1.234:
        assert read_table(frame).frame["a"].tolist() == [1.234, 5.678]
        return
    with pytest.warns(KernelWeaveWarning, match="column 'a'.*: '1,234' is read as 1234, its comma"):
        assert read_table(frame).frame["a"].tolist() == [1234.0, 5678.0]


@pytest.mark.parametrize("cells", [["12EUR50", "3EUR20"], ["5 EUR 300", "6 EUR 400"]])
def test_a_currency_amid_digits_makes_no_number(cells: list[str]) -> None:
    table = read_table(pd.DataFrame({"a": cells}))
    assert (list(table.frame.a), table.units) == (cells, {})


def test_a_comma_among_words_says_nothing_of_numbers() -> None:
    frame = pd.DataFrame({"choices": ["x", "1,5"], "n": ["1,234", "2,345"]})
    with pytest.warns(KernelWeaveWarning, match="'1,234' is read as 1234"):
        assert read_table(frame).frame.n.tolist() == [1234.0, 2345.0]


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


def test_a_column_may_have_any_name() -> None:
    text = "self,code\n" + "".join(f"{j} kg,00{j}\n" for j in range(5))
    table = read_csv(text.encode(), "t")
    assert table.frame["self"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert table.frame["code"].tolist() == [f"00{j}" for j in range(5)]
