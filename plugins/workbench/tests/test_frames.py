"""Tables from Python: pandas, polars, Arrow; columns by name, one model for all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from kernelweave.spectahedron import TessellatedKernelClassifier
from kernelweave.workbench import load_model, read_table, save_model
from kernelweave.workbench.data import choose_target, read_target
from kernelweave.workbench.errors import CommandError
from kernelweave.workbench.fitting import Choices, fit_table
from sklearn import __version__ as scikit_learn
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier

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
    with pytest.raises(CommandError, match="column 'a', row 2: the value is missing"):
        table.numbers("a")
    np.testing.assert_array_equal(table.inputs(["b", "a"])["a"], [1, np.nan, 3])
    with pytest.raises(CommandError, match="'b', row 1: 'x' is not a number"):
        table.numbers("b")


def test_a_model_of_one_library_predicts_the_others(tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    frame = X.assign(species=load_iris().target_names[y])
    table = read_table(pl.from_pandas(frame), target="species")
    target = read_target(table, "species")
    model = fit_table(table, target, Choices("evidence", {"max_iter": 5})).model
    save_model(model, tmp_path / "m.kw")
    again = load_model(tmp_path / "m.kw")
    assert again.header.columns == tuple(X.columns)
    wanted = model.predict(frame)
    for other in (pl.from_pandas(X[X.columns[::-1]]), pa.Table.from_pandas(X), Stream(pa.table(X))):
        np.testing.assert_array_equal(again.predict(other), wanted)
    frame.to_parquet(tmp_path / "t.parquet")
    np.testing.assert_array_equal(again.predict(str(tmp_path / "t.parquet")), wanted)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_estimators_keep_the_names(make: Any) -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    table = make({name: X[name].to_numpy() for name in X.columns})
    model = TessellatedKernelClassifier(tol=0.1, max_iter=5).fit(table, y)
    plain = TessellatedKernelClassifier(tol=0.1, max_iter=5).fit(X.to_numpy(), y)
    np.testing.assert_array_equal(model.predict(table), plain.predict(X.to_numpy()))
    # scikit-learn 1.6 does not see the names of a polars frame that left the interchange protocol
    seen = hasattr(DummyClassifier().fit(table, y), "feature_names_in_")
    assert seen or scikit_learn.startswith("1.6.")
    if seen:
        assert model.feature_names_in_.tolist() == list(X.columns)


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(CommandError, match="got list"):
        read_table([[1, 2]])
    with pytest.raises(CommandError, match="no rows"):
        read_table(pl.DataFrame({"a": []}))
    with pytest.raises(CommandError, match="no column 'z'"):
        read_table(pl.DataFrame({"a": [1]}), target="z")
    with pytest.raises(CommandError, match="two columns named 'a'"):
        read_table(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    assert read_table("iris", target="petal width (cm)").target == "petal width (cm)"
    with pytest.raises(CommandError, match="did you mean"):
        read_table("iris", target="petal wdth (cm)")
