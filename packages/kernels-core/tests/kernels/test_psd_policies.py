"""Indefinite kernels: found beyond rounding, then refused, left out, clipped or kept."""

from __future__ import annotations

import numpy as np
import pytest
from kernelweave.kernels_core.exceptions import KernelWeaveWarning, NotPSDError
from kernelweave.kernels_core.grams import require_psd
from kernelweave.kernels_core.grams.psd import find_indefinite
from kernelweave.kernels_core.kernels import (
    PAPER_TEN,
    RBF,
    Clipped,
    KernelDictionary,
    Linear,
    Polynomial,
    Sigmoid,
    default_kernels,
)
from kernelweave.kernels_core.testing import check_kernel
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.metrics.pairwise import sigmoid_kernel


def test_raise_names_the_kernel_and_its_smallest_eigenvalue(wine):
    K = sigmoid_kernel(wine[0], gamma=0.5, coef0=1.0)
    smallest = np.linalg.eigvalsh(K)[0]
    assert smallest < -5.0
    with pytest.raises(NotPSDError) as caught:
        PAPER_TEN.fit_grams(wine[0])
    message = str(caught.value)
    assert "Sigmoid(gamma=0.5, coef0=1.0) is not positive semidefinite" in message
    assert f"smallest eigenvalue {smallest:.6g}" in message
    assert "Sigmoid(gamma=0.7" in message
    assert "psd='drop'" in message
    assert "RBF" not in message


def test_drop_leaves_out_and_says_so(wine):
    with pytest.warns(KernelWeaveWarning, match=r"Sigmoid.*smallest eigenvalue -.*left out"):
        fitted = KernelDictionary(PAPER_TEN, psd="drop").fit_grams(wine[0])
    assert fitted.kept.tolist() == [0, 1, 2, 3, 4, 5, 6, 9]
    assert fitted.names == default_kernels().names
    assert list(fitted.dropped) == [
        "Sigmoid(gamma=0.5, coef0=1.0)",
        "Sigmoid(gamma=0.7, coef0=1.0)",
    ]
    assert all(v < -5.0 for v in fitted.dropped.values())
    np.testing.assert_array_equal(fitted.grams, default_kernels().fit_grams(wine[0]).grams)
    with pytest.raises(NotPSDError, match="leaves no kernel"):
        KernelDictionary([Sigmoid(0.5, 1.0)], psd="drop").fit_grams(wine[0])


def test_keep_keeps(wine):
    fitted = KernelDictionary([Sigmoid(0.5, 1.0)], psd="keep").fit_grams(wine[0])
    np.testing.assert_allclose(
        fitted.grams[0], sigmoid_kernel(wine[0], gamma=0.5, coef0=1.0), rtol=1e-13
    )


def test_clip_is_the_nearest_psd_matrix_with_its_map_for_test_points(clipped, wine):
    train, test = wine
    fitted = clipped[None]
    for j, gamma in ((7, 0.5), (8, 0.7)):
        K = sigmoid_kernel(train, gamma=gamma, coef0=1.0)
        values, U = np.linalg.eigh(K)
        assert values[0] == pytest.approx(fitted.clipped[fitted.names[j]], rel=1e-10)
        np.testing.assert_allclose(fitted.grams[j], (U * np.maximum(values, 0)) @ U.T, atol=1e-11)
        P = U[:, values > 0] @ U[:, values > 0].T
        cross = sigmoid_kernel(test, train, gamma=gamma, coef0=1.0)
        np.testing.assert_allclose(fitted.cross(test)[j], cross @ P, atol=1e-9)
        # the diagonal at new points: the squared norm of the features that make the map
        inverse = (U[:, values > 0] / values[values > 0]) @ U[:, values > 0].T
        np.testing.assert_allclose(
            fitted.kernels[j].diag(test), np.einsum("ij,jk,ik->i", cross, inverse, cross), rtol=1e-7
        )


def test_clipped_kernels_keep_the_promises_of_kernels(wine):
    train, test = wine
    kernel, found = Clipped.fit(Sigmoid(0.5, 1.0), train, Sigmoid(0.5, 1.0)(train))
    assert found.lambda_min < -5.0
    assert kernel.is_psd
    check_kernel(kernel, train)
    check_kernel(kernel, test[:30])
    assert clone(kernel) == kernel
    with pytest.raises(ValueError, match="fitted on 13 features, got 2"):
        kernel([[1.0, 2.0]])


def test_on_a_larger_real_set_every_policy_is_consistent():
    X = load_breast_cancer().data
    X = (X - X.mean(0)) / X.std(0, ddof=1)
    with pytest.warns(KernelWeaveWarning, match="set to zero"):
        fitted = KernelDictionary([Sigmoid(0.5, 1.0)], psd="clip").fit_grams(X[:300])
    assert -153.0 < min(fitted.clipped.values()) < -10.0
    assert find_indefinite(fitted.grams[0]) is None
    require_psd(fitted.grams[0], "clipped")


def test_psd_kernels_of_any_rank_and_scale_pass_the_test():
    rng = np.random.default_rng(5)
    for scale in (1e-150, 1e-8, 1.0, 1e8, 1e150):
        for rank in (1, 3, 60):
            A = rng.normal(size=(60, rank)) * np.sqrt(scale)
            K = A @ A.T
            assert find_indefinite(K) is None, (scale, rank)
            assert find_indefinite(K.astype(np.float32)) is None if 1e-9 < scale < 1e9 else True
            u = rng.normal(size=60)
            u /= np.linalg.norm(u)
            bad = K - (np.linalg.norm(K, 2) * 1e-6 + u @ K @ u) * np.outer(u, u)
            assert find_indefinite(bad) is not None, (scale, rank)
    assert find_indefinite(np.zeros((4, 4))) is None
    assert find_indefinite(-np.eye(1)) is not None
    with pytest.raises(NotPSDError, match="mine is not positive semidefinite"):
        require_psd(-np.eye(3), "mine")


def test_proved_kernels_cost_no_factorisation(monkeypatch):
    from kernelweave.kernels_core.kernels import dictionary

    def fail(K):
        raise AssertionError("tested a proved kernel")

    monkeypatch.setattr(dictionary, "find_indefinite", fail)
    X = np.random.default_rng(0).normal(size=(30, 3))
    KernelDictionary(default_kernels()).fit_grams(X)
    KernelDictionary([(2.0 * Linear() + RBF()) * Polynomial(coef0=0.0)]).fit_grams(X)
    with pytest.raises(AssertionError, match="tested"):
        KernelDictionary([Polynomial(coef0=-1.0)]).fit_grams(X)
