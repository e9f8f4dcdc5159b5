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
from kernelweave.tables import read_table, read_target
from kernelweave.workbench import load_model, save_model
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
