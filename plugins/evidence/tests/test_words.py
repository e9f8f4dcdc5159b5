"""Columns of many words: names are random effects, texts what they have in common."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import ColumnEncoder, EvidenceKernelRegressor
from kernelweave.tables import ColumnWarning, plan_columns
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import r2_score
from sklearn.preprocessing import normalize


@pytest.mark.filterwarnings("ignore::kernelweave.evidence.HeldOutWarning")
def test_every_name_that_recurs_has_an_effect_of_its_own() -> None:
    """Nearly as good as the best linear prediction by the variances that nature has."""
    state = np.random.default_rng(0)
    name, effect = np.tile(np.arange(300), 4), state.normal(size=300)
    X = pd.DataFrame({"name": [f"name {k}" for k in name], "x": state.normal(size=1200)})
    y = (effect[name] + X["x"] + 0.5 * state.normal(size=1200)).to_numpy()
    new = np.arange(1200) >= 900
    known = X[~new], y[~new]
    model = EvidenceKernelRegressor(precisions=(50.0,), max_iter=15, n_folds=2).fit(*known)
    assert len(model.dimensions_[1].categories) == 300
    rest = (y - X["x"])[~new]
    Z = np.eye(300)[name]
    V = Z[~new] @ Z[~new].T + 0.25 * np.eye(900)
    best = X["x"][new] + Z[new] @ Z[~new].T @ np.linalg.solve(V, rest)
    assert model.score(X[new], y[new]) > r2_score(y[new], best) - 0.03
    # of a name that nobody has, less is known
    unseen = model.predict(X[new][:1].assign(name="another"), return_std=True)[1]
    assert unseen > 1.3 * model.predict(X[new][:1], return_std=True)[1]


N_COMPONENTS = 17
KEYWORDS = {"leak": 2.0, "rust": -1.5, "noise": 1.0, "crack": -2.0, "smoke": 1.5, "crash": -1.0}
OTHERS = ["the", "customer", "said", "that", "this", "machine", "was", "old", "and", "came", "back"]


def notes(n: int, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Notes in which six keywords among other words decide."""
    state = np.random.default_rng(seed)
    has = state.random((n, 6)) < 0.3
    keys = np.array([*KEYWORDS])
    texts = [" ".join(state.permutation([*state.choice(OTHERS, 6), *keys[row]])) for row in has]
    X = pd.DataFrame({"note": texts, "x": state.normal(size=n)})
    return X, has @ np.array([*KEYWORDS.values()]) + 0.5 * X["x"] + 0.1 * state.normal(size=n)


def test_keywords_in_a_note_decide() -> None:
    X, y = notes(700)
    model = EvidenceKernelRegressor(precisions=(50.0, 5.0), max_iter=30, n_folds=2)
    model.fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > 0.94
    assert abs(model.held_out_score_ - model.score(X[300:], y[300:])) < 0.03
    assert model.columns_[0].kind == "text"
    worth = {each.column: each.importance for each in model.importance_}
    assert worth["note"] > worth["x"] > 0.0
    low, high = model.predict_interval(X[300:])
    assert 0.8 < np.mean((low <= y[300:]) & (y[300:] <= high)) < 0.98
    # a missing text is none of those of training
    gap = X[:2].assign(note=[None, "quite another language"])
    assert np.isfinite(model.predict(gap)).all()


def test_components_are_singular_vectors_of_parts_of_words() -> None:
    X, _ = notes(100)
    encoder = ColumnEncoder().fit(X)
    texts = sorted(X["note"].unique())
    parts = CountVectorizer(analyzer="char_wb", ngram_range=(3, 4)).fit(texts)
    counts = [normalize(parts.transform(each).toarray().astype(float)) for each in (texts, X.note)]
    _, sizes, basis = np.linalg.svd(counts[0], full_matrices=False)
    found = encoder.transform(X).numeric[:, 1:]
    # by their products, as the sign of a component says nothing
    expected = counts[1] @ basis[:N_COMPONENTS].T
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-6)
    # 17 words: what is beyond them is rounding
    assert sizes[N_COMPONENTS - 1] > 0.5
    assert sizes[N_COMPONENTS] < 1e-12
    assert [each.kind for each in encoder.dimensions_] == ["number", *["text"] * N_COMPONENTS]
    # the order of rows changes nothing, bit by bit
    again = ColumnEncoder().fit(X[::-1]).transform(X)
    np.testing.assert_array_equal(again.numeric[:, 1:], found)


def test_what_holds_texts_and_what_the_user_says() -> None:
    X, _ = notes(30)
    X["name"] = [f"name {k}" for k in range(30)]
    X["town"] = np.resize(["a town by the sea", "a town on a hill", "another town up there"], 30)
    kinds = {plan.column: plan.kind for plan in plan_columns(X)}
    assert kinds == {"note": "text", "x": "number", "name": "category", "town": "category"}
    told = plan_columns(X, kinds={"note": "category", "town": "text", "x": "ignore"})
    assert [plan.kind for plan in told] == ["category", "ignore", "category", "text"]
    with pytest.warns(ColumnWarning, match="'name' is ignored"):
        encoder = ColumnEncoder(kinds={"town": "text"}).fit(X)
    assert {each.source for each in encoder.dimensions_ if each.kind == "text"} == {"note", "town"}
    assert encoder.transform(X.assign(note=None)).numeric.shape == (30, len(encoder.dimensions_))


def test_texts_that_are_all_one_or_repeat_another_column_are_left_out() -> None:
    X = notes(60)[0]
    X = X.assign(same="the machine was old", again=X["note"], gaps="the machine was old")
    X.loc[::3, "gaps"] = None
    kinds = dict.fromkeys(["same", "gaps"], "text")
    encoder = ColumnEncoder(kinds=kinds).fit(X)
    remarks = {plan.column: plan.remark for plan in encoder.report_}
    assert remarks["same"] == "Ignored: constant ('the machine was old')."
    assert remarks["again"] == "Ignored: duplicate of 'note'."
    assert {each.source for each in encoder.dimensions_} == {"x", "note", "gaps"}
    # where it is missing it still says something
    texts = encoder.transform(X).numeric[:, [d.source == "gaps" for d in encoder.dimensions_]]
    assert len(np.unique(texts)) == 2
