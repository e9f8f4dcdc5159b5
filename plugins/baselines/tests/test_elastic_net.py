"""The elastic net against a conic solver and at its two ends, and its weights in closed form."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from kernelweave.baselines import (
    ElasticNetMKLClassifier,
    ElasticNetMKLRegressor,
    ElasticNetWeights,
    SimpleMKLClassifier,
    SimpleMKLRegressor,
    elastic_net_weights,
)
from kernelweave.kernels_core import RBF, KernelDictionary, Laplacian, Linear, Problem, solve
from kernelweave.kernels_core.testing import make_classification, make_regression
from kernelweave.qp_smo import SVC, SVR, Ridge

KERNELS = [Linear(), RBF(gamma=2.0), RBF(gamma=20.0), Laplacian(gamma=1.0)]
RATIOS = (0.0, 1e-3, 0.2, 0.5, 0.9, 1.0)


def problem_of(name: str, l1_ratio: float, kernels: Any = KERNELS) -> Problem:
    X, y = make_classification(40) if name == "svc" else make_regression(40)
    learner = {"svc": SVC(C=5.0), "svr": SVR(C=5.0, epsilon=0.05), "ridge": Ridge(C=5.0)}[name]
    return Problem(KernelDictionary(kernels), learner, ElasticNetWeights(l1_ratio), X, y)


def primal(problem: Problem) -> Any:
    """Return the problem in the functions themselves, whose parts are factors of their kernels."""
    grams, y = problem.family.fit_grams(problem.X).grams, problem.targets[0]
    ratio, learner, b = problem.constraint.l1_ratio, problem.learner, cp.Variable()
    f, norms = b * np.ones(len(y)), []
    for K in grams:
        values, vectors = np.linalg.eigh(K)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        w = cp.Variable(len(y))
        f = f + root @ w
        norms.append(cp.norm2(w))
    rules = []
    if learner.name == "svc":
        loss = learner.C * cp.sum(cp.pos(1 - cp.multiply(y, f)))
    elif learner.name == "svr":
        loss = learner.C * cp.sum(cp.pos(cp.abs(y - f) - learner.epsilon))
    else:
        loss, rules = 0.5 * learner.C * cp.sum_squares(y - f), [b == 0]
    l1, l2 = cp.square(cp.sum(cp.hstack(norms))), cp.sum_squares(cp.hstack(norms))
    return cp.Problem(cp.Minimize(0.5 * ratio * l1 + 0.5 * (1.0 - ratio) * l2 + loss), rules)


@pytest.mark.parametrize("l1_ratio", RATIOS)
@pytest.mark.parametrize("name", ["svc", "svr", "ridge"])
def test_optimum_of_a_conic_solver(conic_optimum: Any, name: str, l1_ratio: float) -> None:
    problem = problem_of(name, l1_ratio)
    result = solve(problem, "mkl-elastic-net", tol=1e-6)
    wanted, digits = conic_optimum(primal(problem))
    assert result.gap <= 1e-6
    assert result.lower_bound <= wanted * (1 + digits)
    assert result.upper_bound >= wanted * (1 - digits)


@pytest.mark.parametrize("name", ["svc", "svr"])
def test_the_weights_are_those_of_the_norms(name: str) -> None:
    problem = problem_of(name, 0.3)
    result = solve(problem, "mkl-elastic-net", tol=1e-9)
    grams = problem.family.fit_grams(problem.X).grams
    u = problem.learner.solve(problem.family.gram(problem.X, result.parameters), problem.y)
    forms = np.array([u.dual_coef[0] @ K @ u.dual_coef[0] for K in grams])
    norms = result.parameters * np.sqrt(forms)
    np.testing.assert_allclose(elastic_net_weights(norms, 0.3), result.parameters, atol=2e-3)


def test_many_similar_kernels_close_the_gap() -> None:
    """Cuts alone stop at a gap of some percent here, and the closed form alone is slow."""
    kernels = [RBF(gamma=g) for g in np.geomspace(0.1, 100.0, 25)]
    for l1_ratio in (0.01, 0.5):
        result = solve(problem_of("svr", l1_ratio, kernels), "mkl-elastic-net", tol=1e-5)
        assert result.gap <= 1e-5
        assert result.history.counts["n_svm_solves"][-1] <= 100


@pytest.mark.parametrize(
    ("ours", "simple"),
    [
        (ElasticNetMKLClassifier, SimpleMKLClassifier),
        (ElasticNetMKLRegressor, SimpleMKLRegressor),
    ],
)
def test_at_its_ends_it_is_the_sum_and_simplemkl(ours: Any, simple: Any) -> None:
    is_class = ours is ElasticNetMKLClassifier
    X, y = make_classification(50) if is_class else make_regression(50)
    options = {"C": 3.0, "normalize": None, "tol": 1e-8}
    one, best = ours(KERNELS, l1_ratio=1.0, **options), simple(KERNELS, **options)
    assert one.fit(X, y).result_.value == pytest.approx(best.fit(X, y).result_.value, rel=1e-6)
    np.testing.assert_allclose(one.weights_, best.weights_, atol=2e-3)
    total = simple([sum(KERNELS[1:], KERNELS[0])], **options).fit(X, y)
    none = ours(KERNELS, l1_ratio=0.0, **options).fit(X, y)
    np.testing.assert_array_equal(none.weights_, np.ones(4))
    assert none.result_.value == pytest.approx(total.result_.value, rel=1e-6)


def test_copies_of_a_kernel_share_its_weight() -> None:
    X, y = make_classification(50)
    model = ElasticNetMKLClassifier([RBF(2.0), RBF(2.0), Linear()], tol=1e-9).fit(X, y)
    assert model.weights_[0] == pytest.approx(model.weights_[1], abs=1e-3)


@pytest.mark.parametrize("l1_ratio", [0.0, 1e-9, 0.01, 0.5, 0.999, 1.0 - 1e-15, 1.0])
def test_no_point_of_the_set_is_above_its_worst(l1_ratio: float) -> None:
    rng, held = np.random.default_rng(0), ElasticNetWeights(l1_ratio)
    for _ in range(20):
        forms = rng.random(5) ** 3
        values = [held.weights_at(d) @ forms for d in rng.dirichlet(np.full(5, 0.3), size=300)]
        assert max(values) <= held.worst(forms)
        if l1_ratio > 0.0:
            best = held.weights_at(held.best_shares(forms)) @ forms
            assert best == pytest.approx(held.worst(forms), rel=1e-9)
    assert held.worst(np.zeros(5)) == 0.0


@pytest.mark.parametrize("l1_ratio", [0.0, 0.05, 0.5, 1.0])
def test_the_projection_is_the_nearest_point(l1_ratio: float) -> None:
    rng, held = np.random.default_rng(2), ElasticNetWeights(l1_ratio)
    for given in 2.0 * rng.random((5, 4)) - 0.3:
        nearest = held.project(given)
        np.testing.assert_allclose(held.project(nearest), nearest, atol=1e-12)
        for shares in rng.dirichlet(np.full(4, 0.5), size=100):
            # the angle at the nearest point of a convex set
            assert (given - nearest) @ (held.weights_at(shares) - nearest) <= 1e-9


def test_the_closed_form_is_the_minimum() -> None:
    rng, norms = np.random.default_rng(1), np.array([2.0, 1.0, 0.5])
    for ratio in (0.2, 1.0):
        weights = elastic_net_weights(norms, ratio)
        value = 0.5 * ratio * norms.sum() ** 2 + 0.5 * (1.0 - ratio) * norms @ norms
        assert 0.5 * np.sum(norms**2 / weights) == pytest.approx(value)
        for shares in rng.dirichlet(np.ones(3), size=50):
            assert 0.5 * np.sum(norms**2 / ElasticNetWeights(ratio).weights_at(shares)) >= value


def test_what_is_wrong_is_named() -> None:
    X, y = make_classification(20)
    with pytest.raises(ValueError, match=r"l1_ratio must be .* \[0, 1\], got 1.5"):
        ElasticNetMKLClassifier(l1_ratio=1.5).fit(X, y)
    with pytest.raises(ValueError, match=r"l1_ratio must be .*, got -0.1"):
        elastic_net_weights([1.0], -0.1)
    for norms in ([0.0, 0.0], [1.0, -1.0]):
        with pytest.raises(ValueError, match="norms must be finite numbers >= 0"):
            elastic_net_weights(norms)
    with pytest.raises(ValueError, match="norms must be finite, got nan at position 1"):
        elastic_net_weights([1.0, np.nan])
