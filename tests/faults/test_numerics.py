"""What must not change an answer, and what must bracket it, on random small problems."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernelweave.baselines import SimpleMKLClassifier
from kernelweave.kernels_core import RBF, config_context
from kernelweave.mkl_sparse import SparseMKLClassifier
from kernelweave.qp_smo import solve_kernel_weights, solve_svc, solve_svr
from kernelweave.ridge_mkl import RidgeMKLRegressor
from kernelweave.spectahedron import TessellatedKernelClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC

FEW = settings(
    max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
SEEDS = st.integers(0, 10**6)


def problem(seed: int, n: int = 16) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return points, labels of both classes, and two Gram matrices."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    square = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return X, y, np.stack([np.exp(-square), X @ X.T + 1.0])


@FEW
@given(SEEDS, st.sampled_from([1e-3, 0.1, 30.0, 1e4]))
def test_scaling_of_the_kernel(seed: int, c: float) -> None:
    """OPT(cK, C/c) = OPT(K, C)/c, for both losses: the intervals must overlap."""
    _, y, (K, _) = problem(seed)
    for one, other in (
        (solve_svc(K, y, C=2.0, tol=1e-8), solve_svc(c * K, y, C=2.0 / c, tol=1e-8)),
        (
            solve_svr(K, y, C=2.0, epsilon=0.1, tol=1e-8),
            solve_svr(c * K, y, C=2.0 / c, epsilon=0.1, tol=1e-8),
        ),
    ):
        assert other.lower_bound * c == pytest.approx(one.lower_bound, rel=1e-6)
        assert other.lower_bound * c <= one.upper_bound * (1 + 1e-12)
        assert one.lower_bound <= other.upper_bound * c * (1 + 1e-12)


@FEW
@given(SEEDS)
def test_a_duplicated_kernel_changes_nothing(seed: int) -> None:
    _, y, grams = problem(seed)
    one = solve_kernel_weights(grams, y, C=1.0, tol=1e-6)
    two = solve_kernel_weights(np.concatenate([grams, grams[:1]]), y, C=1.0, tol=1e-6)
    assert one.lower_bound <= two.upper_bound
    assert two.lower_bound <= one.upper_bound


@FEW
@given(SEEDS)
def test_a_weight_of_zero_is_a_sample_left_out(seed: int) -> None:
    _, y, (K, _) = problem(seed)
    weight = np.ones(len(y))
    weight[4:8] = 0.0
    kept = np.flatnonzero(weight)
    if len(set(y[kept])) < 2:
        return
    whole = solve_svc(K, y, C=1.0, sample_weight=weight, tol=1e-9)
    part = solve_svc(K[np.ix_(kept, kept)], y[kept], C=1.0, tol=1e-9)
    assert whole.lower_bound == pytest.approx(part.lower_bound, rel=1e-7)
    assert not whole.dual_coef[4:8].any()


@FEW
@given(SEEDS)
def test_the_order_of_samples_and_kernels_is_of_no_account(seed: int) -> None:
    _, y, grams = problem(seed)
    order = np.random.default_rng(seed).permutation(len(y))
    one = solve_kernel_weights(grams, y, C=1.0, tol=1e-7)
    two = solve_kernel_weights(grams[::-1][:, order][:, :, order].copy(), y[order], C=1.0, tol=1e-7)
    assert one.lower_bound <= two.upper_bound
    assert two.lower_bound <= one.upper_bound


@FEW
@given(SEEDS)
def test_one_kernel_is_the_plain_machine(seed: int) -> None:
    """SVC on that kernel, and kernel ridge regression."""
    X, y, (K, _) = problem(seed)
    model = SimpleMKLClassifier([RBF(1.0)], C=1.0, normalize=None, tol=1e-9).fit(X, y)
    plain = SVC(C=1.0, kernel="precomputed", tol=1e-9).fit(K, y)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(K), atol=2e-4)
    target = X[:, 0] * X[:, 1]
    ridge = RidgeMKLRegressor([RBF(1.0)], lam=0.5, normalize=None, fit_intercept=False, tol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ridge.fit(X, target)
    weight = float(ridge.weights_[0])
    other = KernelRidge(alpha=0.5, kernel="precomputed").fit(weight * K, target)
    np.testing.assert_allclose(ridge.predict(X), other.predict(weight * K), atol=1e-6)


@FEW
@given(SEEDS, st.floats(1e-3, 1e3))
def test_bounds_hold_an_independent_value(seed: int, C: float) -> None:
    """LIBSVM's dual value, of a point that is feasible, never lies above the upper bound."""
    _, y, (K, _) = problem(seed)
    ours = solve_svc(K, y, C=C, tol=1e-3)
    libsvm = SVC(C=C, kernel="precomputed", tol=1e-10).fit(K, y)
    u = np.zeros(len(y))
    u[libsvm.support_] = libsvm.dual_coef_[0]
    value = np.abs(u).sum() - 0.5 * u @ K @ u
    slack = 1e-6 * max(1.0, abs(value))
    assert ours.lower_bound <= value + slack
    assert value <= ours.upper_bound + slack
    assert ours.lower_bound <= ours.upper_bound


MODELS: dict[str, Any] = {
    "sparse": lambda: SparseMKLClassifier(k0=2, random_state=0),
    "tessellated": lambda: TessellatedKernelClassifier(tol=1e-2, random_state=0),
    "simple": lambda: SimpleMKLClassifier(tol=1e-2),
}


def fitted(name: str, seed: int, n_threads: int = 1) -> Any:
    X, y, _ = problem(seed, 30)
    with warnings.catch_warnings(), config_context(n_threads=n_threads):
        warnings.simplefilter("ignore")
        model = MODELS[name]().fit(X, y)
    return model.decision_function(X), model.result_


@pytest.mark.parametrize("name", sorted(MODELS))
def test_bounds_only_get_better(name: str) -> None:
    _, result = fitted(name, 3)
    assert (np.diff(result.history.lower) >= 0.0).all()
    assert (np.diff(result.history.upper) <= 0.0).all()
    assert result.gap >= 0.0


@pytest.mark.parametrize("name", sorted(MODELS))
def test_runs_and_threads_agree_to_the_last_bit(name: str) -> None:
    once, _ = fitted(name, 4)
    again, _ = fitted(name, 4)
    threaded, _ = fitted(name, 4, n_threads=2)
    np.testing.assert_array_equal(once, again)
    np.testing.assert_array_equal(once, threaded)
