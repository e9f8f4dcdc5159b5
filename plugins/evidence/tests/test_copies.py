"""Copies of rows: found wherever they are, and never on both sides of a held-out score."""

from __future__ import annotations

import tracemalloc
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import (
    Batches,
    EvidenceKernelClassifier,
    EvidenceKernelRegressor,
    EvidenceMKLRegressor,
    copies,
)
from kernelweave.evidence.copies import KnownRows, alike_groups
from kernelweave.kernels_core import RBF
from kernelweave.kernels_core.estimators.copies import Line, copy_groups
from large_tables import QUICK, small  # noqa: F401
from sklearn.model_selection import KFold

pytestmark = pytest.mark.filterwarnings(
    "ignore::kernelweave.kernels_core.exceptions.UnderfitWarning"
)


def table(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers of very different sizes, with outliers, and codes."""
    state = np.random.RandomState(seed)
    numeric = np.column_stack([state.randn(n), 1e6 + state.rand(n), 1e-9 * state.randn(n) ** 3])
    numeric[:3, 0] = 1e12
    return numeric, state.randint(0, 4, size=(n, 2))


def moved(numeric: np.ndarray, seed: int = 1) -> np.ndarray:
    """Return numbers moved by 1e-9 of what most of their column spreads over."""
    spread = np.subtract(*np.quantile(numeric, [0.75, 0.25], axis=0))
    return numeric + 1e-9 * spread * np.random.RandomState(seed).uniform(-1, 1, numeric.shape)


def test_groups_are_those_of_all_pairs() -> None:
    numeric, codes = table(60)
    numeric, codes = np.vstack([numeric, moved(numeric[10:30]), numeric[20:25]]), codes
    codes = np.vstack([codes, codes[10:30], codes[20:25]])
    codes[70, 0] += 1
    spread = np.subtract(*np.quantile(numeric, [0.9, 0.1], axis=0))
    groups = copy_groups(numeric, codes)
    for i, j in combinations(range(len(numeric)), 2):
        near = np.all(np.abs(numeric[i] - numeric[j]) <= 1e-8 * spread)
        assert (groups[i] == groups[j]) == (near and (codes[i] == codes[j]).all())
    assert groups.max() + 1 == 61


@pytest.mark.parametrize("centre", [1e18, -3e15])
def test_large_numbers_that_differ_in_their_last_bits_are_copies(centre: float) -> None:
    bit = np.spacing(abs(centre))
    numeric = centre + bit * np.array([0.0, 1.0, 4.0, -8.0, 16.0])[:, None]
    codes = np.zeros((5, 0), dtype=np.int64)
    groups = copy_groups(numeric, codes)
    np.testing.assert_array_equal(groups[[0, 1, 2]], groups[0])
    assert len(set(groups.tolist())) == 3
    known = KnownRows.of(Line.of(numeric, codes), numeric[:1], codes[:1])
    np.testing.assert_array_equal(known.find(numeric, codes), [0, 0, 0, -1, -1])


@pytest.mark.parametrize(
    ("step", "share"), [(0.0, 1.0), (256.0, 0.001), (1e9, 0.001), (1e9, 0.5), (6e10, 0.5)]
)
def test_few_rows_are_compared_beside_a_column_of_large_numbers_alike(
    step: float, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as times in nanoseconds since 1970."""
    state = np.random.RandomState(0)
    numeric = np.column_stack([state.randn(2000, 2), 1.7e18 + step * (state.rand(2000) < share)])
    numeric[1900:] = numeric[:100]
    # 1000 is the least that the numbers of the third column must differ by, 1e-15 of their size
    numeric[1900:1910, 2] += 5e3
    numeric[1910:, 2] += 512.0
    codes, compared, copies = np.zeros((2000, 0), dtype=np.int64), [], Line.copies

    def counted(line: Line, left: tuple, right: tuple) -> np.ndarray:
        compared.append(len(left[0]))
        return copies(line, left, right)

    monkeypatch.setattr(Line, "copies", counted)
    line = Line.of(numeric, codes)
    groups = copy_groups(numeric, codes)
    known = KnownRows.of(line, numeric[:1900], codes[:1900]).find(numeric, codes)
    assert sum(compared) < 3 * len(numeric)
    joined = line.copies((numeric[1900:], codes[1900:]), (numeric[:100], codes[:100]))
    assert joined[10:].all()
    np.testing.assert_array_equal(groups[1900:] == groups[:100], joined)
    np.testing.assert_array_equal(known[1900:], np.where(joined, np.arange(100), -1))


def test_copies_with_another_row_between_them_on_the_line_share_a_group() -> None:
    numeric, codes = np.random.RandomState(0).randn(200, 2), np.zeros((200, 0), dtype=np.int64)
    # above the quantiles, so that the line stays what it is
    numeric[:3] = 5.0, 5.0
    line = Line.of(numeric, codes)
    numeric[1, 0] += 0.9e-7 * line.spread[0]
    middle = line.places(numeric[:2], codes[:2]).mean()
    numeric[2, 1] = 4.0
    rest = middle - line.weights[1] * np.arcsinh((4.0 - line.centre[1]) / line.spread[1])
    numeric[2, 0] = line.centre[0] + line.spread[0] * np.sinh(rest / line.weights[0])
    places = line.places(numeric[:3], codes[:3])
    assert places[0] < places[2] < places[1]
    groups = copy_groups(numeric, codes)
    assert groups[0] == groups[1] != groups[2]
    assert groups.max() + 1 == 199


def test_copies_on_two_sides_of_a_cell_border_are_found() -> None:
    # of numbers on a grid some copies fall on another side of every grid of cells
    numeric = np.round(np.random.RandomState(0).rand(4000, 6), 3)
    codes = np.zeros((4000, 0), dtype=np.int64)
    line = Line.of(numeric, codes)
    known = KnownRows.of(line, numeric, codes)
    np.testing.assert_array_equal(known.find(moved(numeric), codes), np.arange(4000))
    others = np.round(np.random.RandomState(5).rand(4000, 6), 3)
    assert np.all(known.find(others, codes) == -1)


@pytest.mark.parametrize("size", [1, 7, 500])
def test_copies_are_found_however_a_table_is_cut(size: int) -> None:
    numeric, codes = table(500)
    order = np.random.RandomState(3).permutation(500)[:100]
    known = KnownRows.of(Line.of(numeric, codes), numeric[order], codes[order])
    expected = np.full(500, -1)
    expected[order] = np.arange(100)
    parts = [slice(i, i + size) for i in range(0, 500, size)]
    found = [known.find(np.asfortranarray(moved(numeric)[part]), codes[part]) for part in parts]
    np.testing.assert_array_equal(np.concatenate(found), expected)


def noise_twice(near: bool, n: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """Return pure noise, each row twice, in random order."""
    state = np.random.RandomState(0)
    X, y = state.randn(n, 3), state.randn(n)
    again = moved(X) if near else X
    order = state.permutation(2 * n)
    return np.vstack([X, again])[order], np.concatenate([y, y])[order]


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("how", ["array", "batches", "dask"])
def test_noise_with_each_row_twice_is_noise_above_the_exact_rows(how: str, near: bool) -> None:
    X, y = noise_twice(near)
    given: tuple[Any, ...] = (X, y)
    if how == "batches":
        given = (Batches((X, y), size=150),)
    if how == "dask":
        da = pytest.importorskip("dask.array", reason="needs dask")
        given = da.from_array(X, chunks=(150, 3)), da.from_array(y, chunks=150)
    model = EvidenceKernelRegressor(**QUICK).fit(*given)
    assert model.held_out_score_ < 3.0 * model.held_out_error_
    new = np.random.RandomState(7)
    low, high = model.predict_interval(new.randn(2000, 3))
    inside = new.randn(2000)
    assert np.mean((low <= inside) & (inside <= high)) > 0.8


# after a kernel that has learned from pairs, rows that no copy has are predicted a little worse
@pytest.mark.filterwarnings("ignore::kernelweave.evidence.HeldOutWarning")
@pytest.mark.parametrize("kind", ["equal", "near", "targets rounded"])
def test_noise_with_each_row_twice_is_noise_where_all_pairs_are_used(kind: str) -> None:
    X, y = noise_twice(kind == "near", 90)
    if kind == "targets rounded":
        # of one copy and not of the other: these are no equal rows
        y[::2] = y[::2].round(2)
    model = EvidenceKernelRegressor(**QUICK).fit(X, y)
    assert model.held_out_score_ < 3.0 * model.held_out_error_
    new = np.random.RandomState(7)
    low, high = model.predict_interval(new.randn(1000, 3))
    inside = new.randn(1000)
    assert np.mean((low <= inside) & (inside <= high)) > 0.8


def test_a_class_drawn_by_lot_for_each_row_and_its_copy_is_noise() -> None:
    X, y = noise_twice(near=True)
    label = np.where(y > 0.0, "a", "b")
    model = EvidenceKernelClassifier(**QUICK).fit(X, label)
    assert abs(model.held_out_score_ - 0.5) < 4.0 * model.held_out_error_


def test_rows_held_out_take_all_their_copies_along() -> None:
    X, y = noise_twice(near=True, n=140)
    model = EvidenceKernelRegressor(**QUICK).fit(Batches((X, y), size=90))
    held_out = model._predictor.rows
    # all 280 rows are drawn
    groups = copy_groups(held_out.numeric, held_out.codes)
    assert (np.bincount(groups) == 2).all()


@pytest.mark.parametrize(
    ("n", "how"),
    [(75, "array"), (75, "cv"), (140, "order"), (140, "array"), (300, "column"), (300, "cv")],
)
@pytest.mark.filterwarnings("ignore::kernelweave.evidence.HeldOutWarning")
def test_a_copy_in_another_group_block_or_split_tells_nothing(n: int, how: str) -> None:
    """All pairs, sums of all rows that are drawn, and those of a table of which some are drawn."""
    X, y = noise_twice(near=True, n=n)
    table = pd.DataFrame(X, columns=list("abc"))
    who = np.random.RandomState(1).permutation(2 * n) % (2 * n // 5)
    model, asked = EvidenceKernelRegressor(**QUICK), {}
    if how == "column":
        table["who"], asked = [f"p{k}" for k in who], {"groups": "who"}
    elif how == "cv":
        model.set_params(cv=KFold(5))
    else:
        asked = {"groups": who} if how == "array" else {"order": np.arange(2 * n)}
    model.fit(table, y, **asked)
    assert model.held_out_score_ < 3.0 * model.held_out_error_
    if how == "cv":
        return
    new = np.random.RandomState(7)
    rows = pd.DataFrame(new.randn(1000, 3), columns=list("abc")).assign(who="another")
    low, high = model.predict_interval(rows[table.columns])
    inside = new.randn(1000)
    assert np.mean((low <= inside) & (inside <= high)) > 0.8


@pytest.mark.filterwarnings("ignore::kernelweave.evidence.HeldOutWarning")
@pytest.mark.parametrize("n_groups", [8, 20])
def test_what_recurs_in_every_group_stays_in_training(n_groups: int) -> None:
    """Curves that are measured at the same times: those of new groups will be too."""
    state = np.random.RandomState(0)
    times = np.tile(np.linspace(0.0, 1.0, 15), n_groups)
    y = np.sin(5.0 * times) + 0.1 * state.randn(len(times))
    who = np.repeat(np.arange(n_groups), 15)
    model = EvidenceKernelRegressor(**QUICK).fit(times[:, None], y, groups=who)
    assert model.held_out_score_ > 0.8


@pytest.mark.parametrize("how", ["exact", "batches"])
def test_a_table_of_few_values_given_twice_is_that_table_once(how: str) -> None:
    state = np.random.RandomState(0)
    X, y = state.randint(1, 5, size=(140, 3)).astype(float), state.randn(140)
    again = np.vstack([X, X]), np.append(y, y * (1.0 + 1e-12))
    once = EvidenceKernelRegressor(**QUICK).fit(X, y)
    twice = EvidenceKernelRegressor(**QUICK)
    if how == "exact":
        # 200 rows are many here
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("kernelweave.evidence.read_table.FACTOR_ROWS", 300)
            twice.fit(*again)
        np.testing.assert_allclose(twice.predict(X), once.predict(X), rtol=1e-6)
        assert twice.held_out_prediction_.shape == (280,)
    else:
        twice.fit(Batches(again, size=90))
    assert twice.held_out_score_ < 2.0 * twice.held_out_error_


@pytest.mark.parametrize("how", ["points", "matrices"])
def test_copies_by_rounding_are_one_sample_of_given_kernels(how: str) -> None:
    X, y = noise_twice(near=True, n=60)
    kernel = RBF(3.0)
    given: tuple[Any, Any] = ([kernel], X) if how == "points" else ("precomputed", kernel(X)[None])
    model = EvidenceMKLRegressor(given[0], n_folds=2).fit(given[1], y)
    assert model.held_out_score_ < 2.0 * model.held_out_error_
    pairs = model.held_out_prediction_[np.lexsort(np.round(X, 4).T)].reshape(60, 2)
    np.testing.assert_array_equal(pairs[:, 0], pairs[:, 1])


@pytest.mark.parametrize("kind", ["copies", "few columns", "half", "codes", "alone", "lattice"])
def test_some_rows_tell_of_near_copies_what_all_pairs_do(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = np.random.RandomState(0)
    samples = np.repeat(state.normal(size=(400, 2 if kind == "few columns" else 4)), 3, axis=0)
    numeric = samples + 0.01 * state.normal(size=samples.shape)
    codes = np.zeros((len(numeric), 0), dtype=np.int64)
    if kind == "half":
        numeric = np.vstack([numeric, state.normal(size=(800, 4))])
        codes = np.zeros((2000, 0), dtype=np.int64)
    if kind == "codes":
        codes = np.repeat(state.randint(0, 4, (400, 2)), 3, axis=0)
    if kind == "alone":
        numeric = state.normal(size=(1200, 4))
    if kind == "lattice":
        numeric = state.randint(0, 8, (1200, 3)).astype(np.float64)
    by_pairs = alike_groups(numeric, codes)
    monkeypatch.setattr(copies, "_PAIRS", 500)
    of_some = alike_groups(numeric, codes)
    counts = np.bincount(of_some)
    found = np.flatnonzero(counts[of_some] > 1)
    assert (len(found) > 0) == (np.bincount(by_pairs).max() > 1)
    same = [
        np.array_equal(members, np.flatnonzero(by_pairs == by_pairs[members[0]]))
        for members in (np.flatnonzero(of_some == group) for group in np.unique(of_some[found]))
    ]
    # the distance of the cut is that of some rows
    assert not same or np.mean(same) > 0.95


def test_near_copies_among_many_rows_take_no_matrix_of_them() -> None:
    samples = np.repeat(np.random.RandomState(0).normal(size=(20_000, 3)), 3, axis=0)
    numeric = samples + 0.001 * np.random.RandomState(1).normal(size=samples.shape)
    tracemalloc.start()
    counts = np.bincount(alike_groups(numeric, np.zeros((60_000, 0), dtype=np.int64)))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 4e8
    assert (counts == 3).sum() > 200
