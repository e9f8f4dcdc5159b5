"""SimpleMKL against a conic solver, and how many solves the published sets need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from kernelweave.baselines import Simplex
from kernelweave.kernels_core import RBF, KernelDictionary, Laplacian, Linear, Problem, solve
from kernelweave.kernels_core.grams import PrecomputedDictionary
from kernelweave.kernels_core.testing import make_classification, make_regression
from kernelweave.qp_smo import SVC, SVR

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


@pytest.mark.parametrize("problem", problems(), ids=["svc", "svr"])
def test_optimum_of_a_conic_solver(conic_optimum: Any, problem: Problem) -> None:
    result = solve(problem, "mkl-simple", tol=1e-6, max_iter=2000)
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


@pytest.mark.parametrize("name", SETS)
def test_the_published_sets_need_few_solves(name: str, paper_set: Callable[[str], Any]) -> None:
    result = solve(problem_of(paper_set(name)), "mkl-simple", tol=1e-4)
    assert result.gap <= 1e-4
    # a reduced gradient needs 8 to over 5,000
    assert result.history.counts["n_svm_solves"][-1] <= 30
