"""Tables read in batches give what the same rows in memory give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence.columns import ColumnEncoder
from kernelweave.evidence.large.batches import Batch, drawn_table, encoded_blocks, file_batches
from kernelweave.evidence.large.learning import learn_large
from kernelweave.evidence.large.plan import LargePlan
from kernelweave.evidence.path import Plan
from kernelweave.evidence.rows import Rows

# in double precision, for a last bit of a mean moves a float32 by a ten-millionth
PLAN = LargePlan(
    Plan(precisions=(5.0,), max_iter=10), metric_rows=60, first=20, most=40, dtype=np.float64
)


def table(n: int) -> pd.DataFrame:
    state = np.random.RandomState(0)
    frame = pd.DataFrame({"a": state.rand(n), "b": state.rand(n)})
    frame["word"] = np.where(state.rand(n) < 0.5, "red", "blue")
    noise = 0.2 * state.randn(n)
    frame["price"] = np.sin(4 * frame["a"]) + frame["b"] + (frame["word"] == "red") + noise
    return frame.sort_values("price", ignore_index=True)


def written(frame: pd.DataFrame, folder: Path, kind: str) -> Path:
    path = folder / f"table.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_in_batches_is_the_table_in_memory(tmp_path: Path, kind: str) -> None:
    frame = table(600)
    frame.loc[450, "a"] = np.nan
    frame.loc[460, "word"] = "green"
    batches = file_batches(written(frame, tmp_path, kind), "price", size=70)
    encoder = ColumnEncoder().fit(drawn_table(batches, 300, np.random.RandomState(0)).X)
    X, y = frame.drop(columns="price"), frame["price"].to_numpy()
    numeric, codes = encoder.transform(X)
    whole = learn_large(Rows(numeric, codes, y[None]), PLAN, np.random.RandomState(0))
    parts = learn_large(encoded_blocks(batches, encoder), PLAN, np.random.RandomState(0))
    np.testing.assert_allclose(
        parts.predictor.mean(numeric, codes), whole.predictor.mean(numeric, codes), atol=1e-6
    )
    assert parts.record[-1].score > 0.9


def test_a_drawn_table_does_not_depend_on_the_batches(tmp_path: Path) -> None:
    path = written(table(200), tmp_path, "csv")
    one = drawn_table(file_batches(path, "price", size=200), 50, np.random.RandomState(0))
    many = drawn_table(file_batches(path, "price", size=33), 50, np.random.RandomState(0))
    assert one.X.reset_index(drop=True).equals(many.X.reset_index(drop=True))
    np.testing.assert_array_equal(one.y, many.y)


def test_a_gap_in_the_target_names_its_row_in_the_file(tmp_path: Path) -> None:
    frame = table(100)
    frame.loc[77, "price"] = np.nan
    batches = file_batches(written(frame, tmp_path, "csv"), "price", size=30)
    encoder = ColumnEncoder().fit(frame.drop(columns="price"))
    with pytest.raises(ValueError, match="got nan in row 77"):
        list(encoded_blocks(batches, encoder)())


def test_rows_that_are_gone_at_the_second_reading_are_missed() -> None:
    frame = table(300)
    encoder = ColumnEncoder().fit(frame.drop(columns="price"))
    once = iter([Batch(frame.drop(columns="price"), frame["price"].to_numpy())])
    with pytest.raises(ValueError, match="300 rows at first and 0 later"):
        learn_large(encoded_blocks(lambda: once, encoder), PLAN, np.random.RandomState(0))


def test_what_is_no_table_or_has_no_target_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must end in \.parquet or \.csv, got a\.txt"):
        file_batches("a.txt", "price")
    batches = file_batches(written(table(20), tmp_path, "csv"), "cost")
    with pytest.raises(ValueError, match="got 'cost'; it has a, b, word, price"):
        next(batches())
    empty = file_batches(written(table(0), tmp_path, "parquet"), "price")
    with pytest.raises(ValueError, match="at least one row, got none"):
        drawn_table(empty, 10, np.random.RandomState(0))


def test_a_file_that_ends_in_the_middle_is_refused(tmp_path: Path) -> None:
    path = written(table(500), tmp_path, "parquet")
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(ValueError, match=r"[Pp]arquet"):
        next(file_batches(path, "price")())
