"""The bound on the largest eigenvalue is a proof: checked in extended precision."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from kernelweave.kernels_core.psd_cone import largest_eigenvalue_bound, top_eigenpair
from numpy.testing import assert_allclose


def moment_like(n: int, seed: int, decay: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    D = (Q * np.exp(-decay * np.arange(n))) @ Q.T
    return 0.5 * (D + D.T)


@pytest.mark.parametrize("decay", [0.0, 0.3, 3.0])
@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_bound_holds_in_extended_precision_and_is_tight(n: int, decay: float) -> None:
    for seed in range(3):
        D = moment_like(n, seed, decay)
        ritz, vector = top_eigenpair(D)
        assert_allclose(np.linalg.norm(vector), 1.0, rtol=1e-12)
        bound = largest_eigenvalue_bound(D, 0.0, ritz)
        with mpmath.workdps(40):
            exact = max(mpmath.eigsy(mpmath.matrix(D.tolist()), eigvals_only=True))
            assert mpmath.mpf(bound) >= exact
        assert bound <= float(exact) + 1e-11 * np.abs(D).sum()


def test_bound_covers_the_matrix_own_error_and_a_poor_ritz_value() -> None:
    D = moment_like(30, 0, 0.1)
    exact = np.linalg.eigvalsh(D)[-1]
    assert largest_eigenvalue_bound(D, 0.25, exact) >= exact + 0.25
    assert largest_eigenvalue_bound(D, 0.0, 0.9 * exact) >= exact
    assert largest_eigenvalue_bound(np.zeros((4, 4)), 0.0, 0.0) >= 0.0


def test_lanczos_and_dense_agree() -> None:
    D = moment_like(150, 3, 0.05)
    value, vector = top_eigenpair(D)
    values, vectors = np.linalg.eigh(D)
    assert_allclose(value, values[-1], rtol=1e-9)
    assert_allclose(abs(vector @ vectors[:, -1]), 1.0, rtol=1e-6)
    again, _ = top_eigenpair(D, vector)
    assert_allclose(again, value, rtol=1e-9)
