"""Regularisers: update, conjugate and proximal map against numeric minimisers."""

from __future__ import annotations

import math
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from kernelweave.kernels_core.psd_cone import lq_norm, project_lq_ball
from kernelweave.vv_rkhs import ElasticNet, SquaredLpNorm
from kernelweave.vv_rkhs.penalties import as_penalty
from scipy.optimize import minimize_scalar

RNG = np.random.default_rng(0)
ALL = [
    *(SquaredLpNorm(p) for p in (1.0, 1.2, 1.5, 1.7, 2.0)),
    *(ElasticNet(mu) for mu in (0.1, 0.5, 0.9, 1.0)),
    *(SquaredLpNorm(p, (0, 0, 1, 2, 2, 2)) for p in (1.0, 1.4, 2.0)),
]


def norm(x: Any, q: float) -> Any:
    exact = q in (1.0, 2.0, math.inf)
    return cp.norm(x, q) if exact else cp.pnorm(x, q, approx=False)


def ids(penalty: Any) -> str:
    return repr(penalty)


@pytest.mark.parametrize("q", [1.0, 1.3, 1.857, 2.0, 3.0, 5.67, math.inf])
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_ball_projection_against_cvxpy(conic_optimum: Any, q: float, scale: float) -> None:
    rng = np.random.default_rng(0)
    v, d = scale * rng.standard_normal(7), rng.random(7) + 0.2
    x = cp.Variable(7, nonneg=True)
    objective = cp.Minimize(cp.sum(cp.multiply(d, cp.square(x - v))))
    least, digits = conic_optimum(cp.Problem(objective, [norm(x, q) <= 1]), 1e-9)
    found = project_lq_ball(v, q, d)
    assert lq_norm(found, q) <= 1.0 + 1e-12
    # no point z of the ball has <d (v - x), z - x> > 0: the largest <., z> is the dual norm
    slope = d * (v - found)
    dual = {1.0: math.inf, math.inf: 1.0}.get(q) or q / (q - 1.0)
    assert (
        np.linalg.norm(np.maximum(slope, 0.0), dual) <= slope @ found + 1e-9 * np.abs(slope).max()
    )
    assert (d * (found - v) ** 2).sum() <= least * (1 + max(1e-7, digits)) + 1e-9
    # a value within `known` of the least one lies within sqrt(known / min d) of the minimiser
    known = max(1e-9, digits) * max(1.0, least)
    np.testing.assert_allclose(found, x.value, atol=2e-5 + math.sqrt(known / d.min()))


@pytest.mark.parametrize("q", [1.0, 1.5, 2.0, 7.0])
def test_projection_of_a_large_vector_is_stationary(q: float) -> None:
    v = RNG.standard_normal(2000) * np.geomspace(1e-6, 1e3, 2000)
    x = project_lq_ball(v, q)
    assert abs(lq_norm(x, q) - 1.0) <= 1e-10
    used = x > 1e-9
    theta = ((v[used] - x[used]) / x[used] ** (q - 1.0))[-1]
    np.testing.assert_allclose(x[used] + theta * x[used] ** (q - 1.0), v[used], rtol=1e-8)


@pytest.mark.parametrize("penalty", ALL, ids=ids)
def test_update_minimises_the_variational_form(penalty: Any) -> None:
    alpha = RNG.random(6) + 0.05
    best = penalty.update(alpha)

    def value(eta: np.ndarray) -> float:
        return float((alpha**2 / eta).sum()) + penalty.value(eta)

    assert math.isfinite(value(best))
    for _ in range(200):
        other = penalty.update(alpha * np.exp(0.3 * RNG.standard_normal(6)))
        assert value(best) <= value(other) * (1 + 1e-12)


@pytest.mark.parametrize("penalty", ALL, ids=ids)
def test_conjugate_is_the_supremum(penalty: Any) -> None:
    w = 3.0 * RNG.random(6)
    top = penalty.conjugate(w)
    reached = -math.inf
    for eta in [penalty.prox(t * w, t) for t in np.geomspace(1e-3, 1e6, 200)]:
        reached = max(reached, float(eta @ w) - penalty.value(eta))
    assert reached <= top * (1 + 1e-12)
    np.testing.assert_allclose(reached, top, rtol=1e-4)


@pytest.mark.parametrize("penalty", ALL, ids=ids)
def test_start_and_prox_are_in_the_domain(penalty: Any) -> None:
    assert math.isfinite(penalty.value(penalty.start(6)))
    assert (penalty.start(6) > 0).all()
    for scale in (1e-3, 1.0, 1e3):
        assert math.isfinite(penalty.value(penalty.prox(scale * RNG.standard_normal(6), 0.7)))


@pytest.mark.parametrize("mu", [0.2, 0.8])
@pytest.mark.parametrize("step", [1e-3, 1.0, 1e3])
def test_elastic_net_prox(mu: float, step: float) -> None:
    penalty = ElasticNet(mu)
    v = 3.0 * RNG.standard_normal(8)
    for x, each in zip(penalty.prox(v, step), v, strict=True):
        best = minimize_scalar(
            lambda h, at=each: 0.5 * (h - at) ** 2 + step * penalty.value(np.array([h])),
            bounds=(0.0, 1.0 / mu - 1e-12),
            method="bounded",
            options={"xatol": 1e-13},
        )
        assert 0.5 * (x - each) ** 2 + step * penalty.value(np.array([x])) <= best.fun + 1e-12


def test_elastic_net_variational_form() -> None:
    alpha, mu = np.array([0.3, 0.0, 2.0]), 0.4
    eta = ElasticNet(mu).update(alpha)
    norm = (1 - mu) * alpha.sum() + mu * (alpha**2).sum()
    np.testing.assert_allclose((alpha**2 / eta).sum() + ElasticNet(mu).value(eta), norm, rtol=1e-6)


def test_squared_norms_are_reached() -> None:
    alpha = RNG.random(6) + 0.1
    for p in (1.0, 1.3, 2.0):
        eta = SquaredLpNorm(p).update(alpha)
        expected = (alpha**p).sum() ** (2 / p)
        np.testing.assert_allclose((alpha**2 / eta).sum(), expected, rtol=1e-9)
    group = SquaredLpNorm(1.0, (0, 0, 1, 1, 1, 2))
    norms = np.sqrt(np.bincount(group.groups, weights=alpha**2))
    eta = group.update(alpha)
    np.testing.assert_allclose((alpha**2 / eta).sum(), norms.sum() ** 2, rtol=1e-9)


def test_zero_weights_can_come_back() -> None:
    eta = SquaredLpNorm(1.0).update(np.array([0.0, 1.0]))
    assert 0.0 < eta[0] < 1e-6
    np.testing.assert_allclose(SquaredLpNorm(1.0).update(np.zeros(2)), [0.5, 0.5])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: SquaredLpNorm(0.5), "p must be"),
        (lambda: ElasticNet(0.0), "mu must be"),
        (lambda: SquaredLpNorm(1.0, (0, 2)), "every number"),
        (lambda: SquaredLpNorm(1.0, (0, 1)).start(3), "names 2 kernels"),
        (lambda: as_penalty("lasso"), "penalty must be one of"),
        (lambda: as_penalty(3), "penalty must be one of"),
    ],
)
def test_bad_input_is_named(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()
