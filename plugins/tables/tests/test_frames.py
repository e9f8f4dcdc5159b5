"""Tables from Python: pandas, polars, Arrow; columns by name, one model for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from kernelweave.tables import TableError, choose_target, read_table, read_target

CELLS = {"a": [1, 2, 3], "b": [0.5, -1.0, 2.0], "t": [True, False, True], "y": ["u", "v", "u"]}


class Stream:
    """Only the Arrow stream interface."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


MAKERS = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "stream": lambda cells: Stream(pa.table(cells)),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_every_library_gives_the_same_table(make: Any) -> None:
    table = read_table(make(CELLS), target="y")
    assert table.columns == ["a", "b", "t", "y"]
    np.testing.assert_array_equal(
        table.inputs(["t", "b", "a"]), [[1, 0.5, 1], [0, -1, 2], [1, 2, 3]]
    )
    target = read_target(table, choose_target(table, None))
    assert target.values.tolist() == ["u", "v", "u"]
    assert target.task == "classification"


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_missing_cells_are_named_by_row(make: Any) -> None:
    table = read_table(make({"a": [1, None, 3], "b": ["x", None, "z"]}))
    with pytest.raises(TableError, match="column 'a', row 2: the value is missing"):
        table.numbers("a")
    np.testing.assert_array_equal(table.inputs(["b", "a"])["a"], [1, np.nan, 3])
    with pytest.raises(TableError, match="'b', row 1: 'x' is not a number"):
        table.numbers("b")


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(TableError, match="got list"):
        read_table([[1, 2]])
    with pytest.raises(TableError, match="no rows"):
        read_table(pl.DataFrame({"a": []}))
    with pytest.raises(TableError, match="no column 'z'"):
        read_table(pl.DataFrame({"a": [1]}), target="z")
    with pytest.raises(TableError, match="two columns named 'a'"):
        read_table(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    assert read_table("iris", target="petal width (cm)").target == "petal width (cm)"
    with pytest.raises(TableError, match="did you mean"):
        read_table("iris", target="petal wdth (cm)")


@pytest.mark.parametrize("source", [pl.LazyFrame({"a": [1]}), pl.Series([1.0]), 3])
def test_what_has_no_columns_yet_is_refused(source: object) -> None:
    with pytest.raises(TableError, match=f"or Arrow, got {type(source).__name__}"):
        read_table(source)
