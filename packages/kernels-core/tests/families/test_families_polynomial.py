"""The generalized polynomial family against sums of outer products."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from kernelweave.kernels_core.families import PolynomialFamily


def features(X, degree):
    n = X.shape[1]
    columns = [
        np.prod(X[:, list(chosen)], axis=1)
        for k in range(degree + 1)
        for chosen in combinations_with_replacement(range(n), k)
    ]
    return np.stack(columns, axis=1)


@pytest.mark.parametrize(("degree", "n"), [(0, 2), (1, 3), (2, 3), (4, 2)])
def test_everything_against_features(degree, n):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(90, n)), rng.normal(size=(7, n))
    F, H = features(X, degree), features(Y, degree)
    family = PolynomialFamily(degree, n)
    assert family.n_P == F.shape[1] == family.trace
    A = rng.normal(size=(family.n_P, family.n_P))
    P, v, W = A @ A.T, rng.normal(size=family.n_P), rng.normal(size=(2, 90))
    prepared = family.prepare(X)
    np.testing.assert_allclose(prepared.gram(P), F @ P @ F.T, rtol=1e-10, atol=1e-10)
    assert np.array_equal(prepared.gram(P), prepared.gram(P).T)
    np.testing.assert_allclose(family.gram(X, P, Y), F @ P @ H.T, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(prepared.gram_rank_one(v), np.outer(F @ v, F @ v), rtol=1e-12)
    np.testing.assert_allclose(
        family.gram(X, np.outer(v, v), Y), np.outer(F @ v, H @ v), rtol=1e-12
    )
    np.testing.assert_allclose(family.block(X[0], Y[0]), np.outer(F[0], H[0]), rtol=1e-14)
    np.testing.assert_allclose(family.diag(X, P), np.diag(F @ P @ F.T), rtol=1e-10)
    S = W @ F
    np.testing.assert_allclose(prepared.moment(W), S.T @ S, rtol=1e-10, atol=1e-10)
    assert prepared.scale == 1.0


def test_size_may_come_from_the_samples():
    family = PolynomialFamily(2)
    assert family.prepare(np.ones((3, 4))).n_P == 15
    with pytest.raises(ValueError, match="needs n_features"):
        _ = family.n_P
    assert PolynomialFamily(2, 4) == PolynomialFamily(degree=2, n_features=4)
    assert repr(PolynomialFamily(2, 4)) == "PolynomialFamily(degree=2, n_features=4)"


def test_float32():
    X = np.random.default_rng(1).normal(size=(20, 3))
    family = PolynomialFamily(2, 3)
    single, double = family.prepare(X, np.float32), family.prepare(X)
    v = np.ones(10)
    assert single.gram_rank_one(v).dtype == np.float32
    np.testing.assert_allclose(single.gram(np.eye(10)), double.gram(np.eye(10)), rtol=1e-4)


@pytest.mark.parametrize(("degree", "n"), [(-1, 2), (2, 0), (True, 2)])
def test_refuses(degree, n):
    with pytest.raises(ValueError, match=r"must be (None or )?an integer >="):
        PolynomialFamily(degree, n)
