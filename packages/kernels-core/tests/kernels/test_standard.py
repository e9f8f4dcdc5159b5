"""The standard kernels against scikit-learn's and against exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from kernelweave.kernels_core.kernels import (
    RBF,
    KernelDictionary,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
)
from sklearn.metrics import pairwise

RNG = np.random.default_rng(11)
X, Y = RNG.normal(size=(60, 5)), RNG.normal(size=(33, 5))

PAIRS = [
    (Linear(), lambda A, B: pairwise.linear_kernel(A, B)),
    (
        Polynomial(degree=7, gamma=0.3, coef0=0.5),
        lambda A, B: pairwise.polynomial_kernel(A, B, degree=7, gamma=0.3, coef0=0.5),
    ),
    (RBF(gamma=0.4), lambda A, B: pairwise.rbf_kernel(A, B, gamma=0.4)),
    (Laplacian(gamma=0.4), lambda A, B: pairwise.laplacian_kernel(A, B, gamma=0.4)),
    (
        Sigmoid(gamma=0.5, coef0=-1.0),
        lambda A, B: pairwise.sigmoid_kernel(A, B, gamma=0.5, coef0=-1.0),
    ),
]


@pytest.mark.parametrize(("kernel", "reference"), PAIRS, ids=lambda p: getattr(p, "name", ""))
def test_values_are_scikit_learns(kernel, reference):
    np.testing.assert_allclose(kernel(X), reference(X, X), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kernel(X, Y), reference(X, Y), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kernel.diag(X), np.diag(reference(X, X)), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("container", [scipy.sparse.csr_array, scipy.sparse.coo_matrix])
@pytest.mark.parametrize(("kernel", "reference"), PAIRS[:3], ids=lambda p: getattr(p, "name", ""))
def test_sparse_samples(kernel, reference, container):
    A, B = (
        scipy.sparse.random_array((n, 8), density=0.3, rng=np.random.default_rng(n))
        for n in (40, 21)
    )
    S, T = container(A), container(B)
    K = kernel(S)
    assert isinstance(K, np.ndarray)
    assert np.array_equal(K, K.T)
    np.testing.assert_allclose(K, reference(A.toarray(), A.toarray()), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel(S, T), kernel(A.toarray(), B.toarray()), rtol=1e-12)
    np.testing.assert_allclose(kernel.diag(S), K.diagonal(), rtol=1e-14)
    part = kernel.on([1, 6])
    np.testing.assert_allclose(part(S), part(A.toarray()), rtol=1e-12, atol=1e-14)


def test_sparse_samples_are_refused_by_name():
    S = scipy.sparse.csr_array(np.eye(3))
    for kernel in (Laplacian(gamma=0.5), Linear() + Laplacian(gamma=0.5)):
        with pytest.raises(
            TypeError, match=r"Laplacian\(gamma=0.5\) does not accept sparse.*toarray"
        ):
            kernel(S)
    with pytest.raises(TypeError, match="Sigmoid"):
        KernelDictionary([Sigmoid()]).fit_grams(S)
    with pytest.raises(ValueError, match="both be sparse or both dense"):
        Linear()(S, np.eye(3))


def test_sparse_samples_are_left_as_they_were():
    S = scipy.sparse.csr_array(
        (np.array([1.0, 2.0, 3.0]), np.array([2, 0, 1]), np.array([0, 2, 3])), shape=(2, 3)
    )
    before = S.indices.copy()
    Linear()(S)
    np.testing.assert_array_equal(S.indices, before)


def test_an_offset_costs_the_rbf_kernel_no_digits():
    # the exact distances of these points are small integers' squares; the offset is 2^20
    grid = np.arange(6.0)[:, None]
    exact = np.exp(-0.1 * (grid - grid.T) ** 2)
    np.testing.assert_allclose(RBF(gamma=0.1)(grid + 2.0**20), exact, rtol=1e-14)
    np.testing.assert_allclose(
        RBF(gamma=0.1)(grid + 2.0**20, grid + 2.0**20 + 0), exact, rtol=1e-14
    )


def test_the_rbf_kernel_of_float32_samples_is_rounded_once():
    A = X.astype(np.float32)
    K = RBF(gamma=0.4)(A)
    exact = pairwise.rbf_kernel(A.astype(np.float64), gamma=0.4)
    np.testing.assert_allclose(K, exact, rtol=1.2e-7)


def test_diagonals_of_distance_kernels_are_exactly_one():
    huge = 1e8 * X
    for kernel in (RBF(gamma=1e3), Laplacian(gamma=1e3)):
        assert (kernel(huge).diagonal() == 1.0).all()


def test_empty_sets_of_points():
    assert RBF()(X[:0]).shape == (0, 0)
    assert RBF()(X, X[:0]).shape == (60, 0)
    assert Laplacian()(X[:0], X).shape == (0, 60)
