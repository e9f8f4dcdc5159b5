"""Tables from Python: pandas, polars, Arrow; columns by name, one model for all of them."""

from __future__ import annotations

from collections.abc import Callable
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
from kernelweave.workbench.choices import Choices
from kernelweave.workbench.fitting import fit_table
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


def mixed(n: int, seed: int) -> pd.DataFrame:
    """Numbers, codes, words, dates, booleans and texts, as native types and as people write."""
    state = np.random.default_rng(seed)
    a, words = state.normal(size=n), ["pump", "leak", "dry", "cold", "fan", "hot"]
    days = pd.Timestamp("2023-01-01") + pd.to_timedelta(state.integers(0, 600, n), unit="D")
    flag, gap = state.random(n) < 0.5, state.random(n) < 0.2
    return pd.DataFrame(
        {
            "a": np.where(gap, np.nan, a),
            "count": pd.array(np.where(gap[::-1], None, state.integers(0, 9, n)), "Int64"),
            "town": np.where(gap, None, state.choice(["Ulm", "Bonn", "Kiel"], n)),
            "size": pd.Categorical(state.choice(["S", "M", "L"], n), ["S", "M", "L"], ordered=True),
            "zip": state.choice(["01067", "80331", "04109"], n),
            "day": days.where(~gap[::-1]),
            "flag": flag,
            "told": pd.array(np.where(gap, None, ~flag[::-1]), "boolean"),
            "price": [f"{x:.1f}".replace(".", ",") for x in state.uniform(1, 9, n)],
            "mass": [f"{x:.1f} kg" for x in state.uniform(50, 90, n)],
            "note": [f"{' '.join(state.choice(words, 4))} {i}" for i in range(n)],
            "y": a + flag,
        }
    )


@pytest.mark.parametrize("fitted_on", ["pandas", "csv"])
def test_all_kinds_of_columns_are_predicted_alike_from_all_tables(
    tmp_path: Path, fitted_on: str, run: Callable
) -> None:
    frame, new, path = mixed(60, 0), mixed(20, 1).drop(columns="y"), tmp_path / "m.kw"
    if fitted_on == "csv":
        frame.to_csv(tmp_path / "old.csv", index=False)
        options = ("--target", "y", "--max-iter", "3", "--no-compare", "--out", path)
        assert run("fit", tmp_path / "old.csv", *options).status == 0
    else:
        table = read_table(frame, target="y")
        choices = Choices("evidence", {"max_iter": 3})
        save_model(fit_table(table, read_target(table, "y"), choices).model, path)
    model = load_model(path)
    wanted = model.predict(new)
    new.to_csv(tmp_path / "t.csv", index=False)
    new.to_parquet(tmp_path / "t.parquet")
    others = [pl.from_pandas(new), pa.Table.from_pandas(new), new.convert_dtypes()]
    for other in (*others, str(tmp_path / "t.csv"), str(tmp_path / "t.parquet")):
        np.testing.assert_allclose(model.predict(other), wanted, rtol=1e-9)
    told = run("predict", path, tmp_path / "t.csv").out.split()[1:]
    np.testing.assert_allclose(np.array(told, dtype=float), wanted, rtol=1e-9)
    # and each column counts
    for name in new:
        moved = new.assign(**{name: new[name].to_numpy()[::-1]})
        assert np.abs(model.predict(moved) - wanted).max() > 1e-6, name


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
