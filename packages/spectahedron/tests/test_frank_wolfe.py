"""Frank-Wolfe over positive matrices: certified problems, proofs, limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import PolynomialFamily, Problem, Status, TessellatedFamily, solve
from kernelweave.kernels_core.exceptions import convergence_warning
from kernelweave.kernels_core.testing import check_algorithm, make_classification, make_regression
from kernelweave.qp_smo import SVC, SVR
from kernelweave.spectahedron import Spectahedron
from kernelweave.spectahedron.first_order import find_root
from numpy.testing import assert_allclose


def overlaps(result: Any, case: dict[str, Any]) -> None:
    assert result.lower_bound <= case["opt_upper_primal"] * (1 + 1e-7)
    assert result.upper_bound >= case["opt_lower"] * (1 - 1e-7)


def test_certified_optima(certified: dict[str, tuple[dict[str, Any], Problem]]) -> None:
    for name, (case, problem) in certified.items():
        tol = 1e-3 if "rank2" in name else 1e-5
        result = solve(problem, "tkl-frank-wolfe", tol=tol)
        assert result.status is Status.CONVERGED, name
        assert result.gap <= tol, name
        overlaps(result, case)
        P = result.parameters
        assert_allclose(np.trace(P), problem.family.n_P, rtol=1e-12)
        assert np.linalg.eigvalsh(P).min() > -1e-10


@pytest.mark.slow
def test_conformance() -> None:
    check_algorithm("tkl-frank-wolfe", tol=5e-2)


def test_polynomial_family() -> None:
    X, y = make_classification(50)
    problem = Problem(PolynomialFamily(2, n_features=2), SVC(C=1.0), Spectahedron(), X, y)
    result = solve(problem, "tkl-frank-wolfe", tol=1e-3)
    assert result.gap <= 1e-3


def test_several_tasks_share_one_kernel() -> None:
    X, y = make_classification(40)
    z = np.where(X[:, 0] > 0.4, 1.0, -1.0)
    family = TessellatedFamily(1, lower=[-0.1, -0.1], upper=[1.1, 1.1])
    both = Problem(family, SVC(C=1.0), Spectahedron(), X, np.vstack([y, z]))
    shared = solve(both, "tkl-frank-wolfe", tol=1e-4)
    alone = [solve(replace(both, y=target), "tkl-frank-wolfe", tol=1e-4) for target in (y, z)]
    assert shared.upper_bound >= sum(part.lower_bound for part in alone)
    twice = solve(replace(both, y=np.vstack([y, y])), "tkl-frank-wolfe", tol=1e-4)
    assert twice.lower_bound <= 2 * alone[0].upper_bound
    assert twice.upper_bound >= 2 * alone[0].lower_bound


def test_box_volume_does_not_matter_to_the_solver() -> None:
    """k scales with the box: a box of twice the width in x, x doubled, C divided."""
    X, y = make_regression(40)
    small = Problem(
        TessellatedFamily(0, lower=[-0.5] * 2, upper=[1.5] * 2),
        SVR(C=8.0, epsilon=0.1),
        Spectahedron(),
        X,
        y,
    )
    large = Problem(
        TessellatedFamily(0, lower=[-50.0] * 2, upper=[150.0] * 2),
        SVR(C=8.0 / 1e4, epsilon=0.1),
        Spectahedron(),
        100.0 * X,
        y,
    )
    a = solve(small, "tkl-frank-wolfe", tol=1e-5)
    b = solve(large, "tkl-frank-wolfe", tol=1e-5)
    assert_allclose(a.upper_bound, 1e4 * b.upper_bound, rtol=2e-5)


def test_min_eig_keeps_the_kernel_universal() -> None:
    X, y = make_classification(40)
    family = TessellatedFamily(1, lower=[-0.1] * 2, upper=[1.1] * 2)
    free = solve(Problem(family, SVC(), Spectahedron(), X, y), "tkl-frank-wolfe", tol=1e-4)
    floor = solve(
        Problem(family, SVC(), Spectahedron(min_eig=0.2), X, y), "tkl-frank-wolfe", tol=1e-4
    )
    assert np.linalg.eigvalsh(floor.parameters).min() >= 0.2 - 1e-10
    assert_allclose(np.trace(floor.parameters), family.n_P, rtol=1e-12)
    assert floor.upper_bound >= free.lower_bound


def test_single_precision_is_honest() -> None:
    """float32 Grams may certify less, never more than is true."""
    X, y = make_classification(60)
    problem = Problem(
        TessellatedFamily(1, lower=[-0.1] * 2, upper=[1.1] * 2), SVC(), Spectahedron(), X, y
    )
    double = solve(problem, "tkl-frank-wolfe", tol=1e-5)
    single = solve(problem, "tkl-frank-wolfe", tol=1e-2, dtype="float32")
    assert single.lower_bound <= double.upper_bound
    assert single.upper_bound >= double.lower_bound


def test_limits_keep_the_bounds() -> None:
    X, y = make_classification(60)
    problem = Problem(
        TessellatedFamily(1, lower=[-0.1] * 2, upper=[1.1] * 2), SVC(C=10.0), Spectahedron(), X, y
    )
    best = solve(problem, "tkl-frank-wolfe", tol=1e-4)
    with pytest.warns(convergence_warning(), match="max_iter"):
        early = solve(problem, "tkl-frank-wolfe", tol=1e-9, max_iter=2)
    assert early.lower_bound <= best.upper_bound
    assert early.upper_bound >= best.lower_bound


@pytest.mark.parametrize("power", [1, 3])
def test_the_line_search_finds_the_root(power: int) -> None:
    evaluated = []

    def slope(step: float) -> float:
        evaluated.append(step)
        return (step - 0.3) ** power

    step = find_root(slope, slope(0.0), guess=1.0)
    assert evaluated[-1] == step
    assert abs(step - 0.3) ** power <= 1e-2 * 0.3**power
    assert find_root(lambda s: -1.0, -1.0, guess=0.01) == 1.0
