"""Targets that are fitted together against targets one by one."""

from __future__ import annotations

import numpy as np
import pytest
from kernelweave.granger import GrangerGraph, lagged_samples, random_network
from kernelweave.granger._njit_models import minimise_models
from kernelweave.granger.histories import history_dictionary
from kernelweave.granger.series import make_groups
from kernelweave.granger.shared_grams import moved, shared
from kernelweave.granger.target import TargetSettings, fit_target
from kernelweave.granger.together import at_once, fit_together
from kernelweave.kernels_core import config_context
from kernelweave.vv_rkhs.penalties import ElasticNet
from sklearn.exceptions import ConvergenceWarning

TOL = 1e-8


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    """Gram matrices of three histories, and three targets."""
    X, _ = random_network(3, 50, random_state=0)
    samples = lagged_samples(X / X.std(axis=0), 1)
    dictionary, _ = history_dictionary(samples.history, make_groups(None, list("abc")), 1, None)
    Y = samples.targets - samples.targets.mean(axis=0)
    return np.asarray(dictionary.grams), np.ascontiguousarray(Y.T)


@pytest.mark.parametrize("mu", [0.3, 1.0])
@pytest.mark.parametrize("lam", [3.0, 0.1, 1e-3])
def test_together_as_one_by_one(data: tuple[np.ndarray, np.ndarray], lam: float, mu: float) -> None:
    grams, Y = data
    penalty = ElasticNet(mu)
    found = fit_together(shared(grams), Y, np.full(3, lam), penalty, None, tol=TOL, max_iter=200)
    task = TargetSettings(penalty, learn_output=False, tol=1e-8, max_iter=2000)
    for y, weights, coef, gap in zip(Y, found.weights, found.coef, found.gaps, strict=True):
        fit = fit_target(grams, y[:, None], lam, task)
        A = np.tensordot(weights, grams, 1) + lam * len(y) * np.eye(len(y))
        np.testing.assert_allclose(A @ coef, y, atol=1e-9)
        value = lam * (y @ coef + penalty.value(weights))
        upper, lower = (
            2.0 * lam * each for each in (fit.result.upper_bound, fit.result.lower_bound)
        )
        assert gap <= TOL
        assert lower * (1.0 - 1e-12) <= value <= upper * (1.0 + TOL)


def test_single_precision_closes_the_same_gaps(data: tuple[np.ndarray, np.ndarray]) -> None:
    grams, Y = data
    lams = np.array([1.0, 0.1, 0.01])
    single = shared(grams.astype(np.float32))
    found = fit_together(single, Y, lams, ElasticNet(), None, tol=1e-4, max_iter=100)
    exact = fit_together(shared(grams), Y, lams, ElasticNet(), None, tol=1e-9, max_iter=100)
    assert found.coef.dtype == np.float64
    for k in range(3):
        values = [
            lams[k] * (Y[k] @ each.coef[k] + ElasticNet().value(each.weights[k]))
            for each in (found, exact)
        ]
        assert values[0] == pytest.approx(values[1], rel=2e-4)


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0])
def test_minima_of_models_meet_their_conditions(mu: float) -> None:
    rng, kappa = np.random.default_rng(0), 0.25 * (1.0 - mu) ** 2
    sizes = np.array([12, 1, 7])
    H, g, start = np.zeros((3, 12, 12)), np.zeros((3, 12)), np.zeros((3, 12))
    for k, m in enumerate(sizes):
        # of nearly the same kernels
        Z = np.repeat(rng.standard_normal((2 * m, (m + 2) // 3)), 3, axis=1)[:, :m]
        Z += 1e-3 * rng.standard_normal(Z.shape)
        H[k, :m, :m], g[k, :m], start[k, :m] = Z.T @ Z, rng.standard_normal(m), rng.random(m)
    found = np.full((3, 12), 9.0)
    minimise_models(H, g, start, sizes, mu, 1e-10, found)
    for k, m in enumerate(sizes):
        x = found[k, :m]
        slope = (
            g[k, :m] + H[k, :m, :m] @ (x - start[k, :m]) + kappa / (1.0 - mu * x + (mu == 1)) ** 2
        )
        inside = (x > 0.0) & (x < 1.0 / mu)
        np.testing.assert_allclose(slope[inside], 0.0, atol=1e-6)
        assert (slope[x == 0.0] >= -1e-6).all()
        assert (slope[x == 1.0 / mu] <= 1e-6).all()
        assert ((x >= 0.0) & (x <= 1.0 / mu)).all()
        assert (found[k, m:] == 9.0).all(), "what no model has is left alone"


@pytest.mark.parametrize("circle", [True, False])
def test_moved_samples_are_those_of_a_copy(
    data: tuple[np.ndarray, np.ndarray], circle: bool
) -> None:
    grams, _ = data
    l, rng = grams.shape[1], np.random.default_rng(0)
    back = np.array([np.roll(np.arange(l), s) if circle else rng.permutation(l) for s in (3, 11)])
    still = np.array([1, 4])
    mixed, features = np.array([2]), [[rng.standard_normal((l, 3))] for _ in back]
    kernels = moved(grams, still, back, mixed, features)
    weights, C = rng.random((2, len(grams))), rng.standard_normal((2, l))
    problems = np.array([1, 0])
    K, V = kernels.combine(weights, problems), kernels.images(C, problems)
    for k, problem in enumerate(problems):
        copy = grams.copy()
        copy[still] = grams[still][:, back[problem][:, None], back[problem]]
        copy[2] = features[problem][0] @ features[problem][0].T
        np.testing.assert_allclose(K[k], np.tensordot(weights[k], copy, 1), atol=1e-10)
        np.testing.assert_allclose(V[k], copy @ C[k], atol=1e-10)


def test_gaps_that_stay_open_are_warned_of(data: tuple[np.ndarray, np.ndarray]) -> None:
    grams, Y = data
    with pytest.warns(ConvergenceWarning, match="3 of 3 fits ended with relative gaps"):
        found = fit_together(
            shared(grams), Y, np.full(3, 0.1), ElasticNet(), None, tol=1e-9, max_iter=1
        )
    assert (found.gaps > 1e-9).all()


def test_links_that_cannot_be_leave_the_other_targets_as_they_are() -> None:
    X, _ = random_network(4, 60, random_state=1)
    free = GrangerGraph(lam=0.1, cv=None, tol=1e-8).fit(X)
    bound = GrangerGraph(lam=0.1, cv=None, tol=1e-8, forbidden=[("0", "2")]).fit(X)
    np.testing.assert_allclose(bound.graph_[[0, 1, 3]], free.graph_[[0, 1, 3]], atol=1e-3)
    assert bound.graph_[2, 0] == 0.0
    assert all(each.gap <= 1e-8 for each in bound.results_)


def test_problems_that_go_together_fit_into_the_memory() -> None:
    few = shared(np.zeros((3, 20, 20)))
    assert at_once(few) == (1 << 23) // (8 * 20 * 26)
    # read from memory each time: one problem takes 8 * 400 * (400 + 200) bytes
    many = shared(np.zeros((100, 400, 400)))
    assert at_once(many) == 64
    with config_context(memory_limit=80_000_000):
        assert at_once(many) == 10
    with config_context(memory_limit=1_000_000):
        assert at_once(many) == 4, "what a cache holds"
    wide = shared(np.zeros((5, 1200, 1200)))
    assert at_once(wide) == 4, "no more than the matrices themselves"
