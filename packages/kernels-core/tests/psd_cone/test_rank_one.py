"""Rank-one steps against cvxpy and projections: Frank-Wolfe, and Hazan's algorithm."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from kernelweave.kernels_core.psd_cone import frank_wolfe, project_spectahedron, sparse_sdp


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


@pytest.mark.parametrize("n", [1, 5, 120])
def test_frank_wolfe_brackets_the_nearest_matrix(n: int) -> None:
    rng = np.random.default_rng(n)
    target = rng.standard_normal((n, n))
    target += target.T
    start = np.diag(rng.random(n))
    nearest = project_spectahedron(target, start.trace())
    exact = 0.5 * np.sum((nearest - target) ** 2)
    found = frank_wolfe(lambda P: (0.5 * np.sum((P - target) ** 2), P - target), start, tol=1e-2)
    assert found.converged
    assert found.lower_bound <= exact * (1 + 1e-12)
    assert found.value >= exact * (1 - 1e-12)
    assert found.gap <= 1e-2
    np.testing.assert_allclose(found.P.trace(), start.trace(), rtol=1e-12)
    assert np.linalg.eigvalsh(found.P)[0] >= -1e-12 * start.trace()


def test_frank_wolfe_stops_at_a_limit_and_says_so() -> None:
    target = np.diag([1.0, 1.0, -1.0])
    found = frank_wolfe(
        lambda P: (0.5 * np.sum((P - target) ** 2), P - target),
        np.diag([3.0, 0.0, 0.0]),
        tol=0.0,
        max_iter=1,
    )
    assert (found.converged, found.n_iter) == (False, 1)
    assert found.lower_bound <= found.value


@pytest.mark.parametrize(
    ("f", "start", "said"),
    [
        (lambda P: (0.0, P), np.zeros((2, 2)), "the trace of start must be a finite number > 0"),
        (lambda P: (0.0, P), -np.eye(2), "start must be positive semidefinite, got a smallest"),
        (lambda P: (0.0, P[0]), np.eye(2), "f must return a finite number and a finite matrix"),
        (lambda P: (np.nan, P), np.eye(2), "f must return a finite number and a finite matrix"),
    ],
)
def test_what_frank_wolfe_cannot_use_is_named(f: Any, start: np.ndarray, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        frank_wolfe(f, start)
