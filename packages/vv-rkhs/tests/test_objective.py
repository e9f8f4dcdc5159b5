"""J: gradients by finite differences, sample weights, kinds of Gram matrices, bounds."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import Problem, config_context, solve
from kernelweave.kernels_core.exceptions import MemoryBudgetError
from kernelweave.vv_rkhs import (
    ElasticNet,
    PrecomputedFamily,
    SeparableKernels,
    SquaredLpNorm,
    VectorLeastSquares,
)
from kernelweave.vv_rkhs.bounds import prepare_problem

# at rest on a problem that is not convex the gap stays open, and every fit says so
pytestmark = pytest.mark.filterwarnings("ignore:.*no step of the search")


def point(prepared: Any, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    m, n = len(prepared.objective.grams), prepared.objective.n_outputs
    R = rng.standard_normal((n, n))
    return rng.random(m) / m, R @ R.T / n


def J(prepared: Any, eta: np.ndarray, L: np.ndarray) -> float:
    """The value by the Kronecker system."""
    objective = prepared.objective
    K = np.asarray(objective.grams.combine(eta))
    A = np.kron(K, L) + objective.ridge * np.eye(objective.Y.size)
    y = objective.Y.reshape(-1)
    return objective.lam * float(y @ np.linalg.solve(A, y))


def test_value_and_gradients(make_problem: Any) -> None:
    prepared = prepare_problem(make_problem(l=15, n=3, m=4))
    eta, L = point(prepared)
    at = prepared.objective.evaluate(eta, L)
    np.testing.assert_allclose(at.value, J(prepared, eta, L), rtol=1e-10)
    h = 1e-6
    for j in range(4):
        d = h * np.eye(4)[j]
        slope = (J(prepared, eta + d, L) - J(prepared, eta - d, L)) / (2 * h)
        np.testing.assert_allclose(-prepared.objective.lam * at.w[j], slope, rtol=1e-5)
    D = np.random.default_rng(1).standard_normal((3, 3))
    D = h * (D + D.T)
    slope = (J(prepared, eta, L + D) - J(prepared, eta, L - D)) / 2
    np.testing.assert_allclose(-prepared.objective.lam * np.vdot(at.B, D), slope, rtol=1e-5)


def test_sample_weight_is_repetition(make_problem: Any) -> None:
    problem = make_problem(l=12, n=3, m=4)
    weight = np.ones(12)
    weight[[1, 4]] = 2.0, 3.0
    rows = np.repeat(np.arange(12), weight.astype(int))
    weighted = Problem(
        problem.family, problem.learner, problem.constraint, problem.X, problem.y, weight
    )
    grams = problem.family.grams[:, rows][:, :, rows]
    repeated = Problem(
        PrecomputedFamily(grams),
        problem.learner,
        problem.constraint,
        np.arange(float(len(rows)))[:, None],
        problem.y[:, rows],
    )
    a, b = prepare_problem(weighted), prepare_problem(repeated)
    eta, L = point(a)
    np.testing.assert_allclose(
        a.objective.evaluate(eta, L).value, b.objective.evaluate(eta, L).value, rtol=1e-10
    )
    np.testing.assert_allclose(
        a.objective.evaluate(eta, L).w, b.objective.evaluate(eta, L).w, rtol=1e-8
    )


def test_float32_stack(make_problem: Any) -> None:
    problem = make_problem()
    single = Problem(
        PrecomputedFamily(problem.family.grams.astype(np.float32)),
        problem.learner,
        problem.constraint,
        problem.X,
        problem.y,
    )
    a, b = prepare_problem(problem), prepare_problem(single)
    eta, L = point(a)
    exact, rounded = a.objective.evaluate(eta, L), b.objective.evaluate(eta, L)
    np.testing.assert_allclose(rounded.value, exact.value, rtol=1e-6)
    np.testing.assert_allclose(rounded.w, exact.w, rtol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
def test_norms_are_at_least_those_of_the_matrices(make_problem: Any, weighted: bool) -> None:
    grams = make_problem(l=300, m=3).family.grams
    root = np.linspace(0.5, 2.0, 300) if weighted else np.ones(300)
    stack = PrecomputedFamily(grams).weighted(root if weighted else None)
    exact = np.linalg.norm(grams * np.outer(root, root), axis=(1, 2))
    assert (stack.norms >= exact).all()
    np.testing.assert_allclose(stack.norms, exact, rtol=1e-8)


SETS = [
    SeparableKernels(SquaredLpNorm(1.0), learn_output=False),
    SeparableKernels(SquaredLpNorm(1.5), learn_output=False),
    SeparableKernels(SquaredLpNorm(2.0), learn_output=False),
    SeparableKernels(ElasticNet(0.4), learn_output=False),
    SeparableKernels(SquaredLpNorm(1.0, (0, 0, 1, 1, 2, 2, 3, 3)), learn_output=False),
    SeparableKernels(tau=2.0, learn_input=False),
    SeparableKernels(learn_input=False, learn_output=False),
]


@pytest.mark.parametrize("constraint", SETS, ids=repr)
@pytest.mark.parametrize("lam", [1e-1, 1e-4])
def test_certified_to_one_millionth(make_problem: Any, constraint: Any, lam: float) -> None:
    problem = make_problem(lam=lam, constraint=constraint)
    result = solve(problem, "vv-spg", tol=1e-6, max_iter=2000)
    assert result.status.label == "converged"
    assert result.gap <= 1e-6
    assert result.lower_bound <= result.upper_bound


def test_weights_of_an_elastic_net_can_shrink(make_problem: Any) -> None:
    """Then ω falls and J rises: a slope of J alone would point up."""
    constraint = SeparableKernels(ElasticNet(0.4), learn_output=False)
    result = solve(make_problem(lam=5.0, constraint=constraint), "vv-spg", tol=1e-6)
    assert result.status.label == "converged"
    assert result.parameters.weights.sum() < 0.9


@pytest.mark.parametrize("constraint", SETS, ids=repr)
def test_bounds_hold_at_any_inexact_point(make_problem: Any, constraint: Any) -> None:
    """A C that is wrong by 10 % still gives bounds on either side of the optimum."""
    problem = make_problem(constraint=constraint)
    best = solve(problem, "vv-spg", tol=1e-7, max_iter=2000)
    prepared = prepare_problem(problem, method="cg")
    rough = prepared.objective.evaluate(prepared.weights, prepared.L, tol=0.1)
    assert rough.residual > 1e-4
    units = 2.0 * problem.learner.lam
    assert prepared.bounds.lower(rough) <= units * best.upper_bound
    assert prepared.bounds.upper(rough) >= units * best.lower_bound
    assert prepared.bounds.stationarity(rough) >= 0.0


@pytest.mark.parametrize("learn_input", [False, True])
def test_bounds_hold_to_the_last_bit(learn_input: bool) -> None:
    """Multiples of I have an optimum in rational numbers: all weight on the largest."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        l, lam, largest = 5 + seed, float(rng.uniform(0.01, 2.0)), float(rng.uniform(0.5, 3.0))
        scales = [largest, 0.5 * largest] if learn_input else [largest]
        Y = rng.standard_normal((3, l))
        family = PrecomputedFamily(np.stack([scale * np.eye(l) for scale in scales]))
        fixed = SeparableKernels(learn_input=learn_input, learn_output=False)
        positions = np.arange(float(l))[:, None]
        problem = Problem(family, VectorLeastSquares(lam), fixed, positions, Y)
        found = solve(problem, "vv-spg", tol=1e-10)
        squares = sum(Fraction(float(y)) ** 2 for y in Y.ravel())
        exact = squares / (2 * (Fraction(largest) + Fraction(lam) * l))
        assert Fraction(found.lower_bound) <= exact <= Fraction(found.upper_bound)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("lam", [1e-6, 1e-10, 1e-13])
def test_bounds_count_the_rounding_of_huge_coefficients(lam: float, seed: int) -> None:
    """C is large where K is nearly singular: what is computed is wrong by far more than 1e-16."""
    rng = np.random.default_rng(seed)
    X, Y = np.sort(rng.random(30)), rng.standard_normal((30, 2))
    grams = np.stack([np.exp(-gamma * (X[:, None] - X) ** 2) for gamma in (3.0, 1.0)])
    problem = Problem(
        PrecomputedFamily(grams),
        VectorLeastSquares(lam),
        SeparableKernels(learn_output=False),
        np.arange(30.0)[:, None],
        Y.T,
    )
    prepared = prepare_problem(problem, method="eigen")
    at = prepared.start()
    exactly = np.vectorize(Fraction, otypes=[object])
    C, T, eta = exactly(at.C), exactly(Y), exactly(at.weights)  # L = I
    parts = [exactly(K).dot(C) for K in grams]
    fit, strength = eta[0] * parts[0] + eta[1] * parts[1], Fraction(lam)
    primal = ((fit - T) ** 2).sum() / 30 + strength * (C * fit).sum()
    assert Fraction(prepared.bounds.upper(at)) >= primal
    worst = max((C * part).sum() for part in parts)
    cross, square = (C * T).sum(), 30 * strength * (C * C).sum()
    assert Fraction(prepared.bounds.lower(at)) <= strength * cross**2 / (square + worst)
    if lam < 1e-6:
        assert abs(at.value / float(primal) - 1.0) > 1e-11, "too easy"


def test_the_upper_bound_pays_for_a_trace_above_its_limit(make_problem: Any) -> None:
    problem = make_problem(constraint=SeparableKernels(learn_input=False))
    best = solve(problem, "vv-spg", tol=1e-7)
    prepared = prepare_problem(problem)
    above = 1.5 * best.parameters.output_kernel
    at = prepared.objective.evaluate(prepared.weights, above)
    least = 2.0 * problem.learner.lam * best.lower_bound
    assert at.value < 0.99 * least
    assert prepared.bounds.upper(at) >= least


def test_relaxation_is_below_every_feasible_value(make_problem: Any) -> None:
    prepared = prepare_problem(make_problem())
    result = solve(make_problem(), "vv-spg", stationarity_tol=1e-5)
    assert result.status.label == "stationary"
    assert result.lower_bound > 0.0
    for seed in range(20):
        eta, L = point(prepared, seed)
        eta, L = eta / eta.sum(), L * prepared.bounds.tau / np.trace(L)
        value = prepared.objective.evaluate(eta, L).value / (2.0 * prepared.objective.lam)
        assert result.lower_bound < value
        assert result.upper_bound <= value


def test_given_weights_and_output_kernel_are_the_kronecker_system(make_problem: Any) -> None:
    problem = make_problem(l=12, n=3, m=4)
    eta = np.array([0.5, 0.0, 2.0, 1.0])
    R = np.random.default_rng(0).standard_normal((3, 3))
    L = R @ R.T
    fixed = SeparableKernels(
        learn_input=False, learn_output=False, weights=eta, output_kernel=L, tau=7.0
    )
    found = solve(
        Problem(problem.family, problem.learner, fixed, problem.X, problem.y), "vv-spg", tol=1e-9
    )
    K, Y = np.tensordot(eta, problem.family.grams, 1), problem.y.T
    A = np.kron(K, L) + problem.learner.lam * 12 * np.eye(36)
    C = np.linalg.solve(A, Y.reshape(-1)).reshape(12, 3)
    np.testing.assert_allclose(found.solution.C, C, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.value, 0.5 * np.vdot(C, Y), rtol=1e-9)


@pytest.mark.parametrize("nan", ["value", "residual", "w"])
def test_what_is_not_a_number_is_not_stationary(make_problem: Any, nan: str) -> None:
    prepared = prepare_problem(make_problem())
    at = prepared.start()
    broken = dataclasses.replace(at, **{nan: np.nan * getattr(at, nan)})
    assert prepared.bounds.stationarity(broken) == math.inf


def test_one_kernel_and_many_outputs_end_with_a_tight_bound(make_problem: Any) -> None:
    """With one kernel the relaxation is the problem itself."""
    result = solve(make_problem(m=1), "vv-spg", tol=1e-4, stationarity_tol=1e-5)
    assert result.status.label == "converged"


def test_one_output_is_convex(make_problem: Any) -> None:
    result = solve(make_problem(n=1), "vv-spg", tol=1e-8)
    assert result.status.label == "converged"
    np.testing.assert_array_equal(result.parameters.output_kernel, [[1.0]])


def test_only_lam_over_tau_matters(make_problem: Any) -> None:
    a = solve(
        make_problem(lam=1e-2, constraint=SeparableKernels(tau=5.0, learn_input=False)),
        "vv-spg",
        tol=1e-7,
    )
    b = solve(
        make_problem(lam=2e-2, constraint=SeparableKernels(tau=10.0, learn_input=False)),
        "vv-spg",
        tol=1e-7,
    )
    np.testing.assert_allclose(1e-2 * a.value, 2e-2 * b.value, rtol=1e-6)


def test_lam_matters_beside_lam_over_tau_to_the_elastic_net(make_problem: Any) -> None:
    values = [
        scale
        * solve(
            make_problem(
                lam=scale * 1e-2, constraint=SeparableKernels(penalty, scale, True, False)
            ),
            "vv-spg",
            tol=1e-7,
        ).value
        for penalty in (SquaredLpNorm(1.5), ElasticNet(0.5))
        for scale in (5.0, 10.0)
    ]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-6)
    assert values[3] > 1.01 * values[2]


def test_memory_is_refused_before_the_work(make_problem: Any) -> None:
    with config_context(memory_limit=1000), pytest.raises(MemoryBudgetError, match="40 samples"):
        solve(make_problem(), "vv-spg")


def test_zero_targets() -> None:
    problem = Problem(
        PrecomputedFamily(np.eye(4)[None]),
        VectorLeastSquares(),
        SeparableKernels(),
        np.arange(4.0)[:, None],
        np.zeros((2, 4)),
    )
    result = solve(problem, "vv-spg")
    assert result.value == 0.0
    assert math.isfinite(result.gap)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"grams": np.eye(3)}, "grams has shape"),
        ({"grams": np.full((1, 3, 3), np.nan)}, "NaN"),
        ({"grams": [[[1.0, 2.0], [0.0, 1.0]]]}, "not symmetric"),
    ],
)
def test_bad_matrices_are_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        PrecomputedFamily(**given)


def test_positions_that_are_none_are_named() -> None:
    family = PrecomputedFamily(np.eye(3)[None])
    for rows in ([[0], [3]], [[-1]], [[0.5]]):
        with pytest.raises(ValueError, match="whole numbers from 0 to 2"):
            family.gram(np.array(rows), [1.0])


@pytest.mark.parametrize(
    ("constraint", "said"),
    [
        (SeparableKernels(tau=0.0), "tau must be"),
        (SeparableKernels(learn_input=False, weights=[1.0]), "weights must be"),
        (SeparableKernels(learn_output=False, output_kernel=np.eye(3)), "output_kernel must have"),
        (SeparableKernels(learn_output=False, output_kernel=-np.eye(5)), "semidefinite"),
        (SeparableKernels(tau=1e60), "tau must be"),
        (SeparableKernels("lp"), "regulariser must be an object"),
        (SeparableKernels(weights=np.ones(8)), "weights is what learn_input=True learns"),
        (SeparableKernels(output_kernel=np.eye(5)), "output_kernel is what learn_output=True"),
    ],
)
def test_bad_sets_are_named(make_problem: Any, constraint: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        solve(make_problem(constraint=constraint), "vv-spg")
