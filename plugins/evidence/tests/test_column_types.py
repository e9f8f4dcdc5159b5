"""What each library and each type of column becomes."""

from __future__ import annotations

import datetime
import decimal
import fractions
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from kernelweave.evidence import ColumnEncoder, Encoded
from kernelweave.evidence.explaining.values import cells_of_encoded
from kernelweave.evidence.rows import Rows
from kernelweave.kernels_core import KernelWeaveWarning, MemoryBudgetError, config_context
from kernelweave.tables import ColumnWarning, read_table
from scipy import sparse

N = 40


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    days = pd.to_datetime("2021-11-03") + pd.to_timedelta(rng.integers(0, 900, N), "h")
    return pd.DataFrame(
        {
            "size": rng.normal(size=N),
            "count": rng.integers(0, 9, N),
            "gappy": np.where(rng.random(N) < 0.3, np.nan, rng.normal(size=N)),
            "colour": rng.choice(["red", "green", "blue"], N),
            "holed": rng.choice(["up", "down", None], N),
            "flag": rng.random(N) < 0.4,
            "when": days,
            "span": pd.to_timedelta(rng.integers(0, 99, N), "m"),
        }
    )


def encoded(X: Any, **parameters: Any) -> tuple[ColumnEncoder, Encoded]:
    encoder = ColumnEncoder(**parameters).fit(X)
    return encoder, encoder.transform(X)


def assert_same(one: Encoded, other: Encoded) -> None:
    np.testing.assert_array_equal(one.numeric, other.numeric)
    np.testing.assert_array_equal(one.codes, other.codes)


def test_dimensions_say_what_each_column_of_the_result_is(table: pd.DataFrame) -> None:
    encoder, rows = encoded(table)
    assert rows.numeric.dtype == np.float64
    assert rows.numeric.flags.c_contiguous
    assert rows.codes.dtype == np.int64
    assert not np.isnan(rows.numeric).any()
    kinds = [each.kind for each in encoder.dimensions_]
    assert kinds == sorted(kinds, key="category".__eq__)
    assert len(kinds) == rows.numeric.shape[1] + rows.codes.shape[1]
    by_name = {each.name: each for each in encoder.dimensions_}
    assert by_name["gappy missing"].kind == "missing"
    assert by_name["gappy missing"].source == "gappy"
    assert by_name["when hour"].kind == "date part"
    assert by_name["holed"].categories == ("down", "up", "(missing)")
    for j, each in enumerate(each for each in encoder.dimensions_ if each.kind == "category"):
        share = np.bincount(rows.codes[:, j], minlength=len(each.categories)) / N
        np.testing.assert_allclose(each.frequencies, share)
        values = table[each.source].astype(object).where(table[each.source].notna(), "(missing)")
        assert [each.categories[code] for code in rows.codes[:, j]] == list(map(str, values))


def test_every_library_gives_the_same(table: pd.DataFrame) -> None:
    encoder, rows = encoded(table)
    polars = pl.from_pandas(table)
    for other in (
        polars,
        polars.to_arrow(),
        table.convert_dtypes(),
        table.convert_dtypes(dtype_backend="pyarrow"),
        polars.with_columns(pl.col("colour").cast(pl.Categorical)),
        polars.with_columns(pl.col("holed").cast(pl.Categorical)).to_arrow(),
        table.astype({"colour": "category", "flag": object, "count": object}),
    ):
        assert_same(encoder.transform(other), rows)
        again, own = encoded(other)
        assert_same(own, rows)
        assert [each.name for each in again.dimensions_] == [
            each.name for each in encoder.dimensions_
        ]


def test_arrays_lists_and_sparse_matrices(table: pd.DataFrame) -> None:
    X = table[["size", "count"]].to_numpy()
    _, rows = encoded(X)
    np.testing.assert_array_equal(rows.numeric, X)
    assert rows.codes.shape == (N, 0)
    for other in (
        X.tolist(),
        X.astype(object),
        X.astype(str),
        sparse.csr_array(X),
        sparse.coo_matrix(X),
    ):
        assert_same(encoded(other)[1], rows)
    mixed = table[["size", "colour"]].to_numpy()
    encoder, rows = encoded(mixed)
    assert [each.name for each in encoder.dimensions_] == ["x0", "x1"]
    assert_same(encoded(mixed.tolist())[1], rows)
    flags = np.array([[True, False], [False, False], [True, True]])
    assert encoded(flags)[1].codes.tolist() == [[1, 0], [0, 0], [1, 1]]


def test_a_large_sparse_matrix_is_refused() -> None:
    X = sparse.random_array((1000, 1000), density=0.01, format="csr")
    with config_context(memory_limit=2**20), pytest.raises(MemoryBudgetError, match="1000 rows"):
        ColumnEncoder().fit(X)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([decimal.Decimal("1.5"), 2, 3.5, None], [1.5, 2.0, 3.5, np.nan]),
        ([fractions.Fraction(1, 2), 1, 2, 3], [0.5, 1.0, 2.0, 3.0]),
        (["1e3", " 12 ", "-.5", ""], [1e3, 12.0, -0.5, np.nan]),
        (
            [datetime.time(1), datetime.time(0, 2), None, datetime.time(0)],
            [1.0, 1 / 30, np.nan, 0.0],
        ),
        ([datetime.timedelta(1), None, datetime.timedelta(0, 5), None], [86400, np.nan, 5, np.nan]),
    ],
)
def test_objects_that_are_numbers(values: list[Any], expected: list[float]) -> None:
    _, rows = encoded(np.array([values], dtype=object).T)
    filled = np.where(np.isnan(expected), np.nanmedian(expected), expected)
    np.testing.assert_allclose(rows.numeric[:, 0], filled)


def test_words_with_a_leading_zero_stay_words() -> None:
    encoder, _ = encoded(pd.DataFrame({"code": ["007", "010", "007", "010"]}))
    assert encoder.dimensions_[0].categories == ("007", "010")
    told = encoder.report_[0].remark
    assert "Codes that begin with 0, such as '007', are categories" in told
    # a command names its option, whatever other sentences follow
    assert "number, name it by --numeric. 2 categories." in told.naming(
        {"as_number": "name it by --numeric"}
    )


@pytest.mark.parametrize(
    ("form", "unit", "value"),
    [
        ("${:,.2f}", "$", lambda x: x),
        ("{} EUR", "€", lambda x: x),
        ("EUR {}", "€", lambda x: x),
        ("{},5", "", lambda x: x + 0.5),
        ("{} m²", "m²", lambda x: x),
        ("-{} €", "€", lambda x: -x),
        ("{}%", "%", lambda x: x),
        ("({}.25 kg)", "kg", lambda x: -x - 0.25),
    ],
)
def test_amounts_are_numbers_as_in_a_file(
    form: str, unit: str, value: Callable[[float], float]
) -> None:
    known = [990 + 7 * (i * i % 31) for i in range(30)]
    table = pd.DataFrame({"a": [form.format(x) for x in known], "b": np.arange(30) % 7.0})
    encoder, rows = encoded(table)
    plan = encoder.report_[0]
    assert (plan.kind, plan.unit) == ("number", unit)
    assert rows.numeric[:, 0].tolist() == [value(x) for x in known]
    # and so at prediction, where a column of numbers alone is in the same unit
    again = encoder.transform(table.assign(a=table["a"][::-1].to_numpy()))
    assert again.numeric[:, 0].tolist() == [value(x) for x in known[::-1]]
    if unit:
        with pytest.warns(
            KernelWeaveWarning, match=f"'a' has no unit, and was in {re.escape(unit)}"
        ):
            bare = encoder.transform(table.assign(a=known))
        assert bare.numeric[:, 0].tolist() == known
        with pytest.raises(ValueError, match=f"'a' is in lb, and was in {re.escape(unit)} in"):
            encoder.transform(table.assign(a=[f"{x} lb" for x in known]))


@pytest.mark.parametrize(
    "form",
    ["{}", "C-{}", "room {}", "{}-9", "7.{}.3", "{}:30", "A{}", "SKU{}", "BUS {}", "#{}", "<{}"],
)
def test_other_words_are_no_amounts(form: str) -> None:
    cells = [form.format(10 + i) for i in range(30)] * 3
    encoder, _ = encoded(pd.DataFrame({"a": cells, "b": np.arange(90) % 7.0}))
    assert (encoder.report_[0].kind == "number") == (form == "{}")


def test_dates_may_lie_beyond_nanoseconds() -> None:
    words = [f"{2000 + i}-01-01" for i in range(28)] + ["9999-12-31", "1066-10-14"]
    encoder, rows = encoded(pd.DataFrame({"until": words, "b": np.arange(30) % 7.0}))
    assert encoder.report_[0].seen == "dates"
    assert len(np.unique(rows.numeric, axis=0)) == 30


def test_numbers_among_words_are_words() -> None:
    X = np.array([[1, "one", 1.0, "1", True, "one"]], dtype=object).T
    encoder, rows = encoded(X)
    assert encoder.dimensions_[0].categories == ("1", "one")
    assert rows.codes[:, 0].tolist() == [0, 1, 0, 0, 0, 1]


@pytest.mark.parametrize("value", [{"a": 1}, [1, 2], 1j, object()])
def test_a_value_of_another_kind_is_refused_by_column_and_row(value: Any) -> None:
    X = pd.DataFrame({"good": [1.0, 2.0, 3.0], "bad": pd.Series(["a", "b", value], dtype=object)})
    with pytest.raises(TypeError, match=r"column 'bad' has .* in row 2: a value must be"):
        ColumnEncoder().fit(X)


def test_complex_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="Complex data not supported"):
        ColumnEncoder().fit(np.ones((3, 2), dtype=complex))


@pytest.mark.parametrize(
    ("X", "said"),
    [
        (np.ones(5), "Reshape your data"),
        (pd.Series([1.0, 2.0]), "2-dimensional|2D"),
        (np.ones((0, 3)), "0 sample"),
        (np.ones((3, 0)), r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required"),
        (pd.DataFrame(index=range(3)), r"0 feature\(s\)"),
        (pd.DataFrame({"a": []}), "no rows"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns named 'a'"),
        ([[1.0, 2.0]], "1 sample"),
    ],
)
def test_wrong_shapes_get_a_sentence(X: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ColumnEncoder().fit(X)


def test_a_lazy_table_is_refused() -> None:
    with pytest.raises(TypeError, match=r"collect\(\)"):
        ColumnEncoder().fit(pl.LazyFrame({"a": [1, 2]}))


class TestDates:
    def test_parts_are_those_of_the_calendar(self) -> None:
        when = pd.to_datetime(["2020-02-29 05:00", "2021-12-31 23:30", None, "1969-01-01 00:00"])
        encoder, rows = encoded(pd.DataFrame({"when": when}))
        parts = {each.name: rows.numeric[:, j] for j, each in enumerate(encoder.dimensions_)}
        assert parts["when year"].tolist() == [2020, 2021, 2020, 1969]
        assert parts["when month"].tolist() == [2, 12, 2, 1]
        assert parts["when weekday"].tolist() == [6, 5, 5, 3]
        assert parts["when hour"].tolist() == [5, 23, 5, 0]
        assert parts["when missing"].tolist() == [0, 0, 1, 0]
        exact = (when[1] - pd.Timestamp(0)) / pd.Timedelta(days=1)
        assert parts["when days since 1970"][1] == exact
        assert sum(each.kind == "missing" for each in encoder.dimensions_) == 1

    @pytest.mark.parametrize("form", ["%d.%m.%Y", "%Y-%m-%d", "%d/%m/%Y", "%Y-%m-%dT%H:%M:%S"])
    def test_words_that_are_dates_are_read(self, form: str) -> None:
        when = pd.Series(pd.date_range("2020-01-01", periods=N, freq="9D"))
        _, rows = encoded(pd.DataFrame({"when": when}))
        words = when.dt.strftime(form)
        words[3] = None
        encoder, found = encoded(pd.DataFrame({"when": words}))
        kept = np.arange(N) != 3
        np.testing.assert_allclose(found.numeric[kept, :-1], rows.numeric[kept])
        assert form in encoder.report_[0].remark
        with pytest.warns(ColumnWarning, match="1 of 2 rows holds text, .* in row 0, read"):
            odd = encoder.transform(pd.DataFrame({"when": ["some day", words[0]]}))
        assert odd.numeric[:, -1].tolist() == [1.0, 0.0]
        with pytest.raises(ValueError, match=f"format {form} in training and holds none now"):
            encoder.transform(pd.DataFrame({"when": ["Jan 5, 2020", None]}))

    def test_time_zones_of_training_are_kept(self) -> None:
        paris = pd.Series(pd.date_range("2020-01-01", periods=N, freq="7h", tz="Europe/Paris"))
        encoder, rows = encoded(pd.DataFrame({"when": paris}))
        tokyo = pd.DataFrame({"when": paris.dt.tz_convert("Asia/Tokyo")})
        assert_same(encoder.transform(tokyo), rows)
        assert_same(encoder.transform(pl.from_pandas(tokyo)), rows)
        own = Rows(rows.numeric, rows.codes, np.zeros((1, N)))
        shown = cells_of_encoded(own, encoder.dimensions_, encoder.report_)
        assert shown[:, 0].tolist() == paris.tolist()

    def test_moments_with_a_zone_are_the_same_in_a_file(self, tmp_path: Path) -> None:
        paris = pd.DataFrame(
            {"when": pd.date_range("2020-03-25", periods=N, freq="7h", tz="Europe/Paris")}
        )
        paris.to_csv(tmp_path / "t.csv", index=False)
        written = read_table(tmp_path / "t.csv").frame
        ends_in_z = paris["when"].dt.tz_convert("UTC").dt.strftime("%Y-%m-%dT%H:%M:%SZ").to_frame()
        kinds = (paris, written, ends_in_z)
        for known in kinds:
            encoder, rows = encoded(known)
            for other in kinds:
                assert_same(encoder.transform(other), rows)
        # training had dates without a zone, which count as UTC
        encoder, rows = encoded(paris["when"].dt.tz_convert("UTC").dt.tz_localize(None).to_frame())
        for other in kinds:
            assert_same(encoder.transform(other), rows)

    @pytest.mark.parametrize(
        ("form", "later"),
        [
            ("%Y-%m-%d %H:%M:%S", ["2020-03-01", "2020-03-01T00:00", "2020-03-01 00:00:00.0"]),
            ("%Y-%m-%d", ["2020-03-01 00:00:00", "2020-03-01T00:00", "2020-03-01"]),
        ],
    )
    def test_a_date_may_come_with_its_hour_or_without(self, form: str, later: list[str]) -> None:
        when = pd.Series(pd.date_range("2020-01-01", periods=N, freq="31h")).dt.strftime(form)
        encoder = ColumnEncoder().fit(pd.DataFrame({"when": when}))
        days = (pd.Timestamp("2020-03-01") - pd.Timestamp(0)).days
        assert (
            encoder.transform(pd.DataFrame({"when": later})).numeric[:, -1].tolist() == [days] * 3
        )
        with pytest.raises(ValueError, match=f"held dates of the format {form} .* '01/03/2020'"):
            encoder.transform(pd.DataFrame({"when": ["01/03/2020", "2020-13-01"]}))

    def test_dates_of_every_type_are_the_same(self) -> None:
        days = [datetime.date(2020, 1, 1) + datetime.timedelta(3 * i) for i in range(N)]
        _, rows = encoded(pd.DataFrame({"when": pd.to_datetime(days)}))
        for other in (
            pd.DataFrame({"when": days}),
            pl.DataFrame({"when": days}),
            pl.DataFrame({"when": days}).to_arrow(),
            pd.DataFrame({"when": [str(day) for day in days]}),
        ):
            assert_same(encoded(other)[1], rows)


@pytest.mark.parametrize(
    "form",
    [
        *("%b %d, %Y", "%m/%d/%y", "%d.%m.%y", "%d-%b-%y", "%m/%d/%Y %I:%M %p"),
        *("%b %Y", "%b-%y", "%m/%Y"),
    ],
)
def test_dates_as_spreadsheets_write_them_are_dates(form: str) -> None:
    days = pd.date_range("2021-02-03 08:30", periods=40, freq="17D")
    encoder = ColumnEncoder().fit(pd.DataFrame({"when": days.strftime(form)}))
    (row,) = encoder.report_
    assert row.seen == "dates"
    month = [each.name for each in encoder.dimensions_].index("when month")
    found = encoder.transform(pd.DataFrame({"when": [pd.Timestamp("2030-11-01").strftime(form)]}))
    assert found.numeric[0, month] == 11.0


def test_a_word_among_dates_is_a_gap() -> None:
    days = pd.date_range("2021-02-03", periods=30).strftime("%Y-%m-%d").tolist()
    with pytest.warns(ColumnWarning, match=r"1 of 31 rows holds text, such as 'pending'"):
        encoder = ColumnEncoder().fit(pd.DataFrame({"when": [*days, "pending"]}))
    assert encoder.report_[0].seen == "dates"


@pytest.mark.parametrize(
    "words",
    [
        ["25 septembre 2024", "1er mars 2023", "17 août 2023", "2 mars 2023"],
        ["1 de abril de 2023", "25 de marzo de 2024", "2 de mayo de 2024"],
        ["2023-02-01", "28/02/2023", "17/03/2023", "2023-05-05"],
    ],
)
def test_dates_in_no_known_format_are_told(words: list[str]) -> None:
    encoder = ColumnEncoder(min_frequency=1).fit(pd.DataFrame({"when": words * 5}))
    (row,) = encoder.report_
    assert row.seen == "text"
    assert "look like dates" in row.remark
    assert "2024-05-31" in row.remark


@pytest.mark.parametrize("shape", ["10.0.{}.1", "1.{}.0", "Room {}", "SKU-{}", "{}x100", "{}/7"])
def test_codes_are_not_told_to_be_dates(shape: str) -> None:
    words = [shape.format(i) for i in range(12, 30)] * 3
    encoder = ColumnEncoder().fit(pd.DataFrame({"code": words}))
    assert encoder.report_[0].seen == "text"
    assert "dates" not in encoder.report_[0].remark


def test_numbers_in_place_of_durations_are_warned_of(table: pd.DataFrame) -> None:
    """A file holds durations as numbers, pandas' Excel files as days."""
    bare = table.assign(span=table["span"].dt.total_seconds())
    with pytest.warns(UserWarning, match=r"'span' has no unit, and was in s in the training"):
        assert_same(ColumnEncoder().fit(table).transform(bare), encoded(table)[1])
    with pytest.warns(UserWarning, match=r"'span' is in s, and had no unit in the training"):
        ColumnEncoder().fit(bare).transform(table)
