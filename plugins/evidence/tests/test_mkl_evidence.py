"""What weights are judged by: values, slopes, the convex step, monotone descent, the path."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from kernelweave.evidence import EvidenceMKLRegressor, PricedOrthant
from kernelweave.evidence.mkl.criteria import FLOOR, LeftOutDensity, WeightEvidence
from kernelweave.evidence.mkl.learn import NoisyFamily, learn_weights
from kernelweave.evidence.mkl.path import PATH, along_path, solved_at
from kernelweave.kernels_core import RBF, KernelDictionary, Linear, Problem, Status, solve
from kernelweave.kernels_core.grams import PrecomputedDictionary
from kernelweave.qp_smo import Ridge
from scipy.stats import norm
from sklearn.datasets import make_friedman1
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as gp

GAMMAS = (0.1, 1.0)


@pytest.fixture(scope="module")
def stack():
    X, y = make_friedman1(60, n_features=5, noise=0.5, random_state=0)
    grams = np.stack([X @ X.T, *(RBF(g)(X) for g in GAMMAS)])
    targets = np.stack([y, np.sin(3 * y)])
    return X, grams, (targets - targets.mean(1)[:, None]) / targets.std(1)[:, None]


@pytest.mark.parametrize("kind", [WeightEvidence, LeftOutDensity])
def test_slopes_are_those_of_differences(stack, kind: type) -> None:
    _, grams, targets = stack
    weight = np.random.RandomState(0).randint(1, 4, 60).astype(float)
    evidence = kind(grams, targets, weight)
    at = np.array([0.1, 0.7, 0.3, 0.2])
    slopes = evidence(at[:-1], at[-1]).slopes
    for j in range(4):
        step = 1e-5 * np.eye(4)[j]
        up, down = evidence(*np.split(at + step, [3])), evidence(*np.split(at - step, [3]))
        assert slopes[j] == pytest.approx((up.value - down.value) / 2e-5, rel=1e-6)


def test_value_is_that_of_a_gaussian_process(stack) -> None:
    X, grams, targets = stack
    w, noise = np.array([0.1, 0.7, 0.3]), 0.2
    parts = [gp.DotProduct(0.0, "fixed"), *(gp.RBF((2 * g) ** -0.5) for g in GAMMAS)]
    kernel = sum(
        (gp.ConstantKernel(b) * k for b, k in zip(w, parts, strict=True)), gp.WhiteKernel(noise)
    )
    process = GaussianProcessRegressor(kernel, optimizer=None).fit(X, targets.T)
    evidence = WeightEvidence(grams, targets, np.ones(60))(w, noise)
    constant = 0.5 * targets.size * np.log(2 * np.pi)
    assert -evidence.value - constant == pytest.approx(process.log_marginal_likelihood_value_)


def test_density_is_that_of_gaussian_processes_without_a_row(stack) -> None:
    X, grams, targets = stack
    w, noise, found = np.array([0.1, 0.7, 0.3]), 0.2, 0.0
    parts = [gp.DotProduct(0.0, "fixed"), *(gp.RBF((2 * g) ** -0.5) for g in GAMMAS)]
    first, *rest = (gp.ConstantKernel(b) * k for b, k in zip(w, parts, strict=True))
    process = GaussianProcessRegressor(sum(rest, first), alpha=noise, optimizer=None)
    for i in range(60):
        others = np.arange(60) != i
        mean, std = process.fit(X[others], targets[:, others].T).predict(X[[i]], return_std=True)
        said = norm(mean[0], np.sqrt(std[0] ** 2 + noise))
        found += float(np.sum(said.logpdf(targets[:, i])))
    density = LeftOutDensity(grams, targets, np.ones(60))(w, noise)
    assert -density.value - 0.5 * targets.size * np.log(2 * np.pi) == pytest.approx(found)


@pytest.mark.parametrize("kind", [WeightEvidence, LeftOutDensity])
def test_infinite_where_there_is_no_factor(stack, kind: type) -> None:
    _, grams, targets = stack
    found = kind(-grams, targets, np.ones(60))(np.ones(3), 0.1)
    assert np.isinf(found.value)
    assert not found.slopes.any()


def test_a_row_of_weight_two_is_the_row_twice(stack) -> None:
    _, grams, targets = stack
    weight = np.where(np.arange(60) < 10, 2.0, 1.0)
    twice = np.append(np.arange(60), np.arange(10))
    at = np.array([0.1, 0.7, 0.3]), 0.2
    once = WeightEvidence(grams, targets, weight)(*at)
    both = WeightEvidence(grams[:, twice][:, :, twice], targets[:, twice], np.ones(70))(*at)
    # two rows of one mean: their difference is noise alone
    rest = 0.5 * 10 * len(targets) * np.log(2.0)
    assert once.value + rest == pytest.approx(both.value)
    np.testing.assert_allclose(once.slopes, both.slopes)


def test_the_convex_step_beside_cvxpy(stack) -> None:
    """½ Σ yᵀ(K(w) + λI)⁻¹y + ½ pᵀw, whose dual is max Σ uᵀy − ½λ‖u‖² with uᵀKⱼu ≤ pⱼ."""
    X, grams, targets = stack
    y, prices, lam = targets[0], np.array([30.0, 2.0, 12.0]), 0.1
    u = cp.Variable(60)
    roots = [np.linalg.cholesky(K + 1e-9 * np.eye(60)).T for K in grams]
    held = [cp.sum_squares(R @ u) <= p for R, p in zip(roots, prices, strict=True)]
    dual = cp.Problem(cp.Maximize(y @ u - 0.5 * lam * cp.sum_squares(u)), held)
    optimum = dual.solve(solver="CLARABEL")
    family = PrecomputedDictionary(grams)
    constraint = PricedOrthant(prices=tuple(prices))
    problem = Problem(family, Ridge(C=1 / lam), constraint, X, y)
    result = solve(problem, "evidence-step", tol=1e-8)
    assert result.status is Status.CONVERGED
    assert result.lower_bound <= optimum * (1 + 1e-6)
    assert optimum * (1 - 1e-6) <= result.upper_bound
    multipliers = np.array([2.0 * np.asarray(each.dual_value).item() for each in held])
    np.testing.assert_allclose(result.parameters, multipliers, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("quick", [True, False])
def test_steps_descend_and_end_at_a_proved_stationary_point(stack, quick: bool) -> None:
    X, grams, targets = stack
    weight = np.where(np.arange(60) < 10, 2.0, 1.0)
    y = targets - (targets @ weight / weight.sum())[:, None]
    y /= np.sqrt(y**2 @ weight / weight.sum())[:, None]
    family = NoisyFamily(PrecomputedDictionary(grams), 1.0 / weight)
    problem = Problem(family, Ridge(C=1.0 / FLOOR), PricedOrthant(), X, y, weight)
    result, descent = learn_weights(problem, quick=quick, tol=1e-5, max_iter=500)
    assert (np.diff(descent) <= 0).all()
    assert result.status is Status.CONVERGED
    assert result.gap <= 1e-5
    at = WeightEvidence(grams, y, weight).at(result.parameters)
    ratio = at.forms / at.prices
    assert (ratio < 1 + 1e-4).all()
    held = result.parameters > 1e-6
    np.testing.assert_allclose(ratio[held], 1.0, atol=1e-3)


def test_both_ways_have_one_end(stack) -> None:
    X, _, targets = stack
    kernels = KernelDictionary([Linear(), RBF(0.1), RBF(1.0)])
    quick = EvidenceMKLRegressor(kernels, tol=1e-5, algorithm="lbfgs").fit(X, targets.T)
    slow = EvidenceMKLRegressor(kernels, tol=1e-5, algorithm="majorize").fit(X, targets.T)
    assert quick.log_evidence_ == pytest.approx(slow.log_evidence_, rel=1e-6)
    assert (np.diff(slow.descent_) <= 0).all()
    for model in (quick, slow):
        assert model.certificate_.gap <= 1e-5
        assert "not its global maximum" in str(model.certificate_)


def _problem(stack: Any, constraint: PricedOrthant) -> Problem:
    X, grams, targets = stack
    family = NoisyFamily(PrecomputedDictionary(grams), np.ones(60))
    return Problem(family, Ridge(C=1.0 / FLOOR), constraint, X, targets)


def test_each_search_of_the_path_ends_at_a_minimum_of_its_criterion(stack) -> None:
    """No weight or noise changed by 3 % gives less, priors included; one weight where λ is inf."""
    _, grams, targets = stack
    found = along_path(_problem(stack, PricedOrthant()))
    assert len(found) == len(PATH) == 4
    sizes = np.array([np.diagonal(K).mean() for K in grams])

    def value(kind: type, precision: float, parameters: Any) -> float:
        logs = np.log(parameters[:-1] * sizes)
        prior = 0.0 if np.isinf(precision) else 0.5 * precision * np.sum((logs - logs.mean()) ** 2)
        result = kind(grams, targets, np.ones(60))(parameters[:-1], FLOOR + parameters[-1])
        return float(result.value + prior)

    for (kind, precision), at in zip(PATH, found, strict=True):
        least = value(kind, precision, at)
        moves = np.eye(4) if np.isfinite(precision) else np.array([[1, 1, 1, 0], [0, 0, 0, 1]])
        for move in [*moves, *-moves]:
            assert value(kind, precision, at * 1.03**move) > least - 1e-4 * abs(least)
    np.testing.assert_allclose(found[0][:-1] * sizes, (found[0][:-1] * sizes)[0])
    spread = [np.log(each[:-1] * sizes).std() for each in found]
    assert spread[0] < spread[1] < spread[2]


def test_bounds_at_given_weights_are_those_of_ridge_regression(stack) -> None:
    _, grams, targets = stack
    parameters = np.array([0.01, 0.7, 0.3, 0.2])
    result, value = solved_at(_problem(stack, PricedOrthant()), parameters, 1e-5)
    evidence = WeightEvidence(grams, targets, np.ones(60)).at(parameters)
    assert value == pytest.approx(evidence.value)
    S = np.tensordot(parameters[:-1], grams, 1) + (FLOOR + 0.2) * np.eye(60)
    dual = np.linalg.solve(S, targets.T)
    np.testing.assert_allclose(result.solution.dual_coef, dual.T, rtol=1e-6)
    forms = [np.sum(dual * (K @ dual)) for K in [*grams, np.eye(60)]]
    optimum = 0.5 * np.sum(dual * targets.T) + 0.5 * parameters @ forms
    assert result.lower_bound <= optimum * (1 + 1e-6)
    assert result.upper_bound == pytest.approx(optimum, rel=1e-5)
    assert result.gap < 1e-5
    np.testing.assert_array_equal(result.parameters, parameters)


def test_prices_are_refused_in_words() -> None:
    with pytest.raises(ValueError, match="prices must be one number or one per kernel"):
        PricedOrthant(prices=(1.0, 2.0)).of(3)
    with pytest.raises(ValueError, match="prices must be a finite number >= 0"):
        PricedOrthant(prices=-1.0).validate()
    assert PricedOrthant(prices=2.0).worst(np.array([1.0, 0.5])) == 0.0
    assert PricedOrthant(prices=2.0).worst(np.array([1.1, 0.5])) == np.inf
