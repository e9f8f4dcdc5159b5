"""What methods and helpers do at their ends: nothing to explain, one kernel, wrong settings."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import (
    RBF,
    KernelDictionary,
    Linear,
    Result,
    algorithms,
    solve,
)
from kernelweave.kernels_core.rounding import entry_bound, sums_to_zero
from kernelweave.qp_smo import Ridge, SquaredHingeSVC
from kernelweave.ridge_mkl import (
    HadamardPower,
    LqBall,
    Orthant,
    PowerDictionary,
    margin_bound,
)
from kernelweave.ridge_mkl.families import power_of
from kernelweave.ridge_mkl.fixed_point import ball_update
from kernelweave.ridge_mkl.projected_newton import minimize_quadratic

from .ridge_problems import random_grams, ridge_objective, stack_problem

GRAMS, Y = random_grams()
BALL, SPHERE = LqBall(q=2.0, center=1.0), LqBall(q=2.0, center=1.0, radius=0.5)
CONVEX = ("krr-newton", "krr-spg", "krr-mm", "krr-gmkl", "krr-trust-region", "krr-auto")


def run(name: str, problem: Any, **settings: Any) -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solve(problem, name, **{"tol": 1e-9, "max_iter": 3000, **settings})


def ball_of(name: str) -> Any:
    return SPHERE if name == "krr-trust-region" else BALL


@pytest.mark.parametrize("name", CONVEX)
def test_nothing_to_explain(name: str) -> None:
    """y = 0: the optimum is 0 at any weights, and is proved."""
    problem = stack_problem(GRAMS, np.zeros(len(Y)), Ridge(C=2.0), ball_of(name))
    result = run(name, problem)
    assert result.lower_bound == result.upper_bound == 0.0
    assert np.isfinite(result.parameters).all()


@pytest.mark.parametrize("name", CONVEX)
def test_one_kernel_has_one_point(name: str) -> None:
    """The objective falls as the weight grows: the optimum is at the largest."""
    ball = ball_of(name)
    largest = 1.5 if ball is SPHERE else 2.0
    result = run(name, stack_problem(GRAMS[:1], Y, Ridge(C=2.0), ball))
    wanted = 0.5 * ridge_objective(GRAMS[:1], Y, [largest], lam=0.5)
    assert result.lower_bound <= wanted * (1 + 1e-12)
    assert wanted * (1 - 1e-12) <= result.upper_bound
    assert result.parameters == pytest.approx([largest], rel=1e-6)


def test_a_box_is_filled() -> None:
    """Over ‖μ − 1‖_∞ ≤ 1, μ ≥ 1, every weight is 2: a larger K only lowers the objective."""
    result = run("krr-mm", stack_problem(GRAMS, Y, Ridge(C=2.0), LqBall(q=math.inf, center=1.0)))
    wanted = 0.5 * ridge_objective(GRAMS, Y, 2.0 * np.ones(4), lam=0.5)
    np.testing.assert_array_equal(result.parameters, 2.0 * np.ones(4))
    assert result.lower_bound <= wanted * (1 + 1e-12)
    assert wanted * (1 - 1e-12) <= result.upper_bound
    assert result.gap < 1e-9


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("krr-gmkl", {"grow": 1.0, "step": 0.02}),
        ("krr-gmkl", {"grow": 1.5}),
        ("krr-newton", {"mu_init": [1.1, 1.0, 1.0, 1.9]}),
        ("krr-spg", {"mu_init": [0.0, 0.0, 0.0, 0.0]}),
        ("krr-mm", {"mu_init": [1.0, 1.0, 1.0, 1.0]}),
    ],
)
def test_every_start_and_step_lead_to_the_same_optimum(name: str, settings: Any) -> None:
    problem = stack_problem(GRAMS, Y, Ridge(C=2.0), BALL)
    one = run("krr-newton", problem)
    two = run(name, problem, tol=1e-4, **settings)
    assert one.gap <= 1e-9
    assert two.gap <= 1e-4
    assert two.lower_bound <= one.upper_bound
    assert one.lower_bound <= two.upper_bound


@pytest.mark.parametrize("name", ["krr-newton", "krr-spg", "krr-mm", "krr-gmkl"])
def test_a_price_on_the_weights(name: str) -> None:
    """Over the orthant with β‖μ‖²: no point of a grid around the optimum lies below its bound."""
    problem = stack_problem(GRAMS, Y, Ridge(C=2.0), Orthant(beta=0.3))
    result = run(name, problem, tol=1e-5)
    assert result.gap <= 1e-5
    rng = np.random.default_rng(0)
    for _ in range(50):
        mu = np.maximum(result.parameters + 0.1 * rng.standard_normal(4), 0.0)
        assert ridge_objective(GRAMS, Y, mu, lam=0.5, beta=0.3) >= result.lower_bound


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("krr-newton", {"step": 0.0}, "step must be None or a finite number > 0"),
        ("krr-newton", {"n_starts": 0}, "n_starts"),
        ("krr-newton", {"mu_init": [1.0]}, "mu_init must be 4"),
        ("krr-newton", {"mu_init": [1.0, -1.0, 1.0, 1.0]}, "mu_init must be 4"),
        ("krr-newton", {"mu_init": [1.0, math.nan, 1.0, 1.0]}, "mu_init must be 4"),
        ("krr-gmkl", {"grow": 0.5}, "grow must be None or a finite number >= 1"),
        ("krr-iia", {"step": 1.0}, "step must be None or a finite number > 0 and < 1"),
    ],
)
def test_settings_are_refused(name: str, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        run(name, stack_problem(GRAMS, Y, Ridge(C=2.0), BALL), **settings)


@pytest.mark.parametrize("labels", [[1.0, 0.0, -1.0], [1.0, 1.0, 1.0]])
def test_labels_of_the_hinge(labels: list[float]) -> None:
    with pytest.raises(ValueError, match="y must hold"):
        SquaredHingeSVC(C=1.0).solve(np.eye(3), np.array([labels]))


@pytest.mark.parametrize("weight", [[1.0, -1.0, 1.0], [1.0, 1.0], [1.0, math.inf, 1.0]])
def test_weights_of_the_hinge(weight: list[float]) -> None:
    with pytest.raises(ValueError, match="sample_weight must be 3 finite numbers > 0"):
        SquaredHingeSVC(C=1.0).solve(
            np.eye(3), np.array([[1.0, -1.0, 1.0]]), sample_weight=np.array(weight)
        )


def test_a_singular_matrix_and_a_tiny_ridge() -> None:
    """yᵀ(11ᵀ + λI)⁻¹y = ‖y‖²/λ for Σy = 0: rounding leaves no factor, the bounds still hold."""
    y, lam = np.array([1.0, -1.0, 2.0, -2.0]), 1e-18
    exact = 0.5 * float(y @ y) / lam
    found = Ridge(C=1.0 / lam).solve(np.ones((4, 4)), y[None])
    assert found.lower_bound <= exact <= found.upper_bound


@pytest.mark.parametrize("degree", [1.5, 0, "two"])
def test_degrees_of_families(degree: Any) -> None:
    with pytest.raises(ValueError, match="degree must be an integer"):
        PowerDictionary(KernelDictionary([Linear()]), degree=degree)
    with pytest.raises(ValueError, match="degree must be an integer"):
        HadamardPower(Linear(), degree=degree)(np.eye(2))


def test_powers_of_kernels() -> None:
    X = np.random.default_rng(0).standard_normal((5, 2))
    kernel = HadamardPower(RBF(0.5), degree=3)
    np.testing.assert_allclose(kernel(X), RBF(1.5)(X), rtol=1e-12)
    np.testing.assert_allclose(kernel.diag(X), np.ones(5), rtol=1e-15)
    assert kernel.is_psd
    family = PowerDictionary(KernelDictionary([RBF(0.5), Linear()]), degree=2)
    fitted, weights = family.fit_grams(X), np.array([0.5, 2.0])
    wanted = (0.5 * RBF(0.5)(X) + 2.0 * X @ X.T) ** 2
    np.testing.assert_allclose(fitted.gram(X, weights) ** 2, wanted, rtol=1e-12)
    np.testing.assert_allclose(power_of(fitted, 2).gram(X, weights), wanted, rtol=1e-12)
    np.testing.assert_allclose(family.kernel(weights)(X), wanted, rtol=1e-12)


def test_projection_onto_a_box_clips() -> None:
    z = np.array([3.0, 0.5, -1.0])
    np.testing.assert_array_equal(LqBall(q=math.inf, radius=2.0).project(z), [2.0, 0.5, 0.0])
    near = LqBall(q=1e4, radius=2.0).project(z)
    np.testing.assert_allclose(near, [2.0, 0.5, 0.0], atol=1e-3)


def test_updates_without_a_direction() -> None:
    t = np.array([0.6, 0.8])
    np.testing.assert_array_equal(ball_update(t, np.zeros(2), 2.0), t)
    np.testing.assert_array_equal(ball_update(t, np.ones(2), math.inf), [1.0, 1.0])
    np.testing.assert_array_equal(minimize_quadratic(np.zeros((2, 2)), np.zeros(2), 2.0, t), t)
    np.testing.assert_array_equal(BALL.maximizer(np.zeros(3)), BALL.start(3))


def test_nothing_is_bounded_by_nothing() -> None:
    size, ratio = entry_bound(np.zeros((3, 3)))
    assert not size.any()
    assert ratio == 1.0
    assert not sums_to_zero(np.array([1.0, 2.0])).any()
    assert not sums_to_zero(np.zeros(2)).any()
    assert Orthant(beta=0.3).worst(np.zeros(2)) == 0.0


@pytest.mark.parametrize("loss", [-0.1, 1.5, math.nan])
def test_a_share_is_a_share(loss: float) -> None:
    with pytest.raises(ValueError, match="empirical_margin_loss"):
        margin_bound(100, 2, margin=1.0, empirical_margin_loss=loss)


def test_every_algorithm_of_the_package_is_known_here() -> None:
    names = {name for name in algorithms() if name.startswith("krr-")}
    assert names >= {*CONVEX, "krr-iia"}
