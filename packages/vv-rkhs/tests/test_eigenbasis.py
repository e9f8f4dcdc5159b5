"""Steps of an output kernel in the eigenvectors of K: the same numbers, and bounds that hold."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import Problem, solve
from kernelweave.vv_rkhs import (
    EigenFactors,
    FrobeniusOutputKernels,
    PrecomputedFamily,
    SeparableKernels,
    VectorLeastSquares,
)
from kernelweave.vv_rkhs.bounds import prepare_problem
from kernelweave.vv_rkhs.objective import Eigenbasis
from scipy.linalg import polar
from scipy.sparse import diags_array


def problem(lam: float = 1e-3, l: int = 12, n: int = 3, noise: float = 0.0) -> Problem:
    rng = np.random.default_rng(0)
    X, Y = np.sort(rng.random(l)), rng.standard_normal((l, n))
    K = np.exp(-3.0 * (X[:, None] - X) ** 2) + noise * np.eye(l)
    positions, fixed = np.arange(float(l))[:, None], SeparableKernels(learn_input=False)
    return Problem(PrecomputedFamily(K[None]), VectorLeastSquares(lam), fixed, positions, Y.T)


def output_kernel(n: int) -> np.ndarray:
    R = np.random.default_rng(1).standard_normal((n, n))
    return R @ R.T * (n / np.trace(R @ R.T))


@pytest.mark.parametrize("lam", [1e-1, 1e-3, 1e-6])
def test_a_turned_point_is_the_kronecker_system(lam: float) -> None:
    prepared = prepare_problem(problem(lam, noise=0.1), method="eigen")
    objective, L = prepared.objective, output_kernel(3)
    prepared.start()
    at = objective.evaluate(prepared.weights, L)
    assert at.eigenbasis is not None, "the second solve"
    K, y = objective.grams.combine(prepared.weights), objective.Y.reshape(-1)
    c = np.linalg.solve(np.kron(K, L) + objective.ridge * np.eye(y.size), y)
    C = c.reshape(objective.Y.shape)
    np.testing.assert_allclose(at.value, lam * float(y @ c), rtol=1e-9)
    np.testing.assert_allclose(at.B, C.T @ K @ C, rtol=1e-8, atol=1e-9)
    assert at.residual <= 1e-10 * objective.Y_norm
    back = objective.in_samples(at)
    np.testing.assert_allclose(back.C, C, rtol=1e-7, atol=1e-9)
    assert back.residual <= 1e-9 * objective.Y_norm
    assert objective.in_samples(back) is back
    np.testing.assert_allclose(objective.solution(at).C, back.C)


def test_errors_of_a_turn_are_bounds() -> None:
    """Of factors that are visibly wrong, in exact arithmetic where norms are small sums."""
    rng = np.random.default_rng(0)
    K = np.asarray(problem(l=20).family.grams)[0]
    good = EigenFactors.of(K, np.eye(2))
    T = good.T + 1e-3 * rng.standard_normal(good.T.shape)
    wrong = EigenFactors(T, good.sigma, good.S, good.rho, good.noise)
    Y = rng.standard_normal((20, 2))
    eigenbasis = Eigenbasis.of(wrong, K, Y)
    sigma = eigenbasis.gram.toarray()
    U, _ = polar(T)
    off = float(np.linalg.norm(U.T @ K @ U - sigma, 2))
    assert off <= eigenbasis.K_error <= 50 * off
    missed = np.linalg.norm(U.T @ Y - eigenbasis.Y)
    assert missed <= eigenbasis.Y_error <= 20 * missed
    exact = Eigenbasis.of(good, K, Y)
    assert max(exact.K_error, exact.Y_error) < 1e-10


def orthogonal(T: np.ndarray) -> np.ndarray:
    """The orthogonal matrix next to T, by Newton's iteration on fractions of 200 bits."""
    U = np.vectorize(Fraction, otypes=[object])(T)
    short = np.vectorize(lambda x: Fraction(round(x * 2**200), 2**200), otypes=[object])
    for _ in range(8):
        U = short((3 * U - U.dot(U.T.dot(U))) / 2)
    assert abs(float((U.T.dot(U) - np.eye(len(U), dtype=int)).max())) < 1e-50
    return U


@pytest.mark.parametrize("error", [0.0, 1e-6, 1e-3])
@pytest.mark.parametrize("lam", [1e-2, 1e-6, 1e-10])
def test_bounds_hold_in_exact_arithmetic(lam: float, error: float) -> None:
    """Whatever the eigenvectors: J at this L, and the worst L, by fractions."""
    prepared = prepare_problem(problem(lam), method="eigen")
    prepared.start()
    objective, rng = prepared.objective, np.random.default_rng(2)
    assert objective.factors is not None
    objective.factors.T[:] += error * rng.standard_normal(objective.factors.T.shape)
    at = objective.evaluate(prepared.weights, prepared.L)
    assert at.eigenbasis is not None
    exactly = np.vectorize(Fraction, otypes=[object])
    C = orthogonal(at.eigenbasis.factors.T).dot(exactly(at.C))
    K, Y, strength = exactly(objective.grams.combine(prepared.weights)), exactly(objective.Y), lam
    fit = K.dot(C)  # L = I
    primal = ((fit - Y) ** 2).sum() / 12 + Fraction(strength) * (C * fit).sum()
    assert Fraction(prepared.bounds.upper(at)) >= primal
    B = C.T.dot(fit)
    # the worst L has all its trace on one direction: more than 3 times any Rayleigh quotient
    v = exactly(np.linalg.eigh(B.astype(float))[1][:, -1])
    worst = 3 * v.dot(B).dot(v) / v.dot(v)
    cross, square = (C * Y).sum(), 12 * Fraction(lam) * (C * C).sum()
    assert Fraction(prepared.bounds.lower(at)) <= Fraction(lam) * cross**2 / (square + worst)


@pytest.mark.parametrize("wrong", ["K_error", "Y_error"])
def test_no_bound_holds_without_either_error(wrong: str) -> None:
    """K = diag(k), T = I: coordinates that are wrong by a thousandth, with and without a word."""
    lam, k, Y = 1e-2, np.linspace(0.1, 3.0, 12), np.random.default_rng(0).standard_normal((12, 3))
    fixed = SeparableKernels(learn_input=False, learn_output=False)
    positions, family = np.arange(12.0)[:, None], PrecomputedFamily(np.diag(k)[None])
    case = Problem(family, VectorLeastSquares(lam), fixed, positions, Y.T)
    truth = lam * float((Y**2 / (k + 12 * lam)[:, None]).sum())
    for sign in (-1e-3, 1e-3):
        prepared = prepare_problem(case, method="eigen")
        objective, factors = prepared.objective, EigenFactors.of(np.diag(k), np.eye(3))
        of_K, of_Y = (1.0 + sign, 1.0) if wrong == "K_error" else (1.0, 1.0 + sign)
        eigenbasis = Eigenbasis(factors, diags_array(of_K * k, format="csr"), of_Y * Y, 0.0, 0.0)
        size = 1e-3 * (k[-1] if wrong == "K_error" else float(np.linalg.norm(Y)))
        within = []
        for each in (eigenbasis, replace(eigenbasis, **{wrong: 1.01 * size})):
            objective._eigenbasis, objective.factors = each, factors
            at = objective.evaluate(prepared.weights, np.eye(3))
            within.append(prepared.bounds.lower(at) <= truth <= prepared.bounds.upper(at))
        assert within == [False, True]


@pytest.mark.parametrize("tol", [1e-4, 1e-8])
def test_both_ways_end_at_the_same_optimum(tol: float, monkeypatch: pytest.MonkeyPatch) -> None:
    case = problem(1e-2, l=30, n=6, noise=0.1)
    turned = solve(case, "vv-spg", tol=tol, method="eigen")
    monkeypatch.setattr("kernelweave.vv_rkhs.objective.Eigenbasis.of", lambda *_: None)
    plain = solve(case, "vv-spg", tol=tol, method="eigen")
    for result in (turned, plain):
        assert result.status.label == "converged"
        assert result.gap <= tol
    assert turned.lower_bound <= plain.upper_bound
    assert plain.lower_bound <= turned.upper_bound
    np.testing.assert_allclose(turned.value, plain.value, rtol=2 * tol)


def test_the_exact_method_ends_at_a_fixed_point_with_its_bounds() -> None:
    case: Any = problem(1e-2, l=30, n=6, noise=0.1)
    case = Problem(case.family, case.learner, FrobeniusOutputKernels(0.1), case.X, case.y)
    result = solve(case, "vv-dinuzzo", tol=1e-6)
    assert result.gap <= 1e-6
    L, K = result.parameters.output_kernel, np.asarray(case.family.grams)[0]
    c = np.linalg.solve(np.kron(K, L) + 0.3 * np.eye(180), case.y.T.reshape(-1))
    np.testing.assert_allclose(result.solution.C.reshape(-1), c, rtol=1e-6, atol=1e-8)
