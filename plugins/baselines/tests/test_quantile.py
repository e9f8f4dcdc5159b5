"""The quantile regressor: its definition, its units, and a conic solver over several kernels."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from kernelweave.baselines import KernelQuantileRegressor
from kernelweave.kernels_core import RBF, Laplacian, Linear, UnderfitWarning
from kernelweave.kernels_core.testing import make_regression
from kernelweave.qp_smo import solve_quantile_svr
from sklearn.metrics import d2_pinball_score

KERNELS = [Linear(), RBF(gamma=2.0), Laplacian(gamma=1.0)]


def saddle_dual(grams: Any, y: Any, C: float, quantile: float) -> Any:
    """Return max over u of yᵀu − ½ max over j of uᵀKⱼu, the dual of the saddle."""
    u, top = cp.Variable(len(y)), cp.Variable()
    rules = [cp.sum(u) == 0, u <= quantile * C, u >= (quantile - 1.0) * C]
    for K in grams:
        values, vectors = np.linalg.eigh(K)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))).T
        rules.append(cp.sum_squares(root @ u) <= top)
    return cp.Problem(cp.Maximize(y @ u - 0.5 * top), rules)


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.8])
def test_optimum_of_a_conic_solver(conic_optimum: Any, quantile: float) -> None:
    X, y = make_regression(50)
    model = KernelQuantileRegressor(
        KERNELS, quantile=quantile, C=4.0, normalize=None, units="absolute", tol=1e-6
    ).fit(X, y)
    problem = saddle_dual([kernel(X) for kernel in KERNELS], y, 4.0, quantile)
    wanted, digits = conic_optimum(problem)
    assert model.certificate_.gap <= 1e-6
    assert model.certificate_.lower_bound <= wanted * (1 + digits)
    assert model.certificate_.upper_bound >= wanted * (1 - digits)


def test_one_kernel_is_the_machine_itself() -> None:
    X, y = make_regression(60)
    options = {"quantile": 0.7, "C": 5.0}
    model = KernelQuantileRegressor([RBF(2.0)], units="absolute", tol=1e-7, **options).fit(X, y)
    other = solve_quantile_svr(RBF(2.0)(X), y, tol=1e-9, **options)
    assert model.weights_ == pytest.approx([1.0])
    values = other.function_values + other.intercept
    np.testing.assert_allclose(model.predict(X), values, atol=1e-3)


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_the_share_below_is_the_quantile(quantile: float) -> None:
    X, y = make_regression(200)
    model = KernelQuantileRegressor(["rbf"], quantile=quantile, tol=1e-6).fit(X, y)
    below = y < model.predict(X) - 1e-3
    above = y > model.predict(X) + 1e-3
    assert below.mean() <= quantile
    assert above.mean() <= 1.0 - quantile


def test_units_weights_and_copies() -> None:
    X, y = make_regression(50)
    make = lambda: KernelQuantileRegressor(KERNELS, quantile=0.8, tol=1e-8)  # noqa: E731
    plain = make().fit(X, y).predict(X)
    np.testing.assert_allclose(
        make().fit(X, 1e4 * y + 7.0).predict(X), 1e4 * plain + 7.0, rtol=1e-3
    )
    weight = np.ones(50)
    weight[7], weight[9] = 2.0, 0.0
    rows = np.delete(np.r_[np.arange(50), 7], 9)
    one = make().fit(X, y, sample_weight=weight).predict(X)
    np.testing.assert_allclose(one, make().fit(X[rows], y[rows]).predict(X), atol=1e-3)


def test_a_quantile_far_from_the_mean_is_judged_by_its_own_loss() -> None:
    X, y = make_regression(80)
    model = KernelQuantileRegressor(KERNELS, quantile=0.98, C=10.0)
    assert d2_pinball_score(y, model.fit(X, y).predict(X), alpha=0.98) > 0.3
    with pytest.warns(UnderfitWarning, match="D² of the pinball loss is"):
        KernelQuantileRegressor(KERNELS, C=1e-4).fit(X, y)


def test_a_wrong_quantile_is_named() -> None:
    X, y = make_regression(20)
    with pytest.raises(ValueError, match=r"quantile must be .* > 0 and < 1, got 1\.0"):
        KernelQuantileRegressor(quantile=1.0).fit(X, y)
