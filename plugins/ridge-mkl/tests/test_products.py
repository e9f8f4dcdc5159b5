"""Products of kernels: bounds against many starts of another solver and against feasible points."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import mpmath
import numpy as np
import pytest
from kernelweave.kernels_core import Problem, Result, Status, solve
from kernelweave.qp_smo import Ridge, SquaredHingeSVC
from kernelweave.ridge_mkl import (
    GeneralizedMKLClassifier,
    LqBall,
    Orthant,
    RidgeMKLClassifier,
    RidgeMKLRegressor,
)
from kernelweave.ridge_mkl.oracle import Oracle
from scipy.optimize import minimize
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning

from .ridge_problems import hinge_dual, random_grams, ridge_dual, stack_problem

BALLS = (
    (2, LqBall(q=2.0, center=0.0)),
    (2, LqBall(q=2.0, center=1.0)),
    (2, LqBall(q=3.0, radius=2.0, center=0.1)),
    (3, LqBall(q=3.0, center=0.0)),
    (3, LqBall(q=4.0, radius=0.5, center=0.3)),
)
PENALTIES = ((2, Orthant(beta=0.05)), (2, Orthant(beta=1.0)))
# the trust region walks on the sphere
SPHERES = (
    (2, LqBall(q=2.0, center=0.0)),
    (2, LqBall(q=2.0, center=1.0)),
    (2, LqBall(q=2.0, radius=0.5, center=0.5)),
    (2, LqBall(q=2.0, radius=2.0, center=3.0)),
)
SERVED: dict[str, tuple[tuple[str, ...], tuple[tuple[int, Any], ...]]] = {
    "krr-pgd2": (("ridge",), BALLS),
    "krr-rpgd2": (("ridge",), PENALTIES),
    "krr-gmkl": (("ridge",), BALLS + PENALTIES),
    "svm-gmkl": (("hinge",), BALLS + PENALTIES),
    "krr-spg": (("ridge", "hinge"), BALLS + PENALTIES),
    "krr-trust-region": (("ridge", "hinge"), SPHERES),
    "krr-auto": (("ridge", "hinge"), BALLS + PENALTIES),
}
SEEDS = [pytest.param(seed, marks=() if seed < 7 else pytest.mark.slow) for seed in range(100)]


@dataclass(frozen=True)
class Product:
    """One of a hundred problems: F(μ) = max over u of its paper's dual, plus β‖μ‖²."""

    seed: int
    learner: str
    degree: int
    constraint: Any

    @property
    def lam(self) -> float:
        return (0.01, 0.03, 0.1, 0.3, 1.0)[self.seed % 5]

    @cached_property
    def data(self) -> tuple[np.ndarray, np.ndarray]:
        grams, y = random_grams(n=10 + self.seed % 7, p=2 + self.seed % 4, seed=self.seed)
        return grams, y if self.learner == "ridge" else np.where(y > np.median(y), 1.0, -1.0)

    @property
    def problem(self) -> Problem:
        ridge = self.learner == "ridge"
        learner = Ridge(C=1.0 / self.lam) if ridge else SquaredHingeSVC(C=0.5 / self.lam)
        return stack_problem(*self.data, learner, self.constraint, degree=self.degree)

    def value_and_gradient(self, mu: np.ndarray) -> tuple[float, np.ndarray]:
        """Return F and its gradient −d uᵀ(L^{∘(d−1)} ∘ Kₖ)u + 2βμ."""
        grams, y = self.data
        beta = self.constraint.curvature  # twice the set's, as F is twice the problem's objective
        L = np.tensordot(mu, grams, 1)
        dual = ridge_dual if self.learner == "ridge" else hinge_dual
        u = dual(L**self.degree, y, self.lam)
        slopes = [-self.degree * u @ (L ** (self.degree - 1) * K) @ u for K in grams]
        return float(y @ u + beta * mu @ mu), np.array(slopes) + 2.0 * beta * mu

    @cached_property
    def best_of_twelve(self) -> float:
        """Half the least F that SLSQP finds from twelve random starts, in the variable μ."""
        rng, p = np.random.RandomState(0), len(self.data[0])
        ball = {} if self.constraint.curvature else {"constraints": self._ball(p)}
        values = []
        for _ in range(12):
            found = minimize(
                self.value_and_gradient,
                self.constraint.random_start(p, rng),
                jac=True,
                method="SLSQP",
                bounds=[(0.0, None)] * p,
                options={"maxiter": 200, "ftol": 1e-11},
                **ball,
            )
            mu = np.asarray(self.constraint.project(np.maximum(found.x, 0.0)))
            values.append(self.value_and_gradient(mu)[0])
        return 0.5 * min(values)

    def _ball(self, p: int) -> dict[str, Any]:
        center, radius, q = self.constraint.centers(p), self.constraint.radius, self.constraint.q
        return {
            "type": "ineq",
            "fun": lambda mu: radius**q - np.sum(np.abs(mu - center) ** q),
            "jac": lambda mu: -q * np.sign(mu - center) * np.abs(mu - center) ** (q - 1.0),
        }


@cache
def product(seed: int, learner: str, degree: int, constraint: Any) -> Product:
    """Return a problem that the algorithms share, and with it what SLSQP found."""
    return Product(seed, learner, degree, constraint)


@pytest.mark.parametrize("algorithm", SERVED)
@pytest.mark.parametrize("seed", SEEDS)
def test_one_start_proves_the_best_of_twelve(algorithm: str, seed: int) -> None:
    learners, sets = SERVED[algorithm]
    case = product(seed, learners[seed % len(learners)], *sets[seed % len(sets)])
    result = solve(case.problem, algorithm, tol=1e-6, random_state=0)
    assert result.status is Status.CONVERGED
    assert result.gap <= 1e-6
    # the bounds hold their own weights, another solver's best and any other weights
    at_weights = 0.5 * case.value_and_gradient(np.asarray(result.parameters))[0]
    assert result.lower_bound <= at_weights * (1.0 + 1e-12)
    assert result.upper_bound == pytest.approx(at_weights, rel=1e-8)
    assert result.lower_bound <= case.best_of_twelve * (1.0 + 1e-12)
    assert result.upper_bound <= case.best_of_twelve * (1.0 + 1.1e-6)
    rng = np.random.RandomState(seed)
    for _ in range(20):
        mu = feasible(case.constraint, len(case.data[0]), rng)
        assert result.lower_bound <= 0.5 * case.value_and_gradient(mu)[0] * (1.0 + 1e-12)


def feasible(constraint: Any, p: int, rng: np.random.RandomState) -> np.ndarray:
    """Return a random point of the set, its inside, its faces and its corners."""
    mu: np.ndarray = constraint.random_start(p, rng)
    if constraint.curvature:
        return mu * (rng.random_sample(p) < 0.7) * rng.exponential()
    center = constraint.centers(p)
    t = (mu - center) * (rng.random_sample(p) < 0.7)
    return center + t * rng.random_sample() ** 0.2


@pytest.mark.parametrize("learner", [Ridge(C=8.0), Ridge(C=3.0, fit_intercept=True), "hinge"])
@pytest.mark.parametrize(("degree", "constraint"), [*BALLS, *PENALTIES, (2, LqBall(q=math.inf))])
def test_no_feasible_point_is_below_the_bound(learner: Any, degree: int, constraint: Any) -> None:
    """Bounds from everywhere, also far from the optimum, against values everywhere."""
    grams, y = random_grams(n=15, seed=degree)
    if learner == "hinge":
        learner, y = SquaredHingeSVC(C=4.0), np.where(y > 0.0, 1.0, -1.0)
    oracle = Oracle(stack_problem(grams, y, learner, constraint, degree=degree))
    rng = np.random.RandomState(0)
    points = [oracle.evaluate(feasible(constraint, len(grams), rng)) for _ in range(40)]
    lowest = min(at.upper for at in points)
    assert max(at.lower for at in points) <= lowest
    assert max(at.lower for at in points) > 0.5 * lowest


def test_slopes_are_rounded_up() -> None:
    grams, y = random_grams(n=12)
    oracle = Oracle(stack_problem(grams, y, Ridge(), LqBall(q=3.0), degree=3))
    u, mu = np.random.default_rng(0).standard_normal((2, 12)), np.array([0.3, 1.0, 0.1, 2.0])
    found = oracle.steepness(u, mu)
    with mpmath.workdps(40):
        for k in range(4):
            exact = mpmath.mpf(0)
            for row in u.tolist():
                for i in range(12):
                    for j in range(12):
                        L = mpmath.fdot(mu.tolist(), grams[:, i, j].tolist())
                        exact += row[i] * row[j] * L**2 * mpmath.mpf(float(grams[k, i, j]))
            assert 3 * exact <= mpmath.mpf(float(found[k])) <= 3 * exact * (1 + 1e-9)


def hinge_problem(degree: int, constraint: Any) -> Problem:
    grams, y = random_grams(n=16, seed=3)
    labels = np.where(y > 0.0, 1.0, -1.0)
    return stack_problem(grams, labels, SquaredHingeSVC(C=2.0), constraint, degree=degree)


@pytest.mark.parametrize(
    ("name", "constraint"),
    [
        ("svm-gmkl", LqBall(q=2.0, center=0.0)),
        ("svm-gmkl", Orthant(beta=0.3)),
        ("krr-spg", LqBall(q=2.0, center=0.0)),
        ("krr-trust-region", LqBall(q=2.0, center=0.0)),
        ("krr-trust-region", LqBall(q=2.0, center=1.0)),
    ],
)
def test_the_hinge_closes_too(name: str, constraint: Any) -> None:
    result = solve(hinge_problem(2, constraint), name, tol=1e-7, random_state=0)
    assert result.status is Status.CONVERGED
    assert result.gap <= 1e-7


def test_a_start_without_some_kernels_reaches_the_optimum() -> None:
    """Where a weight is 0 its slope in t^q is infinite, so no face of the ball holds a method."""
    grams, y = random_grams(seed=5)
    problem = stack_problem(grams, y, Ridge(C=5.0), LqBall(q=2.0, center=0.0), degree=2)
    for name in ("krr-pgd2", "krr-spg", "krr-trust-region"):
        result = solve(problem, name, tol=1e-7, mu_init=[1.0, 0.0, 0.0, 0.0])
        assert result.status is Status.CONVERGED


def unproved(degree: int, constraint: Any) -> Result:
    grams, y = random_grams(seed=2)
    problem = stack_problem(grams, y, Ridge(C=5.0), constraint, degree=degree)
    return solve(problem, "krr-gmkl", random_state=0)


@pytest.mark.filterwarnings("ignore:.*is not proved")
def test_more_factors_than_the_norm_allows_are_not_proved() -> None:
    ball = unproved(2, LqBall(q=1.0, center=0.0))
    assert ball.status is Status.STATIONARY
    larger = unproved(2, LqBall(q=2.0, center=0.0))
    assert 0.9 * larger.lower_bound <= ball.lower_bound <= larger.upper_bound < ball.upper_bound
    penalised = unproved(3, Orthant(beta=0.3))
    assert penalised.status is Status.STATIONARY
    assert penalised.lower_bound == 0.0


@pytest.mark.parametrize(
    ("settings", "status", "said"),
    [
        ({"degree": 2}, Status.CONVERGED, "tangent in powers of the weights"),
        ({"degree": 2, "beta": 0.1}, Status.CONVERGED, "tangent in powers of the weights"),
        ({"degree": 3, "q": 4.0}, Status.CONVERGED, "tangent in powers of the weights"),
        ({"degree": 2, "q": 1.0}, Status.STATIONARY, "nothing is proved of these weights"),
        ({"degree": 3, "beta": 0.1}, Status.STATIONARY, "nothing more is proved"),
    ],
)
def test_the_regressor_says_what_is_proved(
    settings: dict[str, Any], status: Status, said: str
) -> None:
    X, y = load_diabetes(return_X_y=True)
    resting = status is Status.STATIONARY
    told = pytest.warns(ConvergenceWarning, match="is not proved") if resting else nullcontext()
    with told:
        model = RidgeMKLRegressor(random_state=0, **settings).fit(X[:60], y[:60])
    assert model.result_.status is status
    assert said in model.certificate_.lower_proof
    assert (model.certificate_.gap <= 1e-6) == (status is Status.CONVERGED)


@pytest.mark.parametrize("make", [RidgeMKLClassifier, GeneralizedMKLClassifier])
def test_several_classes_share_one_proved_product(make: Any) -> None:
    X, y = load_iris(return_X_y=True)
    model = make(degree=2).fit(X[::3], y[::3])
    assert model.result_.status is Status.CONVERGED
    assert model.result_.gap <= model.tol
