"""Predictions that rise or fall with columns: exactly, also between nodes and beyond the range."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import (
    EffectDisplay,
    EvidenceKernelClassifier,
    EvidenceKernelRegressor,
)
from kernelweave.evidence.monotone.curves import monotone_curves
from kernelweave.evidence.monotone.rearrangement import interpolated, on_lattice, rearranged

pytestmark = pytest.mark.filterwarnings(
    "ignore::kernelweave.kernels_core.exceptions.ExtrapolationWarning"
)

N_ROWS = 120
N_BASES = 20


def table(seed: int = 0, n: int = N_ROWS) -> tuple[pd.DataFrame, np.ndarray]:
    """Return rows whose target rises with the dose and falls with the age."""
    rng = np.random.RandomState(seed)
    X = pd.DataFrame(
        {
            "dose": rng.uniform(0.0, 5.0, n),
            "age": rng.randint(20, 80, n).astype(float),
            "site": rng.choice(list("abc"), n),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.randint(0, 900, n), unit="D"),
        }
    )
    y = X.dose - 0.03 * X.age + 0.5 * (X.site == "b") + rng.normal(0.0, 1.5, n)
    X.loc[::13, "age"] = np.nan
    return X, y.to_numpy()


def pairs(X: pd.DataFrame, column: str, low: float, high: float, each: int, seed: int = 1):
    """Return pairs of rows, the second with more of a column and else equal."""
    rng = np.random.RandomState(seed)
    base = X.iloc[rng.randint(0, len(X), N_BASES)].reset_index(drop=True)
    base["age"] = base["age"].fillna(50.0)
    first = base.iloc[np.repeat(np.arange(N_BASES), each)].reset_index(drop=True)
    second = first.copy()
    first[column], second[column] = np.sort(rng.uniform(low, high, (2, len(first))), axis=0)
    return first, second


def both(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([first, second], ignore_index=True)


@pytest.fixture(scope="module")
def model() -> EvidenceKernelRegressor:
    X, y = table()
    signs = {"dose": 1, "age": -1, "day": 0}
    return EvidenceKernelRegressor(n_folds=3, monotone=signs).fit(X, y)


@pytest.fixture(scope="module")
def free() -> EvidenceKernelRegressor:
    return EvidenceKernelRegressor(n_folds=3).fit(*table())


class TestExactly:
    RANGES = (("dose", -3.0, 9.0, 1), ("age", -20.0, 200.0, -1))

    @pytest.mark.parametrize("each", [1000, pytest.param(25_000, marks=pytest.mark.slow)])
    @pytest.mark.parametrize(("column", "low", "high", "sign"), RANGES)
    def test_pairs_of_predictions_up_to_a_million(self, model, column, low, high, sign, each):
        first, second = pairs(table()[0], column, low, high, each)
        values = model.predict(both(first, second))
        steps = sign * (values[len(first) :] - values[: len(first)])
        assert np.sum(steps < 0.0) == 0
        assert np.mean(steps > 0.0) > 0.9

    def test_free_predictions_are_not(self, free):
        first, second = pairs(table()[0], "age", 20.0, 80.0, 100)
        values = free.predict(both(first, second))
        assert np.mean(values[len(first) :] > values[: len(first)]) > 0.01

    @pytest.mark.parametrize(("column", "low", "high", "sign"), RANGES)
    def test_ends_and_quantiles(self, model, column, low, high, sign):
        first, second = pairs(table()[0], column, low, high, 500)
        rows, n = both(first, second), len(first)
        ends = [*model.predict_interval(rows, 0.8), *model.predict_quantiles(rows, (0.1, 0.7)).T]
        for values in ends:
            assert np.isfinite(values).all()
            assert np.sum(sign * (values[n:] - values[:n]) < 0.0) == 0

    def test_neighbours_that_differ_in_the_last_bits(self, model):
        first, second = pairs(table()[0], "dose", 0.0, 5.0, 500)
        for steps in (1, 1000, 10**9):
            second["dose"] = first["dose"] * (1.0 + steps * 2.2e-16)
            values = model.predict(both(first, second))
            assert np.sum(values[len(first) :] < values[: len(first)]) == 0

    def test_whichever_rows_are_asked_for_together(self, model):
        first, second = pairs(table()[0], "dose", -3.0, 9.0, 100)
        at_once = model.predict(both(first, second))
        apart = np.concatenate([model.predict(first), model.predict(second)])
        assert np.array_equal(at_once, apart)

    def test_rows_in_range_beside_rows_beyond_and_alone(self, model):
        X = table(3, 60)[0]
        beside = model.predict(both(X, X.assign(dose=20.0, age=150.0)))[: len(X)]
        assert np.array_equal(model.predict(X), beside)
        alone = [model.predict(X.iloc[[k]])[0] for k in range(20)]
        assert np.array_equal(alone, beside[:20])
        low, _ = model.predict_interval(X)
        assert np.array_equal(low, model.predict_interval(both(X, X.assign(dose=20.0)))[0][:60])

    def test_both_columns_at_once(self, model):
        first, second = pairs(table()[0], "dose", -1.0, 6.0, 500)
        second["age"] = first["age"] - 7.0
        values = model.predict(both(first, second))
        assert np.sum(values[len(first) :] < values[: len(first)]) == 0


def test_intervals_hold_predictions_that_ascend(model):
    X = table(3)[0]
    low, high = model.predict_interval(X)
    mean = model.predict(X)
    assert (low <= mean).all()
    assert (mean <= high).all()
    quantiles = model.predict_quantiles(X, (0.1, 0.5, 0.9))
    assert (np.diff(quantiles, axis=1) >= 0.0).all()


def test_where_predictions_rise_already_they_stay(free):
    X = table(3)[0].assign(age=50.0)
    model = EvidenceKernelRegressor(n_folds=3, monotone={"dose": 1}).fit(*table())
    lines = np.array([free.predict(X.assign(dose=d)) for d in np.linspace(0.0, 5.0, 60)])
    rising = (np.diff(lines, axis=0) > 0.0).all(axis=0)
    assert rising.sum() > 20
    away = model.predict(X)[rising] - free.predict(X)[rising]
    assert np.abs(away).max() < 0.05 * 1.5


def test_deviations_are_those_of_the_fit(model, free):
    X = table(3)[0]
    assert np.array_equal(model.predict(X, return_std=True)[1], free.predict(X, return_std=True)[1])


def test_a_missing_value_is_free(model, free):
    X = table(3)[0].assign(age=np.nan)
    few = {"dose": 1}
    one = EvidenceKernelRegressor(n_folds=3, monotone=few).fit(*table())
    assert np.allclose(model.predict(X), one.predict(X), atol=0.02 * 1.5)
    none = EvidenceKernelRegressor(n_folds=3, monotone={"age": -1}).fit(*table())
    assert np.array_equal(none.predict(X), free.predict(X))


def test_dates_rise_at_one_season():
    X, y = table()
    day = X.day.dt.day
    X["day"] = pd.to_datetime({"year": 2000 + X.index % 20, "month": X.day.dt.month, "day": day})
    model = EvidenceKernelRegressor(n_folds=2, monotone={"day": -1}).fit(X, y)
    rows = X.iloc[:10].assign(age=40.0)
    values = [model.predict(rows.assign(day=rows.day + pd.DateOffset(years=28 * k)))
              for k in (-1, 0, 1)]  # fmt: skip
    for earlier, later in pairwise(values):
        assert (later <= earlier).all()


def test_two_classes_by_probability():
    X, y = table()
    model = EvidenceKernelClassifier(n_folds=2, monotone={"dose": 1, "age": -1}).fit(X, y > 0.5)
    first, second = pairs(X, "dose", 0.0, 5.0, 500)
    rows, n = both(first, second), len(first)
    for values in (model.predict_proba(rows)[:, 1], model.decision_function(rows)):
        assert np.sum(values[n:] < values[:n]) == 0
        assert values[n:].mean() > values[:n].mean()


def test_ordered_classes_by_cumulative_probabilities():
    X, y = table()
    labels = np.array(["high", "low", "middle"])[np.digitize(-y, np.quantile(-y, [0.33, 0.66]))]
    labels = np.where(labels == "low", "middle", np.where(labels == "middle", "low", labels))
    levels = ["low", "middle", "high"]
    model = EvidenceKernelClassifier(n_folds=2, levels=levels, monotone={"dose": 1}).fit(X, labels)
    first, second = pairs(X, "dose", 0.0, 5.0, 200)
    proba = model.predict_proba(both(first, second))
    by_level = proba[:, [list(model.classes_).index(each) for each in levels]]
    more = np.cumsum(by_level[:, ::-1], axis=1)[:, :2]
    assert np.allclose(proba.sum(axis=1), 1.0)
    assert (more[len(first) :] - more[: len(first)]).min() > -1e-12
    assert more[len(first) :].mean() > more[: len(first)].mean() + 0.01


class TestRefusals:
    @pytest.mark.parametrize(
        ("signs", "words"),
        [
            ({"dos": 1}, "monotone names 'dos', which is no column; did you mean 'dose'"),
            ({9: 1}, "monotone names column 9, but the table has 4"),
            ({"site": 1}, "monotone names 'site', a column of categories"),
            ({"dose": 2}, "monotone must be None or a dict from columns to 1"),
            (["dose"], "monotone must be None or a dict from columns to 1"),
        ],
    )
    def test_of_columns(self, signs, words):
        with pytest.raises((ValueError, TypeError), match=words):
            EvidenceKernelRegressor(monotone=signs).fit(*table())

    def test_of_more_than_four(self):
        X = np.random.RandomState(0).normal(size=(30, 5))
        with pytest.raises(ValueError, match=r"5 columns.* possible for 4 at most"):
            EvidenceKernelRegressor(monotone=dict.fromkeys(range(5), 1)).fit(X, X[:, 0])

    def test_of_classes_without_an_order(self):
        X = table()[0]
        with pytest.raises(ValueError, match="classes with an order, and y has 3 without"):
            EvidenceKernelClassifier(monotone={"dose": 1}).fit(X, np.arange(len(X)) % 3)

    def test_a_column_that_is_left_out_is_no_fault(self):
        X, y = table()
        X["same"] = 1.0
        model = EvidenceKernelRegressor(n_folds=2, monotone={"same": 1}).fit(X, y)
        plain = EvidenceKernelRegressor(n_folds=2).fit(X, y)
        assert np.array_equal(model.predict(X), plain.predict(X))
        assert model.certificate_.monotone.signs == (("same", 1),)


def test_the_certificate_says_what_it_did_to_the_score(model, free):
    found = model.certificate_.monotone
    assert found.signs == (("dose", 1), ("age", -1))
    assert found.score_before == free.held_out_score_
    assert found.score == model.held_out_score_ != free.held_out_score_
    assert "rise with 'dose' and fall with 'age' by construction" in str(model.certificate_)
    assert free.certificate_.monotone is None


def test_rows_held_out_are_predicted_by_their_fold_rearranged(model):
    y = table()[1]
    rest = y - model.held_out_prediction_
    assert model.held_out_score_ == pytest.approx(
        1.0 - np.sum(rest**2) / np.sum((y - y.mean()) ** 2), abs=0.02
    )


def test_a_copy_predicts_the_same_and_holds_no_grid(model):
    X = table(3)[0]
    before = pickle.dumps(model)
    values = model.predict(X)
    after = pickle.dumps(model)
    assert len(after) == len(before)
    assert np.array_equal(pickle.loads(after).predict(X), values)


class TestRearrangement:
    def test_one_axis_is_sorted(self):
        values = np.random.RandomState(0).normal(size=(4, 9, 2))
        out = rearranged(values, [slice(0, 9)])
        assert np.array_equal(out, np.sort(values, axis=1))

    def test_all_axes_rise_and_what_is_inside_is_free_of_what_is_beyond(self):
        values = np.random.RandomState(0).normal(size=(3, 8, 7, 6, 2))
        inside = [slice(2, 6), slice(1, 6), slice(0, 5)]
        out = rearranged(values, inside)
        assert all((np.diff(out, axis=k) >= 0.0).all() for k in (1, 2, 3))
        where = (slice(None), *inside)
        assert np.array_equal(
            out[where], rearranged(values[where], [slice(0, 4), slice(0, 5), slice(0, 5)])
        )

    def test_it_is_never_further_from_what_rises(self):
        rng = np.random.RandomState(0)
        truth = np.add.outer(np.sort(rng.normal(size=9)), np.sort(rng.normal(size=7)))[
            None, ..., None
        ]
        for power in (1.0, 2.0, 4.0):
            values = truth + rng.normal(size=truth.shape)
            out = rearranged(values, [slice(0, 9), slice(0, 7)])
            assert np.sum(np.abs(out - truth) ** power) < np.sum(np.abs(values - truth) ** power)

    def test_interpolation_keeps_the_order_of_last_bits(self):
        rng = np.random.RandomState(0)
        values = on_lattice(np.cumsum(rng.uniform(0, 1e-9, (1, 5, 4, 1)), axis=1) + 1.0)
        n = 2000
        places = [rng.randint(0, 4, n), rng.randint(0, 3, n)]
        shares = np.sort(rng.uniform(size=(2, n)), axis=0)
        other = rng.uniform(size=n)
        low, high = (
            interpolated(values, np.zeros(n, int), places, [s, other])[:, 0] for s in shares
        )
        assert (low <= high).all()

    def test_interpolation_is_linear_between_nodes(self):
        values = on_lattice(np.array([0.0, 1.0, 4.0])[None, :, None])
        told = interpolated(
            values, np.zeros(3, int), [np.array([0, 0, 1])], [np.array([0.0, 0.5, 0.25])]
        )
        assert np.allclose(told[:, 0], [0.0, 0.5, 1.75])

    def test_what_a_value_is_rounded_to_is_its_own_affair(self):
        values = np.array([1.0 + 2.0**-33, -3.0, 0.1, 1e-300])
        alone = [on_lattice(values[[k]])[0] for k in range(4)]
        beside = on_lattice(np.r_[values, 1e9])
        assert beside[:4].tolist() == alone
        assert np.abs(beside[:4] / values - 1.0).max() <= 2.0**-34


class TestExplained:
    def test_sums_are_what_is_predicted(self, model):
        X = table(3)[0]
        for scale in ("link", "response"):
            found = model.explain(X, scale=scale)
            assert np.allclose(found.predictions, model.predict(X), atol=1e-6)

    def test_other_columns_keep_their_values(self, model, free):
        X = table(3)[0]
        names = [each.column for each in model.columns_]
        others = [names.index(each) for each in ("site", "day")]
        one, other = model.explain(X).values, free.explain(X).values
        assert np.allclose(one[:, others], other[:, others])
        assert not np.allclose(one, other)

    def test_probabilities_add_up(self):
        X, y = table()
        model = EvidenceKernelClassifier(n_folds=2, monotone={"dose": 1}).fit(X, y > 0.5)
        proba = model.predict_proba(X)[:, 1]
        assert np.allclose(model.explain(X, scale="response").predictions, proba, atol=1e-6)
        assert np.allclose(model.explain(X).predictions, model.decision_function(X), atol=1e-6)

    def test_rows_held_out_are_explained_by_their_fold(self, model):
        found = model.explain_held_out([0, 1, 2])
        assert np.isfinite(found.values).all()

    def test_the_effect_is_monotone(self, model):
        display = EffectDisplay.from_estimator(model, columns=["dose", "age"], n_rows=40)
        for effect, sign in zip(display.effects, (1, -1), strict=True):
            assert (sign * np.diff(effect.effect) >= -1e-9).all()
            assert (effect.low <= effect.effect).all()

    def test_curves_before_and_after(self, model):
        for column, sign in (("dose", 1), ("age", -1)):
            curve = monotone_curves(model, column, n_rows=30)
            assert (sign * np.diff(curve.after) >= -1e-9).all()
            assert np.abs(curve.after - curve.before).max() < 1.0
            assert 0.0 <= curve.wrong_before < 0.5
        with pytest.raises(ValueError, match="monotone in, 'dose', 'age' here, got 'site'"):
            monotone_curves(model, "site")
