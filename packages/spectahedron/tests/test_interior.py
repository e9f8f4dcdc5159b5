"""The joint interior point: linear algebra, certificates, and the rescue of the low-rank method."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import (
    KernelWeaveWarning,
    PolynomialFamily,
    Problem,
    Status,
    TessellatedFamily,
    config_context,
    solve,
)
from kernelweave.kernels_core.clock import time_limit
from kernelweave.kernels_core.exceptions import MemoryBudgetError
from kernelweave.kernels_core.testing import check_algorithm, make_classification, make_regression
from kernelweave.qp_smo import SVC, SVR
from kernelweave.spectahedron import Spectahedron
from kernelweave.spectahedron.interior_point import InteriorPointSearch, required_bytes
from kernelweave.spectahedron.low_rank import affordable, is_slow
from kernelweave.spectahedron.newton_system import NewtonSystem, Symmetric
from kernelweave.spectahedron.saddle import SpectahedronOracle
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning


def box(n: int, degree: int = 1) -> TessellatedFamily:
    return TessellatedFamily(degree, lower=np.full(n, -0.1), upper=np.full(n, 1.1))


def small(task: str, m: int = 25) -> Problem:
    if task == "classification":
        X, y = make_classification(m)
        return Problem(box(2), SVC(C=5.0), Spectahedron(), X, y)
    X, y = make_regression(m)
    return Problem(box(2), SVR(C=5.0, epsilon=0.05), Spectahedron(), X, y)


def test_certified_optima(certified: dict[str, tuple[dict[str, Any], Problem]]) -> None:
    for name, (case, problem) in certified.items():
        result = solve(problem, "tkl-interior-point", tol=1e-6)
        assert result.gap <= 1e-6, name
        assert result.lower_bound <= case["opt_upper_primal"] * (1 + 1e-7), name
        assert result.upper_bound >= case["opt_lower"] * (1 - 1e-7), name
        assert result.n_iter <= 30, name
        assert_allclose(np.trace(result.parameters), problem.family.n_P, rtol=1e-12)


def test_conformance() -> None:
    check_algorithm("tkl-interior-point", tol=1e-5)


@pytest.mark.parametrize(("C", "tol"), [(1.0, 1e-6), (100.0, 1e-6), (1e4, 1e-4)])
def test_a_rank_deficient_gram_and_a_large_penalty_of_numbers(C: float, tol: float) -> None:
    rng = np.random.default_rng(1)
    X = rng.integers(0, 3, size=(120, 2)) / 2.0  # nine points
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=120)
    problem = Problem(box(2), SVR(C=C, epsilon=0.01), Spectahedron(), X, y)
    found = solve(problem, "tkl-interior-point", tol=tol)
    other = solve(problem, "tkl-low-rank", tol=tol)
    assert max(found.gap, other.gap) <= tol
    assert found.n_iter <= 20
    assert found.lower_bound <= other.upper_bound
    assert other.lower_bound <= found.upper_bound


def test_packed_coordinates_keep_inner_products() -> None:
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, 4, 4))
    A, B = A + A.T, B + B.T
    packed = Symmetric(4)
    assert_allclose(packed.pack(A) @ packed.pack(B), np.sum(A * B))
    assert_allclose(packed.unpack(packed.pack(A)), A)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_step_solves_the_linearised_conditions(task: str) -> None:
    """All residuals of the optimality conditions fall linearly along a small step."""
    search = InteriorPointSearch(small(task), np.random.RandomState(0))
    for _ in range(4):
        search.step()
    at, parts, oracle = search.at, search.parts, search.oracle

    def residuals(point: Any) -> tuple[np.ndarray, ...]:
        u = parts.signed(point.v)
        K = oracle.matrix_gram(point.S)
        f = (u @ K).ravel()
        dual = parts.gain - parts.signs * (f + point.b[0]) + point.z - point.w
        excess = point.Z - point.multiplier * np.eye(len(point.S)) + search._half_moment(u)
        return dual, excess, u.sum(axis=1), np.array([np.trace(point.S) - 1.0])

    u = parts.signed(at.v)
    A = np.concatenate([search._products(row) for row in u])
    K = oracle.matrix_gram(at.S)
    system = NewtonSystem(parts, at, K, A, search._half_moment(u))
    moves = system.moves(0.0, None, search._second)
    before, t = residuals(at), 1e-4
    after = residuals(at.advance(moves, t))
    for old, new in zip(before, after, strict=True):
        size = 1.0 + np.abs(old).max()
        assert_allclose(new, (1.0 - t) * old, atol=1e-6 * size)
    product = at.v * at.z
    linear = product + at.z * moves.v + at.v * moves.z
    assert_allclose(linear, 0.0, atol=1e-9 * product.max())


def test_several_classes_share_one_kernel() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((45, 2))
    codes = (3 * X[:, 0]).astype(int)
    y = np.where(codes == np.arange(3)[:, None], 1.0, -1.0)
    problem = Problem(box(2), SVC(C=2.0), Spectahedron(), X, y)
    interior = solve(problem, "tkl-interior-point", tol=1e-6)
    newton = solve(problem, "tkl-low-rank", tol=1e-6)
    assert interior.gap <= 1e-6
    assert interior.lower_bound <= newton.upper_bound
    assert newton.lower_bound <= interior.upper_bound
    assert interior.solution.dual_coef.shape == (3, 45)


def test_weights_and_min_eig() -> None:
    X, y = make_classification(40)
    weight = np.random.default_rng(1).uniform(0.2, 2.0, size=40)
    problem = Problem(box(2), SVC(C=3.0), Spectahedron(min_eig=0.2), X, y, weight)
    interior = solve(problem, "tkl-interior-point", tol=1e-6)
    newton = solve(problem, "tkl-low-rank", tol=1e-6)
    assert np.linalg.eigvalsh(interior.parameters).min() >= 0.2 - 1e-10
    assert interior.gap <= 1e-6
    assert interior.lower_bound <= newton.upper_bound
    assert newton.lower_bound <= interior.upper_bound


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_kinked_objectives_are_rescued(degree: int) -> None:
    """With fewer features than samples OPT_A has kinks, where no smooth model is right."""
    X, y = make_regression(40)
    family = PolynomialFamily(degree, n_features=2)
    problem = Problem(family, SVR(C=2.0, epsilon=0.1), Spectahedron(), X, y)
    assert solve(problem, "tkl-low-rank", tol=1e-5).gap <= 1e-5


def test_without_a_rescue_the_kink_holds_the_method() -> None:
    X, y = make_regression(40)
    family = PolynomialFamily(2, n_features=2)
    problem = Problem(family, SVR(C=2.0, epsilon=0.1), Spectahedron(), X, y)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        alone = solve(problem, "tkl-low-rank", tol=1e-8, max_iter=100, rescue=False)
    assert alone.gap > 1e-4
    assert alone.history.counts["n_interior"][-1] == 0
    rescued = solve(problem, "tkl-low-rank", tol=1e-8, max_iter=100)
    assert rescued.status is Status.CONVERGED
    assert rescued.history.counts["n_interior"][-1] > 0


def test_what_does_not_fit_is_refused_or_not_begun() -> None:
    problem = small("classification")
    with config_context(memory_limit=required_bytes(25, problem.family.n_P) - 1):
        with pytest.raises(MemoryBudgetError, match="interior point"):
            solve(problem, "tkl-interior-point")
        with pytest.warns(KernelWeaveWarning, match="goes on without them"):
            assert not affordable(SpectahedronOracle(problem))
    assert affordable(SpectahedronOracle(problem))
    assert not affordable(SpectahedronOracle(problem, stored=False))
    with time_limit(1e-6):
        assert affordable(SpectahedronOracle(problem))


def test_progress_is_slow_where_neither_bound_moves() -> None:
    stuck = [(1.0, 2.0)] * 30
    assert not is_slow(stuck[:20])
    assert is_slow(stuck)
    assert not is_slow([(1.0, 2.0 * 0.99**k) for k in range(30)])
    assert not is_slow([(1.0, 1.0 + 1e-3 * 0.9**k) for k in range(30)])


@pytest.mark.slow
def test_german_numeric_to_1e_4(shared: Any) -> None:
    table = np.loadtxt(shared / "data" / "german_numeric.csv", delimiter=",", skiprows=1)
    X = table[:, :-1]
    X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    problem = Problem(box(24), SVC(C=1.0), Spectahedron(), X, table[:, -1])
    result = solve(problem, "tkl-low-rank", tol=1e-4)
    assert result.gap <= 1e-4
    assert_allclose(result.upper_bound, 505.322, rtol=1e-4)


def test_a_precision_that_cannot_close_the_gap_ends_the_path() -> None:
    problem = small("classification", 60)
    with pytest.warns(ConvergenceWarning):
        result = solve(problem, "tkl-interior-point", tol=1e-12, dtype="float32", max_iter=500)
    assert result.status is Status.STALLED
    assert result.n_iter <= 80
    exact = solve(problem, "tkl-interior-point", tol=1e-6)
    assert result.lower_bound <= exact.upper_bound
    assert exact.lower_bound <= result.upper_bound


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_step_below_the_rounding_of_its_matrix_is_no_error() -> None:
    X, y = make_regression(40)
    problem = Problem(PolynomialFamily(2), SVR(C=2.0, epsilon=0.1), Spectahedron(), X, y)
    found = solve(problem, "tkl-low-rank", tol=1e-15, rescue=True)
    assert found.history.counts["n_interior"][-1] > 0
    assert found.gap < 1e-6
