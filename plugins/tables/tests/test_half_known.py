"""Targets known by half: limits, ranges, and times up to an event."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernelweave.tables import (
    Event,
    TableError,
    Target,
    choose_event,
    read_table,
    read_target,
    split_by_target,
)
from kernelweave.tables.yes_no import yes_and_no

INF = np.inf


def target_of(cells: list[object], task: str = "auto", *, least: int = 2) -> Target:
    table = read_table(pd.DataFrame({"x": range(len(cells)), "y": cells}))
    return read_target(table, "y", task, least=least)


def target_of_times(times: list[object], events: list[object], wanted: str = "died") -> Target:
    table = read_table(pd.DataFrame({"days": times, "died": events}))
    return read_target(table, "days", event=choose_event(table, wanted, "days"))


def test_limits_and_ranges_are_read_as_their_ends() -> None:
    target = target_of(["1", "2.5", "<0.5", "3-5", "36+", "≥7"] * 4)
    assert target.task == "regression"
    assert target.ends is not None
    expected = [[1, 2.5, -INF, 3, 36, 7], [1, 2.5, 0.5, 5, INF, INF]]
    np.testing.assert_array_equal(target.ends[:, :6], expected)
    np.testing.assert_array_equal(target.values[:6], [1, 2.5, 0.5, 4, 36, 7])
    assert target.reason == (
        "the target is numeric, 16 of 24 rows are limits or ranges, such as '<0.5'"
    )
    np.testing.assert_array_equal(target.learned["low"], target.ends[0])
    np.testing.assert_array_equal(target.learned["high"], target.ends[1])


def test_units_and_decimal_commas_are_those_of_the_column() -> None:
    target = target_of(["1 mg/L", "<0,5 mg/L", "2,5 mg/L", "7"] * 5)
    assert target.ends is not None
    np.testing.assert_array_equal(target.ends[:, :4], [[1, -INF, 2.5, 7], [1, 0.5, 2.5, 7]])
    assert target.unit == "mg/L"
    assert "5 of 20 rows have no unit and are read as mg/L" in target.hint


def test_a_file_gives_what_a_frame_gives(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": range(12), "y": ["1", "<0.5", "2", "4+"] * 3})
    frame.to_csv(tmp_path / "lab.csv", index=False)
    of_file = read_target(read_table(tmp_path / "lab.csv"), "y")
    of_frame = read_target(read_table(frame), "y")
    np.testing.assert_array_equal(of_file.ends, of_frame.ends)


def test_ages_without_a_plain_number_are_classes_unless_asked() -> None:
    ages = ["18-24", "25-64", "65+"] * 5
    assert target_of(ages).task == "classification"
    asked = target_of(ages, "regression")
    np.testing.assert_array_equal(asked.ends[:, :3], [[18, 25, 65], [24, 64, INF]])


def test_few_distinct_values_may_be_classes() -> None:
    children = ["0", "1", "2", "3+"] * 6
    assert "if they are classes, add --task classification" in target_of(children).hint
    assert target_of(children, "regression").hint == ""
    classes = target_of(children, "classification")
    assert (classes.task, classes.ends, set(classes.values)) == (
        "classification", None, {"0", "1", "2", "3+"},
    )  # fmt: skip


def test_many_limits_are_no_classes() -> None:
    with pytest.raises(TableError, match=r"numbers, limits and ranges in 40 rows: .* leave out"):
        target_of([f"{k}{'+' if k % 2 else ''}" for k in range(40)], "classification")


def test_known_targets_are_as_before() -> None:
    target = target_of([1.5, 2.5, 3.5])
    assert (target.ends, target.event, target.unit) == (None, None, "")
    assert target.learned is target.values


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["1", "2", "<5", "abc", "3"], "row 4: 'abc' is not a number, as most cells are"),
        (["1", "2", "<5", "NA", "3"], "row 4: the value is missing"),
        (["1", "2", "3", "5-3", "4"], "row 4: '5-3' is no range from a lower number to a higher"),
        (["1 kg", "2 kg", "<5 kg", "3 m"], "row 4: '3 m' is not a number in kg"),
    ],
)
def test_a_cell_that_is_no_number_is_named(cells: list[object], message: str) -> None:
    with pytest.raises(TableError, match=message):
        target_of(cells)


@pytest.mark.parametrize(("sign", "side"), [(">", "upper"), ("<", "lower")])
def test_limits_on_one_side_alone_teach_nothing(sign: str, side: str) -> None:
    cells: list[object] = [f"{sign}{each}" for each in range(1, 9)]
    with pytest.raises(TableError, match=f"'y' has no {side} limit in any of its 8 rows"):
        target_of(cells, "regression")
    assert target_of(cells, "regression", least=1).ends is not None


@pytest.mark.parametrize(
    "events",
    [
        ["yes", "no"], ["Yes", " NO "], ["Y", "n"], ["TRUE", "false"], [1, 0], ["1", "0"],
        [1.0, 0.0], [True, False],
    ],
)  # fmt: skip
def test_an_event_may_be_written_in_many_ways(events: list[object]) -> None:
    target = target_of_times([3.0, 4.0] * 3, events * 3)
    np.testing.assert_array_equal(target.ends, [[3, 4] * 3, [3, INF] * 3])
    assert target.learned["event"].tolist() == [True, False] * 3
    assert target.learned["time"].tolist() == [3.0, 4.0] * 3
    assert target.reason == "the target is the time up to the event 'died', which 3 of 6 rows had"


@pytest.mark.parametrize(
    ("events", "wanted"),
    [
        (["dead", "alive"], "died=dead"), ([2, 1], "died=2"), ([2.0, 1], "died=2"),
        (["Dead", "alive"], "died=dead"), (["dead", "alive"], "died=DEAD"),
        ([True, False], "died=true"), ([True, False], "died=yes"), ([1, 0], "died=yes"),
        ([False, True], "died=no"), (["yes", "unknown"], "died=Yes"),
    ],
)  # fmt: skip
def test_the_value_that_is_the_event_may_be_told(events: list[object], wanted: str) -> None:
    target = target_of_times([3, 4] * 3, events * 3, wanted)
    np.testing.assert_array_equal(target.ends, [[3, 4] * 3, [3, INF] * 3])
    assert target.event == Event("died", wanted.partition("=")[2])


def test_words_truth_values_and_numbers_say_yes_and_no() -> None:
    cells = [True, "Y", 1, 1.0, np.True_, False, " no ", 0, "0.0", "dead", 2, None, np.nan, pd.NA]
    yes, no = yes_and_no(cells)
    assert yes.tolist() == [True] * 5 + [False] * 9
    assert no.tolist() == [False] * 5 + [True] * 4 + [False] * 5
    for dtype in ("boolean", "Int64", "category", object):
        yes, no = yes_and_no(pd.Series([1, 0, None], dtype=dtype))
        assert (yes.tolist(), no.tolist()) == ([True, False, False], [False, True, False]), dtype


def test_a_column_whose_name_has_an_equals_sign_is_itself() -> None:
    table = read_table(pd.DataFrame({"t": [1, 2], "a=b": [1, 0]}))
    assert choose_event(table, "a=b", "t") == Event("a=b")


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (["dead", "alive"], "row 1: 'dead' is not yes or no, .* --event died=VALUE .*'alive'"),
        ([1, 2], "row 2: '2' is not yes or no"),
        (["yes", None], "row 2: the value is missing, and the time is known"),
        (["no", "no"], "no time has ended by the event 'died' in any of its 6 rows"),
    ],
)
def test_an_event_that_is_not_yes_or_no_is_refused(events: list[object], message: str) -> None:
    with pytest.raises(TableError, match=message):
        target_of_times([3, 4] * 3, events * 3)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([3, -4], "row 2: the time -4 is below 0"),
        (["3", "4+"], r"row 2: '4\+' is a limit, and --event says already"),
        (["3", "abc"], "row 2: 'abc' is not a number"),
    ],
)
def test_a_time_that_is_none_is_refused(times: list[object], message: str) -> None:
    with pytest.raises(TableError, match=message):
        target_of_times(times * 3, ["yes", "no"] * 3)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("dead", "has no column 'dead'; did you mean 'died'"),
        ("dead=yes", "has no column 'dead'; did you mean 'died'"),
        ("days", "--event 'days' is the target"),
        ("died=ye", "no cell of column 'died' .* is 'ye'; did you mean 'yes'"),
    ],
)
def test_an_event_that_is_not_there_is_refused(wanted: str, message: str) -> None:
    with pytest.raises(TableError, match=message):
        target_of_times([3, 4] * 3, ["yes", "no"] * 3, wanted)


def test_an_event_is_no_class() -> None:
    table = read_table(pd.DataFrame({"days": [1, 2] * 3, "died": [1, 0] * 3}))
    with pytest.raises(TableError, match=r"--event 'died' is for times, .* leave out --event or"):
        read_target(table, "days", "classification", event=Event("died"))


def test_rows_without_a_time_are_to_predict() -> None:
    frame = pd.DataFrame({"y": ["1", "2", "NA", "<4", ""]})
    known, unknown = split_by_target(read_table(frame), "y")
    assert known.frame["y"].tolist() == ["1", "2", "<4"]
    assert unknown is not None
    assert [unknown.where(k) for k in range(2)] == ["row 3", "row 5"]
