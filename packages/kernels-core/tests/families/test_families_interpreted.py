"""The compiled passes on a handful of samples, so small that they also run interpreted.

With ``NUMBA_DISABLE_JIT=1`` the same lines run in Python, where their coverage can be measured. The
oracle is the definition: `block` is one quadrature-free integral per pair.
"""

from __future__ import annotations

import numpy as np
import pytest
from kernelweave.kernels_core.families import TessellatedFamily

M = 7
SETTINGS = [(1, 0, None), (1, 1, None), (2, 1, None), (2, 1, 0), (2, 2, None), (1, 2, 0)]


@pytest.fixture(params=SETTINGS, ids=str)
def parts(request):
    n, degree, z_degree = request.param
    rng = np.random.default_rng(0)
    family = TessellatedFamily(degree, lower=[-0.2] * n, upper=[1.3] * n, z_degree=z_degree)
    X = rng.random((M, n))
    G = np.array([[family.block(x, y) for y in X] for x in X])
    return family, X, G, rng


def test_gram_matrices(parts):
    family, X, G, rng = parts
    A = rng.standard_normal((family.n_P, family.n_P))
    v, prepared = A[0], family.prepare(X)
    np.testing.assert_allclose(prepared.gram_rank_one(v), G @ v @ v, rtol=1e-10, atol=1e-10)
    for P in (A @ A.T, A[:, :2] @ A[:, :2].T, np.eye(family.n_P)):
        wanted = np.tensordot(G, P, 2)
        np.testing.assert_allclose(prepared.gram(P), wanted, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(family.gram(X, P, X[:3]), wanted[:, :3], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(family.gram(X, np.outer(v, v), X[:3]), (G @ v @ v)[:, :3], rtol=1e-9)


def test_moments(parts):
    family, X, G, rng = parts
    prepared, W = family.prepare(X), rng.standard_normal((2, M))
    W[:, 2] = 0.0
    D = np.einsum("tk,tl,klij->ij", W, W, G)
    D = 0.5 * (D + D.T)
    np.testing.assert_allclose(prepared.moment(W), D, rtol=1e-9, atol=1e-9)


def test_products_of_samples(parts):
    family, X, G, rng = parts
    w, U = rng.standard_normal(M), rng.standard_normal((family.n_P, 2))
    rows = np.array([0, 4, 5])
    wanted = np.einsum("l,klij->kij", w, G + G.transpose(0, 1, 3, 2))[rows] @ U
    found = family.prepare(X).sample_products(w, U, rows)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
