"""Tessellated kernels over groups of columns against sums over the groups of the full product."""

from __future__ import annotations

import pickle
from itertools import combinations

import numpy as np
import pytest
from kernelweave.kernels_core.families import FamilyKernel, TessellatedFamily
from kernelweave.kernels_core.families._groups import evaluate, program
from kernelweave.kernels_core.families._sub_boxes import BoxedSamples, SubBoxes, SubBoxOperator
from numpy.testing import assert_allclose, assert_array_equal

LISTED = ((0,), (1, 2), (0, 1, 3), (0, 1, 2), (2,))
ORDERS = [1, 2, 3, LISTED]
N = 4


def make(degree, order):
    rng = np.random.default_rng(3)
    lower, upper = -0.1 - rng.random(N), 1.1 + rng.random(N)
    return TessellatedFamily(degree, lower=lower, upper=upper, order=order)


def points(m, seed=1):
    X = np.random.default_rng(seed).random((m, N))
    X[1, 0] = X[0, 0]
    return X


def groups_of(order, n=N):
    return list(combinations(range(n), order)) if isinstance(order, int) else list(order)


def monomials(family, x):
    exponents = family.monomials[:, : len(x)]
    return np.prod(x**exponents, axis=1)


def summed_block(family, x, y):
    """Return the mean over groups of the degree-0 kernel on their sub-box, over its volume."""
    mean, groups = 0.0, groups_of(family.order)
    for group in groups:
        S = list(group)
        lower, upper = family.lower[S], family.upper[S]
        part = TessellatedFamily(0, lower=lower, upper=upper).block(x[S], y[S])
        mean = mean + part / np.prod(upper - lower) / len(groups)
    return np.kron(mean, np.outer(monomials(family, x), monomials(family, y)))


def integrated_block(family, x, y):
    """Integrate ``N(z, x) N(z, y)ᵀ`` over every cell of every sub-box, where N is constant."""
    total, groups = np.zeros((family.n_P,) * 2), groups_of(family.order)
    for group in groups:
        cuts = [np.unique([family.lower[j], x[j], y[j], family.upper[j]]) for j in group]
        middles = np.meshgrid(*[(c[1:] + c[:-1]) / 2.0 for c in cuts], indexing="ij")
        sizes = np.meshgrid(
            *[np.diff(c) / (c[-1] - c[0]) for c in cuts], indexing="ij"
        )  # a measure of total mass one
        Z = np.stack([g.ravel() for g in middles], axis=1)
        mass = np.prod([s.ravel() for s in sizes], axis=0) / len(groups)

        def features(point, Z=Z, group=group):
            inside = (point[list(group)] <= Z).all(axis=1)
            own = monomials(family, point)
            return np.hstack([np.outer(inside, own), np.outer(~inside, own)])

        total += features(x).T @ (mass[:, None] * features(y))
    return total


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("degree", [0, 1, 2])
def test_blocks_are_means_over_groups(degree, order):
    family = make(degree, order)
    X, Y = points(4), points(3, seed=2)
    for x in X:
        for y in Y:
            found = family.block(x, y)
            assert_allclose(found, summed_block(family, x, y), atol=1e-13)
            assert_allclose(found, integrated_block(family, x, y), atol=1e-12)
            assert_array_equal(found.T, family.block(y, x))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("degree", [0, 1, 2])
def test_fast_paths_are_sums_of_blocks(degree, order):
    family, rng = make(degree, order), np.random.default_rng(0)
    X, Y = points(9), points(5, seed=2)
    P = rng.normal(size=(family.n_P,) * 2)
    P, v, U = P + P.T, rng.normal(size=family.n_P), rng.normal(size=(family.n_P, 2))
    G = np.array([[family.block(x, z) for z in X] for x in X])
    R = np.array([[family.block(x, y) for y in Y] for x in X])
    prepared = family.prepare(X)
    close(family.gram(X, P, Y), np.tensordot(R, P))
    close(family.gram(X, np.outer(v, v), Y), R @ v @ v)
    K = prepared.gram(P)
    close(K, np.tensordot(G, P))
    assert_array_equal(K, K.T)
    close(prepared.gram_rank_one(v), G @ v @ v)
    close(family.diag(X, P), np.diagonal(K))
    W = rng.normal(size=(2, 9))
    W[:, 4] = 0.0
    D = np.einsum("tk,tl,klij->ij", W, W, G)
    close(prepared.moment(W), D)
    assert np.linalg.norm(prepared.moment(W) - D, 2) <= prepared.moment_error(W) + 1e-13
    assert prepared.moment_error(W) <= 1e-11 * np.abs(W).sum() ** 2 * np.abs(G).max() * len(D)
    products = prepared.sample_products(W[0], U, np.array([0, 4, 7]))
    both = G + G.transpose(1, 0, 2, 3)
    close(products, np.einsum("l,klij,jr->kir", W[0], both[[0, 4, 7]], U))


def close(got, expected, tolerance=1e-12):
    assert got.shape == expected.shape
    assert np.abs(got - expected).max() <= tolerance * np.abs(expected).max()


def test_the_moment_error_is_an_honest_bound():
    """Against the same sums in extended precision, with weights that cancel."""
    family, rng = make(1, 2), np.random.default_rng(4)
    X = rng.random((40, N))
    w = np.where(np.arange(40) < 20, 1.0, -1.0) * rng.random(40)
    w[-1] -= w.sum()
    prepared = family.prepare(X)
    boxes = family._boxes
    sides = ((boxes.upper - X.astype(np.longdouble)) / (boxes.upper - boxes.lower)).T
    F = np.hstack([np.ones((40, 1)), X]).astype(np.longdouble)
    inner = np.zeros((5, 5), dtype=np.longdouble)
    pairs = list(combinations(range(N), 2))
    for k in range(40):
        for l in range(40):
            D = np.minimum(sides[:, k], sides[:, l])
            V = sum(D[i] * D[j] for i, j in pairs) / len(pairs)
            inner += w[k] * w[l] * V * np.outer(F[k], F[l])
    off = prepared.moment(w)[:5, :5] - inner.astype(np.float64)
    error = prepared.moment_error(w)
    assert np.linalg.norm(off, 2) <= error
    assert error <= 1e-12 * np.abs(w).sum() ** 2


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_all_columns_at_once_are_the_full_product_over_its_volume(degree):
    full = TessellatedFamily(degree, lower=[-0.2] * N, upper=[1.1] * N, z_degree=0)
    assert TessellatedFamily(degree, lower=[-0.2] * N, upper=[1.1] * N, z_degree=0, order=N) == full
    X, rng = points(12), np.random.default_rng(0)
    P = rng.normal(size=(full.n_P,) * 2)
    P = P @ P.T
    boxes = SubBoxes(full._tables, full.lower, full.upper, program(N, N))
    K = np.empty((12, 12))
    SubBoxOperator(boxes, BoxedSamples.of(boxes, X), P).fill(K)
    close(K * 1.3**N, full.gram(X, P))


@pytest.mark.parametrize("order", [1, 3, 7, 20, ((0, 1), (0, 1, 5), (3,), (5, 6, 7), (5, 6, 19))])
def test_programs_are_means_of_products(order):
    n = 20
    D = np.random.default_rng(0).random((n, 3))
    run = program(order, n)
    if order in (1, 3) or not isinstance(order, int):
        mean = np.mean([np.prod(D[list(S)], axis=0) for S in groups_of(order, n)], axis=0)
        assert_allclose(evaluate(run, D), mean, rtol=1e-13)
    assert_allclose(evaluate(run, np.ones((n, 1))), 1.0, rtol=1e-14)
    if isinstance(order, int):
        assert len(run.steps) == order * (n - order + 1)
        assert_allclose(evaluate(run, np.full((n, 1), 0.3)), 0.3**order, rtol=1e-13)


def test_unstored_entries_and_centred_ones():
    family, X = make(1, 2), points(30)
    rng = np.random.default_rng(0)
    A = rng.normal(size=(family.n_P,) * 2)
    prepared = family.prepare(X, dtype=np.float32)
    entries, K = prepared.unstored(A @ A.T), family.gram(X, A @ A.T)
    part = np.empty((2, 30))
    entries.block(np.array([3, 5]), slice(None), part)
    close(part, K[[3, 5]])
    close(entries.diagonal(), np.diagonal(K))
    W = rng.normal(size=(2, 30))
    W[:, ::3] = 0.0
    close(entries.product(W), W @ K)
    assert (entries.product_error(W) > 0).all()
    centred = np.empty((30, 30), dtype=np.float32)
    entries.fill_centred(centred)
    w = W[0] - W[0].mean()
    assert_allclose(w @ centred @ w, w @ K @ w, rtol=1e-4)
    assert np.abs(centred).max() < np.abs(K).max()
    close(prepared.gram(A @ A.T), K.astype(np.float32), 1e-6)


def test_they_are_values():
    family = make(1, 2)
    assert family != make(1, 3)
    assert pickle.loads(pickle.dumps(family)) == family
    again = eval(repr(make(1, LISTED)), {"TessellatedFamily": TessellatedFamily})
    assert again == make(1, LISTED)
    assert make(1, [[2, 1], (0,)]).order == ((1, 2), (0,))
    assert family.n_P == 2 * (N + 1)
    kernel = family.kernel(np.eye(family.n_P))
    assert isinstance(kernel, FamilyKernel)
    assert_allclose(kernel(points(5)), family.gram(points(5), np.eye(family.n_P)))
    assert TessellatedFamily.from_data(points(9), order=2).order == 2


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (0, "order must be an integer >= 1, got 0"),
        (1.5, "order must be an integer >= 1, got 1.5"),
        ("all", "order must be an integer >= 1, got 'all'"),
        (5, "order must be at most the 4 features that there are, got 5"),
        ([], "order must hold at least one group of columns, got none"),
        ([(0, 4)], r"groups of different columns from 0 to 3, got \(0, 4\)"),
        ([(1, 1)], r"groups of different columns from 0 to 3, got \(1, 1\)"),
        ([()], r"groups of different columns from 0 to 3, got \(\)"),
        ([0, 1], "groups of different columns from 0 to 3, got 0"),
        ([(0, 1), (1, 0)], "order must hold different groups of columns"),
    ],
)
def test_senseless_orders_are_named(order, message):
    with pytest.raises(ValueError, match=message):
        make(1, order)


def test_monomials_in_z_need_all_columns():
    with pytest.raises(ValueError, match="z_degree must be 0 where there is an order, got 1"):
        TessellatedFamily(1, lower=[0.0] * 3, upper=[1.0] * 3, z_degree=1, order=2)
