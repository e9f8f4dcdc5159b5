"""The study of P: its objective by differences, its ends, and what it says of planted gains."""

from __future__ import annotations

import math

import numpy as np
import pytest
from kernelweave.kernels_core.families import TessellatedFamily
from kernelweave.papers import Request, tables
from kernelweave.papers.plan import Sheet
from kernelweave.papers.study import learned_matrix
from kernelweave.papers.study.learned_matrix import (
    STRENGTHS,
    PriorPoint,
    learn_path,
    objective,
    units_of,
    weights_of,
)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    family = TessellatedFamily.from_data(X, degree=1, order=2)
    return family, X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(30)


def test_units_are_the_gram_of_the_family_and_its_moment(problem):
    family, X, y = problem
    units, rng = units_of(family, X), np.random.default_rng(1)
    half = rng.standard_normal((family.n_P, family.n_P))
    P = half @ half.T
    np.testing.assert_allclose(units.gram(P), family.gram(X, P), atol=1e-12)
    np.testing.assert_allclose(
        units.moment(np.outer(y, y)), family.prepare(X).moment(y), atol=1e-10
    )
    some = np.array([1, 4, 5, 20])
    np.testing.assert_allclose(units.of(some).gram(P), family.gram(X[some], P), atol=1e-12)


@pytest.mark.parametrize("strength", [math.inf, 5.0])
def test_derivatives_are_differences(problem, strength):
    family, X, y = problem
    units, rng = units_of(family, X), np.random.default_rng(2)
    n = family.n_P
    factor = np.tril(0.2 * rng.standard_normal((n, n))) + np.eye(n)
    place = np.tril_indices(n)

    def at(values):
        lower = np.zeros((n, n))
        lower[place] = values[2:]
        return objective(PriorPoint(values[0], values[1], lower), units, y, strength)

    values = np.array([-1.0, -2.0, *factor[place]])
    _, (of_weight, of_noise, of_factor) = at(values)
    found = np.array([of_weight, of_noise, *of_factor[place]])
    step = 1e-5
    wanted = [
        (at(values + step * e)[0] - at(values - step * e)[0]) / (2.0 * step)
        for e in np.eye(len(values))
    ]
    np.testing.assert_allclose(found, wanted, atol=1e-7, rtol=1e-7)


def test_the_path_leaves_the_identity_as_the_prior_weakens(problem):
    family, X, y = problem
    units = units_of(family, X)
    path = learn_path(units, y)
    np.testing.assert_allclose(path[0].P, np.eye(family.n_P))
    away = [float(np.linalg.norm(kernel.P - np.eye(family.n_P))) for kernel in path]
    assert away == sorted(away)
    for kernel, strength in zip(path[1:], STRENGTHS[1:], strict=True):
        assert np.trace(kernel.P) == pytest.approx(family.n_P)
        assert np.linalg.eigvalsh(kernel.P)[0] > 0.0
        # below the value at the identity, where the prior is zero
        start = objective(path[0], units, y, strength)[0]
        assert objective(kernel, units, y, strength)[0] < start
    np.testing.assert_allclose(weights_of(np.array([1.0, 1.0])), 0.5)


def test_the_sheets_say_what_was_planted(shared):
    plan = tables()["study-p"].plan(Request(folder=shared / "data", quick=True))
    fixed = {name: 80.0 for _, name in learned_matrix._RULES.values()}
    gains = {"evidence": 2.0, "strongest": -1.0, "objective": 0.5}
    planted = fixed | {learned_matrix._RULES[rule][0]: 80.0 + gain for rule, gain in gains.items()}
    sheets = plan.present({cell.key: planted for cell in plan.cells})
    verdict = sheets[0]
    assert isinstance(verdict, Sheet)
    assert [row[4] for row in verdict.rows[:3]] == [
        "+2.0 (+2.0 to +2.0)", "-1.0 (-1.0 to -1.0)", "+0.5 (+0.5 to +0.5)",
    ]  # fmt: skip
    assert sheets[1].rows[0] == ["haberman", 80.0, 82.0, 79.0, 80.0, 80.5]


def test_a_cell_is_computed():
    found = learned_matrix.measure("make Gu and Wahba", "regression", 1, 0, 30)
    assert all(0.0 <= score <= 100.0 for score in found.values())
    assert len(found) == 5
