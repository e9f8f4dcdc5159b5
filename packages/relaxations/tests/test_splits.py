from fractions import Fraction

import numpy as np
import pytest
from kernelweave.kernels_core.grams import GramStack
from kernelweave.relaxations.bounds import forms_by_pairs, forms_by_vectors, positive_shares


def exactly(K, u):
    """Return uᵀKu in rational arithmetic."""
    v = [Fraction(float(x)) for x in u]
    rows = [[Fraction(float(x)) for x in row] for row in K]
    return sum(a * b * rows[i][j] for i, a in enumerate(v) for j, b in enumerate(v))


def problem(seed, n=7, rank=3):
    """Return Gram matrices of which the first makes Cauchy's inequality an equality."""
    rng = np.random.default_rng(seed)
    factor = np.round(rng.standard_normal((n, rank)) * 2**20) / 2**20
    grams = GramStack(np.stack([np.ones((n, n)), factor @ factor.T, np.eye(n)]))
    return grams, rng.random(n) * 10.0 ** rng.integers(-9, 9, n), rng


@pytest.mark.parametrize("seed", range(6))
def test_the_split_over_vectors_proves_its_forms(seed):
    grams, u, rng = problem(seed)
    vectors = np.vstack([rng.random((4, u.size)), np.eye(u.size)])
    # half of u along the random vectors, the rest is left to the unit vectors
    along = np.append(rng.random(4), np.zeros(u.size)) * u.min() * 0.25
    left = u - vectors[:4].T @ along[:4]
    share = np.append(along[:4] * vectors[:4].sum(axis=1), left)
    forms = forms_by_vectors(grams, vectors, along, share, u)
    for K, form in zip(grams.matrices, forms, strict=True):
        assert exactly(K, u) <= Fraction(float(form))
    assert float(exactly(grams.matrices[0], u)) == pytest.approx(forms[0], rel=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_the_split_over_pairs_proves_its_forms(seed):
    grams, u, rng = problem(seed)
    pairs = np.stack(np.triu_indices(u.size, 1), axis=1)
    parts = u[pairs] / (u.size - 1)
    forms = forms_by_pairs(grams, parts, parts.sum(axis=1), u)
    for K, form in zip(grams.matrices, forms, strict=True):
        assert exactly(K, u) <= Fraction(float(form))
    assert float(exactly(grams.matrices[0], u)) == pytest.approx(forms[0], rel=1e-8)
    wild = forms_by_pairs(grams, rng.standard_normal(parts.shape), rng.random(len(pairs)), u)
    for K, form in zip(grams.matrices, wild, strict=True):
        assert exactly(K, u) <= Fraction(float(form))


def test_shares_are_positive_and_sum_to_at_most_one():
    share = positive_shares(np.array([0.0, 1e-30, 1.0, 3.0]))
    assert share.min() > 0.0
    assert sum(Fraction(float(a)) for a in share) <= 1
    assert share[3] == pytest.approx(0.75, rel=1e-9)
