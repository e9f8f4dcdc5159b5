"""Wide tables: the columns that have scales are chosen inside each fold, and the rest have none."""

from __future__ import annotations

import pickle
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from kernelweave.evidence import EvidenceKernelClassifier, EvidenceKernelRegressor, candidates, fit
from kernelweave.evidence.candidates import KEPT, candidate_precisions, screen
from kernelweave.evidence.mixture import fit_mixture
from kernelweave.evidence.path import PathPlan, fit_path
from kernelweave.evidence.rows import Rows
from kernelweave.evidence.terms import Scales, Stopped, embedded, restricted
from kernelweave.kernels_core import Status, clock, config_context
from kernelweave.kernels_core.exceptions import MemoryBudgetError
from one_fold import fit_fold
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.exceptions import ConvergenceWarning

PLAN = PathPlan((5.0,), max_iter=8)


def wide(n: int = 90, p: int = 110) -> Rows:
    """Return rows whose first number and first level decide."""
    state = np.random.RandomState(0)
    X, codes = state.randn(n, p), state.randint(0, 2, size=(n, 2))
    return Rows(X, codes, (3.0 * X[:, 0] + 4.0 * codes[:, 0] + 0.1 * state.randn(n))[None])


def random_state() -> np.random.RandomState:
    return np.random.RandomState(0)


def test_columns_that_decide_are_kept() -> None:
    rows = wide()
    found = screen(rows.views(), rows, random_state())
    assert tuple(map(len, found)) == KEPT
    for kept in found:
        assert {0, 110} <= set(kept.tolist())
        assert (np.diff(kept) > 0).all()


def test_rows_held_out_do_not_say_which_columns_are_kept() -> None:
    rows, (training, held_out) = wide(), np.split(np.arange(90), [60])
    other = wide()
    for values in (other.numeric, other.codes, other.targets.T):
        values[held_out] = values[held_out[::-1]]
    one, two = (fit_fold(each, training, held_out, PLAN) for each in (rows, other))
    for mine, theirs in zip(one.fits, two.fits, strict=True):
        np.testing.assert_array_equal(mine.theta, theirs.theta)
    scales = [fit.scales.ell for fit in one.fits]
    assert [np.count_nonzero(each) for each in scales] == [*KEPT, 112]
    # and the columns are not those of all rows
    known = np.flatnonzero(scales[0])
    assert not np.array_equal(known, screen(rows.views(), rows, random_state())[0])


def test_a_path_of_some_columns_is_that_of_a_table_of_these() -> None:
    rows, kept = wide(40, 70), np.array([0, 3, 20, 71])
    alone = Rows(rows.numeric[:, kept[:3]].copy(), rows.codes[:, [1]].copy(), rows.targets)
    (mine,), (theirs,) = (
        list(fit_path(rows.views(), rows, PLAN, kept=kept)),
        list(fit_path(alone.views(), alone, PLAN)),
    )
    assert mine.value == pytest.approx(theirs.value, rel=1e-10)
    np.testing.assert_allclose(restricted(mine.theta, kept), theirs.theta, rtol=1e-8)
    np.testing.assert_allclose(embedded(theirs.theta, kept, 72), mine.theta, rtol=1e-8)
    predicted = [
        mixture.predict(mixture.points)
        for mixture in (
            fit_mixture(rows.views(), rows, (mine.scales,)),
            fit_mixture(alone.views(), alone, (Scales.from_vector(restricted(mine.theta, kept)),)),
        )
    ]
    np.testing.assert_allclose(predicted[0], predicted[1], rtol=1e-12, atol=1e-12)


def test_a_start_that_lacks_a_column_has_the_mean_scale_for_it() -> None:
    theta = np.log(np.arange(1.0, 13.0))
    other = embedded(theta, np.array([0, 1, 3]), 5)
    found = restricted(other, np.array([1, 2]))
    mean = np.log([1.0, 2.0, 3.0]).mean(), np.log([4.0, 5.0, 6.0]).mean()
    expected = [np.log(2.0), mean[0], np.log(5.0), mean[1], *theta[6:]]
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_a_hundred_columns_are_learned_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    state = random_state()
    X = state.randn(40, 101)
    y = X[:, 0] + 0.1 * state.randn(40)
    many = Rows(X, np.empty((40, 0), dtype=np.int64), y[None])
    assert len(candidate_precisions(PLAN, many)) == len(KEPT) + 1
    options = {"precisions": (5.0,), "max_iter": 4}
    found = EvidenceKernelRegressor(**options).fit(X[:, :100], y)
    monkeypatch.setattr(candidates, "MOST_SCALES", 10**6)
    expected = EvidenceKernelRegressor(**options).fit(X[:, :100], y)
    np.testing.assert_array_equal(found.predict(X[:, :100]), expected.predict(X[:, :100]))
    assert not any("screened" in each.remark for each in found.columns_)


def test_a_screened_model_says_so_and_is_the_same_when_it_is_read_again() -> None:
    state = random_state()
    X = state.randn(80, 120)
    y = np.where(X[:, 3] > 0.0, "yes", "no")
    model = EvidenceKernelClassifier(precisions=(5.0,), max_iter=8).fit(X, y)
    remarks = [each.remark for each in model.columns_]
    said = "No scale of its own: trees screened away 24 of 120 columns."
    assert remarks[3] == ""
    assert remarks.count(said) == 24
    assert "24 of 120 dimensions screened away by trees" in model.certificate_.work
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    told = model.explain(X[:3])
    np.testing.assert_allclose(told.predictions, model.decision_function(X[:3]), atol=1e-8)
    assert int(np.argmax(model.feature_importances_)) == 3


def test_of_thousands_of_columns_those_without_a_scale_are_not_looked_at() -> None:
    state = random_state()
    X = state.randn(60, 150)
    X[state.rand(60, 150) < 0.02] = np.nan
    y = np.nan_to_num(X[:, 3]) + 0.1 * state.randn(60)
    model = EvidenceKernelRegressor(precisions=(5.0,), max_iter=8, warp=False).fit(X, y)
    mixture = model._predictor.mixture
    plain = [each for each in mixture.scales if np.count_nonzero(each.ell) <= KEPT[0]]
    few = replace(mixture, scales=tuple(plain[:1]))
    few.release()
    slim, rows = few.slim, model._predictor.rows
    assert slim.views.n_dimensions == np.count_nonzero(plain[0].ell)
    whole, some = (each.views.points(rows.numeric, rows.codes) for each in (few, slim))
    np.testing.assert_array_equal(slim.predict(some), few.predict(whole))
    np.testing.assert_allclose(slim.variance(some), few.variance(whole), rtol=0.0, atol=1e-14)
    # a kernel that uses most dimensions has no smaller one
    most = replace(plain[0], ell=np.ones_like(plain[0].ell))
    every = replace(mixture, scales=(most,))
    assert every.slim is every


def test_noise_of_a_wide_table_is_learned_from_columns_that_have_scales() -> None:
    state = random_state()
    X = state.randn(240, 130)
    y = X[:, 3] + np.exp(0.8 * X[:, 3]) * state.randn(240)
    model = EvidenceKernelRegressor(precisions=(5.0,), max_iter=8, warp=False).fit(X, y)
    noise = model._predictor.varying_noise
    assert noise is not None
    own = [each.ell > 0.0 for each in noise.mixture.scales]
    assert min(map(np.count_nonzero, own)) <= KEPT[-1]
    low, high = np.percentile(X[:, 3], [10, 90])
    wide, narrow = (
        np.diff(model.predict_interval(X[which]), axis=0).mean()
        for which in (X[:, 3] > high, X[:, 3] < low)
    )
    assert wide > 1.5 * narrow


def test_the_clock_is_looked_at_between_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, looks = wide(30, 110), [False, False, True]
    monkeypatch.setattr(clock, "expired", lambda: looks.pop(0))
    with pytest.raises(Stopped):
        screen(rows.views(), rows, random_state())
    assert not looks


def test_ten_thousand_columns_ask_for_the_memory_that_a_fit_was_seen_to_take() -> None:
    rows = Rows(np.zeros((40, 10_000)), np.empty((40, 0), dtype=np.int64), np.zeros((1, 40)))
    # the peak of a whole regression, counted by tracemalloc
    with (
        config_context(memory_limit=132_600_000),
        pytest.raises(MemoryBudgetError, match="40 rows and the scales of 10000 dimensions"),
    ):
        fit.refuse_what_cannot_fit(rows)


@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.exceptions.UnderfitWarning")
def test_trees_of_thousands_of_columns_end_a_few_after_the_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A clock on which a batch of trees takes ten seconds and a look at it none."""
    seconds, state = [0.0], random_state()
    fit = ExtraTreesRegressor.fit

    def slow(*arguments: Any) -> Any:
        seconds[0] += 10.0
        return fit(*arguments)

    monkeypatch.setattr(ExtraTreesRegressor, "fit", slow)
    monkeypatch.setattr(clock, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    X = state.randn(30, 5000)
    model = EvidenceKernelRegressor(max_time=35.0, warp=False, precisions=(5.0,), max_iter=2)
    with pytest.warns(ConvergenceWarning, match="folds cut short"):
        model.fit(X, X[:, 0])
    # at most a batch later than the limit in each of three folds and in the fit of all rows
    assert 35.0 <= seconds[0] <= 80.0
    assert model.result_.status is Status.MAX_TIME
    assert np.isfinite(model.predict(X)).all()
