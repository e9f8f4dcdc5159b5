"""SimpleMKL: both algorithms against a conic solver, each other, and counts of solves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from kernelweave.baselines import Simplex
from kernelweave.baselines.simplemkl import longest_step, reduced_direction
from kernelweave.kernels_core import RBF, KernelDictionary, Laplacian, Linear, Problem, solve
from kernelweave.kernels_core.grams import PrecomputedDictionary
from kernelweave.kernels_core.testing import make_classification, make_regression
from kernelweave.qp_smo import SVC, SVR

BOTH = ("mkl-simple", "mkl-simple-gradient")
QUICK = ("iris", "wine", "parkinsons", "heart", "haberman", "ionosphere", "breastcancer")
SETS = (*QUICK, "mammographic", "banknote", pytest.param("spambase", marks=pytest.mark.slow))
DICTIONARY = KernelDictionary([Linear(), RBF(gamma=2.0), RBF(gamma=20.0), Laplacian(gamma=1.0)])


def problems() -> list[Problem]:
    X, y = make_classification(50)
    Z, z = make_regression(50)
    return [
        Problem(DICTIONARY, SVC(C=5.0), Simplex(), X, y),
        Problem(DICTIONARY, SVR(C=5.0, epsilon=0.05), Simplex(), Z, z),
    ]


def saddle_dual(problem: Problem) -> Any:
    """Return max over u of κ(u) − ½ max over j of uᵀKⱼu, the dual of the saddle."""
    grams, y = problem.family.fit_grams(problem.X).grams, problem.targets[0]
    u, top = cp.Variable(len(y)), cp.Variable()
    C = problem.learner.C
    rules = [cp.sum(u) == 0]
    for K in grams:
        values, vectors = np.linalg.eigh(K)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))).T
        rules.append(cp.sum_squares(root @ u) <= top)
    if problem.learner.name == "svc":
        kappa = y @ u
        rules += [cp.multiply(y, u) >= 0, cp.multiply(y, u) <= C]
    else:
        kappa = y @ u - problem.learner.epsilon * cp.norm1(u)
        rules += [cp.abs(u) <= C]
    return cp.Problem(cp.Maximize(kappa - 0.5 * top), rules)


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("problem", problems(), ids=["svc", "svr"])
def test_optimum_of_a_conic_solver(conic_optimum: Any, name: str, problem: Problem) -> None:
    result = solve(problem, name, tol=1e-6, max_iter=2000)
    wanted, digits = conic_optimum(saddle_dual(problem))
    assert result.gap <= 1e-6
    assert result.lower_bound <= wanted * (1 + digits)
    assert result.upper_bound >= wanted * (1 - digits)
    assert result.parameters.min() >= 0.0
    assert result.parameters.sum() == pytest.approx(1.0)


def problem_of(case: Any) -> Problem:
    grams, y, setting = case
    X = np.arange(len(y), dtype=float)[:, None]
    return Problem(PrecomputedDictionary(grams), SVC(C=setting["C"]), Simplex(), X, y)


@pytest.mark.filterwarnings("ignore:.*max_iter was reached")
@pytest.mark.parametrize("name", SETS)
def test_cuts_need_fewer_solves_than_the_gradient(
    name: str, paper_set: Callable[[str], Any]
) -> None:
    problem = problem_of(paper_set(name))
    ours = solve(problem, "mkl-simple", tol=1e-4)
    assert ours.gap <= 1e-4
    needed = ours.history.counts["n_svm_solves"][-1]
    # a direction takes at least one solve
    theirs = solve(problem, "mkl-simple-gradient", tol=1e-4, max_iter=needed)
    assert theirs.history.counts["n_svm_solves"][-1] > needed
    assert max(ours.lower_bound, theirs.lower_bound) <= min(ours.upper_bound, theirs.upper_bound)


def test_direction_descends_inside_the_simplex() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        beta = rng.dirichlet(np.ones(6)) * (rng.random(6) > 0.3)
        beta /= beta.sum()
        gradient = rng.standard_normal(6)
        direction = reduced_direction(beta, gradient)
        assert abs(direction.sum()) < 1e-12
        assert gradient @ direction <= 1e-12
        step, first = longest_step(beta, direction)
        if first >= 0:
            moved = beta + step * direction
            assert moved.min() > -1e-12
            assert moved[first] == pytest.approx(0.0, abs=1e-12)


def test_a_corner_that_is_optimal_has_no_direction() -> None:
    direction = reduced_direction(np.array([1.0, 0.0]), np.array([-1.0, 0.0]))
    assert not direction.any()
    assert longest_step(np.array([1.0, 0.0]), direction) == (0.0, -1)
