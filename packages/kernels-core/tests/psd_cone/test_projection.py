"""The spectahedron's exact projection against a conic solver and its optimality conditions."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from kernelweave.kernels_core.psd_cone import project_simplex, project_spectahedron
from numpy.testing import assert_allclose


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e14])
def test_simplex_projection_sums_exactly_at_any_scale(scale: float) -> None:
    values = scale * np.random.default_rng(0).standard_normal(40)
    x = project_simplex(values, 3.0)
    assert_allclose(x.sum(), 3.0, rtol=1e-14)
    assert (x >= 0).all()
    shift = values[x > 0] - x[x > 0]
    assert_allclose(shift, shift[0], rtol=1e-12, atol=1e-14 * max(1.0, scale))
    assert (values[x == 0] <= shift[0] + 1e-12 * max(1.0, scale)).all()


def test_projection_equals_a_conic_solver() -> None:
    rng = np.random.default_rng(1)
    A = rng.standard_normal((5, 5))
    A = A + A.T
    P = cp.Variable((5, 5), PSD=True)
    cp.Problem(cp.Minimize(cp.sum_squares(P - A)), [cp.trace(P) == 4.0]).solve(solver=cp.CLARABEL)
    assert_allclose(project_spectahedron(A, 4.0), P.value, atol=1e-6)


def test_projection_is_idempotent_and_in_the_set() -> None:
    rng = np.random.default_rng(2)
    P = project_spectahedron(rng.standard_normal((6, 6)), 6.0)
    assert_allclose(np.trace(P), 6.0, rtol=1e-13)
    assert np.linalg.eigvalsh(P).min() > -1e-13
    assert_allclose(project_spectahedron(P, 6.0), P, atol=1e-13)


@pytest.mark.parametrize(
    ("P", "trace", "message"),
    [
        (np.zeros((2, 3)), 1.0, "P must be a square"),
        (np.full((2, 2), np.nan), 1.0, "P must be finite"),
        (np.eye(2), 0.0, "trace must be a finite number > 0"),
        (np.eye(2), np.nan, "trace must be a finite number > 0"),
    ],
)
def test_senseless_input_is_refused(P: np.ndarray, trace: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        project_spectahedron(P, trace)
