"""What a person would ask about a table is said, and nothing of tables that are in order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from kernelweave.tables import read_table, read_target
from kernelweave.tables.data_checks import check_data

QUICK = ("--target", "y", "--model", "tkl", "--no-compare")


def asked(frame: pd.DataFrame, *, later: bool = False) -> list[str]:
    table = read_table(frame)
    columns = [each for each in table.columns if each != "y"]
    return check_data(table, columns, read_target(table, "y"), later=later)


@pytest.fixture
def sound() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 60))
    return pd.DataFrame({"a": a, "b": b, "word": rng.choice(["u", "v"], 60), "y": a - b**2})


def test_of_a_table_in_order_nothing_is_said(sound: pd.DataFrame) -> None:
    assert asked(sound) == []
    # three columns of few levels meet by chance
    few = pd.DataFrame(np.random.default_rng(1).integers(0, 3, (90, 3)), columns=["a", "b", "y"])
    assert few.duplicated().any()
    assert asked(few) == []
    # and so do many columns that are mostly 0
    rare = pd.DataFrame(np.random.default_rng(2).poisson(0.02, (500, 60)).astype(float))
    assert rare.duplicated().sum() > 50
    assert asked(rare.set_axis([*map("x{}".format, range(59)), "y"], axis=1)) == []


@pytest.mark.parametrize("code", [-999.0, 99.0, -9999.0])
def test_a_code_far_from_all_numbers_may_be_a_gap(sound: pd.DataFrame, code: float) -> None:
    sound.loc[[3, 8], "a"] = code
    (said,) = asked(sound)
    assert f"column 'a': 2 rows hold {code:g}, far from all others" in said


def test_na_among_codes_of_two_letters_may_be_one(sound: pd.DataFrame) -> None:
    sound["country"] = [["NA", "DE", "FR", "US"][i % 4 if i < 8 else 1 + i % 3] for i in range(60)]
    (said,) = asked(sound)
    assert said.startswith("column 'country': NA in 2 rows is read as missing, and all others are")
    assert said.endswith("if it is a code too, rename it, for example to NA1")
    assert asked(sound.astype({"country": "category"})) == []
    assert asked(sound.replace({"country": {"US": "Congo"}})) == []


def test_categories_in_several_spellings_are_said(sound: pd.DataFrame) -> None:
    sound["town"] = [["Ulm", "Bonn", "ulm", "BONN"][i % 4] for i in range(60)]
    (said,) = asked(sound)
    assert said.startswith("column 'town': the categories 'BONN' and 'Bonn' differ only in case")
    # numbers have their units said, and names of rows may differ in case
    weights = [f"{i % 9} {'kg' if i % 2 else 'KG'}" for i in range(60)]
    (said,) = asked(sound.assign(town=weights))
    assert "numbers in several units (kg, KG)" in said
    names = [*"aAbBcCdDeEfFgGhHiIjJkKlLmMnNoOpPqQrRsStTuUvVwWxX", *map(str, range(12))]
    assert asked(sound.assign(town=names)) == []


def test_numbers_that_reach_far_are_none(sound: pd.DataFrame) -> None:
    sound["a"] = np.linspace(900.0, 999.0, 60)
    sound.loc[[3, 8], "b"] = 7.0
    assert asked(sound) == []


def test_numbers_in_several_units_are_words(sound: pd.DataFrame) -> None:
    sound["mass"] = [f"{i} {'lb' if i % 3 else 'kg'}" for i in range(60)]
    (said,) = asked(sound)
    assert said.startswith("column 'mass' has numbers in several units (lb, kg) and is read as")
    sound["mass"] = [f"{i}{'' if i % 3 else ' kg'}" for i in range(60)]
    (said,) = asked(sound)
    assert "(kg, none)" in said
    for last in ("heavy", "130 lb"):
        sound["mass"] = [*(f"{i} kg" for i in range(59)), last]
        assert asked(sound) == []
        sound["mass"] = [*map(str, range(59)), last]
        assert asked(sound) == []


def test_days_that_are_written_as_numbers(sound: pd.DataFrame) -> None:
    sound["day"] = pd.date_range("2024-01-30", periods=60).strftime("%Y%m%d").astype(int)
    shuffled = sound.assign(day=sound["day"].to_numpy()[np.random.default_rng(3).permutation(60)])
    (said,) = asked(shuffled)
    assert said.startswith("column 'day' holds days such as 20240130 and is read as a number")
    assert asked(sound.assign(day=sound["day"] + 31)) == []


@pytest.mark.parametrize("classes", [True, False])
def test_a_column_that_gives_the_target_away(sound: pd.DataFrame, classes: bool) -> None:
    sound["copy"] = 1e200 * (sound.y - 3.0)
    if classes:
        sound["y"] = np.where(sound.y > 0.0, "yes", "no")
        sound["copy"] = np.where(sound.y == "yes", 7, 3)
    (said,) = asked(sound)
    assert "column 'copy' determines the target" in said
    assert "--drop 'copy'" in said


def test_one_row_far_from_all_others_gives_nothing_away(sound: pd.DataFrame) -> None:
    sound.loc[0, ["a", "y"]] = 1e8, 2e8
    assert not any("(leakage)" in each for each in asked(sound))
    sound["copy"] = sound.y.where(np.arange(60) % 3 > 0)
    assert any("target wherever it is known" in each for each in asked(sound))


def test_rows_that_repeat_others(sound: pd.DataFrame) -> None:
    (said,) = asked(pd.concat([sound, sound.iloc[:6]], ignore_index=True))
    assert said.startswith("6 of 66 rows repeat an earlier one, target included")


@pytest.mark.parametrize("step", [1, -1])
def test_rows_in_the_order_of_time(sound: pd.DataFrame, step: int) -> None:
    days = pd.date_range("2024-01-30", periods=60).strftime("%d.%m.%Y")
    sound["day"] = days[::step]
    (said,) = asked(sound)
    assert "sorted by 'day'" in said
    assert asked(sound, later=True) == []
    assert f"--order='day' or pass the {'last' if step > 0 else 'first'} rows as --test" in said
    assert asked(sound.sample(frac=1.0, random_state=0)) == []


def test_a_target_that_hangs_on_a_row(sound: pd.DataFrame) -> None:
    sound.loc[4, "y"] = 1e4
    (said,) = asked(sound)
    assert said == (
        "1 of 60 rows makes up 98 % of the target's variance, row 5 most of all: R² depends on few "
        "rows"
    )
    # of 120 rows two may be named, and one says it
    (said,) = asked(pd.concat([sound, sound.assign(a=0.5, y=sound["b"])], ignore_index=True))
    assert said.startswith("1 of 120 rows makes up 99 % of")
