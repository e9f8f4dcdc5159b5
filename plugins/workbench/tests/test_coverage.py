"""Where prediction intervals hold least: against shares by pandas, and draws of chance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from kernelweave.workbench.scoring.scores import Coverage


def test_the_worst_slab_is_that_of_a_table_of_shares() -> None:
    state = np.random.default_rng(0)
    X = pd.DataFrame({"age": state.normal(size=400), "sex": state.choice(["f", "m"], 400)})
    X.loc[:9, "age"] = np.nan
    inside = state.uniform(size=400) < np.where(X["age"] > 0.7, 0.6, 0.95)
    predicted = state.normal(size=400)
    found = Coverage.of(0.9, inside, predicted, X)
    shares = pd.Series(inside).groupby(pd.qcut(X["age"], 4)).agg(["mean", "size"])
    assert found.worst == pytest.approx(shares["mean"].iloc[3])
    assert found.n_rows == shares["size"].iloc[3]
    assert found.where == f"age above {X['age'].quantile(0.75):.4g}"
    assert found.share == inside.mean()
    assert found.lowest.startswith(f"{found.worst:.1%} of {found.n_rows} rows with {found.where} (")


def test_categories_and_few_values_are_slabs_of_their_own() -> None:
    X = pd.DataFrame(
        {"kind": ["a"] * 60 + ["b"] * 60 + ["c"] * 5, "level": [0, 1, 2] * 41 + [0, 1]}
    )
    inside = np.r_[np.ones(60), np.tile([1, 0], 30), np.zeros(5)].astype(bool)
    found = Coverage.of(0.9, inside, np.zeros(125), X)
    # c has too few rows to be told of
    assert (found.where, found.worst, found.n_rows) == ("kind b", 0.5, 60)
    # the lowest stands beside a coverage that is nowhere below the level too
    same = Coverage.of(0.5, inside, np.zeros(125), X)
    assert same.lowest.startswith("50.0% of 60 rows with kind b (")


def test_sets_of_classes_have_a_slab_for_each_predicted_class() -> None:
    state = np.random.default_rng(1)
    X = pd.DataFrame({"a": state.normal(size=600)})
    predicted = state.integers(8, size=600)
    inside = state.uniform(size=600) < np.where(predicted == 5, 0.5, 0.97)
    found = Coverage.of(0.9, inside, predicted, X)
    shares = pd.Series(inside).groupby(predicted).agg(["mean", "size"])
    assert (found.worst, found.n_rows) == (shares["mean"][5], shares["size"][5])
    assert found.where == "a prediction of 5"


def test_few_rows_have_no_slab() -> None:
    found = Coverage.of(0.9, np.ones(12, bool), np.arange(12.0), pd.DataFrame({"a": range(12)}))
    assert (found.share, found.where, found.lowest) == (1.0, "", "")


def test_what_chance_does_is_the_median_of_draws() -> None:
    state = np.random.default_rng(0)
    X = pd.DataFrame(state.normal(size=(400, 3)))
    draws = []
    for _ in range(200):
        found = Coverage.of(0.9, state.uniform(size=400) < 0.9, state.normal(size=400), X)
        draws.append(found.worst)
    assert abs(np.median(draws) - found.chance) <= 0.01
