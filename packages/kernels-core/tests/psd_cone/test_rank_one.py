"""Hazan's rank-one steps against cvxpy."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from kernelweave.kernels_core.psd_cone import sparse_sdp


def least_squares(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((15, 4)), rng.standard_normal((15, 4))


def test_least_squares_against_cvxpy() -> None:
    A, Y = least_squares()

    def gradient(L: np.ndarray) -> np.ndarray:
        G = A.T @ (A @ L - Y)
        return G + G.T

    def search(L: np.ndarray, D: np.ndarray) -> float:
        return float(-np.vdot(gradient(L), D) / (2 * np.vdot(A @ D, A @ D)))

    X = cp.Variable((4, 4), PSD=True)
    convex = cp.Problem(cp.Minimize(cp.sum_squares(A @ X - Y)), [cp.trace(X) <= 2.0])
    convex.solve(solver=cp.CLARABEL)
    exact = sparse_sdp(gradient, 0.5 * np.eye(4), 2.0, line_search=search, max_iter=500)
    loop = sparse_sdp(gradient, 0.5 * np.eye(4), 2.0, max_iter=500)
    for found, gap in ((exact, 0.02), (loop, 0.1)):
        value = np.sum((A @ found.L - Y) ** 2)
        assert np.trace(found.L) <= 2.0 + 1e-12
        assert np.linalg.eigvalsh(found.L)[0] >= -1e-12
        assert convex.value - 1e-6 <= value <= convex.value + found.gap + 1e-6
        assert found.gap <= gap * convex.value


def test_positive_gradient_goes_to_zero() -> None:
    target = -np.eye(3)
    found = sparse_sdp(
        lambda L: L - target,
        np.eye(3),
        3.0,
        line_search=lambda L, D: float(-np.vdot(L - target, D) / np.vdot(D, D)),
    )
    assert found.converged
    np.testing.assert_allclose(found.L, 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("start", "trace", "said"),
    [
        (np.eye(3), 2.0, "start must be positive semidefinite of trace"),
        (-np.eye(3), 2.0, "start must be positive semidefinite"),
        (np.ones(3), 2.0, "start must be an array with 2 axes"),
        (np.eye(3), 0.0, "trace must be"),
    ],
)
def test_bad_input_is_named(start: np.ndarray, trace: float, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        sparse_sdp(lambda L: L, start, trace)
