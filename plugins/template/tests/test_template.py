"""The worked example keeps every promise that the registry asks for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from kernelweave.kernels_core import (
    KernelDictionary,
    KernelLearningClassifier,
    KernelLearningRegressor,
    Linear,
    Problem,
    algorithms,
    plugins,
    solve,
)
from kernelweave.kernels_core.testing import check_algorithm, make_classification, make_regression
from kernelweave.qp_smo import SVC
from kernelweave_template import NAME, ExponentiatedGradient, TemplateSimplex


def test_it_is_registered() -> None:
    assert NAME in algorithms()
    assert [row.status for row in plugins() if row.name == "template"] == ["loaded"]


def test_it_keeps_the_promises() -> None:
    check_algorithm(NAME)


def test_it_finds_the_optimum_of_a_problem_with_a_known_answer() -> None:
    # K(β) = (β₁ + 4 β₂) K₁ and the optimum falls with the scale, so all weight goes to the second
    X, y = make_classification(30)
    family = KernelDictionary({"one": Linear(), "four": 4.0 * Linear()})
    problem = Problem(family, SVC(C=1.0), TemplateSimplex(), X, y)
    result = solve(problem, NAME, tol=1e-6)
    alone = SVC(C=1.0).solve(4.0 * X @ X.T, y, tol=1e-9)
    assert result.parameters == pytest.approx([0.0, 1.0], abs=1e-4)
    assert result.lower_bound <= alone.upper_bound
    assert alone.lower_bound <= result.upper_bound


@pytest.mark.parametrize(
    ("estimator", "make"),
    [
        (KernelLearningClassifier, make_classification),
        (KernelLearningRegressor, make_regression),
    ],
)
def test_generic_estimators_reach_it(estimator: type, make: Callable) -> None:
    X, y = make(40)
    model = estimator(NAME, C=10.0, tol=1e-2).fit(X, y)
    assert model.result_.gap <= 1e-2
    assert model.score(X, y) > 0.7
    assert np.isclose(model.result_.parameters.sum(), 1.0)


def test_a_step_too_far_is_taken_back() -> None:
    """Both columns are needed: a rate that leaves one of them out is halved, and nothing moves."""
    X = np.random.default_rng(0).standard_normal((30, 2))
    y = np.where(X[:, 0] + X[:, 1] > 0.0, 1.0, -1.0)
    learner = SVC(C=1.0)
    family = KernelDictionary({"one": Linear().on([0]), "two": Linear().on([1])})
    problem = Problem(family, learner, TemplateSimplex(), X, y)
    search = ExponentiatedGradient(problem, np.random.RandomState(0))
    even, upper = search.parameters, search.upper
    alone = [learner.solve(np.outer(x, x), y, tol=1e-9).lower_bound for x in X.T]
    assert min(alone) > upper
    search.rate = 1e4
    search.step()
    assert search.parameters is even
    assert search.rate == 5e3
    while search.rate > 1e-3 and search.parameters is even:
        search.step()
    assert search.upper < upper
