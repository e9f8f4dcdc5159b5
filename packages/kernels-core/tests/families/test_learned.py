"""Learned kernels: values whose parameters are arrays, computed by their families."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from kernelweave.kernels_core.exceptions import KernelWeaveWarning
from kernelweave.kernels_core.families import FamilyKernel, PolynomialFamily, TessellatedFamily
from kernelweave.kernels_core.kernels import RBF
from kernelweave.kernels_core.testing import check_kernel
from sklearn.base import clone
from sklearn.svm import SVC

LOWER, UPPER = np.full(3, -0.5), np.full(3, 1.5)
QUADRATIC = PolynomialFamily(2)


def positive(n: int) -> np.ndarray:
    A = np.random.default_rng(n).normal(size=(n, n))
    return A @ A.T / n


@pytest.fixture
def X():
    return np.random.default_rng(0).uniform(size=(15, 3))


@pytest.fixture(params=[0, 1])
def tessellated(request):
    family = TessellatedFamily(request.param, lower=LOWER, upper=UPPER)
    P = positive(family.n_P)
    return family, P, FamilyKernel(P, family)


def test_tessellated_is_its_family(tessellated, X):
    family, P, kernel = tessellated
    np.testing.assert_array_equal(kernel(X), family.gram(X, P))
    np.testing.assert_array_equal(kernel(X, X[:4]), family.gram(X, P, X[:4]))
    np.testing.assert_array_equal(kernel.diag(X), family.diag(X, P))


def test_polynomial_is_its_family(X):
    P = positive(10)
    kernel = FamilyKernel(P, QUADRATIC)
    np.testing.assert_array_equal(kernel(X), PolynomialFamily(2).gram(X, P))
    np.testing.assert_array_equal(kernel(X, X[:4]), PolynomialFamily(2).gram(X, P, X[:4]))
    np.testing.assert_array_equal(kernel.diag(X), PolynomialFamily(2).diag(X, P))


def test_learned_kernels_keep_the_promises_of_kernels(tessellated, X):
    check_kernel(tessellated[2], X)
    check_kernel(0.5 * tessellated[2] + RBF(gamma=1.0), X)
    check_kernel(FamilyKernel(positive(10), QUADRATIC), X)


def test_learned_kernels_copy_compare_and_serve_svc(tessellated, X):
    kernel = tessellated[2]
    for other in (clone(kernel), pickle.loads(pickle.dumps(kernel))):
        assert other == kernel
        assert other.P is not kernel.P
        assert other != FamilyKernel(2 * kernel.P, kernel.family)
    y = np.arange(15) % 2
    by_kernel = SVC(kernel=kernel).fit(X, y).decision_function(X)
    by_gram = SVC(kernel="precomputed").fit(kernel(X), y).decision_function(kernel(X))
    np.testing.assert_allclose(by_kernel, by_gram, rtol=1e-8)


def test_large_arrays_are_not_printed():
    kernel = FamilyKernel(positive(10), QUADRATIC)
    shown = "P=array(shape=(10, 10)), family=PolynomialFamily(degree=2, n_features=None)"
    assert repr(kernel) == f"FamilyKernel({shown}, outside='raise')"


def test_proof_depends_on_the_matrix():
    P = positive(10)
    assert FamilyKernel(P, QUADRATIC).is_psd is True
    assert FamilyKernel(P - 0.5 * np.eye(10), QUADRATIC).is_psd is None


def test_points_outside_the_box(tessellated, X):
    kernel = tessellated[2]
    far = X.copy()
    far[:3, 0] = 2.0
    far[7, 1] = -1.0
    with pytest.raises(ValueError, match=r"4 of 15 samples lie outside the box.*outside='clip'"):
        kernel(far)
    clip = kernel.set_params(outside="clip")
    with pytest.warns(KernelWeaveWarning, match="^4 samples lie outside") as caught:
        K = clip(far)
    assert len(caught) == 1
    np.testing.assert_array_equal(K, clip(np.clip(far, LOWER, UPPER)))
    with pytest.warns(KernelWeaveWarning, match="^8 samples") as caught:
        clip(far, far.copy())
    assert len(caught) == 1
    with pytest.warns(KernelWeaveWarning, match="^4 samples"):
        clip.diag(far)
    with pytest.warns(KernelWeaveWarning, match="^1 sample lies outside .* and was moved"):
        clip.diag(far[:1])


def test_bad_parameters_are_refused(X):
    P, family = positive(2), TessellatedFamily(0, lower=LOWER[:2], upper=UPPER[:2])
    for kernel, message in (
        (FamilyKernel(P, family, outside="keep"), "outside must be one of 'raise', 'clip'"),
        (FamilyKernel(P, family), "the box has 2 features, the samples have 3"),
        (FamilyKernel(positive(10)[:4], QUADRATIC), "P must be a finite square matrix"),
        (FamilyKernel(np.triu(positive(10)), QUADRATIC), "P must be symmetric"),
        (FamilyKernel(positive(4), QUADRATIC), "P must have shape"),
    ):
        with pytest.raises(ValueError, match=message):
            kernel(X)
    for degree in (-1, 2.0):
        with pytest.raises(ValueError, match="degree must be an integer >= 0"):
            PolynomialFamily(degree)
