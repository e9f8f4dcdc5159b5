"""Steps over the output kernel: gradient, line search, closed form, projection."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from kernelweave.vv_rkhs import OutputSubproblem, closed_form_output_kernel
from kernelweave.vv_rkhs.output import project_output_kernel
from kernelweave.vv_rkhs.spg import first_output_root, square_root
from scipy.linalg import fractional_matrix_power
from scipy.optimize import minimize_scalar

RNG = np.random.default_rng(3)


@pytest.fixture
def part() -> OutputSubproblem:
    C = RNG.standard_normal((12, 4))
    R = RNG.standard_normal((12, 12))
    A = R @ R.T @ C / 12
    return OutputSubproblem(A, C.T @ A, RNG.standard_normal((12, 4)), 0.05, 3.0)


def spectahedral(n: int, trace: float) -> np.ndarray:
    R = RNG.standard_normal((n, n))
    return trace * R @ R.T / np.trace(R @ R.T)


def test_gradient_by_finite_differences(part: OutputSubproblem) -> None:
    L, D = spectahedral(4, 3.0), spectahedral(4, 1e-6)
    slope = (part.value(L + D) - part.value(L - D)) / 2
    np.testing.assert_allclose(np.vdot(part.gradient(L), D), slope, rtol=1e-6)


def test_line_search_is_exact(part: OutputSubproblem) -> None:
    L, D = spectahedral(4, 3.0), spectahedral(4, 3.0) - spectahedral(4, 1.0)
    best = minimize_scalar(lambda s: part.value(L + s * D), options={"xtol": 1e-12})
    np.testing.assert_allclose(part.line_search(L, D), best.x, rtol=1e-5)


def test_hazan_shrinks_the_trace_where_zero_is_best() -> None:
    """Without the step towards 0 the trace could never fall below τ."""
    part = OutputSubproblem(np.eye(3), 10.0 * np.eye(3), 0.1 * np.eye(3), 1.0, 3.0)
    L, gap = part.hazan(np.eye(3), n_iter=50, tol=1e-9)
    assert gap <= 1e-9
    np.testing.assert_allclose(L, 0.0, atol=1e-6)


def test_rank_one_steps_against_cvxpy() -> None:
    rng = np.random.default_rng(0)
    A, Y = rng.standard_normal((15, 4)), rng.standard_normal((15, 4))
    part = OutputSubproblem(A, np.zeros((4, 4)), Y, 0.0, 2.0, n_samples=1.0)
    X = cp.Variable((4, 4), PSD=True)
    convex = cp.Problem(cp.Minimize(cp.sum_squares(A @ X - Y)), [cp.trace(X) <= 2.0])
    convex.solve(solver=cp.CLARABEL)
    for line_search, most in ((True, 0.02), (False, 0.1)):
        L, gap = part.hazan(0.5 * np.eye(4), n_iter=500, line_search=line_search)
        assert np.trace(L) <= 2.0 + 1e-12
        assert np.linalg.eigvalsh(L)[0] >= -1e-12
        assert convex.value - 1e-6 <= part.value(L) <= convex.value + gap + 1e-6
        assert gap <= most * convex.value


@pytest.mark.parametrize("start", [2.0 * np.eye(4), -np.eye(4)])
def test_a_start_outside_the_set_is_refused(part: OutputSubproblem, start: np.ndarray) -> None:
    with pytest.raises(ValueError, match="L must be positive semidefinite of trace <= 3"):
        part.hazan(start)


def test_closed_form_minimises_the_norm() -> None:
    L, tau = spectahedral(4, 2.0), 2.0
    B = spectahedral(4, 7.0)
    best = closed_form_output_kernel(L, B, tau)
    G = L @ B @ L
    np.testing.assert_allclose(np.trace(best), tau)
    for _ in range(50):
        other = spectahedral(4, tau)
        assert np.trace(np.linalg.solve(best, G)) <= np.trace(np.linalg.solve(other, G)) + 1e-9
    np.testing.assert_array_equal(closed_form_output_kernel(L, np.zeros((4, 4)), tau), L)


def test_projection() -> None:
    inside = spectahedral(4, 1.0)
    np.testing.assert_allclose(project_output_kernel(inside, 2.0), inside, atol=1e-14)
    far = RNG.standard_normal((4, 4)) * 5
    P = project_output_kernel(far, 2.0)
    assert np.trace(P) <= 2.0 * (1 + 1e-14)
    assert np.linalg.eigvalsh(P)[0] >= -1e-14
    for _ in range(50):
        other = spectahedral(4, 2.0 * RNG.random())
        assert np.vdot(0.5 * (far + far.T) - P, other - P) <= 1e-9


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"A": np.ones((3, 1))}, "must have shapes"),
        ({"Y": np.ones(3)}, "Y must be an array with 2 axes"),
        ({"B": np.full((2, 2), np.nan)}, "B must be finite"),
        ({"lam": -1.0}, "lam must be"),
        ({"tau": 0.0}, "tau must be"),
        ({"n_samples": 0.0}, "n_samples must be"),
    ],
)
def test_bad_subproblems_are_named(part: dict[str, object], said: str) -> None:
    given = {"A": np.ones((3, 2)), "B": np.eye(2), "Y": np.ones((3, 2)), "lam": 1.0, "tau": 2.0}
    with pytest.raises(ValueError, match=said):
        OutputSubproblem(**(given | part))  # type: ignore[arg-type]


def test_square_root() -> None:
    L = spectahedral(4, 2.0)
    R = square_root(L)
    np.testing.assert_allclose(R @ R.T, L, atol=1e-14)


def test_first_root_is_a_power_of_the_slopes() -> None:
    B = spectahedral(4, 1.0) + 0.1 * np.eye(4)
    root = first_output_root(B)
    np.testing.assert_allclose(
        root, fractional_matrix_power(B / np.linalg.norm(B, 2), 0.375), rtol=1e-10, atol=1e-12
    )
    assert np.vdot(root, B) / np.linalg.norm(root) > np.trace(B) / 2  # a descent from L = I


def test_first_root_loses_no_direction() -> None:
    lost = first_output_root(np.diag([1.0, -1e-17, 0.0]))
    assert np.linalg.eigvalsh(lost)[0] > 0.1
    np.testing.assert_array_equal(first_output_root(np.zeros((3, 3))), np.eye(3))
