"""What a person would ask about a table is said, and nothing of tables that are in order."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernelweave.tables import read_table, read_target
from kernelweave.tables.data_checks import check_data, shared_rows

QUICK = ("--target", "y", "--model", "tkl", "--no-compare")


def asked(frame: pd.DataFrame) -> list[str]:
    table = read_table(frame)
    return check_data(
        table, [each for each in table.columns if each != "y"], read_target(table, "y")
    )


@pytest.fixture
def sound() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 60))
    return pd.DataFrame({"a": a, "b": b, "word": rng.choice(["u", "v"], 60), "y": a - b**2})


def test_fit_says_each_thing_once(run: Callable, tmp_path: Path, sound: pd.DataFrame) -> None:
    sound["id"] = np.arange(60)
    sound["a"] = [*map(str, sound.a[:59]), "oh"]
    sound["copy"] = sound.y
    sound.to_csv(tmp_path / "t.csv", index=False)
    done = run("fit", tmp_path / "t.csv", *QUICK, "--out", tmp_path / "m.kw")
    assert done.status == 0
    said = " ".join((done.out + done.err).split())
    assert said.count("looks like a row ID") == 1
    assert said.count("read as missing values") == 1
    assert said.count("(leakage)") == 1
    # and the page has it too
    run("report", tmp_path / "m.kw")
    page = (tmp_path / "m.html").read_text()
    assert page.count("(leakage)") == 1
    found = json.loads(run("fit", tmp_path / "t.csv", *QUICK, "--json").out)
    assert ["(leakage)" in each for each in found["notes"]] == [True]


def test_a_test_of_rows_learned_from_is_none(
    run: Callable, tmp_path: Path, sound: pd.DataFrame
) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    sound.assign(n=range(0, 180, 3)).iloc[:40].to_csv(first, index=False)
    sound.assign(n=np.arange(0.0, 180.0, 3.0)).iloc[30:].to_csv(second, index=False)
    done = run("fit", first, *QUICK, "--test", second)
    assert done.err.count(f"10 of the 30 rows of {second} are training rows") == 1
    apart = read_table(sound.iloc[:40]), read_table(sound.iloc[40:])
    assert shared_rows(*apart, list(sound)) == []
    # a gap in one of both files makes no cell of the other another
    gap = sound.copy()
    gap.loc[0, "b"] = np.nan
    (said,) = shared_rows(read_table(gap), read_table(sound.iloc[30:]), list(sound))
    assert said.startswith("30 of the 30 rows")
