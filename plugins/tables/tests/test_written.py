"""Units behind numbers: a model keeps them, and takes no other for the same."""

from __future__ import annotations

import datetime
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernelweave.kernels_core import KernelWeaveWarning
from kernelweave.tables import read_table
from kernelweave.tables.text import read_csv

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


CELLS = {
    "weight": (["71 kg", "68,5 kg", None], [71.0, 68.5, np.nan]),
    "price": (["1.234,50 €", "99 €", "7,5 €"], [1234.5, 99.0, 7.5]),
    "start": (["12:30", "07:15", "0:00"], [12.5, 7.25, 0.0]),
    "change": (["(12,5)", "3,25", 4], [-12.5, 3.25, 4.0]),
    "people": (["41 680", "27\u202f415", "12"], [41680.0, 27415.0, 12.0]),
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


def test_thousands_in_dollars_and_rupees() -> None:
    cells = {
        "a": ["A$1,040,783", "A$999"],
        "b": ["₹1,234,567.50", "₹5,000"],
    }
    table = read_table(pd.DataFrame(cells))
    assert table.frame.to_dict("list") == {
        "a": [1040783.0, 999.0],
        "b": [1234567.5, 5000.0],
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
    with pytest.warns(
        KernelWeaveWarning, match=r"column '[ab]': '(1,234|4,567)' is read as \d+, its comma"
    ):
        assert read_table(frame).frame["a"].tolist() == [1234.0, 5678.0]


@pytest.mark.parametrize("cells", [["12EUR50", "3EUR20"], ["5 EUR 300", "6 EUR 400"]])
def test_a_currency_amid_digits_makes_no_number(cells: list[str]) -> None:
    table = read_table(pd.DataFrame({"a": cells}))
    assert (list(table.frame.a), table.units) == (cells, {})


def test_a_comma_among_words_says_nothing_of_numbers() -> None:
    frame = pd.DataFrame({"choices": ["x", "1,5"], "n": ["1,234", "2,345"]})
    with pytest.warns(KernelWeaveWarning, match="'1,234' is read as 1234"):
        assert read_table(frame).frame.n.tolist() == [1234.0, 2345.0]


def test_a_column_may_have_any_name() -> None:
    text = "self,code\n" + "".join(f"{j} kg,00{j}\n" for j in range(5))
    table = read_csv(text.encode(), "t")
    assert table.frame["self"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert table.frame["code"].tolist() == [f"00{j}" for j in range(5)]
