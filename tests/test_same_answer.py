"""The clock and the memory of the machine choose nothing: the same bits on each of them."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import (
    KernelWeaveWarning,
    PolynomialFamily,
    Problem,
    clock,
    config_context,
    memory,
    solve,
)
from kernelweave.kernels_core.testing import make_regression
from kernelweave.qp_smo import SVR, engine, solve_svc
from kernelweave.relaxations import lower_bound, solve_global
from kernelweave.spectahedron import Spectahedron
from kernelweave.vv_rkhs import solve_sylvester
from sklearn.exceptions import ConvergenceWarning

LIMIT = 1000.0
GIB = 2**30


def frozen() -> Callable[[], float]:
    """Return the clock of a machine on which everything takes no time."""
    return lambda: 0.0


def late(left: float) -> Callable[[], float]:
    """Return a clock that after its first look is just before the limit: late, never past it."""
    looks = iter([0.0])
    return lambda: next(looks, LIMIT - left)


def classification(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    y = np.where(X[:, 0] + 3.0 * rng.normal(size=n) > 0.0, 1.0, -1.0)
    return X, y


def boxed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """SMO that is slow, and the interior point that follows."""
    monkeypatch.setattr(engine, "_smo_budget", lambda n: 50)
    X, y = classification()
    found = solve_svc(X @ X.T, y, C=1000.0, tol=1e-3, max_time=LIMIT)
    assert found.backend == "interior-point"
    return found.log, found.dual_coef, found.lower_bound, found.upper_bound


def rescued(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A kinked problem over positive matrices, which the interior point takes over."""
    X, y = make_regression(40)
    problem = Problem(
        PolynomialFamily(2, n_features=2), SVR(C=2.0, epsilon=0.1), Spectahedron(), X, y
    )
    found = solve(problem, "tkl-low-rank", tol=1e-8, max_iter=100, max_time=LIMIT)
    assert found.history.counts["n_interior"][-1] > 0
    return found.parameters, found.lower_bound, found.upper_bound, found.n_iter


def vectorial(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A Sylvester equation, whose method is chosen by its flops."""
    X, _ = classification(200)
    K = np.exp(-0.1 * np.square(X[:, None] - X[None]).sum(axis=2))
    rng = np.random.default_rng(1)
    with clock.time_limit(LIMIT):
        found = solve_sylvester(K, np.diag([0.5, 1.0]), rng.normal(size=(200, 2)), 1e-3)
    return found.method, found.C


def stack() -> tuple[np.ndarray, np.ndarray]:
    X, y = classification(24)
    return np.stack([np.outer(x, x) for x in X.T]), y


def conic(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A relaxation that somebody else's solver finds."""
    grams, y = stack()
    found = lower_bound(grams, y, C=1.0, lam=0.1, k0=2, relaxation="soc", max_time=LIMIT)
    return found.bound, found.weights, found.solver, found.attempts


def branched(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The global optimum over supports."""
    grams, y = stack()
    found = solve_global(grams, y, C=1.0, lam=0.1, k0=2, tol=1e-6, max_time=LIMIT)
    return found.weights, found.lower_bound, found.upper_bound, found.n_nodes


CHOICES = [boxed, rescued, vectorial, conic, branched]


@pytest.mark.parametrize("choice", CHOICES)
def test_a_fast_clock_and_a_slow_one_give_the_same_bits(
    choice: Callable[[pytest.MonkeyPatch], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    # a solver of somebody else's is handed the seconds that are left, and must have some
    for reading in (frozen(), late(100.0 if choice is conic else 1e-6)):
        monkeypatch.setattr(clock, "time", types.SimpleNamespace(monotonic=reading))
        found.append(choice(monkeypatch))
    np.testing.assert_equal(found[1], found[0])


@pytest.mark.parametrize("choice", CHOICES)
def test_a_small_machine_and_a_large_one_give_the_same_bits(
    choice: Callable[[pytest.MonkeyPatch], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for size in (2 * GIB, 2**50):
        monkeypatch.setattr(memory, "machine_bytes", lambda size=size: size)
        found.append(choice(monkeypatch))
    np.testing.assert_equal(found[1], found[0])


def test_a_limit_that_forbids_the_interior_point_is_not_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "_smo_budget", lambda n: 50)
    X, y = classification()
    with (
        config_context(memory_limit=16 * 120**2),
        pytest.warns(KernelWeaveWarning, match="goes on without them, and its gap may stay wider"),
        pytest.warns(ConvergenceWarning),
    ):
        found = solve_svc(X @ X.T, y, C=1000.0, tol=1e-9)
    assert found.backend == "smo"
    assert found.lower_bound <= found.upper_bound
