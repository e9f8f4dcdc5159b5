"""A family from a third party's G gives what the built-in one gives."""

from __future__ import annotations

import numpy as np
import pytest
from kernelweave.kernels_core.families import CallableFamily, TessellatedFamily


def test_the_tessellated_family_from_its_blocks():
    known = TessellatedFamily(1, lower=[-0.1, -0.1], upper=[1.1, 1.1])
    family = CallableFamily(known.block, known.n_P, scale=1.44)
    rng = np.random.default_rng(0)
    X, Y = rng.random((12, 2)), rng.random((5, 2))
    A, v, W = rng.normal(size=(10, 10)), rng.normal(size=10), rng.normal(size=(2, 12))
    P = A @ A.T
    prepared, reference = family.prepare(X), known.prepare(X)
    for got, expected in (
        (prepared.gram(P), reference.gram(P)),
        (prepared.gram_rank_one(v), reference.gram_rank_one(v)),
        (family.gram(X, P), reference.gram(P)),
        (family.gram(X, P, Y), known.gram(X, P, Y)),
        (family.gram(X, np.outer(v, v), Y), known.gram(X, np.outer(v, v), Y)),
        (family.diag(X, P), known.diag(X, P)),
        (prepared.moment(W), reference.moment(W)),
        (family.prepare(X).moment(W), reference.moment(W)),
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())
    assert family.trace == 10.0
    assert prepared.scale == pytest.approx(reference.scale)
    assert prepared.n_samples == 12
    difference = np.linalg.norm(prepared.moment(W) - reference.moment(W), 2)
    assert difference <= prepared.moment_error(W)
    assert repr(family).endswith("n_P=10)")


def test_bad_blocks_are_named():
    family = CallableFamily(lambda x, y: np.ones((2, 3)), 2)
    with pytest.raises(ValueError, match=r"must return a finite array of shape \(2, 2\)"):
        family.gram([[0.0]], np.eye(2))
    with pytest.raises(ValueError, match="n_P must be an integer >= 1"):
        CallableFamily(np.outer, 0)
