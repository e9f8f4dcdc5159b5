"""What a fold knows of a table it has learned from its training rows alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import ColumnEncoder, EvidenceKernelRegressor
from kernelweave.evidence.path import PathPlan
from kernelweave.evidence.rows import Rows
from one_fold import fit_fold

PLAN = PathPlan(precisions=(5.0,), max_iter=3)
TRAINING, HELD_OUT = np.arange(60), np.arange(60, 90)


def frame(seed: int, n: int) -> pd.DataFrame:
    """Gaps, skewed numbers, dates, words of which many are rare, and texts."""
    state = np.random.default_rng(seed)
    prices = state.lognormal(sigma=2.0, size=n)
    prices[state.random(n) < 0.2] = np.nan
    words = np.array([f"w{k}" for k in np.minimum(state.pareto(0.7, n) * 2, 60).astype(int)])
    days = pd.Timestamp("2024-03-01") + pd.to_timedelta(state.integers(0, 300, n), unit="D")
    both = np.where(state.random(n) < 0.1, None, words[::-1].astype(object))
    letters = np.array([*"abcdefghiklmnoprstuvw"])
    notes = ["".join(state.choice(letters, 6)) + " has come back" for _ in range(n)]
    table = {"price": prices, "word": words, "day": days, "other": both, "note": notes}
    return pd.DataFrame(table)


def rows_of(X: pd.DataFrame, y: Any) -> Rows:
    """Rows as the fold sees them."""
    encoder = ColumnEncoder().fit(X)
    rows = Rows(*encoder.transform(X), y[None], transform_columns=True, coding=encoder.coding)
    texts = encoder._learn_folds(X, np.arange(len(X)), [TRAINING])
    return rows.with_texts_of_folds(texts, 1).in_fold(0)


def agreement(codes: np.ndarray) -> np.ndarray:
    """Which rows share a level, whatever it is called."""
    return codes[:, :, None] == codes[:, None, :]


def garbage(n: int) -> pd.DataFrame:
    """Cells beyond all that training had, of the dimensions that the table has."""
    odd = frame(2, n).assign(price=1e12, word="never", day=pd.Timestamp("2024-01-01"), note="§§ ££")
    odd.loc[::2, ["price", "other"]] = None
    return odd


@pytest.mark.parametrize("kind", ["permuted", "replaced", "garbage"])
def test_rows_held_out_change_nothing_that_was_learned(kind: str) -> None:
    X, y = frame(0, 90), np.random.default_rng(1).normal(size=90)
    held = X.iloc[HELD_OUT]
    others = {"permuted": held.sample(frac=1, random_state=0), "replaced": frame(2, 30)}
    other = others.get(kind, garbage(30))
    changed = pd.concat([X.iloc[TRAINING], other], ignore_index=True)
    folds = []
    for table, targets in ((X, y), (changed, np.r_[y[TRAINING], y[HELD_OUT] * 9.0])):
        rows = rows_of(table, targets)
        folds.append((rows, fit_fold(rows, TRAINING, HELD_OUT, PLAN)))
    (_, one), (rows, two) = folds
    # with fewer levels of words, sums over them round otherwise
    rounding = 1e-12 if kind == "garbage" else 0.0
    for mine, theirs in zip(one.fits, two.fits, strict=True):
        np.testing.assert_allclose(mine.theta, theirs.theta, rtol=rounding)
    mine, theirs = (f.views.points(f.training.numeric, f.training.codes) for f in (one, two))
    for a, b in zip(mine[:3], theirs[:3], strict=True):
        np.testing.assert_allclose(a, b, rtol=rounding, atol=rounding)
    np.testing.assert_array_equal(agreement(mine.C), agreement(theirs.C))
    if kind == "permuted":
        # and what was learned says of a row what it said where it stood
        places = other.index.to_numpy() - len(TRAINING)
        np.testing.assert_allclose(two.predictions, one.predictions[:, places], rtol=1e-9)


def test_what_only_rows_held_out_have_is_no_dimension_of_a_fold() -> None:
    """A missing value, an hour, another number: training rows cannot tell what they mean."""
    X, y = frame(0, 90)[["price", "day"]].fillna(1.0), np.random.default_rng(1).normal(size=90)
    X["same"] = 3.0
    X.loc[70:75, "price"], X.loc[70:75, "same"] = None, 8.0
    X.loc[70, "day"] += pd.Timedelta(13, "h")
    rows = rows_of(X, y)
    fold = fit_fold(rows, TRAINING, HELD_OUT, PLAN)
    points = fold.views.points(rows.numeric, rows.codes)
    unknown = np.ptp(points.X[:, TRAINING], axis=1) == 0.0
    assert np.count_nonzero(unknown) == 3
    for view in (points.X, points.U, points.H):
        assert np.ptp(view[unknown], axis=1).max() == 0.0


def test_a_part_codes_as_a_table_of_its_own() -> None:
    """Words seen once in it are rare, unseen ones too, and gaps get its own median."""
    X = pd.DataFrame(
        {
            "word": ["a", "a", "b", "b", "c", "d", "e", "c", "d", "e", "f", "f"],
            "size": [1.0, 2.0, 9.0, np.nan, 1.0, 2.0, 8.0, 50.0, 60.0, 70.0, np.nan, 80.0],
        }
    )
    encoder = ColumnEncoder().fit(X)
    rows = Rows(*encoder.transform(X), np.arange(12.0)[None], coding=encoder.coding)
    views = rows.take(np.arange(7)).views(apart=True)
    points = views.points(rows.numeric, rows.codes)
    alone = ColumnEncoder().fit(X[:7])
    own = Rows(*alone.transform(X[:7]), np.arange(7.0)[None])
    expected = own.views().points(*alone.transform(X))
    np.testing.assert_array_equal(agreement(points.C), agreement(expected.C))
    np.testing.assert_allclose(points.X, expected.X)
    np.testing.assert_allclose(points.U, expected.U)
    np.testing.assert_allclose(points.H, expected.H)


def test_a_word_never_seen_is_a_rare_one() -> None:
    X = pd.DataFrame({"word": ["a"] * 5 + ["b"] * 5 + ["c", "d"], "z": np.arange(12.0)})
    model = EvidenceKernelRegressor(n_folds=2, min_frequency=2).fit(X, np.arange(12.0) ** 2)
    rare = model.predict(X.tail(1), return_std=True)
    unseen = model.predict(X.tail(1).assign(word="never"), return_std=True)
    np.testing.assert_array_equal(rare, unseen)
    # a missing value is none
    assert ColumnEncoder().fit(X).transform(X.head(1).assign(word=None)).codes[0, 0] == 3


def test_words_that_hardly_recur_are_no_levels() -> None:
    words = [f"title {k}" for k in range(95)] + ["one", "one", "two", "two", "two"]
    X = pd.DataFrame({"title": words, "x": np.arange(100.0) % 7})
    with pytest.warns(UserWarning, match="'title' is ignored: nearly every value is different"):
        encoder = ColumnEncoder().fit(X)
    assert [each.name for each in encoder.dimensions_] == ["x"]
    X.loc[::3, "title"] = None
    encoder = ColumnEncoder().fit(X)
    assert encoder.dimensions_[1].categories == ("(rare)", "(missing)")
    assert "whether there is one is used" in encoder.report_[0].remark


# a new word is predicted a little worse than rows of which half have a known one
@pytest.mark.filterwarnings("ignore::kernelweave.evidence.HeldOutWarning")
def test_scores_and_intervals_hold_for_words_that_keep_coming() -> None:
    """Pairs of rows share a word: of new rows most words are new."""
    state = np.random.default_rng(0)
    word = np.repeat(np.arange(400), 2)[state.permutation(800)]
    X = pd.DataFrame({"a": state.normal(size=800), "word": [f"w{k}" for k in word]})
    y = X["a"] + state.normal(size=400)[word] + 0.3 * state.normal(size=800)
    model = EvidenceKernelRegressor(precisions=(50.0, 5.0), max_iter=20).fit(X[:200], y[:200])
    assert abs(model.held_out_score_ - model.score(X[200:], y[200:])) < 2 * model.held_out_error_
    low, high = model.predict_interval(X[200:])
    assert 0.85 < np.mean((low <= y[200:]) & (y[200:] <= high)) < 0.95
    assert np.mean(high - low) < 5.0 * y.std()


def test_an_interval_after_a_power_stays_where_residuals_were_seen() -> None:
    state = np.random.default_rng(1)
    X = state.normal(size=(300, 2))
    y = np.exp(1.5 * X[:, 0] + 0.75 * state.normal(size=300))
    model = EvidenceKernelRegressor(precisions=(50.0,), max_iter=20).fit(X[:200], y[:200])
    assert model._predictor.mixture.target.warps
    # far away the power goes on as a straight line, by steps and not by factors
    _, far = model.predict_interval(5.0 * X[200:])
    _, farther = model.predict_interval(10.0 * X[200:])
    assert np.isfinite(farther).all()
    assert far.max() < farther.max() < 3.0 * far.max()
    assert farther.max() < 1e-3 * np.exp(1.5 * 10.0 * X[200:, 0].max())
    low, high = model.predict_interval(X[200:])
    assert 0.8 < np.mean((low <= y[200:]) & (y[200:] <= high)) < 0.97
