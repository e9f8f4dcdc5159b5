"""Gram matrices that are not stored: entries, products and their error against stored ones."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from kernelweave.kernels_core.families import PolynomialFamily, TessellatedFamily
from kernelweave.kernels_core.grams import Operator

SETTINGS = [(1, 0, None), (1, 1, None), (3, 1, None), (4, 1, None), (3, 2, 0), (2, 2, None)]


def case(n, degree, z_degree, m=150):
    rng = np.random.default_rng(n + 10 * degree)
    lower, upper = -0.1 - rng.random(n), 1.1 + rng.random(n)
    family = TessellatedFamily(degree, lower=lower, upper=upper, z_degree=z_degree)
    return family, rng.random((m, n)), rng


def matrices(n_P, rng):
    A = rng.normal(size=(n_P, n_P))
    yield np.outer(A[0], A[0])
    yield A[:, :3] @ A[:, :3].T
    yield A @ A.T
    yield A + A.T
    yield np.zeros_like(A)


def close(got, expected, tolerance=1e-12):
    assert got.shape == expected.shape
    assert np.abs(got - expected).max() <= tolerance * max(np.abs(expected).max(), 1e-300)


@pytest.mark.parametrize(("n", "degree", "z_degree"), SETTINGS)
def test_entries_and_products_are_those_of_the_definition(n, degree, z_degree):
    family, X, rng = case(n, degree, z_degree)
    prepared = family.prepare(X)
    rows, columns = np.array([7, 149, 3]), np.arange(0, 150, 2)
    W = rng.normal(size=(2, 150))
    W[:, ::5] = 0.0
    blocks = np.array([[family.block(X[k], X[l]) for l in columns] for k in rows])
    for P in matrices(family.n_P, rng):
        K, entries = prepared.gram(P), prepared.unstored(P)
        assert isinstance(entries, Operator)
        for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 2e-5)):
            out = np.empty((3, len(columns)), dtype=dtype)
            entries.block(rows, columns, out)
            close(out.astype(float), np.tensordot(blocks, P, 2), tolerance)
        close(entries.product(W), W @ K, 1e-11)
        close(entries.diagonal(), K.diagonal().copy())
        assert not entries.product(np.zeros((1, 150))).any()


@pytest.mark.parametrize("n", [2, 30])
def test_bound_samples_hold_no_gram_and_compute_the_same(n):
    family, X, rng = case(n, 1, None)
    v, prepared = rng.normal(size=family.n_P), family.prepare(X)
    close(prepared.gram_rank_one(v), family.gram(X, np.outer(v, v), X))


@pytest.mark.parametrize("family", ["tessellated", "polynomial"])
def test_the_error_of_a_product_is_bounded(family):
    """Against the sum of the computed entries in 60 digits, with weights that cancel."""
    rng = np.random.default_rng(3)
    X = rng.random((400, 3))
    if family == "tessellated":
        chosen = TessellatedFamily(1, lower=np.full(3, -0.5), upper=np.full(3, 1.5))
    else:
        chosen = PolynomialFamily(3, n_features=3)
    A = rng.normal(size=(chosen.n_P, 2))
    entries = chosen.prepare(X).unstored(A @ A.T)
    K, w = np.empty((400, 400)), 1e6 * rng.normal(size=400)
    entries.block(np.arange(400), slice(None), K)
    w -= w.mean()
    got, error = entries.product(w[None])[0], entries.product_error(w[None])[0]
    with mpmath.workdps(60):
        exact = [mpmath.fdot(map(float, row), map(float, w)) for row in K[::40]]
        worst = max(abs(x - float(y)) for x, y in zip(exact, got[::40], strict=True))
    size = np.abs(K).max() * np.abs(w).sum()
    # of the feature products the entries themselves are another rounding of the same number
    assert worst <= error + (0.0 if family == "tessellated" else 1e-15 * size)
    assert error <= 1e-12 * size


def test_threads_change_no_bit(monkeypatch):
    from kernelweave.kernels_core import config

    family, X, rng = case(4, 1, None, m=333)
    W, P = rng.normal(size=(1, 333)), next(matrices(family.n_P, rng))
    monkeypatch.setattr(config, "_MIN_STEPS", 0)
    found = []
    for n_threads in (1, 2):
        monkeypatch.setattr(config, "effective_threads", lambda count=n_threads: count)
        entries = family.prepare(X).unstored(P)
        out = np.empty((100, 333))
        entries.block(np.arange(100), slice(None), out)
        found.append((out, entries.product(W), family.prepare(X).gram(P)))
    for one, two in zip(*found, strict=True):
        assert np.array_equal(one, two)


def test_polynomial_entries():
    family, rng = PolynomialFamily(2, n_features=3), np.random.default_rng(4)
    X, A = rng.normal(size=(60, 3)), rng.normal(size=(10, 10))
    prepared = family.prepare(X)
    K, entries = prepared.gram(A + A.T), prepared.unstored(A + A.T)
    out = np.empty((2, 60))
    entries.block(np.array([5, 50]), slice(None), out)
    close(out, K[[5, 50]])
    close(entries.product(np.eye(60)[:2]), K[:2])
    close(entries.diagonal(), K.diagonal().copy())


@pytest.mark.parametrize("kind", ["tessellated", "polynomial"])
def test_centred_grams_keep_the_form_on_balanced_vectors(kind):
    """And lose the constants: in float32 a balanced form is right to what the small part allows."""
    rng = np.random.default_rng(5)
    X = 0.5 + 0.1 * rng.random((200, 6))
    if kind == "tessellated":
        family = TessellatedFamily(1, lower=np.full(6, -1.0), upper=np.full(6, 2.0))
    else:
        family = PolynomialFamily(2, n_features=6)
    A = rng.normal(size=(family.n_P, 3))
    prepared = family.prepare(X)
    entries, K = prepared.unstored(A @ A.T), prepared.gram(A @ A.T)
    centred, single = np.empty((200, 200)), np.empty((200, 200), dtype=np.float32)
    entries.fill_centred(centred)
    entries.fill_centred(single)
    w = rng.normal(size=(4, 200))
    w -= w.mean(axis=1, keepdims=True)
    close(w @ centred @ w.T, w @ K @ w.T, 1e-9)
    assert np.linalg.eigvalsh(centred)[0] >= -1e-12 * np.abs(centred).max()
    assert np.abs(centred).max() < 0.2 * np.abs(K).max()
    assert np.array_equal(single, single.T)
    close(single.astype(float), centred, 1e-5)
