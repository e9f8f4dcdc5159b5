"""Every fast path against sums of blocks, and blocks against quadrature of the definition."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from kernelweave.kernels_core.families import CallableFamily, TessellatedFamily

SETTINGS = [
    (1, 0, None), (3, 0, None), (1, 1, None), (3, 1, None), (4, 1, None), (3, 1, 0),
    (2, 2, None), (3, 2, None), (2, 2, 0), (2, 2, 1), (1, 3, None), (2, 3, 1), (2, 3, 2),
]  # fmt: skip


def make(n, degree, z_degree, seed=0):
    rng = np.random.default_rng(seed)
    lower, upper = -0.1 - rng.random(n), 1.1 + rng.random(n)
    return TessellatedFamily(degree, lower=lower, upper=upper, z_degree=z_degree)


def points(n, m, seed=1):
    X = np.random.default_rng(seed).random((m, n))
    X[3] = X[4]
    X[5, 0] = X[6, 0]
    return X


def blocks(family, X, Y):
    if Y is not X:
        return np.array([[family.block(x, y) for y in Y] for x in X])
    G = np.empty((len(X), len(X), family.n_P, family.n_P))
    for k, x in enumerate(X):
        for l in range(k + 1):
            G[k, l] = family.block(x, X[l])
            G[l, k] = G[k, l].T
    return G


@pytest.fixture(scope="module", params=SETTINGS, ids=str)
def setting(request):
    """A family, its points, and the block of each pair of them: 2,485 sums of integrals."""
    family = make(*request.param)
    X = points(family.n_features, 70)
    return family, X, blocks(family, X, X)


def close(got, expected, tolerance=1e-12):
    assert got.shape == expected.shape
    assert np.abs(got - expected).max() <= tolerance * np.abs(expected).max()


def quadrature_block(family, x, y):
    """Integrate ``N(z, x) N(z, y)ᵀ`` by Gauss-Legendre on every cell of the definition."""
    n, nodes = family.n_features, np.polynomial.legendre.leggauss(4)
    axes = []
    for j in range(n):
        cuts = np.unique([family.lower[j], x[j], y[j], family.upper[j]])
        half, middle = np.diff(cuts) / 2.0, (cuts[1:] + cuts[:-1]) / 2.0
        z = (middle[:, None] + half[:, None] * nodes[0]).ravel()
        axes.append((z, (half[:, None] * nodes[1]).ravel()))
    Z = np.stack([g.ravel() for g in np.meshgrid(*[a[0] for a in axes], indexing="ij")], axis=1)
    weights = np.ones(1)
    for axis in axes:
        weights = np.outer(weights, axis[1]).ravel()

    def features(point):
        variables = np.hstack([np.broadcast_to(point, Z.shape), Z])
        monomials = np.prod(variables[:, None, :] ** family.monomials[None], axis=2)
        above = np.all(point <= Z, axis=1)[:, None]
        return np.hstack([monomials * above, monomials * ~above])

    return (features(x) * weights[:, None]).T @ features(y)


@pytest.mark.parametrize(("n", "degree", "z_degree"), SETTINGS)
def test_block_is_the_integral(n, degree, z_degree):
    family = make(n, degree, z_degree)
    rng = np.random.default_rng(7)
    for x, y in ((rng.random(n), rng.random(n)), (np.full(n, 0.5), rng.random(n))):
        close(family.block(x, y), quadrature_block(family, x, y))


def test_z_degree_zero_keeps_monomials_of_x():
    family = make(3, 2, 0)
    assert family.n_P == 2 * 10
    assert not family.monomials[:, 3:].any()


def test_grams(setting):
    family, X, square = setting
    Y = np.random.default_rng(2).random((9, family.n_features))
    rng, n_P = np.random.default_rng(3), family.n_P
    v, A = rng.normal(size=n_P), rng.normal(size=(n_P, n_P))
    prepared = family.prepare(X)
    assert (prepared.n_P, prepared.n_samples) == (n_P, 70)
    wide = blocks(family, X, Y)
    out = np.full((70, 70), np.nan)
    assert prepared.gram_rank_one(v, out) is out
    close(out, np.einsum("i,klij,j->kl", v, square, v))
    assert np.array_equal(out, out.T)
    close(family.gram(X, np.outer(v, v), Y), np.einsum("i,klij,j->kl", v, wide, v))
    for P in (A @ A.T, A[:, :1] @ A[:, :1].T, A + A.T, np.zeros_like(A)):
        K = prepared.gram(P)
        close(K, np.tensordot(square, P, 2))
        assert np.array_equal(K, K.T)
        close(family.gram(X, P, Y), np.tensordot(wide, P, 2))
        close(family.diag(X, P), np.diag(np.tensordot(square, P, 2)))


def test_moments(setting):
    family, X, square = setting
    m = len(X)
    rng = np.random.default_rng(4)
    W = rng.normal(size=(2, m))
    W[:, ::3] = 0.0
    prepared = family.prepare(X)
    expected = np.einsum("tk,tl,klij->tij", W, W, square)
    D = prepared.moment(W)
    close(D, expected.sum(axis=0))
    assert np.array_equal(D, D.T)
    close(family.prepare(X).moment(W[0]), expected[0])
    assert np.linalg.norm(D - expected.sum(axis=0), 2) <= prepared.moment_error(W)
    assert not prepared.moment(np.zeros(m)).any()
    assert prepared.moment_error(np.zeros(m)) == 0.0


@pytest.mark.parametrize(("n", "degree", "z_degree"), [(3, 1, None), (3, 1, 0), (2, 2, None)])
def test_moment_is_the_derivative_of_the_quadratic_form(n, degree, z_degree):
    family, X = make(n, degree, z_degree), points(n, 40)
    rng = np.random.default_rng(5)
    w, v = rng.normal(size=40), rng.normal(size=family.n_P)
    form = w @ family.gram(X, np.outer(v, v)) @ w
    assert v @ family.prepare(X).moment(w) @ v == pytest.approx(form, rel=1e-10)


@pytest.mark.parametrize(("n", "degree", "z_degree"), [(5, 1, None), (5, 1, 0), (3, 2, None)])
def test_float32_is_close_to_float64(n, degree, z_degree):
    family, X = make(n, degree, z_degree), points(n, 60)
    rng = np.random.default_rng(6)
    v, w = rng.normal(size=family.n_P), rng.normal(size=60)
    double, single = family.prepare(X), family.prepare(X, np.float32)
    K = single.gram_rank_one(v)
    assert K.dtype == single.dtype == np.float32
    close(K, double.gram_rank_one(v), 1e-5)
    P = np.outer(v, v) + np.eye(family.n_P)
    assert single.gram(P).dtype == np.float32
    close(single.gram(P), double.gram(P), 1e-5)
    assert np.array_equal(single.moment(w), double.moment(w))


def test_volumes_that_span_orders_of_magnitude():
    n, m = 30, 40
    family = TessellatedFamily(1, lower=np.full(n, -0.5), upper=np.full(n, 1.1))
    X = np.random.default_rng(8).random((m, n))
    v = np.random.default_rng(9).normal(size=family.n_P)
    span = np.prod(1.1 - X, axis=1)
    assert span.max() / span.min() > 1e3
    square = blocks(family, X, X)
    expected = np.einsum("i,klij,j->kl", v, square, v)
    close(family.prepare(X).gram_rank_one(v), expected, 1e-11)
    close(family.prepare(X, np.float32).gram_rank_one(v), expected, 1e-4)
    w = np.random.default_rng(10).normal(size=m)
    close(family.prepare(X).moment(w), np.einsum("k,l,klij->ij", w, w, square), 1e-11)


def test_float32_survives_a_volume_beyond_its_range():
    n, m = 300, 20
    family = TessellatedFamily(1, lower=np.full(n, -0.5), upper=np.full(n, 1.5))
    X = np.random.default_rng(11).random((m, n))
    prepared = family.prepare(X, np.float32)
    assert prepared.scale > float(np.finfo(np.float32).max)
    v = np.random.default_rng(12).normal(size=family.n_P) / np.sqrt(prepared.scale)
    close(prepared.gram_rank_one(v), family.prepare(X).gram_rank_one(v), 1e-4)


def test_points_on_the_corners():
    family = TessellatedFamily(1, lower=[0.0, 0.0], upper=[1.0, 1.0])
    X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.5, 1.0]])
    v = np.arange(1.0, 11.0)
    square = blocks(family, X, X)
    prepared = family.prepare(X)
    close(prepared.gram_rank_one(v), np.einsum("i,klij,j->kl", v, square, v))
    close(prepared.moment(np.ones(5)), square.sum(axis=(0, 1)))


@pytest.mark.parametrize(("n", "degree", "z_degree"), [(3, 1, None), (3, 1, 0), (2, 2, None)])
def test_threads_change_no_bit(monkeypatch, n, degree, z_degree):
    from kernelweave.kernels_core import config

    family = make(n, degree, z_degree)
    X = np.random.default_rng(13).random((333, n))
    w, v = np.random.default_rng(14).normal(size=333), np.ones(family.n_P)

    def everything():
        prepared = family.prepare(X)
        P = np.eye(family.n_P) + np.outer(v, v)
        return [
            prepared.gram_rank_one(v), prepared.gram(P), prepared.moment(w),
            family.gram(X, np.outer(v, v), X[:7]),
        ]  # fmt: skip

    monkeypatch.setattr(config, "_MIN_STEPS", 0)
    results = []
    for n_threads in (1, 2):
        monkeypatch.setattr(config, "effective_threads", lambda count=n_threads: count)
        results.append(everything())
    for one, two in zip(*results, strict=True):
        assert np.array_equal(one, two)


def test_row_blocks_cover_all_rows():
    from kernelweave.kernels_core.config import row_bounds

    for m in (1, 31, 32, 33, 500, 2000):
        for lower in (True, False):
            bounds = row_bounds(m, lower=lower)
            assert bounds[0][0] == 0
            assert bounds[-1][1] == m
            assert all(a[1] == b[0] for a, b in pairwise(bounds))


@pytest.mark.parametrize(("n", "degree", "z_degree"), [(3, 1, None), (3, 1, 0), (2, 2, None)])
def test_sample_products_are_the_derivative(n, degree, z_degree):
    family, X = make(n, degree, z_degree), points(n, 30)
    rng = np.random.default_rng(15)
    w, U = rng.normal(size=30), rng.normal(size=(family.n_P, 2))
    w[::4] = 0.0
    rows = np.array([1, 5, 29])
    square = blocks(family, X, X)
    both = square[rows] + square[rows].transpose(0, 1, 3, 2)
    expected = np.einsum("l,klij,jr->kir", w, both, U)
    close(family.prepare(X).sample_products(w, U, rows), expected)
    close(CallableFamily(family.block, family.n_P).prepare(X).sample_products(w, U, rows), expected)
    with pytest.raises(ValueError, match="weights other than 0"):
        family.prepare(X).sample_products(w, U, [0])
