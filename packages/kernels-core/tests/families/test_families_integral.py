"""A family from a third party's N(z, x): against closed forms, and what its rule resolves."""

from __future__ import annotations

import numpy as np
import pytest
from kernelweave.kernels_core import config_context
from kernelweave.kernels_core.exceptions import MemoryBudgetError
from kernelweave.kernels_core.families import (
    CallableFamily,
    Family,
    IntegralFamily,
    PreparedFamily,
    TessellatedFamily,
)
from scipy.integrate import quad_vec


def waves(Z: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.column_stack([np.cos(Z[:, 0] * x[0]), Z[:, 0] * x[1], np.exp(-Z[:, 0] * x[1])])


def steps(Z: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Degree 0 of the tessellated kernels: the signs of z − x, one column."""
    above = (Z[:, 0] >= x[0]).astype(float)
    return np.column_stack([above, 1.0 - above])


SMOOTH = IntegralFamily(waves, 3, lower=[0.0], upper=[2.0], n_nodes=24)
RNG = np.random.default_rng(0)
X, Y = RNG.random((9, 2)), RNG.random((4, 2))
ROOT = RNG.normal(size=(3, 3))
P, V, W = ROOT @ ROOT.T, RNG.normal(size=3), RNG.normal(size=(2, 9))


def block(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """G(x, y) by adaptive quadrature."""

    def pair(z: float) -> np.ndarray:
        return np.outer(waves(np.array([[z]]), x), waves(np.array([[z]]), y))

    return quad_vec(pair, 0.0, 2.0, epsabs=1e-13, epsrel=1e-13)[0]


def test_against_adaptive_quadrature():
    other = CallableFamily(block, 3)
    got, want = SMOOTH.prepare(X), other.prepare(X)
    chosen = [0, 5]
    for ours, theirs in (
        (got.gram(P), want.gram(P)),
        (got.gram_rank_one(V), want.gram_rank_one(V)),
        (SMOOTH.gram(X, P), want.gram(P)),
        (SMOOTH.gram(X, P, Y), other.gram(X, P, Y)),
        (SMOOTH.gram(X, np.outer(V, V), Y), other.gram(X, np.outer(V, V), Y)),
        (SMOOTH.diag(X, P), other.diag(X, P)),
        (SMOOTH.block(X[0], X[1]), block(X[0], X[1])),
        (got.moment(W), want.moment(W)),
        (SMOOTH.prepare(X).moment(W[0]), other.prepare(X).moment(W[0])),
        (
            got.sample_products(W[0], ROOT[:, :2], chosen),
            want.sample_products(W[0], ROOT[:, :2], chosen),
        ),
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11 * np.abs(theirs).max())
    assert isinstance(SMOOTH, Family)
    assert isinstance(got, PreparedFamily)
    assert (got.n_P, got.n_samples, got.scale, SMOOTH.trace) == (3, 9, 2.0, 3.0)


def changed(prepared) -> float:
    """Return what D(W) changes at most if each pair changes as it does from fewer nodes."""
    return float(np.sum(np.abs(W) * (np.abs(W) @ prepared.change)))


@pytest.mark.parametrize("n_nodes", [3, 6, 12])
def test_the_change_from_fewer_nodes_covers_what_few_nodes_miss(n_nodes: int) -> None:
    few = IntegralFamily(waves, 3, lower=[0.0], upper=[2.0], n_nodes=n_nodes).prepare(5.0 * X)
    many = IntegralFamily(waves, 3, lower=[0.0], upper=[2.0], n_nodes=60).prepare(5.0 * X)
    missed = np.linalg.norm(few.moment(W) - many.moment(W), 2)
    assert missed <= changed(few)
    assert changed(few) > changed(many)
    # what is proved of the sum has nothing but rounding to charge
    assert few.moment_error(W) < 1e-12 * np.linalg.norm(few.moment(W))


def test_a_jump_comes_out_as_the_tessellated_kernel():
    known = TessellatedFamily(0, lower=[-0.5], upper=[1.5])
    family = IntegralFamily(steps, 2, lower=[-0.5], upper=[1.5], n_nodes=400)
    x = X[:, :1]
    exact = known.prepare(x).gram(np.eye(known.n_P))
    np.testing.assert_allclose(family.gram(x, np.eye(2)), exact, atol=0.02)
    missed = np.linalg.norm(family.prepare(x).moment(W) - known.prepare(x).moment(W), 2)
    assert 0.0 < missed <= changed(family.prepare(x))


def test_a_bound_of_ones_own_replaces_the_estimate():
    known = IntegralFamily(waves, 3, [0.0], [2.0], n_nodes=3, integral_error=0.0).prepare(X)
    assert known.moment_error(W) < 1e-11


def test_an_error_of_the_integrals_is_not_cancelled_with_them():
    """Weights that cancel in D leave the errors of its terms, which may all have one sign."""

    def near(Z: np.ndarray, x: np.ndarray) -> np.ndarray:
        return np.exp(-((Z - x) ** 2) / 0.02)

    x = np.array([[0.4], [0.42], [0.46]])
    family = IntegralFamily(near, 1, [0.0], [1.0], n_nodes=7)
    many = IntegralFamily(near, 1, [0.0], [1.0], n_nodes=200).prepare(x)
    few, exact = family.prepare(x).gram(np.eye(1)), many.gram(np.eye(1))
    error = float((np.abs(few - exact) / exact).max())
    stated = IntegralFamily(near, 1, [0.0], [1.0], n_nodes=7, integral_error=error).prepare(x)
    for w in ([1.0, -1.0, 0.0], [1.0, -2.0, 1.0], [0.5, 0.5, -1.0], [1.0, 1.0, 1.0]):
        missed = np.linalg.norm(stated.moment(w) - many.moment(w), 2)
        assert missed <= stated.moment_error(w)
        values, errors = stated.integral_values(np.eye(1), w)
        np.testing.assert_allclose(values[0], few @ w, atol=1e-13)
        assert (np.abs(values[0] - exact @ w) <= errors[0]).all()
    assert error > 1e-3


def test_what_is_wrong_is_named():
    with pytest.raises(ValueError, match=r"must return a finite array of shape \(24, 2\)"):
        IntegralFamily(waves, 2, [0.0], [2.0], n_nodes=24).gram(X, np.eye(2))
    with pytest.raises(ValueError, match=r"lower < upper, got \[1.0\] and \[1.0\]"):
        IntegralFamily(waves, 3, [1.0], [1.0])
    with pytest.raises(ValueError, match=r"integral_error must be .* >= 0 and < 1, got 1.5"):
        IntegralFamily(waves, 3, [0.0], [1.0], integral_error=1.5)
    with pytest.raises(ValueError, match="n_nodes must be None or an integer >= 1"):
        IntegralFamily(waves, 3, [0.0], [1.0], n_nodes=0)
    with (
        config_context(memory_limit=10**6),
        pytest.raises(MemoryBudgetError, match="use fewer nodes in each dimension"),
    ):
        IntegralFamily(waves, 3, [0.0] * 3, [1.0] * 3, n_nodes=40).prepare(X)
