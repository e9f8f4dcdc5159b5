"""Kernels given by functions k(X, Z), against scikit-learn's own and against ours by formula."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
from kernelweave.kernels_core import RBF, KernelDictionary
from kernelweave.kernels_core.exceptions import NotPSDError
from kernelweave.kernels_core.kernels import FunctionKernel, Linear
from kernelweave.kernels_core.testing import check_kernel
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics.pairwise import chi2_kernel, cosine_similarity, rbf_kernel

X = np.random.default_rng(0).uniform(size=(30, 3))


@pytest.mark.parametrize("function", [chi2_kernel, cosine_similarity, rbf_kernel, gp.Matern(0.5)])
def test_functions_of_scikit_learn_are_kernels(function):
    check_kernel(FunctionKernel(function))
    assert FunctionKernel(function)(X[:5], X) == pytest.approx(function(X[:5], X), abs=1e-15)


def test_function_with_bound_parameters_is_the_kernel_of_the_formula():
    bound = FunctionKernel(partial(rbf_kernel, gamma=0.7))
    assert bound(X) == pytest.approx(RBF(0.7)(X), abs=1e-14)
    assert bound.diag(np.tile(X, (5, 1))) == pytest.approx(np.ones(150), abs=1e-14)
    check_kernel(bound)
    assert repr(bound) == "FunctionKernel(partial(rbf_kernel, gamma=0.7))"
    mixed = 2.0 * bound.on([0, 2]) + Linear()
    assert mixed(X) == pytest.approx(2.0 * RBF(0.7)(X[:, [0, 2]]) + X @ X.T, abs=1e-12)


def test_dictionary_takes_functions_as_they_are_and_tests_their_matrices():
    fitted = KernelDictionary([rbf_kernel, "rbf"], normalize="trace").fit_grams(X)
    assert fitted.names == ("FunctionKernel(rbf_kernel)", "rbf")
    assert fitted.grams[0] == pytest.approx(rbf_kernel(X), abs=1e-14)
    assert fitted.kernel([1.0, 0.0])(X[:4], X) == pytest.approx(rbf_kernel(X[:4], X), abs=1e-14)
    with pytest.raises(NotPSDError, match="FunctionKernel"):
        KernelDictionary([lambda X, Z: -rbf_kernel(X, Z)]).fit_grams(X)


def test_parameters_of_a_function_object_are_set_by_name():
    kernel = FunctionKernel(gp.RBF(0.5))
    assert "function__length_scale" in kernel.get_params()
    other = clone(kernel).set_params(function__length_scale=2.0)
    assert other(X) == pytest.approx(RBF(1.0 / 8.0)(X), abs=1e-12)
    assert kernel(X) == pytest.approx(RBF(2.0)(X), abs=1e-12)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x, z: 1.0, r"shape \(\) for X of shape \(30, 3\).*pairwise_kernels"),
        (lambda X, Z: X @ X[:2].T, r"shape \(30, 2\)"),
        (lambda X, Z: X @ Z.T + np.arange(len(X))[:, None], "not symmetric.*up to 29"),
        (lambda X, Z: (X @ Z.T) / X.std(), "of the last point .* bind"),
        (lambda X, Z: np.full((len(X), len(Z)), np.nan), "returned nan for row 0 of X and row 0"),
        (lambda X, Z: np.full((len(X), len(Z)), "a"), "dtype <U1"),
        (lambda X, Z: X @ Z.T + 1j, "dtype complex128"),
    ],
)
def test_functions_that_are_no_kernels_are_refused(function, message):
    with pytest.raises(ValueError, match=message):
        FunctionKernel(function)(X)


def test_what_is_no_function_is_refused_with_what_would_be_right():
    for value, message in (
        (RBF, "the class RBF: write RBF()"),
        (RBF(1.0), "got RBF(gamma=1.0): write [RBF(gamma=1.0)]"),
        (rbf_kernel, "got rbf_kernel: write [rbf_kernel]"),
        (np.ones((2, 3, 3)), "shape (2, 3, 3): give Gram matrices as X, with kernels='precomputed"),
        ([np.ones((3, 3))], "shape (3, 3): give Gram matrices as X, with kernels='precomputed'"),
        ([RBF], "the class RBF: write RBF()"),
        ([0.5], "or functions k(X, Z), got 0.5"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            KernelDictionary(value).fit_grams(X)
    with pytest.raises(ValueError, match="function must be a function k"):
        FunctionKernel(RBF)(X)
