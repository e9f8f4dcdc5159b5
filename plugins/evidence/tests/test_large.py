"""Landmarks and sums over blocks: any number of rows."""

from __future__ import annotations

import pickle
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from kernelweave.evidence import EvidenceKernelRegressor
from kernelweave.evidence.copies import KnownRows
from kernelweave.evidence.cross import cross_kernel
from kernelweave.evidence.large.features import Landmarks
from kernelweave.evidence.large.held_out import RowBlock, RowRoles
from kernelweave.evidence.large.landmark_search import LandmarkSearch
from kernelweave.evidence.large.learning import learn_large
from kernelweave.evidence.large.plan import LargePlan
from kernelweave.evidence.large.posterior import (
    PosteriorOfSums,
    latent_variance,
    root_of,
)
from kernelweave.evidence.large.solution import Choice, Trial
from kernelweave.evidence.large.source import BlockSource
from kernelweave.evidence.large.sums import NormalEquations, block_sums, total_sums
from kernelweave.evidence.large.survey import survey
from kernelweave.evidence.mixture import fit_mixture
from kernelweave.evidence.path import Fit, PathPlan
from kernelweave.evidence.rows import Rows, Standardised
from kernelweave.evidence.terms import JITTER, Scales
from kernelweave.evidence.views import Views
from kernelweave.kernels_core import config_context
from kernelweave.kernels_core.clock import time_limit
from kernelweave.kernels_core.estimators.copies import Line
from kernelweave.kernels_core.exceptions import MemoryBudgetError
from sklearn.datasets import make_friedman1

PLAN = LargePlan(PathPlan(precisions=(5.0,), max_iter=15), metric_rows=80, first=20, most=80)


def friedman(n: int, n_numbers: int = 4, outputs: int = 1) -> Rows:
    X, y = make_friedman1(n, n_features=6, noise=0.5, random_state=0)
    codes = (3 * X[:, n_numbers:]).astype(np.int64)
    targets = np.vstack([y * (k + 1) + k * X[:, 1] for k in range(outputs)])
    return Rows(np.ascontiguousarray(X[:, :n_numbers]), codes, targets)


def scales(n: int) -> Scales:
    state = np.random.RandomState(0)
    return Scales(state.rand(n), state.rand(n), np.array([0.3, 0.2, 0.1, 0.4, 0.2]), 0.05)


def landmarks_of(rows: Rows, n: int, dtype: type = np.float64) -> Landmarks:
    views = Views.of(rows.numeric, rows.codes, rows.weight)
    points = views.points(rows.numeric[:n], rows.codes[:n])
    first = scales(views.n_dimensions)
    second = Scales(2.0 * first.ell, first.strength, first.weights, 0.05)
    return Landmarks(views, points, (first, second), dtype)


def cut(rows: Rows, size: int) -> list[Rows]:
    return [rows.take(np.arange(len(rows))[i : i + size]) for i in range(0, len(rows), size)]


def source_of(blocks: list[Rows], n_jobs: int | None = None) -> BlockSource:
    return BlockSource(lambda: iter(blocks), n_jobs)


@pytest.mark.parametrize("n_numbers", [0, 3, 4, 6])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 2e-6)])
def test_features_are_the_kernel(n_numbers: int, dtype: type, tolerance: float) -> None:
    rows = friedman(90, n_numbers)
    landmarks = landmarks_of(rows, 40, dtype)
    points = landmarks.views.points(rows.numeric, rows.codes)
    K = cross_kernel(points, landmarks.points, landmarks.scales, landmarks.views.match_weight)
    found = landmarks.features(rows.numeric, rows.codes)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, K, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("weighted", [False, True])
def test_with_all_rows_as_landmarks_it_is_the_exact_predictor(weighted: bool) -> None:
    rows = friedman(120, outputs=2)
    if weighted:
        weight = np.random.RandomState(1).randint(1, 4, 120).astype(np.float64)
        rows = Rows(rows.numeric, rows.codes, rows.targets, weight)
    landmarks, targets = landmarks_of(rows, 120), Standardised.of(rows)
    root = root_of(landmarks.gram(), jitter=1e-13)
    normal = NormalEquations.of(root, block_sums(landmarks, rows, targets))
    exact = fit_mixture(landmarks.views, rows, landmarks.scales)
    ridge = exact.noise + JITTER
    solved = normal.solve(ridge)
    assert solved is not None
    new = friedman(200).take(np.arange(120, 200))
    features = landmarks.features(new.numeric, new.codes)
    points = landmarks.views.points(new.numeric, new.codes)
    np.testing.assert_allclose(features @ solved[0], exact.kernel(points) @ exact.dual, atol=1e-6)
    posterior = PosteriorOfSums.of(landmarks, ridge, normal, solved[1])
    latent = latent_variance(landmarks, posterior, new.numeric, new.codes)
    np.testing.assert_allclose(latent, exact.variance(points), atol=1e-6)


@pytest.mark.parametrize("ridge", [1e-5, 1e-2, 1.0])
def test_a_packed_posterior_has_the_variance_of_the_normal_equations(ridge: float) -> None:
    """Of k(x, x) − kᵀKₘₘ⁻¹k + ρkᵀ(KₓₘᵀKₓₘ + ρKₘₘ)⁻¹k with the jitter in Kₘₘ, by dense inverses."""
    rows, new = friedman(300), friedman(340).take(np.arange(300, 340))
    landmarks = landmarks_of(rows, 60)
    root = root_of(landmarks.gram())
    normal = NormalEquations.of(root, block_sums(landmarks, rows, Standardised.of(rows)))
    solved = normal.solve(ridge)
    assert solved is not None
    posterior = PosteriorOfSums.of(landmarks, ridge, normal, solved[1])
    K = landmarks.features(rows.numeric, rows.codes)
    k = landmarks.features(new.numeric, new.codes)
    inner = root @ root.T
    seen = np.einsum("ij,ji->i", k, np.linalg.solve(inner, k.T))
    open_ = ridge * np.einsum("ij,ji->i", k, np.linalg.solve(K.T @ K + ridge * inner, k.T))
    prior = 2.0 * seen
    np.testing.assert_allclose(posterior.left(k, prior), seen + open_, rtol=1e-6)
    # beside the landmarks, the triangle of the equations, to which later rows can be added
    content = pickle.dumps(posterior)
    triangle = 8 * 60 * 61 // 2
    assert len(content) < len(pickle.dumps(landmarks)) + triangle + 2000
    again = pickle.loads(content)
    np.testing.assert_allclose(again.left(k, prior), posterior.left(k, prior), rtol=1e-9)
    np.testing.assert_allclose(again.explained(k), seen - open_, rtol=1e-6)
    np.testing.assert_array_equal(np.tril(again.equations.inner), np.tril(normal.inner))
    np.testing.assert_array_equal(again.factor, posterior.factor)
    np.testing.assert_allclose(again.equations.solve(ridge)[0], solved[0], rtol=1e-12)


def test_landmarks_stop_where_a_sure_gain_is_below_a_hundredth_of_the_loss() -> None:
    n = 50
    choosing = SimpleNamespace(precision=np.ones(n))

    def trial(loss: float) -> Trial:
        choice = Choice(loss, 1.0, np.full(n, loss), 0.0)
        return Trial(None, choice, None, n)  # type: ignore[arg-type]

    def sizes_tried(losses: dict[int, float], first: float = 0.04) -> list[int]:
        tried: list[int] = []
        search = SimpleNamespace(
            best=trial(first),
            choosing=choosing,
            scales=(),
            _summed=lambda _, size: tried.append(size) or trial(losses[size]),
            _note=lambda _: None,
        )
        LandmarkSearch.grow_landmarks(search, list(losses))  # type: ignore[arg-type]
        return tried

    assert sizes_tried({40: 0.0398, 80: 0.03}) == [40]
    assert sizes_tried({40: 0.0392, 80: 0.03}) == [40, 80]
    # of noise, 1 % would be too much to ask
    assert sizes_tried({40: 0.797, 80: 0.796}, first=0.8) == [40, 80]


def test_landmarks_are_as_many_as_allowed() -> None:
    path = PathPlan(precisions=(5.0,))
    assert LargePlan.of(path).sizes(36_000, 30_000) == [500, 1000, 2000, 4000]
    assert LargePlan.of(path).sizes(1_000_000, 50_000) == [500, 1000, 2000]
    assert LargePlan.of(path, 300).sizes(36_000, 30_000) == [300]
    assert LargePlan.of(path, 1500).sizes(36_000, 30_000) == [500, 1000, 1500]
    assert LargePlan.of(path, 5000).sizes(1_000_000, 50_000) == [500, 1000, 2000, 4000, 5000]
    assert LargePlan.of(path, 8000).sizes(6000, 5400) == [500, 1000, 2000, 4000, 5400]
    rows, new = friedman(900).take(np.arange(600)), friedman(900).take(np.arange(600, 900))
    allowed = replace(LargePlan.of(PLAN.path, 50), metric_rows=80, first=20)
    learned = learn_large(rows, allowed, np.random.RandomState(0))
    assert [step.n_landmarks for step in learned.record] == [20, 40, 50]
    assert r2(learned, new) > 0.5


def test_the_path_is_combined_by_the_rows_that_choose() -> None:
    # noise, where no λ alone is surely better
    state = np.random.RandomState(0)
    rows = Rows(state.randn(600, 3), np.zeros((600, 0), dtype=np.int64), state.randn(1, 600))
    plan = replace(PLAN, path=PathPlan(precisions=(500.0, 5.0), max_iter=15))
    learned = learn_large(rows, plan, np.random.RandomState(0))
    expected = np.exp(-20.0 * (learned.errors / learned.errors.min() - 1.0))
    np.testing.assert_allclose(learned.weights, expected / expected.sum(), atol=5e-3)
    assert 0.1 < learned.weights[0] < 0.9
    noise = sum(c * fit.scales.noise for c, fit in zip(learned.weights, learned.fits, strict=True))
    assert sum(each.noise for each in learned.predictor.scales) == pytest.approx(noise)


def test_the_path_is_judged_by_all_pairs_of_rows_that_do_not_choose() -> None:
    rows = friedman(400)
    whole = source_of(cut(rows, 150))
    seen = survey(whole, PLAN.sample_rows, 0)
    work = LandmarkSearch(seen, seen.targets, RowRoles.of(seen, PLAN, False, whole), PLAN, whole)
    own, choosing = seen.sample.take(work.roles.order[: work.roles.n_others]), work.choosing
    path = [scales(6), replace(scales(6), noise=0.3)]
    points = seen.views.points(choosing.numeric, choosing.codes)
    for each, found in zip(path, work.path_errors(path), strict=True):
        predicted = fit_mixture(seen.views, own, (each,), seen.targets).predict(points)
        rest = (choosing.targets.T - predicted) / seen.targets.spread
        assert found == pytest.approx(np.mean(rest**2), rel=1e-4)


def test_a_strength_whose_rough_scales_are_hopeless_is_not_fitted_to_all_rows() -> None:
    state = np.random.RandomState(0)
    X = state.rand(600, 8)
    rows = Rows(X, np.empty((600, 0), dtype=np.int64), np.sin(12.0 * X[:, :1].T))
    path = PathPlan(precisions=(500.0, 50.0, 0.5, 0.05), max_iter=15, coarse=60)
    learned = learn_large(rows, replace(PLAN, path=path, metric_rows=120), state)
    assert [fit.precision for fit in learned.fits] == [50.0, 0.5, 0.05]
    assert len(learned.weights) == len(learned.errors) == 3
    # a path that nothing sets apart stays whole
    noise = replace(rows, targets=state.randn(1, 600))
    assert len(learn_large(noise, replace(PLAN, path=path, metric_rows=120), state).fits) == 4


def test_one_strength_alone_is_taken_where_all_rows_prefer_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, new = friedman(900).take(np.arange(600)), friedman(900).take(np.arange(600, 900))
    bad, good = scales(6), learn_large(rows, PLAN, np.random.RandomState(0)).predictor.scales[0]
    bad = Scales(bad.ell * 40.0, bad.strength, bad.weights, bad.noise)
    fits = [Fit(p, each.to_vector(), 0.0, 0.0, 1) for p, each in ((500.0, bad), (5.0, good))]
    monkeypatch.setattr("kernelweave.evidence.large.learning._fit_metric", lambda *_: (fits, True))
    # weights that know nothing
    even = np.array([0.5, 0.5])
    monkeypatch.setattr("kernelweave.evidence.large.landmark_search.path_weights", lambda _: even)
    learned = learn_large(rows, PLAN, np.random.RandomState(0))
    assert learned.weights.tolist() == [0.0, 1.0]
    assert learned.predictor.scales == (fits[1].scales,)
    assert len(learned.predictor.landmarks) == 80
    assert r2(learned, new) > 0.9


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_taken_from_sums_as_if_they_had_never_been_there(weighted: bool) -> None:
    rows = friedman(120, outputs=2)
    if weighted:
        rows = replace(rows, weight=np.random.RandomState(1).rand(120) + 0.5)
    landmarks, targets = landmarks_of(rows, 30), Standardised.of(rows)
    some, others = np.arange(25, 60), np.setdiff1d(np.arange(120), np.arange(25, 60))
    sums = [block_sums(landmarks, rows.take(each), targets) for each in (np.arange(120), others)]
    whole, rest = (NormalEquations.of(root_of(landmarks.gram()), each) for each in sums)
    held = rows.take(some)
    share = RowBlock(held, held.mass, held.mass[:, None] * targets.of_rows(held).values.T)
    for first, sign, second in ((whole, -1.0, rest), (rest, 1.0, whole)):
        found, expected = first.with_block(landmarks, share, sign).solve(0.01), second.solve(0.01)
        assert found is not None
        assert expected is not None
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-6, atol=1e-6)


def test_copies_of_known_rows_are_summed_over_apart() -> None:
    rows = friedman(60, outputs=2).take(np.tile(np.arange(60), 3))
    rows = replace(rows, weight=np.random.RandomState(0).rand(180))
    landmarks, targets = landmarks_of(rows, 10), Standardised.of(rows)
    line = Line.of(rows.numeric, rows.codes)
    known = KnownRows.of(line, rows.numeric[[7, 31]], rows.codes[[7, 31]])
    total = total_sums(source_of(cut(rows, 50)), landmarks, targets, len(rows), known)
    for k, row in enumerate((7, 31)):
        same = np.arange(row, 180, 60)
        assert total.copies[0][k] == pytest.approx(rows.weight[same].sum())
        np.testing.assert_allclose(
            total.copies[1][k], targets.values[:, same] @ rows.weight[same], rtol=1e-12
        )


def roles_of(rows: Rows, plan: LargePlan, *, stratify: bool) -> RowRoles:
    source = source_of([rows])
    return RowRoles.of(survey(source, plan.sample_rows, 0), plan, stratify, source)


@pytest.mark.parametrize("n_folds", [2, 3, 5])
def test_folds_keep_copies_together_and_the_shares_of_classes(n_folds: int) -> None:
    plan = replace(PLAN, n_folds=n_folds)
    rows = friedman(500).take(np.repeat(np.arange(500), 3))
    rare = np.repeat(np.arange(500) < 50, 3)
    classes = Rows(rows.numeric, rows.codes, 2.0 * rare[None] - 1.0)
    roles = roles_of(classes, plan, stratify=True)
    held = roles.held_out
    assert np.unique(held.fold).tolist() == list(range(n_folds))
    values = [np.unique(held.rows.numeric[held.fold == k], axis=0) for k in range(n_folds)]
    outside = np.unique(roles.metric.numeric, axis=0)
    together = np.vstack([*values, outside])
    assert len(np.unique(together, axis=0)) == len(together)
    for k in range(n_folds):
        own = held.rows.targets[0, held.fold == k] > 0.0
        assert own.mean() == pytest.approx(0.1, abs=0.02)
        assert len(own) % 3 == 0
    assert np.mean(roles.metric.targets[0] > 0.0) == pytest.approx(0.1, abs=0.03)


def test_of_hardly_any_distinct_rows_each_fold_has_some() -> None:
    state = np.random.RandomState(0)
    # more values than a column of codes has, so these rows are copies
    X = state.randint(0, 14, 700).astype(np.float64)
    X[:400] = 3.0
    rows = Rows(X[:, None], np.zeros((700, 0), dtype=np.int64), state.randn(1, 700))
    held = roles_of(rows, PLAN, stratify=False).held_out
    assert np.unique(held.fold).tolist() == [0, 1, 2]
    assert 3.0 not in held.rows.numeric


def test_what_is_printed_is_not_what_chose() -> None:
    """Noise: no choice may look better than it is."""
    scores, errors = [], []
    for seed in range(12):
        state = np.random.RandomState(seed)
        X, y = state.randn(300, 3), np.where(state.rand(300) < 0.5, -1.0, 1.0)
        rows = Rows(X, np.zeros((300, 0), dtype=np.int64), y[None])
        plan = replace(PLAN, path=PathPlan(precisions=(500.0, 0.5), max_iter=8, classes=True))
        predictor = learn_large(rows, plan, state, stratify=True).predictor
        known = np.flatnonzero(predictor.fold >= 0)
        right = np.sign(predictor.held_out[known, 0]) == y[known]
        scores.append(right.mean())
        errors.append(0.5 / np.sqrt(len(known)))
    assert abs(np.mean(scores) - 0.5) < 2.5 * np.sqrt(np.mean(np.square(errors)) / 12)


@pytest.mark.parametrize("size", [7, 64, 700])
def test_sums_do_not_depend_on_blocks_threads_or_the_order_of_rows(size: int) -> None:
    rows = friedman(700, outputs=2)
    landmarks, targets = landmarks_of(rows, 30), Standardised.of(rows)
    whole = block_sums(landmarks, rows, targets)
    other = rows.take(np.random.RandomState(0).permutation(700))
    seen: list[int] = []
    parts = total_sums(
        source_of(cut(other, size), 2), landmarks, targets, len(other), report=seen.append
    )
    np.testing.assert_allclose(np.tril(parts.gram), np.tril(whole.gram), rtol=1e-10)
    np.testing.assert_allclose(parts.cross, whole.cross, rtol=1e-10, atol=1e-10)
    alone = total_sums(source_of(cut(other, size), 1), landmarks, targets, len(other))
    np.testing.assert_array_equal(alone.gram, parts.gram)
    assert (seen[-1], parts.n_rows) == (700, 700)


def test_a_weight_of_two_is_the_row_twice() -> None:
    rows = friedman(60)
    landmarks, targets = landmarks_of(rows, 20), Standardised.of(rows)
    double = Rows(rows.numeric, rows.codes, rows.targets, np.full(60, 2.0))
    once = block_sums(landmarks, rows, targets)
    twice = block_sums(landmarks, double, targets)
    np.testing.assert_allclose(np.tril(twice.gram), 2.0 * np.tril(once.gram), rtol=1e-12)
    np.testing.assert_allclose(twice.cross, 2.0 * once.cross, atol=1e-10)


def test_a_survey_does_not_depend_on_blocks_and_knows_every_row() -> None:
    rows = friedman(500)
    rows.numeric[:, 0] += 1e6
    whole = survey(source_of([rows]), 100, 0)
    parts = survey(source_of(cut(rows, 37)), 100, 0)
    np.testing.assert_array_equal(parts.index, whole.index)
    np.testing.assert_array_equal(parts.sample.numeric, rows.numeric[parts.index])
    all_rows = Views.of(rows.numeric, rows.codes)
    np.testing.assert_allclose(parts.views.mean, all_rows.mean, rtol=1e-12)
    np.testing.assert_allclose(parts.views.scale, all_rows.scale, rtol=1e-9)
    assert [len(share) for share in parts.views.shares] == [3, 3]
    np.testing.assert_allclose(parts.targets.centre, rows.targets.mean(axis=1), rtol=1e-12)
    assert parts.targets.low < rows.targets.min() < rows.targets.max() < parts.targets.high


@pytest.mark.parametrize("exponent", [-1000, 1000])
def test_a_survey_squares_neither_tiny_nor_huge_numbers(exponent: int) -> None:
    rows = friedman(90)
    numbers = rows.numeric.copy()
    # a column that is far larger in some blocks than in others
    numbers[60:, 0] *= 2.0**20
    rows = replace(rows, numeric=numbers)
    scaled = replace(
        rows, numeric=np.ldexp(numbers, exponent), targets=np.ldexp(rows.targets, exponent)
    )
    plain, other = (survey(source_of(cut(each, 20)), 50, 0) for each in (rows, scaled))
    np.testing.assert_allclose(plain.views.scale, numbers.std(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(other.views.scale, np.ldexp(plain.views.scale, exponent))
    np.testing.assert_array_equal(other.views.mean, np.ldexp(plain.views.mean, exponent))
    np.testing.assert_array_equal(other.targets.values, plain.targets.values)


def test_a_survey_of_no_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one row, got none"):
        survey(source_of([friedman(5).take(np.arange(0))]), 10, 0)


def r2(learned, rows: Rows) -> float:
    residual = rows.targets.T - learned.predictor.mean(rows.numeric, rows.codes)
    return 1.0 - np.mean(residual**2) / rows.targets.var()


@pytest.mark.parametrize("in_blocks", [False, True])
def test_rows_sorted_by_their_target_do_no_harm(in_blocks: bool) -> None:
    rows, new = friedman(1500).take(np.arange(1200)), friedman(1500).take(np.arange(1200, 1500))
    rows = rows.take(np.argsort(rows.targets[0]))
    source = BlockSource(lambda: iter(cut(rows, 100))) if in_blocks else rows
    learned = learn_large(source, PLAN, np.random.RandomState(0))
    assert r2(learned, new) > 0.85
    assert [step.n_landmarks for step in learned.record] == [20, 40, 80][: len(learned.record)]
    assert "by the rows that chose: 20 landmarks and" in str(learned)
    known = ~np.isnan(learned.predictor.held_out[:, 0])
    assert known.sum() == 400
    assert len(learned.predictor.rows) == (400 if in_blocks else 1200)


def test_intervals_hold_their_share_and_deviations_are_those_of_residuals() -> None:
    rows = friedman(3000, outputs=2)
    new, own = rows.take(np.arange(2000, 3000)), rows.take(np.arange(2000))
    predictor = learn_large(own, PLAN, np.random.RandomState(0)).predictor
    low, high = predictor.interval(new.numeric, new.codes, 0.9)
    inside = (low <= new.targets.T) & (high >= new.targets.T)
    assert np.all(np.abs(inside.mean(axis=0) - 0.9) < 0.05)
    residual = new.targets.T - predictor.mean(new.numeric, new.codes)
    ratio = residual / predictor.deviation(new.numeric, new.codes)
    np.testing.assert_allclose(np.mean(ratio**2, axis=0), 1.0, atol=0.25)
    assert np.all(np.isinf(predictor.interval(new.numeric, new.codes, 0.9999)))


def test_a_rare_class_is_among_the_rows_of_the_metric() -> None:
    rows = friedman(2000)
    rare = np.zeros(2000, dtype=np.intp)
    rare[:20] = 1
    classes = Rows(rows.numeric + rare[:, None], rows.codes, 2.0 * rare[None] - 1.0)
    learned = learn_large(classes, PLAN, np.random.RandomState(0), stratify=True)
    assert learned.metric_rows == 79 + 10
    found = learned.predictor.mean(classes.numeric, classes.codes)[:, 0] > 0
    assert np.mean(found == rare) > 0.99


def test_of_a_wide_table_the_dimensions_that_count_have_scales() -> None:
    state = np.random.RandomState(0)
    X, codes = state.randn(400, 110), state.randint(0, 2, size=(400, 2))
    y = 2.0 * X[:, 3] + 2.0 * codes[:, 1] + 0.3 * state.randn(400)
    rows = Rows(X, codes, y[None])
    learned = learn_large(rows, PLAN, np.random.RandomState(0), powers=True)
    ell = learned.fits[0].scales.ell
    assert np.count_nonzero(ell) == 96
    assert min(ell[3], ell[111]) > 0.0
    assert "16 of 112 dimensions screened away by trees" in str(learned)
    new = state.randn(50, 110), state.randint(0, 2, size=(50, 2))
    away = learned.predictor.mean(*new)[:, 0] - 2.0 * new[0][:, 3] - 2.0 * new[1][:, 1]
    assert np.sqrt(np.mean(away**2)) < 0.5
    # a row that was held out has no say in which are kept
    judging = learned.places[np.flatnonzero(learned.predictor.fold >= 0)]
    moved = y.copy()
    moved[judging] = state.permutation(moved[judging])
    again = learn_large(replace(rows, targets=moved[None]), PLAN, np.random.RandomState(0))
    np.testing.assert_array_equal(again.fits[0].scales.ell > 0.0, ell > 0.0)


def test_a_fit_without_time_leaves_a_model_and_says_what_is_missing() -> None:
    rows = friedman(800)
    with time_limit(0.0):
        learned = learn_large(rows, PLAN, np.random.RandomState(0))
    assert learned.missing == "the search cut short, some rows not learned from"
    assert r2(learned, rows) > 0.3


def test_the_progress_ends_at_no_more_than_all_parts() -> None:
    told: list[tuple[str, int, int, float]] = []
    plan = replace(PLAN, most=40)
    learn_large(
        friedman(500), plan, np.random.RandomState(0), tell=lambda *parts: told.append(parts)
    )
    assert told[-1][:3] == ("40 landmarks", 417, 417)


def test_landmarks_are_chosen_on_drawn_rows_and_all_rows_are_summed_once() -> None:
    rows = friedman(1500)
    plan = replace(PLAN, sample_rows=400)
    told: list[tuple[str, int, int, float]] = []
    learned = learn_large(
        rows, plan, np.random.RandomState(0), tell=lambda *parts: told.append(parts)
    )
    *tried, last = learned.record
    # 106 of the 400 drawn rows choose
    assert {step.n_rows for step in tried} == {294}
    assert last.n_rows == 1394
    assert told[-1][:3] == (f"{last.n_landmarks} landmarks", 1500, 1500)
    assert f"{last.n_landmarks} landmarks and 1394 rows" in str(learned)


def test_the_ridge_stays_where_deviations_mean_something() -> None:
    X, _ = make_friedman1(1200, n_features=5, random_state=0)
    rows = Rows(X[:, 3:], np.zeros((1200, 0), dtype=np.int64), X[:, 3][None])
    learned = learn_large(rows, PLAN, np.random.RandomState(0))
    assert min(step.ridge for step in learned.record) >= 1e-5


@pytest.mark.parametrize("wrong", [0, 2.5, True, "many", None, [500]])
def test_a_wrong_number_of_landmarks_is_refused(wrong: Any) -> None:
    X, y = make_friedman1(60, n_features=5, random_state=0)
    with pytest.raises(ValueError, match='n_landmarks must be "auto" or an integer >= 1, got'):
        EvidenceKernelRegressor(n_landmarks=wrong).fit(X, y)


def test_more_landmarks_than_the_memory_limit_holds_are_refused() -> None:
    with config_context(memory_limit=100_000), pytest.raises(MemoryBudgetError, match="landmarks"):
        learn_large(friedman(500), PLAN, np.random.RandomState(0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_target_without_noise_is_met_in_both_precisions(dtype: type) -> None:
    X, y = make_friedman1(1500, n_features=5, noise=0.0, random_state=0)
    rows = Rows(X, np.zeros((1500, 0), dtype=np.int64), y[None])
    plan = LargePlan(PathPlan(precisions=(5.0,)), metric_rows=150, first=150, most=300, dtype=dtype)
    learned = learn_large(rows.take(np.arange(1200)), plan, np.random.RandomState(0))
    assert r2(learned, rows.take(np.arange(1200, 1500))) > 0.999
