"""Gaps, categories, what is left out and said, and what a later table may be."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from kernelweave.evidence import ColumnEncoder
from kernelweave.kernels_core import KernelWeaveWarning
from kernelweave.tables import ColumnWarning
from sklearn.base import BaseEstimator

WORDS = st.lists(st.sampled_from(["a", "b", "c", "dd", "é", None]), min_size=2, max_size=40)


def names(encoder: ColumnEncoder) -> list[str]:
    return [each.name for each in encoder.dimensions_]


def said(encoder: ColumnEncoder) -> dict[str, str]:
    return {
        row.column: f"{'used' if row.used else 'left out'}: {row.remark}" for row in encoder.report_
    }


class TestGaps:
    def test_the_median_of_training_fills_them(self) -> None:
        X = pd.DataFrame({"a": [1.0, 2.0, np.nan, 10.0], "b": [1.0, 3.0, 5.0, 7.0]})
        encoder = ColumnEncoder().fit(X)
        assert names(encoder) == ["a", "b", "a missing"]
        rows = encoder.transform(pd.DataFrame({"a": [np.nan, 99.0], "b": [0.0, 1.0]}))
        assert rows.numeric.tolist() == [[2.0, 0.0, 1.0], [99.0, 1.0, 0.0]]
        assert (
            said(encoder)["a"]
            == "used: 1 of 4 values missing: replaced by the median 2, with an indicator."
        )

    def test_new_ones_are_filled_and_warned_of_once(self) -> None:
        X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
        encoder = ColumnEncoder().fit(X)
        with pytest.warns(
            KernelWeaveWarning, match="columns 'x0', 'x1' had no missing values"
        ) as caught:
            rows = encoder.transform(np.full((3, 2), np.nan))
        assert len(caught) == 1
        assert rows.numeric.tolist() == [[3.0, 4.0]] * 3

    def test_columns_that_miss_together_share_an_indicator(self) -> None:
        X = pd.DataFrame({"a": [1.0, np.nan, 3.0, 2.0], "b": [5.0, np.nan, 7.0, 9.0]})
        encoder = ColumnEncoder().fit(X)
        assert names(encoder) == ["a", "b", "a missing"]
        assert "the indicator of another column" in said(encoder)["b"]

    def test_a_constant_with_gaps_keeps_its_gaps(self) -> None:
        encoder = ColumnEncoder().fit(pd.DataFrame({"a": [1.0, None, 1.0], "b": [1.0, 2.0, 3.0]}))
        assert names(encoder) == ["b", "a missing"]
        assert said(encoder)["a"].startswith("used: ")

    def test_a_gap_among_words_is_a_level_or_unseen(self) -> None:
        gappy = ColumnEncoder().fit(pd.DataFrame({"a": ["u", "v", None, "u", "v"]}))
        assert gappy.transform(pd.DataFrame({"a": [None, "u", "new"]})).codes.T.tolist() == [
            [2, 0, 3]
        ]
        full = ColumnEncoder().fit(pd.DataFrame({"a": ["u", "v", "u", "v"]}))
        assert full.transform(pd.DataFrame({"a": [None, "u", "new"]})).codes.T.tolist() == [
            [2, 0, 2]
        ]


class TestLevels:
    def test_rare_words_share_one(self) -> None:
        X = pd.DataFrame({"a": [*"aaabbb", "x", "y", "z"]})
        encoder = ColumnEncoder().fit(X)
        assert encoder.dimensions_[0].categories == ("a", "b", "(rare)")
        new = pd.DataFrame({"a": ["z", "x", "b", "q"]})
        assert encoder.transform(new).codes[:, 0].tolist() == [2, 2, 1, 2]
        assert "3 rare values are merged into one" in said(encoder)["a"]

    def test_one_rare_word_keeps_its_level(self) -> None:
        encoder = ColumnEncoder().fit(pd.DataFrame({"a": [*"aabb", "x"]}))
        assert encoder.dimensions_[0].categories == ("a", "b", "x")

    def test_at_most_so_many_levels(self) -> None:
        X = pd.DataFrame({"a": list("aaaabbbccd") * 2})
        categories = ColumnEncoder(max_categories=3).fit(X).dimensions_[0].categories
        assert categories == ("a", "b", "(rare)")
        assert ColumnEncoder(max_categories=4).fit(X).dimensions_[0].categories == tuple("abcd")

    def test_a_share_of_the_rows(self) -> None:
        X = pd.DataFrame({"a": ["a"] * 90 + ["b"] * 6 + ["c"] * 4})
        assert ColumnEncoder(min_frequency=0.05).fit(X).dimensions_[0].categories == ("a", "b", "c")
        categories = ColumnEncoder(min_frequency=0.07).fit(X).dimensions_[0].categories
        assert categories == ("a", "(rare)")

    def test_numbers_and_words_of_one_label_are_one_level(self) -> None:
        X = pd.DataFrame({"a": pd.Categorical([1, 2, 1, 2])})
        encoder = ColumnEncoder().fit(X)
        for same in ([1, 2, 3], [1.0, 2.0, 3.0], ["1", "2", "3"]):
            assert encoder.transform(pd.DataFrame({"a": same})).codes[:, 0].tolist() == [0, 1, 2]

    @given(WORDS, WORDS)
    @settings(max_examples=50, deadline=None)
    def test_codes_lead_back_to_the_words(
        self, train: list[str | None], new: list[str | None]
    ) -> None:
        spread = [1.0 * i for i in range(len(train))]
        X = pd.DataFrame({"a": pd.Series(train, dtype=object), "b": spread})
        encoder = ColumnEncoder(min_frequency=1).fit(X)
        level = [each for each in encoder.dimensions_ if each.kind == "category"]
        if not level:
            assert len({*train}) == 1
            return
        table = pd.DataFrame({"a": pd.Series(new, dtype=object), "b": 1.0})
        codes = encoder.transform(table).codes[:, 0]
        for word, code in zip(new, codes, strict=True):
            shown = "(missing)" if word is None else word
            if word in train:
                assert level[0].categories[code] == shown
            else:
                assert code == len(level[0].categories)


class TestLeftOut:
    def test_constants_and_repetitions_are_said(self) -> None:
        rng = np.random.default_rng(0)
        a, c = rng.normal(size=30), rng.choice(["u", "v", "w"], 30)
        X = pd.DataFrame({"a": a, "b": 3.5, "a2": a, "c": c, "d": "same"})
        X["c2"] = X["c"].map({"u": "one", "v": "two", "w": "three"})
        X["none"] = None
        encoder = ColumnEncoder().fit(X)
        assert names(encoder) == ["a", "c"]
        assert said(encoder) == {
            "a": "used: ",
            "b": "left out: Ignored: constant (3.5).",
            "a2": "left out: Ignored: duplicate of 'a'.",
            "c": "used: 3 categories.",
            "d": "left out: Ignored: constant ('same').",
            "c2": "left out: Ignored: same groups of rows as 'c'.",
            "none": "left out: Ignored: no values.",
        }

    @pytest.mark.parametrize(
        ("name", "values"),
        [
            ("customer_id", np.random.default_rng(0).permutation(100)[:30]),
            ("n", np.arange(30)),
            ("n", np.arange(1, 31)),
            ("name", [f"person {i}" for i in range(30)]),
        ],
    )
    def test_identifiers_are_warned_of(self, name: str, values: object) -> None:
        X = pd.DataFrame({name: values, "a": np.random.default_rng(1).normal(size=30)})
        with pytest.warns(ColumnWarning, match=f"column '{name}' is ignored"):
            encoder = ColumnEncoder().fit(X)
        assert names(encoder) == ["a"]
        assert "ID" in said(encoder)[name]
        if name != "name":
            assert names(ColumnEncoder().fit(X.astype({name: float}))) == [name, "a"]

    @pytest.mark.parametrize(
        ("name", "values"),
        [("year", np.arange(1950, 1980)), ("valid", np.arange(30)[::-1]), ("id", [1, 2] * 15)],
    )
    def test_what_only_looks_like_one_is_used(self, name: str, values: object) -> None:
        X = pd.DataFrame({name: values, "a": np.random.default_rng(1).normal(size=30)})
        assert names(ColumnEncoder().fit(X)) == [name, "a"]

    def test_an_array_has_no_identifiers(self) -> None:
        assert names(ColumnEncoder().fit(np.arange(30)[:, None])) == ["x0"]

    def test_no_usable_column_is_refused(self) -> None:
        X = pd.DataFrame({"a": [1, 1, 1], "b": [None, None, None]})
        with pytest.raises(
            ValueError, match="no column can be used; 'a', for instance: Ignored: constant"
        ):
            ColumnEncoder().fit(X)


class TestLaterTables:
    X = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": ["u", "v", "u"], "c": [5, 6, 9]})

    @pytest.mark.parametrize(
        ("X", "message"),
        [
            (X[["a", "b"]], "X lacks column 'c', which training had"),
            (X.assign(d=1), "X has column 'd', which training had not"),
            (X.rename(columns={"a": "e"}), "X lacks column 'a'.* and has column 'e'"),
            (X[["b", "a", "c"]], "in another order: pass X"),
            (X[["a", "b"]].to_numpy(), "X has 2 columns, training had 3"),
            (
                X.assign(a="word"),
                "'a' held numbers in training and holds text now, such as 'word'",
            ),
            (X.assign(a=pd.Timestamp(0)), "'a' held numbers in training and holds dates now"),
        ],
    )
    def test_other_columns_get_a_sentence(self, X: pd.DataFrame, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            ColumnEncoder(min_frequency=1).fit(self.X).transform(X)

    def test_a_word_among_numbers_is_a_gap_that_is_warned_of(self) -> None:
        encoder = ColumnEncoder().fit(pd.DataFrame({"a": [1.0, None, 2.0]}))
        X = pd.DataFrame({"a": ["3", "n/k", "4"]})
        with pytest.warns(
            KernelWeaveWarning, match="1 of 3 rows holds text, such as 'n/k' in row 1"
        ):
            rows = encoder.transform(X)
        assert rows.numeric.tolist() == [[3.0, 0.0], [1.5, 1.0], [4.0, 0.0]]

    @pytest.mark.parametrize(
        "cells",
        [
            *([1, 0, 1, 1], [1.0, 0.0, 1.0, 1.0], ["1", "0", 1, 1]),
            *(["TRUE", "FALSE", "TRUE", "TRUE"], ["TRUE", "false", "1", True]),
        ],
    )
    def test_a_boolean_may_be_written_in_other_ways(self, cells: list[object]) -> None:
        truths = [True, False, True, True]
        for one, other in ((truths, cells), (cells, truths)):
            encoder = ColumnEncoder(min_frequency=1).fit(pd.DataFrame({"a": one}))
            if len(set(one)) > 2:
                # words in several spellings are words of their own
                continue
            known, same = (encoder.transform(pd.DataFrame({"a": each})) for each in (one, other))
            np.testing.assert_array_equal(known.numeric, same.numeric)
            np.testing.assert_array_equal(known.codes, same.codes)
            assert not encoder.outside(same).any()

    @pytest.mark.parametrize("given", [[1067, 80331, 7], ["1067", "80331", "7"]])
    def test_codes_may_have_lost_their_zeros(self, given: list[object]) -> None:
        codes = pd.DataFrame({"a": ["01067", "80331", "00007"] * 3})
        encoder = ColumnEncoder(min_frequency=1).fit(codes)
        expected = encoder.transform(codes[:3]).codes
        np.testing.assert_array_equal(encoder.transform(pd.DataFrame({"a": given})).codes, expected)

    def test_one_word_among_many_numbers_is_a_gap_in_training_too(self) -> None:
        cells = [*map(str, range(40, 20, -1)), "unknown", "unknown"]
        X = pd.DataFrame({"a": cells, "b": np.sin(np.arange(22))})
        with pytest.warns(KernelWeaveWarning, match="2 of 22 rows hold text, such as 'unknown'"):
            encoder = ColumnEncoder().fit(X)
        assert names(encoder) == ["a", "b", "a missing"]
        assert "in row 20, read as missing values." in said(encoder)["a"]
        three = X.assign(a=[*cells[:-3], "x", "y", "z"])
        asked = ColumnEncoder(min_frequency=1, kinds={"a": "category"})
        assert names(asked.fit(three)) == ["b", "a"]

    def test_cells_outside_of_training_are_known(self) -> None:
        X = pd.DataFrame({"a": [1.0, None, 3.0, 2.0], "b": [*"uvuv"]})
        encoder = ColumnEncoder().fit(X)
        assert not encoder.outside(encoder.transform(X)).any()
        new = pd.DataFrame({"a": [3.5, None, 0.0], "b": ["u", "w", None]})
        assert encoder.outside(encoder.transform(new)).tolist() == [
            [True, False, False],
            [False, False, True],
            [True, False, True],
        ]

    def test_numbers_where_training_had_dates(self) -> None:
        encoder = ColumnEncoder().fit(pd.DataFrame({"a": pd.date_range("2020", periods=5)}))
        with pytest.raises(ValueError, match="'a' held dates in training and holds numbers now"):
            encoder.transform(pd.DataFrame({"a": [1.0]}))
        with pytest.warns(KernelWeaveWarning, match="'a' had no missing values in training"):
            encoder.transform(pd.DataFrame({"a": [None]}))

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (np.inf, "column 'a', row 2: the value is infinite"),
            (-1e80, "column 'a', row 2: the value -1e\\+80 is too large"),
        ],
    )
    def test_infinity_is_refused_by_name_and_row(self, value: float, message: str) -> None:
        bad = self.X.assign(a=[1.0, 2.0, value])
        for X in (bad, pl.from_pandas(bad)):
            with pytest.raises(ValueError, match=message):
                ColumnEncoder().fit(X)
        with pytest.raises(ValueError, match=message):
            ColumnEncoder(min_frequency=1).fit(self.X).transform(bad)

    def test_the_estimator_speaks_and_learns_the_names(self) -> None:
        class Model(BaseEstimator):  # type: ignore[misc]
            pass

        model = Model()
        encoder = ColumnEncoder(min_frequency=1).fit(self.X, estimator=model)
        assert model.n_features_in_ == 3
        assert list(model.feature_names_in_) == ["a", "b", "c"]
        for X in (self.X[["b", "a", "c"]], pl.from_pandas(self.X[["b", "a", "c"]])):
            with pytest.raises(ValueError, match="feature names should match"):
                encoder.transform(X, estimator=model)
        with pytest.warns(UserWarning, match="but Model was fitted with feature names"):
            encoder.transform(self.X.to_numpy(), estimator=model)
        array = np.random.default_rng(0).normal(size=(5, 3))
        encoder.fit(array, estimator=model)
        assert not hasattr(model, "feature_names_in_")
        with pytest.raises(ValueError, match="X has 1 features, but Model is expecting 3"):
            encoder.transform(np.ones((2, 1)), estimator=model)

    def test_an_encoder_that_is_not_fitted_says_so(self) -> None:
        with pytest.raises(ValueError, match="not fitted yet"):
            ColumnEncoder().transform(self.X)

    def test_a_fitted_encoder_pickles(self) -> None:
        X = self.X.assign(when=pd.date_range("2020", periods=3))
        encoder = ColumnEncoder(min_frequency=1).fit(X)
        again = pickle.loads(pickle.dumps(encoder)).transform(X)
        assert np.array_equal(again.numeric, encoder.transform(X).numeric)


class TestStatistics:
    @given(
        hnp.arrays(np.float64, (12, 2), elements=st.sampled_from([0.0, 1.0, 2.5, 7.0, np.nan])),
        hnp.arrays(np.int64, 12, elements=st.integers(0, 3)),
    )
    @settings(max_examples=60, deadline=None)
    def test_a_weight_is_so_many_rows(self, numbers: np.ndarray, weight: np.ndarray) -> None:
        X = pd.DataFrame(numbers, columns=["a", "b"])
        X["c"] = np.tile(["u", "v", None, "w"], 3)
        X["d"] = np.linspace(0.0, 1.0, 12)
        if (weight > 0).sum() < 2:
            return
        repeated = X.loc[np.repeat(np.arange(12), weight)].reset_index(drop=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KernelWeaveWarning)
            one = ColumnEncoder().fit(X, weight.astype(np.float64))
            other = ColumnEncoder().fit(repeated)
        assert names(one) == names(other)
        for mine, theirs in zip(one.dimensions_, other.dimensions_, strict=True):
            assert mine.categories == theirs.categories
            np.testing.assert_allclose(mine.frequencies, theirs.frequencies)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KernelWeaveWarning)
            mine, theirs = one.transform(X), other.transform(X)
        np.testing.assert_allclose(mine.numeric, theirs.numeric)
        np.testing.assert_array_equal(mine.codes, theirs.codes)

    def test_rows_to_predict_change_nothing(self) -> None:
        rng = np.random.default_rng(0)
        X = pd.DataFrame(
            {
                "a": np.where(rng.random(60) < 0.2, np.nan, rng.normal(size=60)),
                "b": rng.choice(list("uvwxyz"), 60),
                "c": pd.date_range("2020-01-01", periods=60, freq="13h").strftime("%Y-%m-%d %H:%M"),
            }
        )
        train, new = X[:40], X[40:]
        encoder = ColumnEncoder().fit(train)
        before = encoder.transform(train)
        alone = encoder.transform(new)
        strange = new.assign(a=1e6, b="never seen")
        encoder.transform(strange)
        together = encoder.transform(pd.concat([new, strange]))
        assert np.array_equal(encoder.transform(train).numeric, before.numeric)
        assert np.array_equal(together.numeric[:20], alone.numeric)
        assert np.array_equal(together.codes[:20], alone.codes)
        one_by_one = [encoder.transform(new.iloc[[i]]) for i in range(20)]
        assert np.array_equal(np.vstack([each.numeric for each in one_by_one]), alone.numeric)

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"max_categories": 1}, "max_categories must be an integer >= 2, got 1"),
            ({"max_categories": 2.5}, "max_categories must be an integer >= 2, got 2.5"),
            ({"min_frequency": 0}, "min_frequency must be .* got 0"),
            ({"min_frequency": 1.5}, "min_frequency must be .* got 1.5"),
            ({"min_frequency": True}, "min_frequency must be .* got True"),
        ],
    )
    def test_parameters_are_checked(self, parameters: dict[str, float], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            ColumnEncoder(**parameters).fit(np.eye(3))  # type: ignore[arg-type]


def test_a_sole_column_that_counts_the_rows_is_used() -> None:
    t = np.arange(1, 61)
    with pytest.warns(ColumnWarning, match="'t' looks like a row ID, and is used as the only"):
        encoder = ColumnEncoder().fit(pd.DataFrame({"t": t}))
    assert [each.name for each in encoder.dimensions_] == ["t"]
    with pytest.warns(ColumnWarning, match="column 't' is ignored: looks like a row ID"):
        encoder = ColumnEncoder().fit(pd.DataFrame({"t": t, "x": np.sin(t)}))
    assert [each.name for each in encoder.dimensions_] == ["x"]
