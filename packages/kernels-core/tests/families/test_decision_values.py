"""Decision values with their error bounds, against 60-digit arithmetic and stored Grams."""

from __future__ import annotations

from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
from kernelweave.kernels_core import TessellatedFamily

mpmath.mp.dps = 60


def summing_to_zero(rng: np.random.Generator, m: int, n_tasks: int = 1) -> Any:
    """Return weights on a grid of powers of two, some of them 0, whose sums are exactly 0."""
    W = np.round(rng.standard_normal((n_tasks, m)) * 2**20) / 2**20
    W[rng.random((n_tasks, m)) < 0.3] = 0.0
    W[:, 0] = 0.0
    W[:, 0] = -W.sum(axis=1)
    return W


def exact_kernel(family: TessellatedFamily, v: Any, x: Any, y: Any) -> Any:
    """Return vᵀ G(x, y) v in 60 digits, by the blocks g, t and h of the definition."""
    q, n = len(family.monomials), family.n_features
    a, b = family.lower.tolist(), family.upper.tolist()

    def power(point: Any, exponents: Any) -> Any:
        return mpmath.fprod(
            mpmath.mpf(float(p)) ** int(e) for p, e in zip(point, exponents, strict=True)
        )

    def integral(low: Any, high: Any, g: Any) -> Any:
        return mpmath.fprod(
            (mpmath.mpf(float(u)) ** int(e + 1) - mpmath.mpf(float(l)) ** int(e + 1)) / int(e + 1)
            for l, u, e in zip(low, high, g, strict=True)
        )

    inner = np.maximum(x, y)

    @cache
    def integrals(*g: int) -> tuple[Any, Any, Any, Any]:
        return integral(a, b, g), integral(inner, b, g), integral(x, b, g), integral(y, b, g)

    delta, gamma = family.monomials[:, :n].tolist(), family.monomials[:, n:]
    of_first, of_second = ([power(point, each) for each in delta] for point in (x, y))
    v = [mpmath.mpf(float(each)) for each in v]
    total = mpmath.mpf(0)
    for i in range(q):
        for j in range(q):
            whole, both, of_x, of_y = integrals(*(gamma[i] + gamma[j]).tolist())
            first, second, third, fourth = v[i], v[q + i], v[j], v[q + j]
            total += (
                of_first[i]
                * of_second[j]
                * (
                    first * third * both
                    + first * fourth * (of_x - both)
                    + second * third * (of_y - both)
                    + second * fourth * (whole - of_x - of_y + both)
                )
            )
    return total


@pytest.mark.parametrize(("degree", "z_degree"), [(0, None), (1, None), (1, 0), (2, 0)])
def test_bounds_hold_in_extended_precision(degree: int, z_degree: int | None) -> None:
    rng = np.random.default_rng(degree)
    n, m = 3, 9
    X = rng.random((m, n))
    family = TessellatedFamily(
        degree, lower=np.full(n, -0.5), upper=np.full(n, 1.5), z_degree=z_degree
    )
    v = rng.standard_normal(family.n_P)
    W = summing_to_zero(rng, m)
    found = family.prepare(X).decision_values(v[None, :], W)
    exact = [
        mpmath.fsum(
            mpmath.mpf(float(w)) * exact_kernel(family, v, x, y)
            for w, y in zip(W[0], X, strict=True)
        )
        for x in X
    ]
    # a constant is free
    off = [mpmath.mpf(float(f)) - e for f, e in zip(found.values[0], exact, strict=True)]
    errors = [mpmath.mpf(float(e)) for e in found.error[0]]
    spread = max(o - e for o, e in zip(off, errors, strict=True)) - min(
        o + e for o, e in zip(off, errors, strict=True)
    )
    assert spread <= 0
    assert max(found.error[0]) <= 1e-11 * max(1.0, float(np.abs(found.values).max()))


@pytest.mark.parametrize("z_degree", [None, 0])
def test_agrees_with_the_stored_gram_matrix(z_degree: int | None) -> None:
    rng = np.random.default_rng(3)
    n, m = 6, 150
    X = rng.random((m, n))
    family = TessellatedFamily(1, lower=np.full(n, -0.1), upper=np.full(n, 1.1), z_degree=z_degree)
    factors = rng.standard_normal((3, family.n_P))
    W = summing_to_zero(rng, m, n_tasks=2)
    prepared = family.prepare(X)
    found = prepared.decision_values(factors, W)
    expected = W @ prepared.gram(factors.T @ factors)
    difference = found.values - expected
    difference -= difference.mean(axis=1, keepdims=True)
    assert np.abs(difference).max() <= 1e-11 * np.abs(expected).max()


def test_the_bound_is_tighter_than_any_of_a_stored_gram_matrix() -> None:
    rng = np.random.default_rng(4)
    n, m = 13, 100
    family = TessellatedFamily(1, lower=np.full(n, -0.1), upper=np.full(n, 1.1))
    prepared = family.prepare(rng.random((m, n)))
    v = rng.standard_normal(family.n_P)
    W = summing_to_zero(rng, m)
    unit = 2.0**-53 * np.diag(prepared.gram_rank_one(v)).max() * np.abs(W).sum()
    # what the stored matrix is trusted to is 16 + 2n units in the last place, 84 of these
    assert prepared.decision_values(v[None, :], W).error.max() <= 10.0 * unit


def test_weights_must_cancel_and_factors_must_fit() -> None:
    family = TessellatedFamily(1, lower=np.zeros(2), upper=np.ones(2))
    prepared = family.prepare(np.full((3, 2), 0.5))
    v = np.ones((1, family.n_P))
    with pytest.raises(ValueError, match="those of task 1 sum to 1e-20"):
        prepared.decision_values(v, [[1.0, -1.0, 0.0], [1.0, -1.0, 1e-20]])
    with pytest.raises(ValueError, match=f"factors must have {family.n_P} columns, got 3"):
        prepared.decision_values(np.ones((1, 3)), [1.0, -1.0, 0.0])
