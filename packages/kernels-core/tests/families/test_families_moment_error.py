"""The bound on the rounding error of D against D in extended precision."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from kernelweave.kernels_core.families import PolynomialFamily, TessellatedFamily

DIGITS = 60


def exact_box(mp, low, high, g):
    """Return ``Πⱼ ∫ z^gⱼ`` over [low, high]."""
    value = mp.mpf(1)
    for l, h, e in zip(low, high, g, strict=True):
        e = int(e)
        value *= (h - l) if e == 0 else (h ** (e + 1) - l ** (e + 1)) / (e + 1)
    return value


def exact_moment(family, X, w):
    """Return D(w) in extended precision, from the closed form of the blocks."""
    mp = mpmath.mp.clone()
    mp.dps = DIGITS
    n, q = family.n_features, family.n_P // 2
    a, b = ([mp.mpf(float(t)) for t in corner] for corner in (family.lower, family.upper))
    points = [[mp.mpf(float(t)) for t in x] for x in X]
    weights = [mp.mpf(float(t)) for t in w]
    delta, gamma = family.monomials[:, :n], family.monomials[:, n:]
    powers = [
        [mp.fprod(t ** int(e) for t, e in zip(x, d, strict=True)) for d in delta] for x in points
    ]
    sums = {tuple(s) for s in (gamma[:, None] + gamma[None]).reshape(-1, n)}
    D = mp.matrix(2 * q, 2 * q)
    for k, x in enumerate(points):
        for l, y in enumerate(points):
            top = [max(s, t) for s, t in zip(x, y, strict=True)]
            both, one, other, all_ = (
                {g: exact_box(mp, low, b, g) for g in sums} for low in (top, x, y, a)
            )
            for i in range(q):
                for j in range(q):
                    g = tuple(gamma[i] + gamma[j])
                    factor = weights[k] * weights[l] * powers[k][i] * powers[l][j]
                    D[i, j] += factor * both[g]
                    D[i, q + j] += factor * (one[g] - both[g])
                    D[q + i, j] += factor * (other[g] - both[g])
                    D[q + i, q + j] += factor * (all_[g] - one[g] - other[g] + both[g])
    return D


def error_of(D, computed):
    """Return the Frobenius norm of the difference (at least its spectral norm) as a float."""
    rows, columns = computed.shape
    total = sum(
        (D[i, j] - mpmath.mpf(float(computed[i, j]))) ** 2
        for i in range(rows)
        for j in range(columns)
    )
    return float(mpmath.sqrt(total))


def weights_of(kind, m, rng):
    if kind == "cancelling":
        w = rng.choice([-1.0, 1.0], size=m) * rng.random(m)
        return w - w.mean()
    if kind == "wide":
        return rng.normal(size=m) * 10.0 ** rng.integers(-8, 9, size=m)
    return rng.normal(size=m)


@pytest.mark.parametrize("kind", ["plain", "cancelling", "wide"])
@pytest.mark.parametrize(
    ("n", "degree", "z_degree", "lower", "upper"),
    [
        (1, 0, None, -0.1, 1.1),
        (2, 1, None, -0.1, 1.1),
        (3, 1, None, -0.5, 1.5),
        (3, 1, 0, -0.5, 1.5),
        (2, 2, None, -0.3, 1.2),
        (3, 1, None, -1e6, 1e6),
        (3, 1, None, -1e-9, 1.0 + 1e-9),
        (2, 2, 1, -1e3, 1e3),
    ],
)
def test_bound_holds(kind, n, degree, z_degree, lower, upper):
    rng = np.random.default_rng(0)
    m = 7
    family = TessellatedFamily(
        degree, lower=np.full(n, lower), upper=np.full(n, upper), z_degree=z_degree
    )
    X = rng.random((m, n)) if upper < 2 else rng.uniform(0.9 * lower, 0.9 * upper, size=(m, n))
    X[0] = upper * (1.0 - 1e-12)
    w = weights_of(kind, m, rng)
    prepared = family.prepare(X)
    D = prepared.moment(w)
    bound = prepared.moment_error(w)
    assert error_of(exact_moment(family, X, w), D) <= bound
    assert bound <= 1e-9 * np.linalg.norm(family.prepare(X).moment(np.abs(w)), 2) + 1e-300


def test_bound_holds_at_thirty_features():
    rng = np.random.default_rng(1)
    family = TessellatedFamily(1, lower=np.full(30, -0.5), upper=np.full(30, 1.5))
    X, w = rng.random((2, 30)), rng.normal(size=2)
    prepared = family.prepare(X)
    D = prepared.moment(w)
    error = error_of(exact_moment(family, X, w), D)
    assert 0.0 < error <= prepared.moment_error(w) <= 1e-10 * np.linalg.norm(D, 2)


def test_bound_sees_an_error_of_its_size():
    rng = np.random.default_rng(2)
    family = TessellatedFamily(1, lower=np.full(2, -0.5), upper=np.full(2, 1.5))
    X, w = rng.random((6, 2)), rng.normal(size=6)
    prepared = family.prepare(X)
    D = prepared.moment(w)
    D[0, 0] *= 1.0 + 1e-11
    assert error_of(exact_moment(family, X, w), D) > prepared.moment_error(w)


def test_bound_certifies_a_training_problem():
    """Weights like a classifier's, 600 samples: far below a relative gap of 1e-7."""
    rng = np.random.default_rng(5)
    X = rng.random((600, 8))
    y = np.sign((X[:, 0] - 0.5) * (X[:, 1] - 0.5) + 0.1 * (X[:, 2] - 0.5))
    w = 10.0 * y * rng.random(600)
    w -= y * (w.sum() / 600.0) * y
    for degree, z_degree in ((1, None), (1, 0)):
        family = TessellatedFamily(
            degree, lower=np.full(8, -0.1), upper=np.full(8, 1.1), z_degree=z_degree
        )
        prepared = family.prepare(X)
        largest = np.linalg.eigvalsh(prepared.moment(w))[-1]
        assert prepared.moment_error(w) <= 1e-9 * largest


def test_rows_add_up():
    rng = np.random.default_rng(6)
    family = TessellatedFamily(1, lower=[-0.1, -0.1], upper=[1.1, 1.1])
    X, W = rng.random((50, 2)), rng.normal(size=(3, 50))
    prepared = family.prepare(X)
    separate = sum(prepared.moment(w) for w in W)
    allowed = prepared.moment_error(W) + sum(prepared.moment_error(w) for w in W)
    assert np.linalg.norm(prepared.moment(W) - separate, 2) <= allowed


@pytest.mark.parametrize("kind", ["plain", "cancelling", "wide"])
def test_polynomial_bound(kind):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(9, 2)) * np.array([1e4, 1e-4])
    w = weights_of(kind, 9, rng)
    family = PolynomialFamily(3, 2)
    prepared = family.prepare(X)
    with mpmath.workdps(DIGITS):
        exact = [[mpmath.mpf(float(t)) for t in x] for x in X]
        s = []
        for powers in family.monomials:
            values = [
                mpmath.fprod(t ** int(e) for t, e in zip(x, powers, strict=True)) for x in exact
            ]
            s.append(mpmath.fdot([mpmath.mpf(float(t)) for t in w], values))
        D = mpmath.matrix(len(s), len(s))
        for i, left in enumerate(s):
            for j, right in enumerate(s):
                D[i, j] = left * right
        error = error_of(D, prepared.moment(w))
    assert error <= prepared.moment_error(w)
