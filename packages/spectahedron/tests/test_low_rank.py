"""The low-rank Newton method: tight certificates in few learner solves."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from kernelweave.kernels_core import (
    CallableFamily,
    IntegralFamily,
    PolynomialFamily,
    Problem,
    Status,
    TessellatedFamily,
    solve,
)
from kernelweave.kernels_core.exceptions import convergence_warning
from kernelweave.kernels_core.testing import check_algorithm, make_classification, make_regression
from kernelweave.qp_smo import SVC, SVR
from kernelweave.spectahedron import Spectahedron, curvature
from kernelweave.spectahedron.curvature import FactorModel, idle_directions, responses
from kernelweave.spectahedron.low_rank import LowRankSearch, compressed, leading_factor
from numpy.testing import assert_allclose
from sklearn.datasets import load_diabetes

MOST_SOLVES = 40


def scaled(X: np.ndarray) -> np.ndarray:
    low, high = X.min(axis=0), X.max(axis=0)
    return (X - low) / np.where(high > low, high - low, 1.0)


def wide_box(n: int, delta: float = 0.1) -> TessellatedFamily:
    return TessellatedFamily(1, lower=np.full(n, -delta), upper=np.full(n, 1.0 + delta))


def test_certified_optima(certified: dict[str, tuple[dict[str, Any], Problem]]) -> None:
    for name, (case, problem) in certified.items():
        result = solve(problem, "tkl-low-rank", tol=1e-6)
        assert result.status is Status.CONVERGED, name
        assert result.gap <= 1e-6, name
        assert result.lower_bound <= case["opt_upper_primal"] * (1 + 1e-7), name
        assert result.upper_bound >= case["opt_lower"] * (1 - 1e-7), name
        assert result.history.counts["n_solves"][-1] <= MOST_SOLVES, name
        assert_allclose(np.trace(result.parameters), problem.family.n_P, rtol=1e-12)


def test_conformance() -> None:
    check_algorithm("tkl-low-rank", tol=1e-5)


def test_diabetes_to_1e_6_within_forty_solves() -> None:
    X, y = load_diabetes(return_X_y=True)
    y = (y - y.mean()) / y.std()
    problem = Problem(wide_box(10), SVR(C=1.0, epsilon=0.1), Spectahedron(), scaled(X), y)
    result = solve(problem, "tkl-low-rank", tol=1e-6)
    assert result.gap <= 1e-6
    assert result.history.counts["n_solves"][-1] <= MOST_SOLVES
    assert result.lower_bound <= 70.4723746 * (1 + 1e-7)
    assert result.upper_bound >= 70.4723739 * (1 - 1e-7)


def synthetic(name: str) -> Problem:
    rng = np.random.default_rng(5)
    if name == "syn8":
        x = rng.random((600, 8))
        noise = 0.02 * rng.normal(size=600)
        y = np.sign((x[:, 0] - 0.5) * (x[:, 1] - 0.5) + 0.1 * (x[:, 2] - 0.5) + noise)
        return Problem(wide_box(8), SVC(C=10.0), Spectahedron(), scaled(x), y)
    x = rng.random((600, 5))
    y = np.sin(5 * x[:, 0]) + 2 * np.abs(x[:, 1] - 0.5) + x[:, 2] * x[:, 3]
    y += 0.5 * np.sign(x[:, 4] - 0.5) + 0.05 * rng.normal(size=600)
    y = (y - y.mean()) / y.std()
    return Problem(wide_box(5), SVR(C=10.0, epsilon=0.1), Spectahedron(), scaled(x), y)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "optimum"), [("syn8", 270.9999), ("synr5", 12.49427)])
def test_synthetic_sets_within_forty_solves(name: str, optimum: float) -> None:
    result = solve(synthetic(name), "tkl-low-rank", tol=1e-8)
    assert result.gap <= 1e-8
    assert result.history.counts["n_solves"][-1] <= MOST_SOLVES
    assert_allclose(result.upper_bound, optimum, rtol=1e-5)


@pytest.mark.slow
def test_heart_within_forty_solves(shared: Any) -> None:
    table = np.loadtxt(shared / "data" / "heart_cleveland.csv", delimiter=",", skiprows=1)
    table = np.delete(table, [87, 166, 192, 266, 287, 302], axis=0)
    problem = Problem(
        wide_box(13), SVC(C=10.0), Spectahedron(), scaled(table[:, :-1]), table[:, -1]
    )
    result = solve(problem, "tkl-low-rank", tol=1e-8)
    assert result.gap <= 1e-8
    assert result.history.counts["n_solves"][-1] <= MOST_SOLVES
    assert result.lower_bound <= 412.430151 * (1 + 1e-7)
    assert result.upper_bound >= 412.429984 * (1 - 1e-7)


def test_refined_bounds_hold_and_close(
    certified: dict[str, tuple[dict[str, Any], Problem]],
) -> None:
    for name, (_, problem) in certified.items():
        rough = solve(problem, "tkl-interior-point", tol=1e-6)
        fine = solve(problem, "tkl-low-rank", tol=1e-8)
        assert fine.gap <= 1e-8, name
        assert rough.lower_bound <= fine.upper_bound, name
        assert fine.lower_bound <= rough.upper_bound, name


def test_far_fewer_solves_than_frank_wolfe(
    certified: dict[str, tuple[dict[str, Any], Problem]],
) -> None:
    _, problem = certified["reg_n3_d1_rank2"]
    slow = solve(problem, "tkl-frank-wolfe", tol=1e-3).history.counts["n_solves"][-1]
    fast = solve(problem, "tkl-low-rank", tol=1e-3).history.counts["n_solves"][-1]
    assert 10 * fast <= slow


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_model_equals_finite_differences(task: str) -> None:
    """Slope and curvature of OPT_A along the retraction, at a point with free samples.

    Along a direction that changes P: the model leaves out the others.
    """
    if task == "classification":
        X, y = make_classification(30)
        problem = Problem(wide_box(2), SVC(C=5.0), Spectahedron(), X, y)
    else:
        X, y = make_regression(30)
        problem = Problem(wide_box(2), SVR(C=5.0, epsilon=0.05), Spectahedron(), X, y)
    search = LowRankSearch(problem, np.random.RandomState(0))
    oracle, point = search.oracle, search.point
    K = oracle.factor_gram(point.U)
    point.solution = oracle.solve(K, point.solution, 1e-13)
    point.direction = oracle.direction(point.solution)
    U = point.U
    rng = np.random.default_rng(0)
    V = rng.standard_normal(U.shape)
    idle = idle_directions(U)
    V -= (idle @ (idle.T @ V.ravel())).reshape(U.shape)
    V /= np.linalg.norm(V)
    model = FactorModel(oracle, point, responses(oracle, point))
    H = model._vectors @ (model._signed[:, None] * model._vectors.T)
    gradient = (model._vectors @ model._coordinates).reshape(U.shape)

    def along(t: float) -> float:
        W = U + t * V
        K = oracle.factor_gram(W / np.linalg.norm(W))
        solution = oracle.solve(K, point.solution, 1e-14)
        return 0.5 * (solution.lower_bound + solution.upper_bound)

    t = 2e-4
    minus, here, plus = along(-t), along(0.0), along(t)
    scale = abs(here)
    assert_allclose((plus - minus) / (2 * t), np.sum(gradient * V), atol=1e-4 * scale)
    second = float(V.ravel() @ H @ V.ravel())
    assert_allclose((plus - 2 * here + minus) / t**2, second, rtol=0.05, atol=1e-2 * scale)


@pytest.mark.parametrize("rank", [2, 4])
def test_idle_directions_are_all_that_leave_P(rank: int) -> None:
    """Against the null space of the derivative of U Uᵀ/‖U‖², taken by finite differences."""
    rng = np.random.default_rng(rank)
    U = rng.standard_normal((6, rank))
    U /= np.linalg.norm(U)

    def product(flat: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        W = flat.reshape(U.shape)
        return (W @ W.T / np.sum(W * W)).ravel()

    t = 1e-6
    ends = [U.ravel() + t * np.stack([e, -e]) for e in np.eye(U.size)]
    derivative = np.column_stack([(product(a) - product(b)) / (2 * t) for a, b in ends])
    idle = idle_directions(U)
    assert_allclose(idle.T @ idle, np.eye(1 + rank * (rank - 1) // 2), atol=1e-12)
    assert_allclose(derivative @ idle, 0.0, atol=1e-8)
    assert np.linalg.matrix_rank(derivative, tol=1e-6) == U.size - idle.shape[1]


def test_columns_of_nothing_have_their_idle_directions() -> None:
    U = np.zeros((5, 4))
    U[:, 0], U[0, 1] = 0.5, 0.1
    U /= np.linalg.norm(U)
    idle = idle_directions(U)
    # of six pairs of columns one holds nothing; U itself is the sixth
    assert_allclose(idle.T @ idle, np.eye(6), atol=1e-12)


def test_the_end_is_quadratic() -> None:
    """From 1e-6 to 1e-8 in two solves at most, though three of the five columns come to nothing."""
    rng = np.random.default_rng(5)
    X = rng.random((600, 8))
    noise = 0.02 * rng.normal(size=600)
    y = np.sign((X[:, 0] - 0.5) * (X[:, 1] - 0.5) + 0.1 * (X[:, 2] - 0.5) + noise)
    problem = Problem(wide_box(8), SVC(C=10.0), Spectahedron(), scaled(X), y)
    found = solve(problem, "tkl-low-rank", tol=1e-8)
    solves = found.history.counts["n_solves"]
    first = int(np.argmax(found.history.gap <= 1e-6))
    assert found.gap <= 1e-8
    assert solves[-1] <= 20
    assert solves[-1] - solves[first] <= 2


def test_where_rounding_forbids_a_step_the_method_says_so() -> None:
    X, y = make_classification(30)
    problem = Problem(wide_box(2), SVC(C=1.0), Spectahedron(), X, y)
    with pytest.warns(convergence_warning(), match="no further progress"):
        found = solve(problem, "tkl-low-rank", tol=0.0, max_iter=200, rescue=False)
    assert found.status is Status.STALLED
    assert found.gap <= 1e-9


def jump(Z: np.ndarray, x: np.ndarray) -> np.ndarray:
    above = np.all(x <= Z, axis=1).astype(float)
    return np.stack([above, 1.0 - above], axis=1)


def test_a_gap_that_the_quadrature_holds_open_says_so() -> None:
    X, y = make_classification(30)
    family = IntegralFamily(jump, 2, [-0.1] * 2, [1.1] * 2, n_nodes=8, integral_error=0.01)
    problem = Problem(family, SVC(C=1.0), Spectahedron(), X, y)
    with pytest.warns(convergence_warning(), match="integral_error, got 0.01"):
        found = solve(problem, "tkl-low-rank", tol=1e-6, max_iter=60)
    assert found.status is Status.STALLED
    assert "precision" not in found.message


def test_the_interval_of_the_sum_over_nodes_is_tight() -> None:
    """The error of the integrals, which is not known, holds no gap of the sum open."""
    X, y = make_classification(30)
    family = IntegralFamily(jump, 2, [-0.1] * 2, [1.1] * 2, n_nodes=8)
    problem = Problem(family, SVC(C=1.0), Spectahedron(), X, y)
    found = solve(problem, "tkl-low-rank", tol=1e-6, max_iter=60)
    assert found.status is Status.CONVERGED
    low, high = family.estimate(problem, found)
    assert low < found.lower_bound < found.upper_bound < high


def test_a_basis_of_few_directions_still_certifies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curvature, "_ORDER", 40)
    X, y = make_classification(60)
    problem = Problem(
        TessellatedFamily(2, lower=[-0.1] * 2, upper=[1.1] * 2), SVC(C=5.0), Spectahedron(), X, y
    )
    assert problem.family.n_P * 4 > 40
    assert solve(problem, "tkl-low-rank", tol=1e-5).gap <= 1e-5


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("family", ["tessellated", "polynomial"])
def test_degrees(degree: int, family: str) -> None:
    X, y = make_regression(40)
    chosen = (
        TessellatedFamily(degree, lower=[-0.1] * 2, upper=[1.1] * 2)
        if family == "tessellated"
        else PolynomialFamily(degree, n_features=2)
    )
    problem = Problem(chosen, SVR(C=2.0, epsilon=0.1), Spectahedron(), X, y)
    assert solve(problem, "tkl-low-rank", tol=1e-5).gap <= 1e-5


@pytest.mark.parametrize("algorithm", ["tkl-low-rank", "tkl-interior-point", "tkl-frank-wolfe"])
def test_a_family_given_by_its_own_function(algorithm: str) -> None:
    """The blocks of the tessellated family, one call a pair, give the same optimum."""
    X, y = make_classification(20)
    family = wide_box(2)
    own = CallableFamily(family.block, family.n_P, scale=1.2**2)
    tol = 1e-2 if algorithm == "tkl-frank-wolfe" else 1e-6
    compiled = solve(Problem(family, SVC(C=2.0), Spectahedron(), X, y), algorithm, tol=tol)
    plain = solve(Problem(own, SVC(C=2.0), Spectahedron(), X, y), algorithm, tol=tol)
    assert plain.gap <= tol
    assert plain.lower_bound <= compiled.upper_bound
    assert compiled.lower_bound <= plain.upper_bound


@pytest.mark.parametrize("algorithm", ["tkl-low-rank", "tkl-interior-point"])
def test_fewer_monomials_of_z_cannot_do_better(algorithm: str) -> None:
    X, y = make_regression(40)
    learner = SVR(C=2.0, epsilon=0.1)
    full = Problem(wide_box(2), learner, Spectahedron(), X, y)
    few = TessellatedFamily(1, lower=[-0.1] * 2, upper=[1.1] * 2, z_degree=0)
    some = Problem(few, learner, Spectahedron(), X, y)
    best, less = (solve(problem, algorithm, tol=1e-6) for problem in (full, some))
    assert max(best.gap, less.gap) <= 1e-6
    # traces are n_P, so the smaller family is scaled up before it is compared
    scaled = solve(
        Problem(few, SVR(C=2.0 * few.n_P / wide_box(2).n_P, epsilon=0.1), Spectahedron(), X, y),
        algorithm,
        tol=1e-6,
    )
    assert best.lower_bound <= scaled.upper_bound * wide_box(2).n_P / few.n_P
    assert less.parameters.shape == (few.n_P, few.n_P)


def test_min_eig_agrees_with_frank_wolfe() -> None:
    X, y = make_classification(40)
    problem = Problem(wide_box(2), SVC(), Spectahedron(min_eig=0.2), X, y)
    newton = solve(problem, "tkl-low-rank", tol=1e-6)
    other = solve(problem, "tkl-frank-wolfe", tol=1e-4)
    assert np.linalg.eigvalsh(newton.parameters).min() >= 0.2 - 1e-10
    assert newton.lower_bound <= other.upper_bound
    assert newton.upper_bound >= other.lower_bound


def test_single_precision_is_honest() -> None:
    X, y = make_classification(60)
    problem = Problem(wide_box(2), SVC(), Spectahedron(), X, y)
    double = solve(problem, "tkl-low-rank", tol=1e-7)
    single = solve(problem, "tkl-low-rank", tol=2e-2, dtype="float32")
    assert single.lower_bound <= double.upper_bound
    assert single.upper_bound >= double.lower_bound


def test_limits_keep_the_bounds() -> None:
    X, y = make_classification(60)
    problem = Problem(wide_box(2), SVC(C=10.0), Spectahedron(), X, y)
    best = solve(problem, "tkl-low-rank", tol=1e-6)
    with pytest.warns(convergence_warning(), match="max_iter"):
        early = solve(problem, "tkl-low-rank", tol=1e-9, max_iter=1)
    assert early.lower_bound <= best.upper_bound
    assert early.upper_bound >= best.lower_bound


def test_factors() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((6, 6))
    U = leading_factor(A @ A.T, 3)
    assert U.shape == (6, 3)
    assert_allclose(np.linalg.norm(U), 1.0)
    doubled = np.column_stack([U, U[:, :1]]) / np.linalg.norm(np.column_stack([U, U[:, :1]]))
    small = compressed(doubled)
    assert small.shape == (6, 3)
    assert_allclose(small @ small.T, doubled @ doubled.T, atol=1e-13)
    assert leading_factor(np.zeros((1, 1)), 4).shape == (1, 1)
