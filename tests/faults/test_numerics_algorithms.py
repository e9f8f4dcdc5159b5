"""What must hold of every registered algorithm: bits, lost samples, scales, intervals in 40 digits.

The order of samples, the seed and monotone bounds are in the conformance kit, which the packages'
own tests and the first test here run on every algorithm.
"""

from __future__ import annotations

import functools
import warnings
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from kernelweave.kernels_core import (
    RBF,
    FittedDictionary,
    KernelDictionary,
    Linear,
    Polynomial,
    Problem,
    Result,
    algorithms,
    config_context,
    solve,
)
from kernelweave.kernels_core.testing.problems import small_problems
from kernelweave.qp_smo import solve_svc, solve_svr
from sound_cases import sound
from subjects import Subject, algorithm_subjects

SETTINGS: dict[str, Any] = {"tol": 1e-3, "max_iter": 12, "random_state": 0}
N = 14


def subjects() -> list[Any]:
    return [pytest.param(each, id=each.name) for each in algorithm_subjects()]


def names() -> list[str]:
    return sorted(algorithms())


def quick(problem: Problem, name: str, **settings: Any) -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solve(problem, name, **{**SETTINGS, **settings})


@functools.cache
def problems(name: str) -> list[Problem]:
    return list(small_problems(algorithms()[name], N))


@pytest.mark.parametrize("name", names())
def test_threads_and_bounds(name: str) -> None:
    """One thread and two give the same bits, and bounds only get better."""
    assert problems(name)
    for problem in problems(name):
        with config_context(n_threads=1):
            one = quick(problem, name)
        with config_context(n_threads=2):
            two = quick(problem, name)
        assert (one.lower_bound, one.upper_bound) == (two.lower_bound, two.upper_bound)
        assert one.gap >= 0.0
        assert (np.diff(one.history.lower) >= 0.0).all()
        assert (np.diff(one.history.upper) <= 0.0).all()
        # relative to the larger bound, which may fall faster while the interval holds zero
        signed = np.multiply(one.history.lower, one.history.upper) >= 0.0
        gap = np.asarray(one.history.gap)[signed]
        assert (np.diff(gap) <= 1e-15).all()


@pytest.mark.parametrize("subject", subjects())
def test_a_sample_of_weight_zero_is_none(subject: Subject) -> None:
    case = sound(subject.task)
    weight = np.ones(len(case.y))
    weight[[1, 4, 7]] = 0.0
    kept = weight > 0.0
    spoilt = case.X.copy()
    spoilt[~kept] = 1e3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = subject.make({"max_time": None}).fit(spoilt, case.y, sample_weight=weight)
        part = subject.make({"max_time": None}).fit(case.X[kept], case.y[kept])
    assert whole.result_.upper_bound == part.result_.upper_bound
    np.testing.assert_array_equal(whole.predict(case.X_new), part.predict(case.X_new))


def hulls(name: str) -> list[Problem]:
    """Return the problems over convex weights of Gram matrices with a support vector machine."""
    return [
        each
        for each in problems(name)
        if each.triple[0] == "dictionary" and each.triple[1] in ("svc", "svr")
    ]


def over(kernels: list[Any], problem: Problem) -> Problem:
    return replace(problem, family=KernelDictionary(kernels))


PLAIN = [name for name in names() if hulls(name)]


def test_a_kernel_listed_twice_changes_nothing() -> None:
    """Where the weights cost nothing; elsewhere the set or its penalty tells one from two."""
    name = "mkl-simple"
    kernels = [RBF(1.0), Linear(), Polynomial(2)]
    for problem in hulls(name):
        one = quick(over(kernels, problem), name)
        two = quick(over([*kernels, RBF(1.0)], problem), name)
        assert one.lower_bound <= two.upper_bound
        assert two.lower_bound <= one.upper_bound


def charge(problem: Problem, weights: Any) -> float:
    penalty = getattr(problem.constraint, "penalty", None)
    return 0.0 if penalty is None else float(penalty(weights))


@pytest.mark.parametrize("name", PLAIN)
def test_one_kernel_is_the_plain_machine(name: str) -> None:
    """The interval holds the optimum of a support vector machine on that kernel."""
    for problem in hulls(name):
        alone = over([RBF(1.0)], problem)
        result = quick(alone, name)
        K = float(np.ravel(result.parameters)[0]) * RBF(1.0)(problem.X)
        settings = {"C": problem.learner.C, "tol": 1e-8}
        if problem.learner.name == "svr":
            plain: Any = solve_svr(K, problem.y, epsilon=problem.learner.epsilon, **settings)
        else:
            plain = solve_svc(K, problem.targets[0], **settings)
        own = charge(alone, result.parameters)
        assert result.lower_bound <= plain.upper_bound + own + 1e-12
        assert plain.lower_bound + own <= result.upper_bound + 1e-12


# EasyMKL weighs its own λ against the size of the kernels, and so is another rule for others
@pytest.mark.parametrize("name", [name for name in PLAIN if name != "mkl-easy"])
def test_scaling_of_the_kernels(name: str) -> None:
    """OPT(cK, C/c) = OPT(K, C)/c, the penalty of the weights divided by c as well."""
    c = 8.0
    for problem in hulls(name):
        kernels = [RBF(1.0), Linear(), Polynomial(2)]
        constraint = problem.constraint
        scaled = [c * each for each in kernels]
        for price in ("lam", "beta"):
            if hasattr(constraint, price):
                constraint = replace(constraint, **{price: getattr(constraint, price) / c})
        one = quick(over(kernels, problem), name)
        two = quick(
            replace(
                over(scaled, problem),
                learner=replace(problem.learner, C=problem.learner.C / c),
                constraint=constraint,
            ),
            name,
        )
        slack = 1e-9 * abs(one.upper_bound)
        assert one.lower_bound <= c * two.upper_bound + slack
        assert c * two.lower_bound <= one.upper_bound + slack


def grams(problem: Problem, result: Result) -> mpmath.matrix:
    """Return K(θ) in 40 digits: the exact sum of a dictionary's matrices, or as computed."""
    family = problem.family
    if problem.triple[0] != "dictionary":
        return mpmath.matrix(np.asarray(family.gram(problem.X, result.parameters)).tolist())
    fitted: FittedDictionary = family.fit_grams(problem.X)
    total = mpmath.zeros(N)
    for weight, K in zip(np.ravel(result.parameters), fitted.grams, strict=True):
        total += mpmath.mpf(float(weight)) * mpmath.matrix(np.asarray(K, dtype=float).tolist())
    return total


def values(problem: Problem, K: mpmath.matrix) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Return a dual value and a primal value of the learner, both of points that we check."""
    learner, y = problem.learner, problem.targets[0]
    rounded = np.array(K.tolist(), dtype=float)
    found = learner.solve(rounded, problem.targets, tol=1e-9)
    u = [mpmath.mpf(float(each)) for each in found.dual_coef[0]]
    assert mpmath.fsum(u) == 0
    assert all(abs(each) <= learner.C for each in u)
    targets, width = [mpmath.mpf(float(t)) for t in y], float(getattr(learner, "epsilon", 0.0))
    classes = learner.name == "svc"
    if classes:
        assert all(each * t >= 0 for each, t in zip(u, targets, strict=True))
    f = [mpmath.fsum(K[i, j] * u[j] for j in range(N)) for i in range(N)]
    quadratic = mpmath.fsum(a * b for a, b in zip(u, f, strict=True))
    kappa = mpmath.fsum(a * t for a, t in zip(u, targets, strict=True))
    kappa -= 0 if classes else width * mpmath.fsum(abs(each) for each in u)
    b = mpmath.mpf(float(found.intercept[0]))
    losses = [
        1 - t * (value + b) if classes else abs(t - value - b) - width
        for t, value in zip(targets, f, strict=True)
    ]
    loss = learner.C * mpmath.fsum(max(each, mpmath.mpf(0)) for each in losses)
    return kappa - quadratic / 2, quadratic / 2 + loss


@pytest.mark.parametrize(
    "name",
    [n for n in names() if any(p.triple[1] in ("svc", "svr") for p in problems(n))],
)
def test_intervals_hold_in_forty_digits(name: str) -> None:
    """Dual value ≤ upper bound, lower bound ≤ primal value, at the returned kernel.

    No tolerance where the kernel is a sum of matrices; a rounding of the matrix's entries where
    an integral gives them.
    """
    with mpmath.workdps(40):
        for problem in problems(name):
            if problem.triple[1] not in ("svc", "svr"):
                continue
            result = quick(problem, name)
            dual, primal = values(problem, grams(problem, result))
            own = mpmath.mpf(charge(problem, result.parameters))
            exact = problem.triple[0] == "dictionary"
            slack = 0 if exact else 1e-11 * abs(primal)
            assert dual <= primal
            assert primal - dual <= 1e-5 * primal
            assert dual + own <= mpmath.mpf(result.upper_bound) + slack
            assert mpmath.mpf(result.lower_bound) <= primal + own + slack
