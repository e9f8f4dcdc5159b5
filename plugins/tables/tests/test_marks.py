"""Cells as laboratories, surveys and spreadsheets write them beside plain numbers."""

from __future__ import annotations

import datetime
import re

import numpy as np
import pandas as pd
import pytest
from kernelweave.tables import ColumnWarning, plan_columns, read_table, read_target
from kernelweave.tables.columns import Numbers, Words
from kernelweave.tables.data_checks import check_data
from kernelweave.tables.new_cells import dates_of, numbers_of
from kernelweave.tables.plans import ColumnPlan
from kernelweave.tables.written import WrittenNumbers

PLAIN = [f"{x:.1f}" for x in np.random.default_rng(0).uniform(1, 100, 60)]


def words(cells: list[str]) -> Words:
    codes, labels = pd.factorize(pd.Series(cells, dtype="str"))
    return Words(codes.astype(np.int64), tuple(labels))


def plan_of(cells: list[str], **kinds: str) -> ColumnPlan:
    return plan_columns(pd.DataFrame({"a": [*cells, *PLAIN[len(cells) :]]}), kinds)[0]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["\u22125", "\u22123.5", "\u20137.2"], [-5.0, -3.5, -7.2]),
        (["５", "１２．５", "－３"], [5.0, 12.5, -3.0]),
        (["≈5", "~ 7", "~8.5"], [5.0, 7.0, 8.5]),
        (["5*", "7.5 *", "8†", "9**"], [5.0, 7.5, 8.0, 9.0]),
        (["5.20-", "1,234.50-", "1,234.50"], [-5.2, -1234.5, 1234.5]),
    ],
)
def test_marks_change_no_number(cells: list[str], values: list[float]) -> None:
    plan = plan_of(cells)
    assert (plan.kind, plan.unit) == ("number", "")
    assert isinstance(plan.reading, WrittenNumbers)
    np.testing.assert_array_equal(plan.reading.read(cells), values)


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["(0.3)", "(0.4)"], r"brackets, as in '\(0.3\)', are a minus sign"),
        (["5*", "7*", "9*"], r"'5\*' is read as 5"),
    ],
)
def test_a_plan_says_what_marks_are_read_as(cells: list[str], said: str) -> None:
    assert re.fullmatch(rf"Text read as numbers; {said}\.", plan_of(cells).remark)


@pytest.mark.filterwarnings("ignore::kernelweave.tables.ColumnWarning")
def test_ranges_may_lie_below_zero() -> None:
    plan = plan_of(["-3 - -1", "-3--1", "-5-3", "\u22124\u2013\u22122"])
    assert plan.reading.sides == ("between",)
    np.testing.assert_array_equal(
        plan.reading.read(["-3--1", "-5-3", "-1--3"]), [-2.0, -1.0, np.nan]
    )


@pytest.mark.parametrize(
    "cells",
    [["<LOD", "<LOQ", "ND", "n.d.", "not detected"], ["-", "\u2212", "\u2013", ".", "..."]],
)
def test_what_was_not_measured_is_missing_however_it_is_written(cells: list[str]) -> None:
    with pytest.warns(ColumnWarning, match="'a' holds numbers, but 5 of 60 rows hold text"):
        plan = plan_of(cells)
    assert plan.kind == "number"
    # of a new row alone too
    with pytest.warns(ColumnWarning, match="1 of 1 rows holds text"):
        assert np.isnan(numbers_of(words(cells[:1]), plan.reading, "a")).all()
    with pytest.raises(ValueError, match="in training and holds text now, such as 'x'"):
        numbers_of(words([cells[0], "x"]), plan.reading, "a")


def test_signs_among_a_few_numbers_are_categories() -> None:
    assert plan_columns(pd.DataFrame({"a": ["-", "+", "0", "1", "."] * 6}))[0].kind == "category"


def test_errors_of_a_spreadsheet_are_missing() -> None:
    plan = plan_of(["#DIV/0!", "#VALUE!", "#REF!", "#N/A", "#NUM!"])
    assert (plan.kind, plan.remark) == ("number", "")


def test_a_unit_that_only_limits_have_is_that_of_the_column() -> None:
    with pytest.warns(ColumnWarning, match="57 of 60 rows have no unit and are read as mg/L"):
        plan = plan_of(["<0.5 mg/l", "< 0.5 mg/l", ">90 mg/l"])
    assert (plan.unit, plan.reading.sides) == ("mg/L", ("below", "above"))


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([f"<{x}" for x in PLAIN], "Limits such as '<64.1' remain categories, since few"),
        (["18-24", "25-64", "65+"] * 20, r"Limits such as '65\+' remain categories, since few"),
        ([f"{x} mg" for x in PLAIN[:30]] + [f"{x} g" for x in PLAIN[30:]],
         r"Numbers in several units \(mg, g\) are categories"),
    ],
)  # fmt: skip
def test_numbers_that_stay_categories_are_told(cells: list[str], said: str) -> None:
    plan = plan_columns(pd.DataFrame({"a": cells}))[0]
    assert plan.kind == "category"
    assert re.match(said, plan.remark)


def test_codes_of_two_numbers_are_not_called_numbers() -> None:
    rng = np.random.default_rng(0)
    codes = [f"{a}-{b}" for a, b in rng.integers(10, 60, (60, 2))]
    plan = plan_columns(pd.DataFrame({"a": codes}))[0]
    assert (plan.kind, plan.remark) == ("category", "")


@pytest.mark.parametrize(("cell", "value"), [("<5", 5.0), (">7", 7.0), ("3-5", 4.0)])
def test_limits_in_new_rows_alone_are_told(cell: str, value: float) -> None:
    said = f"'a': 2 rows are limits or ranges as training had none, such as '{cell}', taken as a "
    with pytest.warns(ColumnWarning, match=f"{said}measured {value:g}"):
        np.testing.assert_array_equal(
            numbers_of(words([cell, "1", cell]), None, "a"), [value, 1.0, value]
        )
    reading = WrittenNumbers(sides=("below", "between", "above"))
    np.testing.assert_array_equal(numbers_of(words([cell, "1"]), reading, "a"), [value, 1.0])


def test_marks_of_a_target_are_no_part_of_its_number() -> None:
    frame = pd.DataFrame({"a": ["\u22121.5", "~2", "3*", "4"], "b": range(4)})
    assert read_table(frame).frame["a"].tolist() == [-1.5, 2.0, 3.0, 4.0]


def test_an_empty_column_of_new_rows_is_missing() -> None:
    empty = Words(np.array([-1, -1]), ())
    assert np.isnan(numbers_of(empty, WrittenNumbers(sides=("below",)), "a")).all()


@pytest.mark.parametrize(
    ("known", "new", "said"),
    [
        ("13/07/2024", "07/14/2024", "has the month first, and the dates of training were"),
        ("07/13/2024", "14/07/2024", "has the day first, and the dates of training were"),
    ],
)
def test_a_date_in_the_other_order_is_refused(known: str, new: str, said: str) -> None:
    frame = pd.DataFrame({"a": [known, known.replace("13", "12")] * 10})
    plan = plan_columns(frame)[0]
    with pytest.raises(ValueError, match=f"column 'a': '{new}' {said}"):
        dates_of(words([known, new]), plan.reading, "a")


@pytest.mark.parametrize(
    ("ways", "unit"),
    [
        (["mg/l", "mg/L", "mg / l"], "mg/L"),
        (["\u00b5g/l", "\u03bcg/L"], "\u03bcg/L"),
        (["ml", "mL"], "mL"),
        (["mm Hg", "mmHg"], "mmHg"),
        (["10^9/l", "10^9 / L"], "10^9/L"),
    ],
)
def test_a_unit_is_one_however_it_is_written(ways: list[str], unit: str) -> None:
    cells = [f"{x} {ways[i % len(ways)]}" for i, x in enumerate(PLAIN)]
    plan = plan_columns(pd.DataFrame({"a": cells}))[0]
    assert (plan.kind, plan.unit) == ("number", unit)
    np.testing.assert_array_equal(numbers_of(words(cells), plan.reading, "a"), np.float64(PLAIN))
    # in another way than in training
    np.testing.assert_array_equal(numbers_of(words([f"7 {ways[-1]}"]), plan.reading, "a"), 7.0)


@pytest.mark.parametrize("rest", [[1.5] * 9, [1.5, "<2"] * 5])
def test_a_date_that_a_spreadsheet_made_of_a_range_is_told(rest: list[object]) -> None:
    frame = pd.DataFrame({"a": [*rest, datetime.datetime(2024, 5, 3)]})
    said = f"column 'a' has the date 2024-05-03 in row {len(rest)} beside numbers: spreadsheet"
    with pytest.raises(TypeError, match=said):
        plan_columns(frame)


def test_codes_of_missing_values_are_found_beside_limits() -> None:
    cells = ["-999" if i % 9 == 0 else "<0.5" if i % 5 == 0 else x for i, x in enumerate(PLAIN)]
    table = read_table(pd.DataFrame({"a": cells, "y": np.random.default_rng(1).normal(size=60)}))
    notes = check_data(table, ["a"], read_target(table, "y"))
    assert [note[:46] for note in notes] == ["column 'a': 7 rows hold -999, far from all oth"]


def test_rows_without_a_unit_are_told_once_where_training_had_some() -> None:
    with pytest.warns(ColumnWarning, match="57 of 60 rows have no unit"):
        plan = plan_of(["<5 mg", "<7 mg", "<8 mg"])
    np.testing.assert_array_equal(numbers_of(words(["4", "5 mg"]), plan.reading, "a"), [4.0, 5.0])
    plain = Numbers(np.array([4.0]))
    np.testing.assert_array_equal(numbers_of(plain, plan.reading, "a"), [4.0])
