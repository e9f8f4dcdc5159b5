"""Where models that live may go wrong: another fit, odd words, rows of no weight, folds' memory."""

from __future__ import annotations

import pickle
from copy import deepcopy
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import EvidenceKernelRegressor, merge

pytestmark = [
    pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.exceptions.KernelWeaveWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
QUICK: dict[str, Any] = {"precisions": (5.0,), "max_iter": 4, "warp": False}
N, N_FIRST = 80, 60
RANDOM = np.random.default_rng(0)
TABLE = pd.DataFrame({"a": RANDOM.normal(size=N), "c": RANDOM.choice(list("pqr"), N)})
GROUPS = np.array([f"g{k}" for k in RANDOM.integers(0, 12, N)])
Y = (np.sin(2.0 * TABLE["a"]) + (TABLE["c"] == "p") + 0.2 * RANDOM.normal(size=N)).to_numpy()
FIRST, LATER = np.arange(N_FIRST), np.arange(N_FIRST, N)


def some(rows: Any) -> tuple[pd.DataFrame, Any]:
    return TABLE.iloc[rows], Y[rows]


@pytest.fixture(scope="module")
def of_first() -> Any:
    return EvidenceKernelRegressor(**QUICK).fit(*some(FIRST))


def test_another_fit_drops_rows_that_were_learned_before(of_first: Any) -> None:
    """What was still to be worked out must not take the place of the new model, in a file too."""
    model = deepcopy(of_first).update(*some(LATER))
    model.predict(TABLE)
    model.fit(*some(FIRST))
    np.testing.assert_array_equal(model.predict(TABLE), of_first.predict(TABLE))
    again = pickle.loads(pickle.dumps(model))
    assert len(again.held_out_fold_) == N_FIRST
    np.testing.assert_array_equal(again.predict(TABLE), of_first.predict(TABLE))


def test_a_merged_model_that_is_fitted_lives_again(of_first: Any) -> None:
    sums = [of_first.sums(*some(rows)) for rows in (FIRST[:30], FIRST[30:])]
    model = merge(sums, kernel=of_first)
    with pytest.raises(ValueError, match="merged from sums"):
        model.update(*some(LATER))
    model.fit(*some(FIRST)).update(*some(LATER))
    assert len(model.held_out_fold_) == N


@pytest.mark.parametrize("word", ["(forgotten)", "(rare)", "(missing)"])
def test_words_that_the_model_uses_itself_are_words_as_others(of_first: Any, word: str) -> None:
    new = TABLE.iloc[LATER].assign(c=[word, None] * (len(LATER) // 2))
    model = deepcopy(of_first).update(new, Y[LATER])
    with_word, with_none = model.encode(new)[:2, -1]
    assert with_word != with_none
    every = pd.concat([TABLE.iloc[FIRST], new])
    refitted = deepcopy(of_first).refit(every, Y)
    assert pickle.dumps(model) == pickle.dumps(refitted)
    assert pickle.dumps(model.forget(LATER)) == pickle.dumps(deepcopy(of_first).refit(*some(FIRST)))


def test_a_word_for_missing_values_keeps_its_code() -> None:
    """Of a table that has both the word and values that are missing, and of later ones."""
    table = TABLE.assign(c=np.where(np.arange(N) % 3 == 0, "(missing)", TABLE["c"]))
    table.loc[::7, "c"] = None
    model = EvidenceKernelRegressor(**QUICK).fit(table.iloc[FIRST], Y[FIRST])
    before, predicted = model.encode(table), model.predict(table)
    model.refit(table.iloc[FIRST], Y[FIRST])
    np.testing.assert_array_equal(model.encode(table), before)
    np.testing.assert_allclose(model.predict(table), predicted, rtol=0.0, atol=1e-12)


def test_values_of_rows_of_no_weight_are_not_those_of_another_row() -> None:
    """Nothing of them is kept: they must not go with the row that stands first."""
    weight = np.ones(N_FIRST)
    weight[5:10] = 0.0
    model = EvidenceKernelRegressor(**QUICK).fit(*some(FIRST), weight)
    first = int(np.flatnonzero(model._owner == 0)[0])
    model.forget(a=TABLE["a"].iloc[first])
    assert len(model.held_out_fold_) == N_FIRST - 1
    assert (model._owner < 0).sum() == 5


def test_rows_with_missing_values_can_be_forgotten() -> None:
    table = TABLE.iloc[FIRST].assign(gap=np.where(FIRST % 9 == 0, np.nan, Y[FIRST]))
    table["c"] = np.where(FIRST % 4 == 0, None, table["c"])
    model = EvidenceKernelRegressor(**QUICK).fit(table, Y[FIRST])

    def n_gone(**of: Any) -> int:
        return N_FIRST - len(deepcopy(model).forget(**of).held_out_fold_)

    assert n_gone(gap=None) == n_gone(gap=np.nan) == (FIRST % 9 == 0).sum()
    assert n_gone(c=None) == N_FIRST // 4
    assert n_gone(c=pd.Series(["p", None])) == N_FIRST // 4 + (table["c"] == "p").sum()


REFUSED = {
    "flags for some rows": (lambda m: m.forget(FIRST[:59] < 3), "each of the 60 rows"),
    "no place": (lambda m: m.forget([]), "got none"),
    "rows without targets": (lambda m: m.forget(X=TABLE[:2]), "y is missing"),
    "targets without rows": (lambda m: m.forget(y=Y[:2]), "X is missing"),
    "a sentence": (lambda m: m.forget(where="c=p"), "dict of values by column"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_to_forget_is_told_whole(of_first: Any, case: str) -> None:
    model, (action, words) = deepcopy(of_first), REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=words):
        action(model)
    assert pickle.dumps(model) == pickle.dumps(of_first)


def test_folds_of_rows_that_joined_tell_nothing_of_forgotten_rows() -> None:
    """A new row was held out with its group; when the first rows of that are gone, it is new."""
    model = EvidenceKernelRegressor(**QUICK).fit(*some(FIRST), groups=GROUPS[FIRST])
    moved = 0
    for name in np.unique(GROUPS[LATER])[:4]:
        gone = np.flatnonzero(GROUPS[FIRST] == name)
        if not len(gone):
            continue
        rest = np.setdiff1d(np.arange(N), gone)
        updated = deepcopy(model).update(*some(LATER), groups=GROUPS[LATER])
        before = updated.held_out_fold_[rest]
        updated.forget(gone)
        never = deepcopy(model).refit(*some(rest), groups=GROUPS[rest])
        assert pickle.dumps(updated) == pickle.dumps(never)
        moved += int((before != updated.held_out_fold_).any())
    assert moved


@pytest.fixture(scope="module")
def with_outliers() -> tuple[Any, Any, Any]:
    """A model that trusts some targets less, and all its rows and 20 others, wrong ones too."""
    random = np.random.RandomState(0)
    X = random.rand(110, 3)
    y = np.sin(6.0 * X[:, 0]) + X[:, 1] + 0.1 * np.random.RandomState(1).randn(110)
    y[[4, 31, 77, 95, 103]] += 15.0
    model = EvidenceKernelRegressor(precisions=(5.0,), max_iter=15).fit(X[:90], y[:90])
    assert model._predictor.rows.trust is not None
    return model, X, y


def test_trust_in_new_rows_is_the_same_however_often_they_are_settled(
    with_outliers: tuple[Any, Any, Any],
) -> None:
    model, X, y = with_outliers
    at_once = deepcopy(model).update(X[90:], y[90:])
    in_parts = deepcopy(model)
    for rows in (slice(90, 97), slice(97, 110)):
        in_parts.update(X[rows], y[rows])
        assert np.isfinite(in_parts.held_out_score_)
    assert pickle.dumps(in_parts) == pickle.dumps(at_once)
    trust = at_once._predictor.rows.trust[0][at_once._owner]
    assert trust[[95, 103]].max() < 0.01
    assert np.median(trust[90:]) > 0.5
    np.testing.assert_array_equal(trust[:90], model._predictor.rows.trust[0][model._owner])


def test_trust_tells_nothing_of_forgotten_rows(with_outliers: tuple[Any, Any, Any]) -> None:
    model, X, y = with_outliers
    forgetful = deepcopy(model).update(X[90:], y[90:]).forget([4, 95]).forget([10, 20, 98])
    rest = np.delete(np.arange(110), [4, 10, 11, 21, 95, 100])
    gone = np.setdiff1d(np.arange(110), rest)
    # places move up: 10 and 20 were 11 and 21, and 98 was 100
    forgetful = forgetful.forget(X=X[10][None], y=y[10][None])
    assert len(gone) == 110 - len(forgetful.held_out_fold_)
    never = deepcopy(model).refit(X[rest], y[rest])
    assert pickle.dumps(forgetful) == pickle.dumps(never)
