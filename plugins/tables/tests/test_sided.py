"""Cells that are known on one side: <0.5, 36+, 3-5."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernelweave.tables import ColumnWarning, plan_columns, read_table
from kernelweave.tables.columns import Words
from kernelweave.tables.new_cells import numbers_of, sides_of
from kernelweave.tables.plans import ColumnPlan
from kernelweave.tables.written import WrittenNumbers

pytestmark = pytest.mark.filterwarnings("ignore::kernelweave.tables.ColumnWarning")


def plan_of(cells: list[str], **kinds: str) -> ColumnPlan:
    return plan_columns(pd.DataFrame({"a": cells}), kinds)[0]


def words(cells: list[str]) -> Words:
    codes, labels = pd.factorize(pd.Series(cells, dtype="str"))
    return Words(codes.astype(np.int64), tuple(labels))


@pytest.mark.parametrize(
    ("cell", "value", "side"),
    [
        ("<0.5", 0.25, "below"),
        ("< 0.5", 0.25, "below"),
        ("<=4", 2.0, "below"),
        ("≤4", 2.0, "below"),
        (">100", 100.0, "above"),
        ("≥ 7", 7.0, "above"),
        ("36+", 36.0, "above"),
        ("3-5", 4.0, "between"),
        ("3–5", 4.0, "between"),
    ],
)
def test_a_limit_is_a_number_and_a_side(cell: str, value: float, side: str) -> None:
    cells = ["1", "2", "3.5", "8", cell] * 5
    reading = plan_of(cells).reading
    assert isinstance(reading, WrittenNumbers)
    assert reading.sides == (side,)
    raw = words(cells)
    values = numbers_of(raw, reading, "a")
    np.testing.assert_allclose(values, [1.0, 2.0, 3.5, 8.0, value] * 5)
    np.testing.assert_array_equal(sides_of(raw, reading, values)[:, 0], [0, 0, 0, 0, 1] * 5)


def test_units_and_decimal_commas_go_with_limits() -> None:
    in_units = plan_of(["5 mg/L", "<0.5 mg/L", "7 mg/L", "3–4 mg/L", "8 mg/L"] * 4)
    assert (in_units.unit, in_units.reading.sides) == ("mg/L", ("below", "between"))
    with_commas = plan_of(["<0,5", "1,2", "3,4"] * 6).reading
    np.testing.assert_allclose(with_commas.read(["<0,5", "1,2"]), [0.25, 1.2])


def test_a_limit_is_halved_only_where_all_numbers_are_positive() -> None:
    np.testing.assert_allclose(plan_of(["-1", "<4", "3"] * 6).reading.read(["<4"]), [4.0])


@pytest.mark.parametrize(
    "cells",
    [
        ["18-24", "25-34", "35-64", "65+"],
        ["<18", "18-64", ">64"],
        ["2019-20", "2020-21", "2021-22"],
        ["555-1234", "555-9876", "555-4711"],
        ["2-1", "1-2", "0-3", "1-1"],
    ],
)
def test_ages_seasons_phones_and_results_are_categories(cells: list[str]) -> None:
    assert plan_of(cells * 8).kind == "category"


def test_names_of_columns_are_no_limits(tmp_path: Path) -> None:
    file = tmp_path / "ages.csv"
    file.write_text("0-14,15-64,65+\n1,2,3\n4,5,6\n")
    assert list(read_table(file).columns) == ["0-14", "15-64", "65+"]


def test_limits_are_counted_and_the_user_decides() -> None:
    cells = ["1", "2", "3", "<2", "4", ">9"] * 4
    with pytest.warns(ColumnWarning, match="'a': 8 rows are limits or ranges, such as '<2'"):
        plan_columns(pd.DataFrame({"a": cells}))
    assert plan_of(cells, a="category").kind == "category"
    ages = plan_of(["<18", "18-64", ">64"] * 6, a="number")
    assert ages.reading.sides == ("below", "between", "above")


def test_new_rows_may_have_other_sides_none_or_no_number() -> None:
    reading = plan_of(["1", "2", "3", "<2"] * 4).reading
    raw = words(["<3", ">5", "7"])
    values = numbers_of(raw, reading, "a")
    np.testing.assert_allclose(values, [1.5, 5.0, 7.0])
    np.testing.assert_array_equal(sides_of(raw, reading, values), [[1.0], [0.0], [0.0]])
    gap = Words(np.array([0, -1]), ("<3",))
    values = numbers_of(gap, reading, "a")
    np.testing.assert_array_equal(sides_of(gap, reading, values), [[1.0], [np.nan]])


def test_a_file_gives_what_a_frame_gives(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": ["1", "2", "3", "<2"] * 4, "b": range(16)})
    frame.to_csv(tmp_path / "lab.csv", index=False)
    of_file = plan_columns(read_table(tmp_path / "lab.csv").frame)
    assert of_file[0].reading == plan_columns(frame)[0].reading
