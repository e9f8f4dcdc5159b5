"""Thousands of columns: memory is stated before the work, and the clock is looked at within it."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from kernelweave.evidence import EvidenceKernelRegressor, terms
from kernelweave.evidence._njit_views import interpolate
from kernelweave.evidence.large.learning import learn_large
from kernelweave.evidence.large.plan import LargePlan
from kernelweave.evidence.objective import (
    Evidence,
    LowRankCurvature,
    evidence_bytes,
    is_wide,
    prior_curvature,
    start,
)
from kernelweave.evidence.path import EvidenceDescent, PathPlan, fit_path
from kernelweave.evidence.rows import Rows, Standardised
from kernelweave.evidence.terms import GaussianTerm, PairTerms, Stopped
from kernelweave.evidence.views import Views
from kernelweave.kernels_core import clock, config_context
from kernelweave.kernels_core.exceptions import MemoryBudgetError


def wide(n: int, p: int, outputs: int = 1) -> Rows:
    state = np.random.RandomState(0)
    X, codes = state.randn(n, p), state.randint(0, 3, size=(n, 2))
    return Rows(X, codes, np.vstack([X[:, k] + 0.1 * state.randn(n) for k in range(outputs)]))


def evidence_of(rows: Rows) -> Evidence:
    views = rows.views()
    points = views.points(rows.numeric, rows.codes)
    return Evidence(points, views.match_weight, Standardised.of(rows).values, 5.0, rows.weight)


def dense(curvature: LowRankCurvature) -> np.ndarray:
    parts = (curvature.signs[:, None] * curvature.vectors).T @ curvature.vectors
    return np.asarray(np.diag(curvature.diagonal) + parts)


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_curvature_in_vectors_is_the_one_in_a_matrix(
    outputs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence = evidence_of(wide(20, 60, outputs))
    theta = start(62) + 0.1 * np.random.RandomState(1).randn(130)
    value = evidence.value(theta)
    slope, expected = evidence.derivatives()
    assert isinstance(expected, np.ndarray)
    monkeypatch.setattr("kernelweave.evidence.objective._MANY", 100)
    other = evidence_of(wide(20, 60, outputs))
    assert other.value(theta) == value
    found_slope, found = other.derivatives()
    assert isinstance(found, LowRankCurvature)
    np.testing.assert_allclose(found_slope, slope, rtol=1e-12)
    np.testing.assert_allclose(dense(found), expected, rtol=1e-9, atol=1e-10)
    moving = np.random.RandomState(2).rand(130) < 0.8
    right, step = np.random.RandomState(3).randn(2, 130)
    np.testing.assert_allclose(found @ step, expected @ step, rtol=1e-9, atol=1e-9)
    shifted = expected[np.ix_(moving, moving)] + 0.3 * np.eye(moving.sum())
    np.testing.assert_allclose(
        found.solve(moving, 0.3, right[moving]), np.linalg.solve(shifted, right[moving]), rtol=1e-8
    )


# without groups and with them
@pytest.mark.parametrize("n_scales", [20, 21])
def test_the_priors_alone_have_the_same_curvature(n_scales: int) -> None:
    prior = prior_curvature(7, 50.0, n_scales)
    found = LowRankCurvature.of(7, 50.0, [np.zeros((1, len(prior)))])
    np.testing.assert_allclose(dense(found), prior, atol=1e-12)


def test_a_descent_in_vectors_ends_where_that_in_a_matrix_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends = []
    for many in (1000, 50):
        monkeypatch.setattr("kernelweave.evidence.objective._MANY", many)
        descent = EvidenceDescent(evidence_of(wide(25, 40)), start(42))
        descent.run(200, 1e-9)
        ends.append(descent.value)
    # both are stationary but for the tolerance of a step
    assert ends[1] == pytest.approx(ends[0], rel=1e-4)


@pytest.mark.parametrize("kind", [PairTerms, GaussianTerm])
@pytest.mark.parametrize("moment", [1, 5000, 2**25])
def test_passes_over_blocks_of_rows_are_the_pass_over_all(
    kind: Any, moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = wide(30, 8)
    views = rows.views()
    points = views.points(rows.numeric, rows.codes)
    state = np.random.RandomState(0)
    slope, probes = state.randn(465), state.randn(2, 30)
    scales = Evidence(points, views.match_weight, rows.targets, 5.0)
    theta = start(10)
    scales.value(theta)
    said = []
    for size in (2**40, moment):
        monkeypatch.setattr(terms, "_MOMENT", size)
        own = kind(points, views.match_weight)
        kernel = own.fill(scales._scales).copy()
        said.append((kernel, *own.changes(slope, scales._scales, probes)))
    for whole, parts in zip(*said, strict=True):
        np.testing.assert_allclose(parts, whole, rtol=1e-12, atol=1e-12)


def test_ranks_of_all_columns_are_those_of_one_at_a_time() -> None:
    state = np.random.RandomState(0)
    whole, tiny = state.randint(0, 5, 200), 1e-310 * state.randint(0, 9, 200)
    X = np.column_stack([state.randn(200), whole, tiny, np.zeros(200), 1e300 * state.randn(200)])
    weight = state.rand(200)
    views = Views.of(X, np.empty((200, 0), dtype=np.int64), weight)
    inside = np.vstack([X[:50], X[:50] * state.rand(50, 5), 2.0 * X[:50]])
    U = np.empty((5, len(inside)))
    knots, ranks = views.knots, views.ranks
    interpolate(np.ascontiguousarray(inside.T), knots.values, ranks.values, knots.ends, U)
    share = weight / weight.sum()
    for column, new, found, own, shares in zip(X.T, inside.T, U, knots, ranks, strict=True):
        values, numbers = np.unique(column, return_inverse=True)
        masses = np.bincount(numbers, weights=share)
        np.testing.assert_array_equal(own, values)
        np.testing.assert_array_equal(shares, np.cumsum(masses) - 0.5 * masses)
        unit = -np.frexp(np.abs(values).max())[1]
        expected = np.interp(np.ldexp(new, unit), np.ldexp(values, unit), shares)
        np.testing.assert_array_equal(found, expected)


def test_the_clock_is_looked_at_within_an_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = wide(30, 8)
    evidence = evidence_of(rows)
    monkeypatch.setattr(terms, "_MOMENT", 600)
    looks: list[bool] = []

    def expired() -> bool:
        looks.append(len(looks) >= 3)
        return looks[-1]

    monkeypatch.setattr(clock, "expired", expired)
    with pytest.raises(Stopped):
        evidence.value(start(10))
    # of 15 blocks of two rows, which 30 rows of 10 dimensions are cut into, four are worked out
    assert looks == [False, False, False, True]


def test_a_fit_that_stops_within_an_evaluation_keeps_its_best_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = wide(30, 8)
    plan, views = PathPlan((500.0, 5.0), max_iter=30), rows.views()
    whole, first = list(fit_path(views, rows, plan)), evidence_of(rows).value(start(10))
    monkeypatch.setattr(terms, "_MOMENT", 600)
    looks: list[int] = []

    def expired() -> bool:
        looks.append(1)
        return len(looks) > 400

    monkeypatch.setattr(clock, "expired", expired)
    fits: list[Any] = []
    with pytest.raises(Stopped):
        fits.extend(fit_path(views, rows, plan))
    assert len(fits) == 1
    assert whole[0].value <= fits[0].value < first


@pytest.mark.parametrize(("n", "p"), [(60, 1500), (80, 300), (300, 20)])
def test_a_descent_stays_within_the_memory_that_is_stated(n: int, p: int) -> None:
    stated = evidence_bytes(p + 2, n, 1)
    assert is_wide(p + 2, n) == (p == 1500)
    rows = wide(n, p)
    EvidenceDescent(evidence_of(wide(20, 5)), start(7)).run(2, 1e-3)
    tracemalloc.start()
    EvidenceDescent(evidence_of(rows), start(p + 2)).run(4, 1e-3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.25 * stated < peak < stated


def test_five_thousand_columns_fit_a_budget_that_a_matrix_of_their_scales_would_pass() -> None:
    # ten thousand scales: their matrix alone would be 800 MB
    assert evidence_bytes(5000, 300, 1) < 2**28
    state = np.random.RandomState(0)
    X, y = state.randn(300, 5000), state.randn(300)
    model = EvidenceKernelRegressor(memory_limit=2**26)
    with pytest.raises(MemoryBudgetError, match=r"300 rows .* 5000 dimensions"):
        model.fit(X, y)


def test_columns_count_in_the_memory_of_a_large_model() -> None:
    rows = wide(400, 900)
    plan = LargePlan(PathPlan(precisions=(5.0,)), metric_rows=80, first=20, most=40)
    with (
        config_context(memory_limit=2**22),
        pytest.raises(MemoryBudgetError, match="40 landmarks of 400 rows and 902 dimensions"),
    ):
        learn_large(rows, plan, np.random.RandomState(0))
