"""The path, its folds and its combination."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
from kernelweave.evidence import path
from kernelweave.evidence.candidates import (
    GAUSSIAN_PRECISIONS,
    candidate_precisions,
    fit_candidates,
)
from kernelweave.evidence.exact import ExactPredictor
from kernelweave.evidence.kernel import EvidenceKernel
from kernelweave.evidence.learn import learn
from kernelweave.evidence.mixture import fit_mixture, path_weights
from kernelweave.evidence.objective import Evidence, bounds, log_prior, start
from kernelweave.evidence.path import PathPlan, fit_path
from kernelweave.evidence.rows import Rows, Standardised
from kernelweave.evidence.views import Views
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.clock import time_limit
from kernelweave.kernels_core.kernels import as_sklearn_gp_kernel
from kernelweave.kernels_core.testing import check_kernel
from one_fold import fit_fold
from sklearn.datasets import make_friedman1
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold
from sklearn.svm import SVR

PLAN = PathPlan(max_iter=40)


def friedman(n: int, outputs: int = 1) -> Rows:
    X, y = make_friedman1(n, n_features=6, noise=0.5, random_state=0)
    codes = (X[:, :1] > 0.5).astype(np.int64)
    targets = np.vstack([y * (k + 1) + k * X[:, 1] for k in range(outputs)])
    return Rows(np.ascontiguousarray(X[:, 1:]), codes, targets)


@pytest.fixture(scope="module")
def learned():
    rows = friedman(90)
    splits = list(KFold(3, shuffle=True, random_state=0).split(rows.numeric))
    return rows, splits, learn(rows, splits, PLAN, np.random.RandomState(0))


def test_each_fit_is_stationary_and_the_prior_binds_less_and_less(learned) -> None:
    _, _, result = learned
    *fits, own, plain = result.fits
    assert (own.precision, plain.precision) == (GAUSSIAN_PRECISIONS[-1], np.inf)
    spreads = [np.log(fit.scales.ell).std() for fit in fits]
    assert spreads == sorted(spreads)
    assert max(fit.slope for fit in fits) < 0.2
    assert not result.missing


def test_the_best_point_of_a_fit_is_no_worse_than_its_start(learned) -> None:
    rows, _, result = learned
    views = Views.of(rows.numeric, rows.codes)
    points, targets = views.points(rows.numeric, rows.codes), Standardised.of(rows).values
    fits = result.fits[:-2]
    for fit, theta in zip(fits[1:], [f.theta for f in fits], strict=False):
        evidence = Evidence(points, views.match_weight, targets, fit.precision)
        assert evidence(fit.theta)[0] <= evidence(theta)[0] + 1e-9
        assert evidence(fit.theta)[0] == pytest.approx(fit.value, abs=1e-9)


def test_a_short_step_on_a_slope_is_not_taken_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reach of a hundredth makes every step gain little, and L is steep at the start."""
    rows = friedman(60)
    views = Views.of(rows.numeric, rows.codes, rows.weight)
    points = views.points(rows.numeric, rows.codes)
    targets = Standardised.of(rows).values
    monkeypatch.setattr(path, "_REACH", 0.01)
    begin = start(views.n_dimensions)
    found = []
    for steep in (1.0, np.inf):
        monkeypatch.setattr(path, "STEEP", steep)
        evidence = Evidence(points, views.match_weight, targets, 0.5)
        found.append(path.EvidenceDescent(evidence, begin).run(40, 0.1))
    patient, hasty = found
    assert np.abs(evidence(begin)[1]).max() > 1.0
    assert hasty.n_evaluations < patient.n_evaluations
    assert patient.value < hasty.value


def test_every_step_lowers_the_objective_and_stays_in_the_box() -> None:
    rows = friedman(60)
    views = Views.of(rows.numeric, rows.codes, rows.weight)
    points = views.points(rows.numeric, rows.codes)
    evidence = Evidence(points, views.match_weight, Standardised.of(rows).values, 0.05)
    low, high = np.array(bounds(views.n_dimensions)).T
    begin = np.clip(start(views.n_dimensions) + 20.0, low, high)
    fits = [path.EvidenceDescent(evidence, begin).run(k, 0.0) for k in (1, 3, 9, 27)]
    values = [fit.value for fit in fits]
    assert values == sorted(values, reverse=True)
    assert values[-1] < evidence.value(start(views.n_dimensions))
    assert all(((low <= fit.theta) & (fit.theta <= high)).all() for fit in fits)


@pytest.mark.parametrize("bend", [3.0, 0.1, -2.0])
def test_a_corrected_curvature_explains_the_step_and_stays_positive(bend: float) -> None:
    rng = np.random.default_rng(0)
    root, step = rng.normal(size=(4, 4)), rng.normal(size=4)
    curvature = root @ root.T
    change = bend * step
    found = path.corrected(curvature, step, change)
    assert np.linalg.eigvalsh(found)[0] > 0.0
    if bend == 3.0:
        np.testing.assert_allclose(found @ step, change)
    np.testing.assert_array_equal(path.corrected(curvature, 0.0 * step, change), curvature)


def test_classes_and_wide_tables_do_without_a_scale_for_each_column() -> None:
    rows = friedman(60)
    wide = Rows(np.tile(rows.numeric, 7), rows.codes, rows.targets)
    assert candidate_precisions(PathPlan(), rows) == (*PathPlan().precisions, 0.05, np.inf)
    for plan, each in ((PathPlan(classes=True), rows), (PathPlan(), wide)):
        assert candidate_precisions(plan, each) == (*plan.precisions, np.inf)


def test_a_smooth_function_is_found_from_the_gaussian_alone() -> None:
    """From all terms at once, descent leaves the noise to the rough ones: L is higher by 8."""
    X, y = make_friedman1(200, noise=1.0, random_state=0)
    rows = Rows(X, np.empty((200, 0), dtype=np.int64), y[None])
    views = Views.of(rows.numeric, rows.codes)
    *fits, own, _ = fit_candidates(views, rows, PathPlan())
    assert fits[-1].value < list(fit_path(views, rows, PathPlan()))[-1].value + 1e-6
    test, truth = make_friedman1(500, random_state=1)
    points = views.points(test, np.empty((500, 0), dtype=np.int64))
    predicted = fit_mixture(views, rows, (own.scales,)).predict(points)[:, 0]
    assert r2_score(truth, predicted) > 0.97


def test_no_target_of_a_held_out_row_reaches_its_prediction() -> None:
    """Scaling, ranks and the cut of predictions are those of the training rows alone."""
    rows = friedman(60)
    training, held_out = np.arange(40), np.arange(40, 60)
    first = fit_fold(rows, training, held_out, PLAN)
    changed = rows.targets.copy()
    changed[:, held_out] = 1e3 * np.random.RandomState(1).permutation(changed[:, held_out].T).T
    other = Rows(rows.numeric, rows.codes, changed)
    second = fit_fold(other, training, held_out, PLAN)
    np.testing.assert_array_equal(first.predictions, second.predictions)


def test_held_out_rows_see_the_ranks_of_the_training_rows_alone() -> None:
    rows = friedman(60)
    training, held_out = np.arange(40), np.arange(40, 60)
    first = fit_fold(rows, training, held_out, PLAN)
    moved = rows.numeric.copy()
    moved[50:] += 100.0
    second = fit_fold(Rows(moved, rows.codes, rows.targets), training, held_out, PLAN)
    np.testing.assert_array_equal(first.predictions[:, :10], second.predictions[:, :10])


@pytest.mark.parametrize("powers", [False, True])
def test_parts_are_counted_up_to_all_of_them_whatever_is_tried(powers: bool) -> None:
    rows = friedman(60)
    rows = Rows(np.exp(3.0 * rows.numeric), rows.codes, np.exp(rows.targets / 3.0))
    splits, told = list(KFold(3).split(rows.numeric)), []
    plan = PathPlan((5.0,), max_iter=5)
    learn(
        rows, splits, plan, np.random.RandomState(0), powers=powers,
        report=lambda *parts: told.append(parts),
    )  # fmt: skip
    done, totals = map(list, zip(*told, strict=True))
    # three folds, what comes of all of them, and the kernel of all rows
    assert set(totals) == {5}
    assert done == sorted(set(done))
    assert len(done) >= 4
    assert done[-1] == totals[-1]


def test_weights_fall_with_the_held_out_error() -> None:
    weights = path_weights(np.array([1.0, 1.05, 1.2, 9.0]))
    assert weights.sum() == pytest.approx(1.0)
    assert weights[1] / weights[0] == pytest.approx(np.exp(-1.0))
    assert weights[3] == 0.0


def test_the_predictor_is_a_gaussian_process_with_the_learned_kernel(learned) -> None:
    rows, _, result = learned
    predictor = ExactPredictor.of(result)
    kernel = EvidenceKernel(predictor.views, tuple(predictor.scales))
    new = friedman(140).take(np.arange(90, 140))
    X, Z = (np.hstack([r.numeric, r.codes]) for r in (rows, new))
    targets = Standardised.of(rows)
    process = GaussianProcessRegressor(
        as_sklearn_gp_kernel(kernel), alpha=predictor.noise + 1e-6, optimizer=None
    )
    mean, std = process.fit(X, targets.values[0]).predict(Z, return_std=True)
    ours = predictor.mean(new.numeric, new.codes)[:, 0]
    np.testing.assert_allclose(ours, mean * targets.spread[0] + targets.centre[0], atol=1e-6)
    width = np.sqrt(std**2 + predictor.noise) * targets.spread[0]
    np.testing.assert_allclose(predictor.deviation(new.numeric, new.codes)[:, 0], width, rtol=1e-4)


def test_the_kernel_is_a_value(learned) -> None:
    rows, _, result = learned
    predictor = ExactPredictor.of(result)
    kernel = EvidenceKernel(predictor.views, tuple(predictor.scales))
    X = np.hstack([rows.numeric, rows.codes])
    check_kernel(kernel, X)
    assert SVR(kernel=2.0 * kernel, C=10.0).fit(X, rows.targets[0]).score(X, rows.targets[0]) > 0.9


def test_intervals_cover(learned) -> None:
    _, _, result = learned
    new = friedman(590).take(np.arange(90, 590))
    low, high = ExactPredictor.of(result).interval(new.numeric, new.codes, 0.9)
    inside = np.mean((low <= new.targets.T) & (high >= new.targets.T))
    assert 0.85 < inside < 0.98


def test_several_outputs_share_the_scales_and_equal_ones_learn_as_one() -> None:
    """With the same targets twice, L doubles but for the priors."""
    rows = friedman(60)
    twice = Rows(rows.numeric, rows.codes, np.vstack([rows.targets] * 2))
    views = Views.of(rows.numeric, rows.codes)
    points, values = views.points(rows.numeric, rows.codes), Standardised.of(rows).values
    theta = next(fit_path(views, rows, PathPlan((50.0,), max_iter=5))).theta
    once, _ = Evidence(points, views.match_weight, values, 0.0)(theta)
    both, _ = Evidence(points, views.match_weight, np.vstack([values] * 2), 0.0)(theta)
    prior, _ = log_prior(theta, 0.0)
    assert both - prior == pytest.approx(2 * (once - prior))
    scales = (next(fit_path(views, rows, PathPlan((50.0,), max_iter=5))).scales,)
    alone = fit_mixture(views, rows, scales).predict(points)
    together = fit_mixture(views, twice, scales).predict(points)
    np.testing.assert_allclose(together, np.hstack([alone, alone]))


@pytest.mark.parametrize(("looks", "rows"), [(60, 90), (60, 500), (300, 500)])
def test_folds_that_are_cut_short_have_a_score(
    monkeypatch: pytest.MonkeyPatch, looks: int, rows: int
) -> None:
    """Each fold has its share of the time, and what it had reached by then is judged."""
    given = friedman(rows)
    splits = list(KFold(3, shuffle=True, random_state=0).split(given.numeric))
    monkeypatch.setattr(clock, "time", SimpleNamespace(monotonic=map(float, count()).__next__))
    with time_limit(float(looks)):
        result = learn(given, splits, PLAN, np.random.RandomState(0))
    assert [fold.whole for fold in result.folds] == [False] * 3
    assert result.missing == "3 of 3 folds cut short, the search on all rows cut short"
    assert r2_score(given.targets[0], result.held_out[:, 0]) > 0.5
    assert np.isfinite(result.mixture.predict(result.mixture.points)).all()


def test_a_fit_that_is_cut_short_predicts_and_says_what_is_missing() -> None:
    rows = friedman(60)
    splits = list(KFold(3).split(rows.numeric))
    with time_limit(1e-9):
        result = learn(rows, splits, PLAN, np.random.RandomState(0))
    assert result.missing.startswith("3 of 3 folds not reached")
    assert np.isfinite(result.mixture.predict(result.mixture.points)).all()


@pytest.mark.parametrize("unit", [1e9, 1e-9])
def test_the_unit_of_the_targets_changes_nothing(unit: float) -> None:
    rows = friedman(50)
    views = Views.of(rows.numeric, rows.codes)
    points = views.points(rows.numeric, rows.codes)
    scales = (next(fit_path(views, rows, PathPlan((50.0,), max_iter=5))).scales,)
    scaled = Rows(rows.numeric, rows.codes, unit * rows.targets)
    np.testing.assert_allclose(
        fit_mixture(views, scaled, scales).predict(points) / unit,
        fit_mixture(views, rows, scales).predict(points),
        rtol=1e-9,
    )
