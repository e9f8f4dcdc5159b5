"""The plain kernels after the path: ridge regressions, chosen by leaving rows out."""

from __future__ import annotations

import numpy as np
import pytest
from kernelweave.evidence import EvidenceKernelClassifier, EvidenceKernelRegressor
from kernelweave.evidence.candidates import (
    RIDGES,
    WIDTHS,
    fit_gaussian,
    fit_linear,
    leave_one_out_errors,
)
from kernelweave.evidence.mixture import fit_mixture
from kernelweave.evidence.rows import Rows, Standardised
from kernelweave.evidence.views import Views
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import LeaveOneOut, cross_val_predict


def rows(n: int, seed: int, weight: bool = False) -> Rows:
    rng = np.random.default_rng(seed)
    numeric = rng.standard_normal((n, 3))
    codes = rng.integers(0, 3, (n, 1))
    targets = np.array([np.sin(2 * numeric[:, 0]) + codes[:, 0], numeric[:, 1] ** 2])
    return Rows(numeric, codes, targets, rng.uniform(0.5, 3.0, n) if weight else None)


@pytest.mark.parametrize("weight", [False, True])
def test_errors_are_those_of_ridge_regressions_without_the_row(weight: bool) -> None:
    own = rows(20, 0, weight)
    X, values, mass = own.numeric, own.targets, own.mass
    found = leave_one_out_errors(rbf_kernel(X, gamma=0.3), values, mass)
    assert [ridge for _, _, ridge in found] == list(RIDGES)
    for error, _, ridge in found[4:10]:
        machine = KernelRidge(kernel="rbf", gamma=0.3, alpha=ridge)
        left_out = 0.0
        for i in range(20):
            rest = np.arange(20) != i
            machine.fit(X[rest], values.T[rest], sample_weight=mass[rest])
            left_out += mass[i] * np.sum((machine.predict(X[i : i + 1])[0] - values[:, i]) ** 2)
        assert error == pytest.approx(left_out / (2 * mass.sum()), rel=1e-8)


@pytest.mark.parametrize("weight", [False, True])
def test_the_fit_is_that_ridge_regression(weight: bool) -> None:
    own, other = rows(60, 0, weight), rows(15, 1)
    views = Views.of(own.numeric, own.codes, own.weight)
    fit = fit_gaussian(views, own)
    points, others = (views.points(each.numeric, each.codes) for each in (own, other))
    near = np.vstack([points.X, np.eye(3)[:, points.C[0]] / np.sqrt(2.0)]).T
    far = np.vstack([others.X, np.eye(3)[:, others.C[0]] / np.sqrt(2.0)]).T
    targets, gamma = Standardised.of(own), fit.scales.ell[0] ** 2 / 2.0
    ridge = fit.scales.noise / fit.scales.weights[0]
    assert np.isclose(4 * gamma, WIDTHS).any()
    assert np.isclose(ridge, RIDGES).any()
    machine = KernelRidge(kernel="rbf", gamma=gamma, alpha=ridge)
    machine.fit(near, targets.values.T, sample_weight=own.weight)
    predicted = fit_mixture(views, own, (fit.scales,)).predict(others)
    np.testing.assert_allclose(predicted, targets.predict(machine.predict(far), 0.0), rtol=1e-3)


def test_the_linear_fit_is_ridge_regression_with_the_least_error_of_rows_left_out() -> None:
    own, other = rows(40, 0), rows(15, 1)
    views = Views.of(own.numeric, own.codes)
    fit = fit_linear(views, own)
    points, others = (views.points(each.numeric, each.codes) for each in (own, other))
    middle = np.eye(3)[:, points.C[0]].mean(axis=1)[:, None]
    near, far = (
        np.vstack([each.X, (np.eye(3)[:, each.C[0]] - middle) / np.sqrt(2.0)]).T
        for each in (points, others)
    )
    targets, ridge = Standardised.of(own), fit.scales.noise / fit.scales.weights[2]

    def predictor(alpha: float) -> KernelRidge:
        return KernelRidge(kernel="linear", alpha=4.0 * alpha)

    predicted = fit_mixture(views, own, (fit.scales,)).predict(others)
    machine = predictor(ridge).fit(near, targets.values.T)
    np.testing.assert_allclose(predicted, targets.predict(machine.predict(far), 0.0), rtol=1e-3)

    def left_out(alpha: float) -> float:
        found = cross_val_predict(predictor(alpha), near, targets.values.T, cv=LeaveOneOut())
        return float(np.mean((found - targets.values.T) ** 2))

    best = left_out(ridge)
    assert best <= min(left_out(ridge * factor) for factor in (0.1, 0.3162, 3.162, 10.0)) + 1e-9


@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.ExtrapolationWarning")
def test_few_rows_of_a_line_are_predicted_by_a_line() -> None:
    """Of tables that are not small, or of classes, ridge regression is no candidate."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(230, 6))
    y = X @ [3.0, -2.0, 1.0, 1.0, 0.0, 0.0] + 2.0 * rng.normal(size=230)
    model = EvidenceKernelRegressor(precisions=(50.0,), max_iter=20).fit(X[:30], y[:30])
    assert len(model.path_weights_) == 1 + 3
    ridge = RidgeCV(np.logspace(-2, 2, 9)).fit(X[:30], y[:30])
    assert model.score(X[30:], y[30:]) > ridge.score(X[30:], y[30:]) - 0.03
    model.fit(X[:150], y[:150])
    assert len(model.path_weights_) == 1 + 2


def test_a_fit_to_fewer_rows_leaves_two_widths_to_try() -> None:
    own = rows(60, 0)
    views = Views.of(own.numeric, own.codes)
    first = fit_gaussian(views, own)
    again = fit_gaussian(views, own, [first.theta])
    np.testing.assert_array_equal(again.theta, first.theta)
    wide, narrow = np.full(14, 0.0), np.full(14, 0.0)
    wide[:4], narrow[:4] = 0.5 * np.log(2.0 * np.array([WIDTHS[0], WIDTHS[-1]]) / 4.0)[:, None]
    assert fit_gaussian(views, own, [wide]).scales.ell[0] ** 2 * 2.0 <= WIDTHS[1] + 1e-12
    assert fit_gaussian(views, own, [narrow]).scales.ell[0] ** 2 * 2.0 == pytest.approx(WIDTHS[-1])


def test_it_rescues_classes_that_the_evidence_takes_for_noise() -> None:
    rng = np.random.default_rng(0)
    level = rng.uniform(1.0, 100.0, (240, 1))
    shape = np.exp(-((np.arange(12) - rng.integers(2, 10, (240, 1))) ** 2) / 4.0)
    sign = np.where(rng.random(240) < 0.5, 1.0, -1.0)
    X = level * (1.0 + 0.1 * sign[:, None] * shape + 0.002 * rng.standard_normal((240, 12)))
    model = EvidenceKernelClassifier().fit(X[:160], sign[:160])
    assert len(model.path_weights_) == len(model.precisions) + 1
    assert model.certificate_.precisions[-1] == np.inf
    assert model.score(X[160:], sign[160:]) > 0.75
