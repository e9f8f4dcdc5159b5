"""What a column is: the same for files, frames of every library, arrays; dates, amounts, kinds."""

from __future__ import annotations

import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from kernelweave.kernels_core import KernelWeaveWarning
from kernelweave.tables import READERS, ColumnWarning, plan_columns, read_table
from kernelweave.tables.columns import Numbers, Words
from kernelweave.tables.dates import DateParts, read_dates
from kernelweave.tables.frames import read_columns
from kernelweave.tables.new_cells import dates_of, numbers_of
from kernelweave.tables.plans import extent, is_identifier
from kernelweave.tables.written import WrittenNumbers

CELLS: dict[str, tuple[list[str], str, str, list[float]]] = {
    "mass": (["71.8 kg", "5 kg", "6.25 kg", "8 kg"], "number", "kg", [71.8, 5.0, 6.25, 8.0]),
    "cost": (["$1,234.50", "$7", "-$3", "($2)"], "number", "$", [1234.5, 7.0, -3.0, -2.0]),
    "share": (["5 %", "12.5%", "7 %", "9 %"], "number", "%", [5.0, 12.5, 7.0, 9.0]),
    "start": (
        ["12:26", "0:30", "1:15 pm", "23:45"],
        "number",
        "h",
        [12 + 26 / 60, 0.5, 13.25, 23.75],
    ),
    "plain": (["3", "NA", "5.5", "-1"], "number", "", [3.0, np.nan, 5.5, -1.0]),
    "zip": (["01067", "80331", "20095", "50667"], "category", "", []),
    "town": (["Ulm", "Bonn", "?", "Ulm"], "category", "", []),
    "mixed": (["5 kg", "6 lb", "7 kg", "8 lb"], "category", "", []),
}


@pytest.mark.parametrize("door", ["pandas", "polars", "arrow", "array", "list", "CSV", "JSON"])
def test_a_cell_is_the_same_at_every_door(tmp_path: Path, door: str) -> None:
    frame = pd.DataFrame({name: cells for name, (cells, *_) in CELLS.items()})
    made: Any = frame
    if door == "polars":
        made = pl.from_pandas(frame)
    elif door == "arrow":
        made = pl.from_pandas(frame).to_arrow()
    elif door in ("array", "list"):
        made = frame.to_numpy(object)
        made = made.tolist() if door == "list" else made
    elif door == "CSV":
        frame.to_csv(tmp_path / "t.csv", index=False)
        made = read_table(tmp_path / "t.csv").inputs(list(frame.columns))
    elif door == "JSON":
        frame.to_json(tmp_path / "t.json", orient="records")
        made = read_table(tmp_path / "t.json").inputs(list(frame.columns))
    plans, rows = plan_columns(made), read_columns(made)
    for plan, raw, (_, kind, unit, values) in zip(plans, rows.columns, CELLS.values(), strict=True):
        assert (plan.kind, plan.unit) == (kind, unit), plan
        if isinstance(plan.reading, WrittenNumbers):
            found = numbers_of(raw, plan.reading, plan.column, comma=rows.comma)
            np.testing.assert_allclose(found, values)


@pytest.mark.filterwarnings("error")
def test_what_a_separator_says_goes_along_with_the_frame(tmp_path: Path) -> None:
    """1,234 is a thousand between commas and a part between semicolons, also beside other rows."""
    for separator, number in ((",", 1234.0), (";", 1.234)):
        path = tmp_path / "t.csv"
        path.write_text(f'a{separator}b\n"1,234 kg"{separator}x\n"5,678 kg"{separator}y\n')
        table = read_table(path)
        rows = read_columns(table.inputs(["a", "b"]).iloc[[0]])
        (plan, _) = plan_columns(table.inputs(["a", "b"]).iloc[[0]])
        assert isinstance(plan.reading, WrittenNumbers)
        values = numbers_of(rows.columns[0], plan.reading, "a", comma=rows.comma)
        assert values.tolist() == [number] == table.frame["a"].tolist()[:1]
        # pandas drops attributes of frames that are joined
        both = pd.concat([table.inputs(["a"]), pd.DataFrame({"a": ["9 kg"]})])
        (plan,), joined = plan_columns(both), read_columns(both)
        assert isinstance(plan.reading, WrittenNumbers)
        values = numbers_of(joined.columns[0], plan.reading, "a", comma=joined.comma)
        assert values.tolist() == [*table.frame["a"], 9.0]


FORMATS = (
    *("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%m/%d/%y", "%d.%m.%y"),
    *(
        "%d-%b-%y",
        "%d %b %Y",
        "%b %d, %Y",
        "%Y-%m-%d %H:%M:%S",
        "%m/%d/%Y %I:%M %p",
        "%Y%m%dT%H%M%S",
    ),
    *("%Y年%m月%d日", "%a, %d %b %Y %H:%M:%S +0000", "%d/%b/%Y:%H:%M:%S +0000"),
)


@pytest.mark.parametrize("odd", [None, "pending", "31.02.2021"])
@pytest.mark.parametrize("form", FORMATS)
def test_the_range_of_dates_is_read_by_the_format_that_was_found(
    form: str, odd: str | None
) -> None:
    days = pd.Series(pd.date_range("2021-02-27", periods=40, freq="17D")[::-1])
    cells = days.dt.strftime(form).tolist()
    # one stray word among many dates is a missing value, and so is a day that there is not
    cells[5] = odd
    table = pd.DataFrame({"when": cells})
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        (plan,), rows = plan_columns(table), read_columns(table)
    assert [f"such as {odd!r} in row 5, read as missing" in str(each.message) for each in said] == (
        [] if odd is None else [True]
    )
    assert plan.kind == "date", plan
    found = extent(plan, rows.columns[0])
    assert found == {"range": f"2021-02-27 to {days.max():%Y-%m-%d}", "missing": 1}


@pytest.mark.parametrize(("form", "is_told"), [("%d.%m.%Y", False), ("%m/%d/%Y", True)])
def test_with_points_the_day_stands_first(form: str, is_told: bool) -> None:
    """Of the first days of months nothing else tells."""
    days = pd.date_range("2020-01-01", periods=12, freq="MS" if not is_told else "D")
    table = pd.DataFrame({"when": days.strftime(form)})
    if is_told:
        doubt = "such as 01/02/2020 are read with the month first"
        with pytest.warns(ColumnWarning, match=doubt):
            (plan,) = plan_columns(table)
        beside = pd.DataFrame({"when": [*days.strftime(form), "2020-05-31"] * 2})
        more = pd.DataFrame({"when": pd.date_range("2020-02-01", periods=12).strftime(form)})
        with pytest.warns(ColumnWarning, match=doubt):
            plan_columns(pd.concat([beside, more], ignore_index=True))
    else:
        (plan,) = plan_columns(table)
    assert plan.parameters["format"] == form
    assert extent(plan, read_columns(table).columns[0])["range"] == (
        f"{days.min():%Y-%m-%d} to {days.max():%Y-%m-%d}"
    )


def test_the_user_says_what_a_column_is() -> None:
    table = pd.DataFrame({
        "dept": [1, 2, 3, 4] * 6,
        "grade": ["1", "2", "x", "y"] * 6,
        "when": ["3", "4", "5", "6"] * 6,
        "day": ["2024-05-31", "2024-06-01", "2024-06-02", "2024-06-04"] * 6,
    })  # fmt: skip
    assert [plan.kind for plan in plan_columns(table)] == ["number", "category", "number", "date"]
    kinds = {"dept": "category", "grade": "number", "when": "ignore", "day": "category"}
    with pytest.warns(ColumnWarning, match="'grade' holds numbers, but 12 of 24 rows hold text"):
        plans = plan_columns(table, kinds)
    assert {plan.column: plan.kind for plan in plans} == kinds
    assert [plan.used for plan in plans] == [True, True, False, True]
    with pytest.raises(ValueError, match="column 'when' cannot be read as a date: it contains '3'"):
        plan_columns(table, {"when": "date"})
    words = {"when": ["soon", "Q3", "late"] + ["31.12.2024", "13.1.2025"] * 6}
    amounts = {"price": ["<5 €", "tbd", "see note", "1,5 €", "2 €", "3 €", "1.204,5 €"] * 3}
    with pytest.warns(ColumnWarning, match="3 of 15 rows hold text"):
        (plan,) = plan_columns(pd.DataFrame(words), {"when": "date"})
    assert (plan.kind, plan.parameters["format"]) == ("date", "%d.%m.%Y")
    told = pytest.warns(ColumnWarning, match="3 rows are limits or ranges, such as '<5 €'")
    with told, pytest.warns(ColumnWarning, match="6 of 21 rows hold text"):
        (plan,) = plan_columns(pd.DataFrame(amounts), {"price": "number"})
    read = {"unit": "€", "decimal": ",", "sides": ("below",), "halved": True}
    assert (plan.kind, plan.parameters) == ("number", read)
    table = pd.DataFrame({"when": ["2024-05-31", "1.6.2024", "2 June 2024", "2024/06/03"]})
    with pytest.raises(ValueError, match="such as '2024-05-31' look like dates, but in no known"):
        plan_columns(table, {"when": "date"})


def test_many_words_among_numbers_or_dates_are_told() -> None:
    numbers = [*map(str, range(9)), "few", "tbd", "see note"]
    days = [*pd.date_range("2024-01-30", periods=9).strftime("%d.%m.%Y"), "soon", "2019?", "late"]
    few = ["1", "2", "x", "y"] * 3
    units = [*(f"{i} kg" for i in range(6)), "200 g", "300 g", "100 g", "x", "y", "z"]
    plans = plan_columns(pd.DataFrame({"a": numbers, "b": days, "c": few, "d": units}))
    assert [plan.kind for plan in plans] == ["category"] * 4
    assert plans[0].remark == (
        "9 of 12 rows are numbers, and the others text, such as 'few'; to use the numbers, with "
        "text as missing values, set its kind to 'number'."
    )
    assert plans[1].remark.startswith("9 of 12 rows are dates, and the others text, such as 'soon'")
    assert plans[1].remark.endswith("set its kind to 'date'.")
    assert plans[2].remark == ""
    # as numbers in kg, those in g would be missing
    assert plans[3].remark == ""


def test_days_in_eight_digits_are_dates_where_the_user_says_so() -> None:
    days = pd.DataFrame({"when": [20240531, 20240601, 20250228]})
    (plan,) = plan_columns(days, {"when": "date"})
    assert plan.parameters["format"] == "%Y%m%d"
    assert isinstance(plan.reading, DateParts)
    parts = dates_of(read_columns(days).columns[0], plan.reading, "when")
    np.testing.assert_array_equal(parts[:, :3], [[2024, 5, 31], [2024, 6, 1], [2025, 2, 28]])


def test_a_plan_prints_and_is_data() -> None:
    table = pd.DataFrame(
        {"a": ["1.234,5 €", "2 €"], "b": ["31.12.2024", "13.1.2025"], "c": ["u", "v"]}
    ).assign(d=["1,5", "2,25"], e=["1.5", ""], f=["(78)", "3"])
    plans = plan_columns(table)
    assert str(plans[0]) == "a: number (unit €, decimal ,). Numbers in €."
    assert str(plans[1]).startswith("b: date (format %d.%m.%Y, names year, month, day")
    assert str(plans[2]) == "c: category"
    assert str(plans[3]) == "d: number (decimal ,). Numbers with decimal commas."
    assert plans[4].remark == ""
    said = "Text read as numbers; brackets, as in '(78)', are a minus sign."
    assert plans[5].remark == said
    assert plans[0].parameters == {"unit": "€", "decimal": ","}
    assert pickle.loads(pickle.dumps(plans)) == plans


def test_a_reader_of_the_users_own_is_asked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def read_degrees(words: Words, comma: str) -> tuple[WrittenNumbers, str] | None:
        if not all(each.endswith(" deg") for each in words.labels):
            return None
        return WrittenNumbers(unit="deg"), "as my reader says"

    monkeypatch.setattr("kernelweave.tables.plans.READERS", [read_degrees, *READERS])
    table = pd.DataFrame({"a": ["3 deg", "4 deg"], "b": ["3 m", "4 m"]})
    with pytest.warns(ColumnWarning, match="column 'a': as my reader says"):
        a, b = plan_columns(table)
    assert (a.unit, b.unit) == ("deg", "m")


def test_many_different_words_cost_little() -> None:
    """A column that is no numbers is left after its first hundred words."""
    seen = []

    class Cell(str):
        def strip(self, *args: Any) -> str:
            seen.append(self)
            return super().strip(*args)

    cells = [Cell(f"name {i}") for i in range(1000)]
    assert WrittenNumbers.fit(cells, [1.0] * len(cells)) is None
    assert len(seen) <= 100
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (plan,) = plan_columns(pd.DataFrame({"a": [f"name {i}" for i in range(1000)]}))
    assert plan.kind == "category"


def words(*cells: str) -> Words:
    (raw,) = read_columns(pd.DataFrame({"a": cells})).columns
    assert isinstance(raw, Words)
    return raw


def test_new_rows_are_numbers_where_training_held_numbers() -> None:
    kilograms = WrittenNumbers(unit="kg")
    with pytest.raises(ValueError, match=r"'a' held numbers in training and holds dates now"):
        numbers_of(
            read_columns(pd.DataFrame({"a": pd.date_range("2024", periods=2)})).columns[0],
            None,
            "a",
        )
    with pytest.raises(ValueError, match="holds text now, such as 'red'"):
        numbers_of(words("red", "blue"), None, "a")
    with pytest.raises(ValueError, match=r"'a' is in lb, and was in kg in .*convert it to kg"):
        numbers_of(words("5 lb", "6 lb"), kilograms, "a")
    with pytest.warns(UserWarning, match="has no unit, and was in kg"):
        assert numbers_of(Numbers(np.array([5.0, 6.0])), kilograms, "a").tolist() == [5.0, 6.0]
    with pytest.warns(UserWarning, match="is in kg, and had no unit in the training data"):
        assert numbers_of(words("5 kg", "6 kg"), None, "a").tolist() == [5.0, 6.0]


def test_new_rows_are_dates_where_training_held_dates() -> None:
    days = DateParts("%Y-%m-%d", "", ("year", "month", "day", "weekday", "days since 1970"))
    assert np.isnan(dates_of(Numbers(np.full(3, np.nan)), days, "a")).all()
    with pytest.raises(ValueError, match="'a' held dates in training and holds numbers now"):
        dates_of(Numbers(np.array([1.0, np.nan])), days, "a")
    with pytest.warns(ColumnWarning, match=r"1 of 3 rows holds text, such as 'soon' in row 8"):
        parts = dates_of(words("2024-05-01", "soon", "2024-05-03"), days, "a", 7)
    np.testing.assert_array_equal(parts[0], [2024, 5, 1, 3, 19844])
    assert np.isnan(parts[1]).all()
    with pytest.raises(ValueError, match=r"held dates of the format %Y-.*such as 'soon'"):
        dates_of(words("soon", "late"), days, "a")


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S%z", ""])
def test_moments_with_a_zone_are_read_as_in_frames(form: str) -> None:
    hours = DateParts(form, "UTC" if "%z" in form else "", ("hour", "days since 1970"))
    given = ["2020-01-01T10:00Z", "2020-07-01 10:00:00+02:00", "2020-01-01 10:00", "2020-01-01"]
    (frame,) = read_columns(
        pd.DataFrame({"a": pd.to_datetime(given[:2], format="ISO8601", utc=True)})
    ).columns
    np.testing.assert_array_equal(dates_of(words(*given), hours, "a")[:, 0], [10, 8, 10, 0])
    np.testing.assert_array_equal(
        dates_of(words(*given[:2]), hours, "a"), dates_of(frame, hours, "a")
    )
    # a zone without an hour tells nothing
    for odd in ("2020-01-01-05", "2020-01-01+02:00", "2020-01-01Z"):
        with pytest.raises(ValueError, match=f"none now, but text such as {re.escape(repr(odd))}"):
            dates_of(words(odd, "2020-02-02+1"), hours, "a")


def test_new_dates_may_be_iso_whatever_training_held() -> None:
    days = DateParts("%d %B %Y", "", ("month", "days since 1970"))
    parts = dates_of(words("12 November 2019", "2019-12-03", "2019-12-03 10:00"), days, "a")
    np.testing.assert_array_equal(parts[:, 0], [11, 12, 12])


def test_words_are_dates_of_one_format_where_training_held_dates() -> None:
    given = DateParts("", "", ("month", "days since 1970"))
    parts = dates_of(words("05.06.2022", "23.06.2022", "07.12.2022"), given, "a")
    np.testing.assert_array_equal(parts[:, 0], [6, 6, 12])
    # a single one has its day first too, as in training
    np.testing.assert_array_equal(dates_of(words("05.06.2022"), given, "a")[:, 0], [6])
    # whatever stands beside it
    with pytest.warns(ColumnWarning, match="hold"):
        beside = dates_of(words("05.06.2022", "unknown", "tbd", "2022-07-08"), given, "a")
    np.testing.assert_array_equal(beside[:, 0], [6, np.nan, np.nan, 7])


def test_iso_dates_stand_beside_others_where_the_user_says_that_it_is_a_date() -> None:
    days = pd.DataFrame({"when": ["soon", "Q3", "late", "2024-05-31", *["31.12.2024"] * 9]})
    with pytest.warns(ColumnWarning, match="3 of 13 rows hold text"):
        (plan,) = plan_columns(days, {"when": "date"})
    assert plan.parameters["format"] == "%d.%m.%Y"


def test_an_identifier_tells_rows_apart_and_nothing_else() -> None:
    apart = np.array([7.0, 3.0, 9.0, 1.0] + [float(value) for value in range(20, 60)])
    assert is_identifier("customer id", Numbers(apart, whole=True))
    assert not is_identifier("age", Numbers(apart, whole=True))
    assert not is_identifier("customer id", Numbers(np.floor(apart / 2.0), whole=True))
    assert not is_identifier("customer id", Numbers(apart))
    assert is_identifier("age", Numbers(np.arange(1.0, 41.0), whole=True))
    some_left_out = np.setdiff1d(np.arange(1.0, 51.0), [1.0, 7.0, 8.0, 30.0, 50.0])
    assert is_identifier("age", Numbers(some_left_out, whole=True))
    assert not is_identifier("age", Numbers(np.arange(21.0, 61.0), whole=True))


def test_warnings_are_of_the_line_that_calls(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("Preise\n\nnéw;x;y\n;;\n1;2;3\n".encode("cp1252"))
    odd = pd.DataFrame({"x": [*map(str, range(40)), "unknown"]})
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always", KernelWeaveWarning)
        read_table(path)
        plan_columns(odd)
    assert len(given) == 4
    assert {each.filename for each in given} == {__file__}


def test_the_day_is_first_where_only_so_the_rows_are_in_order() -> None:
    """Every other day from 1 January: no day is above 12 in the first rows of a file."""
    days = pd.date_range("2018-01-01", periods=120, freq="2D")
    days = days[days.day <= 12]
    in_order = pd.DataFrame({"day": days.strftime("%d/%m/%Y")})
    with pytest.warns(ColumnWarning, match="the day first, since only so the rows are in order"):
        plan = plan_columns(in_order)[0]
    assert plan.parameters["format"] == "%d/%m/%Y"
    american = pd.DataFrame({"day": days.strftime("%m/%d/%Y")})
    assert plan_columns(american)[0].parameters["format"] == "%m/%d/%Y"
    mixed = in_order.sample(frac=1.0, random_state=0)
    with pytest.warns(ColumnWarning, match="month first, and might be meant with the day first"):
        plan = plan_columns(mixed)[0]
    assert plan.parameters["format"] == "%m/%d/%Y"
    assert plan_columns(mixed, {"day": "day first"})[0].parameters["format"] == "%d/%m/%Y"
    with pytest.raises(ValueError, match=r"with the day first: it contains '12/25/2024'"):
        plan_columns(pd.DataFrame({"day": ["12/25/2024", "1/2/2025"]}), {"day": "day first"})


def test_a_new_date_that_contradicts_the_month_first_is_refused() -> None:
    words = as_words(pd.Series(["01/02/2018", "03/04/2018"]))
    parts = read_dates(words)
    assert parts is not None
    with pytest.raises(ValueError, match="'25/01/2018' has the day first, and the dates of train"):
        dates_of(as_words(pd.Series(["25/01/2018", "03/02/2018"])), parts, "day")


def as_words(series: pd.Series) -> Words:
    codes, labels = pd.factorize(series)
    return Words(codes.astype(np.int64), tuple(labels))


@pytest.mark.parametrize("mark", ["'", "\u2019", "\u2009"])
def test_swiss_thousands(mark: str) -> None:
    table = pd.DataFrame({"netto": [f"45{mark}697.74", f"1{mark}234{mark}567", "12.5"]})
    reading = plan_columns(table)[0].reading
    np.testing.assert_allclose(reading.read(table.netto.tolist()), [45697.74, 1234567.0, 12.5])
