"""Every C solver against the Kronecker system, and the chooser."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from kernelweave.vv_rkhs import (
    EigenFactors,
    NystromFactors,
    SpectrumEstimate,
    solve_sylvester,
)
from kernelweave.vv_rkhs.sylvester.auto import choose_method
from kernelweave.vv_rkhs.sylvester.direct import (
    solve_sylvester_cholesky,
    solve_sylvester_eigen,
)
from kernelweave.vv_rkhs.sylvester.iterative import solve_sylvester_cg, solve_sylvester_columns
from scipy.linalg import LinAlgError

FEW_LARGE = SpectrumEstimate(n_samples=1500, largest=1000.0, mean=1.0, spread=26.0)


def system(l: int = 25, n: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((l, l))
    R = rng.standard_normal((n, n - 1))  # L singular
    return Z @ Z.T, R @ R.T, rng.standard_normal((l, n))


def kronecker(K: np.ndarray, L: np.ndarray, Y: np.ndarray, ridge: float) -> np.ndarray:
    A = np.kron(K, L) + ridge * np.eye(Y.size)
    return np.linalg.solve(A, Y.reshape(-1)).reshape(Y.shape)


@pytest.mark.parametrize("method", ["auto", "eigen", "cholesky", "cg", "columns", "nystrom"])
@pytest.mark.parametrize("ridge", [1e-3, 1.0, 100.0])
def test_equals_the_kronecker_system(method: str, ridge: float) -> None:
    K, L, Y = system()
    found = solve_sylvester(K, L, Y, ridge, method=method, tol=1e-12)
    np.testing.assert_allclose(found.C, kronecker(K, L, Y, ridge), rtol=1e-6, atol=1e-9)
    true = np.linalg.norm(Y - K @ found.C @ L - ridge * found.C)
    np.testing.assert_allclose(found.residual_norm, true, rtol=1e-2, atol=1e-10)


def test_zero_output_kernel() -> None:
    K, _, Y = system()
    zero = np.zeros((4, 4))
    for found in (
        solve_sylvester_eigen(K, zero, Y, 2.0),
        solve_sylvester_cholesky(K, zero, Y, 2.0),
        solve_sylvester_columns(K, zero, Y, 2.0),
        solve_sylvester_cg(K, zero, Y, 2.0),
    ):
        np.testing.assert_allclose(found.C, Y / 2.0, rtol=1e-12)


@pytest.mark.parametrize("solver", [solve_sylvester_cg, solve_sylvester_columns])
def test_warm_start_saves_iterations(solver: Any) -> None:
    K, L, Y = system(l=60, n=5)
    cold = solver(K, L, Y, 0.1)
    warm = solver(K * 1.001, L, Y, 0.1, C0=cold.C)
    assert warm.converged
    assert warm.n_iter < cold.n_iter


def test_columns_do_less_work_than_the_whole() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 2))
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    L = np.diag(np.geomspace(1e-4, 1.0, 12))
    Y = rng.standard_normal((80, 12))
    whole = solve_sylvester_cg(K, L, Y, 0.01)
    columns = solve_sylvester_columns(K, L, Y, 0.01)
    assert columns.converged
    assert columns.n_columns * 2 < whole.n_columns


def test_unconverged_says_so_and_auto_falls_back() -> None:
    K, L, Y = system()
    assert not solve_sylvester_cg(K, L, Y, 1e-6, max_iter=2).converged
    found = solve_sylvester(K, L, Y, 1e-6, method="columns", tol=1e-11)
    assert found.residual_norm <= 1e-6 * np.linalg.norm(Y)


def nearly_singular() -> np.ndarray:
    """Return a Gaussian matrix whose smallest eigenvalues are rounding, some of them negative."""
    K = np.exp(-0.01 * (np.arange(60.0)[:, None] - np.arange(60.0)) ** 2)
    assert np.linalg.eigvalsh(K)[0] < 0.0
    return K


@pytest.mark.parametrize("method", ["auto", "eigen"])
@pytest.mark.parametrize("ridge", [1e-18, 1e-45])
def test_a_ridge_below_rounding_does_not_blow_up(method: str, ridge: float) -> None:
    K = nearly_singular()
    Y = np.sin(np.arange(60.0) / 5.0)[:, None] + 1e-3 * np.cos(np.arange(60.0) ** 2)[:, None]
    found = solve_sylvester(K, np.eye(1), Y, ridge, method=method)
    assert found.method == "eigen", "a Cholesky factorisation cannot"
    assert np.linalg.norm(K @ found.C - Y) <= 0.1 * np.linalg.norm(Y)


def test_eigendecompositions_are_refined() -> None:
    K, L = nearly_singular(), np.diag([0.3, 2.0])
    Y = np.random.default_rng(0).standard_normal((60, 2))
    factors = EigenFactors.of(K, L)
    plain = factors.solve(Y, 1e-7)
    first = np.linalg.norm(Y - K @ plain @ L - 1e-7 * plain)
    assert solve_sylvester_eigen(K, L, Y, 1e-7).residual_norm < 0.5 * first


def test_cholesky_of_an_indefinite_matrix_is_refused() -> None:
    with pytest.raises(LinAlgError, match="negative eigenvalue, if only by rounding"):
        solve_sylvester(nearly_singular(), np.eye(1), np.ones((60, 1)), 1e-18, method="cholesky")
    K = np.diag(np.linspace(-1.0, 3.0, 60))
    with pytest.raises(LinAlgError, match="negative eigenvalue"):
        solve_sylvester(K, np.eye(1), np.ones((60, 1)), 1e-3)


def test_equal_eigenvalues_share_one_factorisation() -> None:
    K, _, Y = system()
    found = solve_sylvester_cholesky(K, 2.0 * np.eye(4), Y, 0.3)
    np.testing.assert_allclose(found.C, kronecker(K, 2.0 * np.eye(4), Y, 0.3), rtol=1e-8)
    assert choose_method(FEW_LARGE, np.ones(50), 1e-3) == "cholesky"


def gaussian(l: int, columns: int = 3, seed: int = 0) -> np.ndarray:
    X = np.random.default_rng(seed).standard_normal((l, columns))
    return np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))


def test_sketch_has_the_largest_eigenvalues_of_a_smooth_kernel() -> None:
    K = gaussian(200)
    factors = NystromFactors.of(K, rank=60)
    np.testing.assert_allclose(factors.U.T @ factors.U, np.eye(len(factors.sigma)), atol=1e-7)
    exact = np.linalg.eigvalsh(K)[::-1]
    found = factors.sigma[::-1]
    np.testing.assert_allclose(found[:5], exact[:5], rtol=1e-2)
    assert (found <= exact[: len(found)] * (1 + 1e-6) + 1e-6).all(), "K − K̃ is semidefinite"
    R, rho = np.random.default_rng(1).standard_normal((200, 2)), np.array([0.5, 2.0])
    low = (factors.U * factors.sigma) @ factors.U.T
    rest = found[-1] * (np.eye(200) - factors.U @ factors.U.T)
    for j in range(2):
        exact_j = np.linalg.solve(rho[j] * (low + rest) + 0.1 * np.eye(200), R[:, j])
        np.testing.assert_allclose(factors.apply(R, rho, 0.1)[:, j], exact_j, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("K", [np.zeros((8, 8)), np.diag([0.0, 0.0, 3.0, 0.0]), np.ones((20, 20))])
def test_sketch_of_a_degenerate_matrix(K: np.ndarray) -> None:
    Y = np.arange(2.0 * len(K)).reshape(-1, 2)
    found = solve_sylvester(K, np.eye(2), Y, 0.5, method="nystrom", tol=1e-10)
    np.testing.assert_allclose(found.C, kronecker(K, np.eye(2), Y, 0.5), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("error", [1e-8, 1e-6, 1.0])
def test_sketch_of_a_matrix_that_is_not_semidefinite(error: float) -> None:
    """Such as the Gram matrices of a stack in single precision, rounded one by one."""
    noise = np.random.default_rng(0).standard_normal((300, 300))
    K = gaussian(300) + error * (noise + noise.T)
    assert np.linalg.eigvalsh(K)[0] < 0.0
    Y = np.sin(np.arange(600.0)).reshape(300, 2)
    found = solve_sylvester(K, np.eye(2), Y, 80.0, method="nystrom", tol=1e-8)
    np.testing.assert_allclose(found.C, np.linalg.solve(K + 80.0 * np.eye(300), Y), atol=1e-8)


def test_sketch_saves_iterations() -> None:
    K = gaussian(400)
    Y = np.sin(np.arange(1200.0)).reshape(400, 3)
    L = np.diag([0.5, 1.0, 2.0])
    plain = solve_sylvester(K, L, Y, 0.1, method="columns")
    helped = solve_sylvester(K, L, Y, 0.1, method="nystrom")
    assert helped.method == "nystrom"
    assert 3 * helped.n_iter < plain.n_iter
    again = solve_sylvester(K, L, Y, 0.1, method="nystrom", sketch=helped.sketch)
    assert again.sketch is helped.sketch
    np.testing.assert_array_equal(again.C, helped.C)


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e25])
@pytest.mark.parametrize("tol", [1e-3, 1e-10])
def test_single_precision_reaches_the_residual_of_double(tol: float, scale: float) -> None:
    K, L = gaussian(120), np.diag([0.3, 1.0])
    Y = scale * np.random.default_rng(2).standard_normal((120, 2))
    found = solve_sylvester_columns(K, L, Y, 0.05, tol=tol, single=True)
    assert found.converged
    true = np.linalg.norm(Y - K @ found.C @ L - 0.05 * found.C)
    assert true <= 1.01 * tol * np.linalg.norm(Y)
    np.testing.assert_allclose(found.residual_norm, true, rtol=1e-6, atol=1e-14 * scale)


def test_single_precision_that_no_longer_helps_is_left() -> None:
    K, L = nearly_singular(), np.diag([0.3, 1.0])
    Y = np.random.default_rng(0).standard_normal((60, 2))
    found = solve_sylvester_columns(K, L, Y, 1e-6, tol=1e-6, max_iter=4000, single=True)
    assert found.converged


def test_known_product_saves_one() -> None:
    K, L = gaussian(60), np.diag([0.3, 1.0])
    Y = np.random.default_rng(2).standard_normal((60, 2))
    C0 = solve_sylvester(K, L, Y, 0.1, method="eigen").C * 1.01
    without = solve_sylvester_columns(K, L, Y, 0.1, C0=C0)
    known = solve_sylvester_columns(K, L, Y, 0.1, C0=C0, product0=K @ C0)
    assert known.n_columns == without.n_columns - 2
    np.testing.assert_allclose(known.C, without.C, rtol=1e-6, atol=1e-9)


def test_chooser_follows_conditioning() -> None:
    rho = np.linspace(0.1, 1.0, 100)
    assert choose_method(FEW_LARGE, rho, 1500 * 1e-1) == "nystrom"
    assert choose_method(FEW_LARGE, rho, 1500 * 1e-5) == "eigen"
    assert choose_method(FEW_LARGE, rho, 1500 * 1e-3, sketched=True) == "nystrom"
    assert choose_method(FEW_LARGE, rho[-3:], 1500 * 1e-5) == "cholesky"
    small = SpectrumEstimate(n_samples=150, largest=2.0, mean=1.0, spread=0.1)
    assert choose_method(small, rho[-2:], 150 * 1e-1) == "columns"


def test_spectrum_is_that_of_the_matrix() -> None:
    K, _, _ = system()
    values = np.linalg.eigvalsh(K)
    found = SpectrumEstimate.of(K)
    np.testing.assert_allclose([found.mean, found.spread], [values.mean(), values.std()])
    assert 0.5 * values[-1] <= found.largest <= values[-1] * (1 + 1e-12)


@pytest.mark.parametrize("lam", [1e-1, 1e-3])
def test_expected_iterations_are_near_the_counted_ones(lam: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5))
    K = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(-1))
    L = np.diag([0.2, 1.0, 1.8])
    Y = np.sin(X @ rng.standard_normal((5, 3)))
    counted = solve_sylvester_columns(K, L, Y, 300 * lam).n_iter
    expected = SpectrumEstimate.of(K).iterations(np.diag(L), 300 * lam, 1e-8).max()
    assert counted / 2 <= expected <= 2 * counted


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"Y": np.ones(3)}, "Y must have shape"),
        ({"L": np.eye(3)}, "L must have shape"),
        ({"K": np.eye(4)}, "K must have shape"),
        ({"ridge": 0.0}, "ridge must be"),
        ({"method": "magic"}, "method must be one of"),
        ({"tol": 0.0}, "tol must be"),
        ({"method": "cg", "tol": np.nan}, "tol must be"),
        ({"method": "cg", "C0": np.ones(5)}, "C0 must be"),
        ({"method": "columns", "C0": np.ones((5, 3))}, "C0 must have shape"),
        ({"method": "columns", "C0": np.full((5, 2), np.nan)}, "C0 must be finite"),
    ],
)
def test_bad_input_is_named(part: dict[str, Any], said: str) -> None:
    given = {"K": np.eye(5), "L": np.eye(2), "Y": np.ones((5, 2)), "ridge": 1.0} | part
    with pytest.raises(ValueError, match=said):
        solve_sylvester(**given)


def test_single_precision_gives_up_where_rounding_has_won() -> None:
    """Its residual would stand still for thousands of iterations; double takes a dozen."""
    x = np.linspace(-2.0, 2.0, 300)
    K = np.exp(-((x[:, None] - x) ** 2))
    Y = np.column_stack([np.sin(3 * x), np.cos(x)])
    sketch = NystromFactors.of(K)
    solve = partial(solve_sylvester_columns, K, np.eye(2), Y, 1e-6, sketch=sketch)
    exact, rough = solve(), solve(single=True)
    assert exact.converged
    assert rough.converged
    assert exact.n_iter < 20
    assert rough.n_iter < exact.n_iter + 80
