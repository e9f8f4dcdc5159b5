"""Randomly pivoted Cholesky factors against the Gram matrices that they stand for."""

import tracemalloc

import numpy as np
import pytest
from kernelweave.kernels_core import MemoryBudgetError, NotPSDError
from kernelweave.kernels_core.config import config_context
from kernelweave.kernels_core.kernels import (
    RBF,
    KernelDictionary,
    Laplacian,
    Linear,
    LowRankDictionary,
    Sigmoid,
    fitted_factors,
)
from kernelweave.kernels_core.kernels.fitted_factors import Nystroem, factorise
from kernelweave.kernels_core.testing import check_kernel

KERNELS = [RBF(0.1), RBF(10.0), Linear(), Laplacian(1.0)]


def points(n=120, width=3):
    return np.random.default_rng(0).random((n, width))


def draw():
    return np.random.RandomState(0)


def fit(n_components, normalize=None, X=None):
    family = LowRankDictionary(KernelDictionary(KERNELS, normalize=normalize), n_components)
    return family.fit_factors(points() if X is None else X)


def each(fitted):
    return np.split(fitted.factors, fitted.ends[1:-1], axis=1)


@pytest.mark.parametrize("normalize", [None, "trace", "unit-diagonal"])
def test_as_many_components_as_samples_give_the_gram_matrices(normalize):
    X, fitted = points(), fit(120, normalize)
    exact = KernelDictionary(KERNELS, normalize=normalize).fit_grams(X)
    for Z, K, k in zip(each(fitted), exact.grams, fitted.kernels, strict=True):
        np.testing.assert_allclose(Z @ Z.T, K, atol=1e-10)
        np.testing.assert_allclose(k(X), K, atol=1e-10)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("n_components", [1, 40, 77])
def test_what_is_missing_is_positive_semidefinite_with_the_diagonal_that_is_said(
    kernel, n_components
):
    X = points()
    found, K = factorise(kernel, X, n_components, draw()), kernel(X)
    rest = K - found.Z @ found.Z.T
    assert found.Z.shape[1] <= n_components
    assert np.linalg.eigvalsh(rest)[0] > -1e-11 * np.trace(K)
    np.testing.assert_allclose(np.diag(rest), found.missing, atol=1e-11)
    np.testing.assert_allclose(rest[found.pivots], 0.0, atol=1e-10)
    assert len(set(found.pivots)) == len(found.pivots)


def test_a_kernel_of_rank_three_has_three_columns():
    assert factorise(Linear(), points(), 50, draw()).Z.shape == (120, 3)
    assert factorise(Linear(), np.zeros((5, 2)), 3, draw()).Z.shape == (5, 0)


def test_equal_samples_are_pivots_once():
    X = np.repeat(points(20), 3, axis=0)
    found = factorise(RBF(1.0), X, 60, draw())
    assert found.Z.shape[1] <= 20
    np.testing.assert_allclose(found.Z @ found.Z.T, RBF(1.0)(X), atol=1e-10)


def test_the_approximations_are_kernels():
    for k in fit(15).kernels:
        check_kernel(k, points())
        np.testing.assert_allclose(k(points()).diagonal(), k.diag(points()))


def test_expansions_are_the_combined_kernel():
    X, fitted = points(), fit(15, "trace")
    weights, u = np.array([0.2, 0.3, 0.0, 0.5]), np.random.default_rng(1).normal(size=(2, 120))
    new = np.random.default_rng(2).random((7, 3))
    parts = fitted.expansions(weights, X, u)
    assert len(parts) == 3
    np.testing.assert_allclose(
        sum(k(new, P) @ c for k, P, c in parts), fitted.kernel(weights)(new, X) @ u.T, rtol=1e-7
    )


@pytest.mark.parametrize("most", [10**9, 0], ids=["pairs", "diagonals"])
def test_forms_of_the_exact_kernels_are_bounded(monkeypatch, most):
    monkeypatch.setattr(fitted_factors, "_MOST_PAIRS", most)
    X, u = points(), np.random.default_rng(1).normal(size=(2, 120))
    u[:, ::2] = 0.0
    for n_components in (10, 120):
        bound = fit(n_components).exact_forms(u)
        truth = np.array([np.sum(u * (u @ k(X))) for k in KERNELS])
        assert (bound >= truth).all()
        if most or n_components == 120:
            np.testing.assert_allclose(bound, truth, rtol=1e-6)


def test_the_same_seed_draws_the_same_columns():
    np.testing.assert_array_equal(fit(15).factors, fit(15).factors)


def test_a_fitted_family_gives_its_factors_and_its_kernel():
    X, fitted = points(), fit(15)
    assert fitted.fit_factors(X) is fitted
    with pytest.raises(ValueError, match="fitted on other samples"):
        fitted.fit_factors(X[1:])
    weights = np.full(4, 0.25)
    np.testing.assert_allclose(
        fitted.gram(X, weights), 0.25 * fitted.factors @ fitted.factors.T, atol=1e-9
    )
    with pytest.raises(ValueError, match="need training points: use fit_factors"):
        fitted.family.kernel(weights)


def test_what_cannot_be_approximated_is_refused():
    with pytest.raises(NotPSDError, match=r"Sigmoid.* is not known to be positive semidefinite"):
        LowRankDictionary(KernelDictionary([Sigmoid(1.0, 0.0)], psd="clip")).fit_factors(points())
    for normalize in ("center", "center-trace"):
        with pytest.raises(ValueError, match="averages over all pairs"):
            fit(5, normalize)
    with pytest.raises(ValueError, match="overflows on these samples"):
        LowRankDictionary(KernelDictionary([Linear()])).fit_factors(1e40 * points())
    with pytest.raises(ValueError, match="n_components must be"):
        fit(0)


def test_memory_is_asked_for_before_the_work():
    with (
        config_context(memory_limit=10_000),
        pytest.raises(MemoryBudgetError, match="15 components of 4 kernels on 120 samples"),
    ):
        fit(15)


@pytest.mark.parametrize("normalize", [None, "trace", "unit-diagonal"])
def test_features_of_linear_kernels_are_their_factors_and_no_matrix_is_allocated(normalize):
    X = np.random.default_rng(0).standard_normal((80, 300))
    views = [[j] for j in range(298)] + [[298, 299]]
    family = LowRankDictionary(KernelDictionary([Linear()], columns=views, normalize=normalize))
    tracemalloc.start()
    fitted = family.fit_factors(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * len(views) * 80**2 / 10
    assert fitted.is_exact
    assert not fitted.missing.any()
    assert fitted.factors.shape == (80, 300)
    wide = np.longdouble(1) * X
    for j, view in enumerate(views):
        K = wide[:, view] @ wide[:, view].T
        if normalize == "trace":
            K *= 80 / K.trace()
        elif normalize == "unit-diagonal":
            K /= np.sqrt(np.outer(K.diagonal(), K.diagonal()))
        Z = np.longdouble(1) * fitted.factors[:, fitted.ends[j] : fitted.ends[j + 1]]
        assert np.abs(Z @ Z.T - K).max() <= 16 * np.finfo(float).eps * K.diagonal().max()


def test_wide_or_nonlinear_kernels_keep_cholesky_factors():
    X = points(40, 6)
    mixed = KernelDictionary([2.0 * Linear().on([0, 2]), Linear(), RBF(1.0)])
    fitted = LowRankDictionary(mixed, n_components=4).fit_factors(X)
    assert [isinstance(k, Nystroem) for k in fitted.kernels] == [False, True, True]
    assert not fitted.is_exact
    u, new = draw().standard_normal((2, 40)), points(7, 6)
    beta = np.array([0.2, 0.3, 0.5])
    parts = fitted.expansions(beta, X, u)
    summed = sum(k(new, P) @ c for k, P, c in parts)
    np.testing.assert_allclose(summed, fitted.gram(new, beta, X) @ u.T, rtol=1e-8, atol=1e-10)
