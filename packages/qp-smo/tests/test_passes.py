"""The compiled passes against NumPy twins that share no code with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kernelweave.kernels_core.grams import as_gram
from kernelweave.kernels_core.grams.psd import reach_of
from kernelweave.qp_smo import _njit_product, _njit_smo, point, smo
from kernelweave.qp_smo.bounds import SuspectGramError, function_values
from kernelweave.qp_smo.problem import BoxProblem, classification
from kernelweave.qp_smo.smo import newton_steps
from svm_problems import rbf, real_targets, two_classes, violation


def smo_twin(K, p, epsilon, lower, upper, tol, n_steps):
    """Second-order SMO as in the paper, with loops and no offsets."""
    n = p.size
    u, g = np.zeros(n), p.copy()
    steps = 0
    for steps in range(n_steps):  # noqa: B007
        up = np.where(u < upper, g - np.where(u >= 0, epsilon, -epsilon), -np.inf)
        down = np.where(u > lower, g - np.where(u > 0, epsilon, -epsilon), np.inf)
        i = int(np.argmax(up))
        if up[i] - down.min() <= tol:
            break
        b = up[i] - down
        a = np.maximum(K[i, i] + np.diagonal(K) - 2 * K[i], 1e-12)
        gain = np.where(b > 0, b * b / a, 0.0)
        j = int(np.argmax(gain))
        t = min(b[j] / a[j], upper[i] - u[i], u[j] - lower[j])
        u[i] += t
        u[j] -= t
        g -= t * (K[i] - K[j])
    return u, steps


def run(K, p, epsilon, lower, upper, tol, n_steps):
    frozen = K.copy()
    frozen.flags.writeable = False
    u, g = np.zeros(p.size), p.copy()
    up, down, score = np.empty((3, p.size))
    up[:], down[:] = smo.offsets(u, lower, upper, epsilon)
    diag = np.diagonal(K).astype(float)
    done, top, bottom, stalled = _njit_smo.smo_steps(
        frozen,
        diag,
        u,
        g,
        lower,
        upper,
        up,
        down,
        score,
        epsilon,
        tol,
        1e-12,
        n_steps,
        int((g + up).argmax()),
        float((g + up).max()),
        float((g + down).min()),
    )
    return u, g, done, top - bottom, stalled


@pytest.mark.parametrize("n", [5, 63, 129, 200])
@pytest.mark.parametrize("n_steps", [1, 3, 10_000])
def test_classification_steps_match_the_twin(n, n_steps):
    X, y = two_classes(n=n)
    K = rbf(X, 0.5)
    lower, upper = np.minimum(2.0 * y, 0.0), np.maximum(2.0 * y, 0.0)
    u, g, done, gap, stalled = run(K, y, 0.0, lower, upper, 1e-6, n_steps)
    twin, steps = smo_twin(K, y, 0.0, lower, upper, 1e-6, n_steps)
    # A step equalises its pair, so later ties are broken by rounding and the paths part.
    np.testing.assert_allclose(u, twin, atol=1e-5 if n_steps > 100 else 1e-12)
    np.testing.assert_allclose(g, y - K @ u, atol=1e-10)
    assert not stalled
    assert gap == pytest.approx(violation(K, y, 0.0, lower, upper, u), abs=1e-9)
    assert done <= n_steps
    assert steps <= n_steps


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_regression_steps_cross_the_kinks_and_ascend(epsilon):
    X, y = real_targets(n=90)
    K = rbf(X, 0.3)
    upper = np.full(90, 5.0)

    def value(u):
        return y @ u - epsilon * np.abs(u).sum() - 0.5 * u @ K @ u

    last = 0.0
    for n_steps in range(1, 120):
        u, g, *_ = run(K, y, epsilon, -upper, upper, 1e-9, n_steps)
        assert value(u) >= last - 1e-12
        assert abs(u.sum()) < 1e-12
        last = value(u)
        np.testing.assert_allclose(g, y - K @ u, atol=1e-11)
    u, _, done, gap, _ = run(K, y, epsilon, -upper, upper, 1e-9, 100_000)
    assert gap <= 1e-9
    assert done < 100_000


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [3, 100, 1100])
def test_product_and_its_majorant(n, dtype):
    rng = np.random.default_rng(n)
    K = rng.normal(size=(n, n)).astype(dtype)
    K = np.ascontiguousarray(K + K.T)
    K.flags.writeable = False
    u = np.where(rng.random(n) < 0.4, rng.normal(size=n), 0.0)
    f, a, rows, roundings = point.product(K, u)
    assert rows == np.count_nonzero(u)
    assert roundings <= rows + 2
    np.testing.assert_allclose(f, u @ K.astype(float), atol=1e-12 * n)
    np.testing.assert_allclose(a, np.abs(u) @ np.abs(K.astype(float)), rtol=1e-12)


@pytest.mark.parametrize("n", [3, 300])
def test_products_of_both_sides_and_odd_entries(n):
    rng = np.random.default_rng(n)
    K = rng.normal(size=(n, n))
    K.flags.writeable = False
    reach = rng.uniform(0.5, 2.0, n)
    u = np.where(rng.random(n) < 0.9, rng.normal(size=n), 0.0)
    w = rng.normal(size=n)
    out = np.zeros((6, n))
    odd = _njit_product.products_of_both_sides(K, u, reach, w, out, np.zeros(n))
    size = np.abs(K)
    wanted = [K @ u, size @ np.abs(u), K.T @ u, size.T @ np.abs(u), K @ w, K.T @ w]
    np.testing.assert_allclose(out, wanted, atol=1e-13 * n)
    assert odd == np.count_nonzero(size > np.outer(reach, reach))


@pytest.mark.parametrize("at", [(0, 7), (7, 0), (8, 9)])
def test_the_product_for_bounds_sees_asymmetry_and_charges_it(at):
    X, y = two_classes(n=140)
    K = rbf(X, 0.5)
    problem = classification(as_gram(K), y, np.full(140, 2.0))
    u = np.zeros(140)
    u[:6] = [0.5, -0.25, 1.0, -1.5, 2.0, -1.75]
    problem = replace(problem, reach=reach_of(K))
    K[at] += 1e-14
    values = function_values(problem, u)
    wide = K.astype(np.longdouble)
    assert np.all(np.abs(values.f - 0.5 * (wide + wide.T) @ u) <= values.error)
    assert np.all(values.error < 1e-12)
    for odd in (K[at] + 1e-9, np.nan):
        K[at] = odd
        with pytest.raises(SuspectGramError):
            function_values(problem, u)


def test_sub_gram():
    K = np.random.default_rng(0).normal(size=(9, 9))
    K.flags.writeable = False
    index = np.array([7, 1, 4])
    out = np.empty((3, 3))
    _njit_smo.sub_gram(K, index, out)
    np.testing.assert_array_equal(out, K[np.ix_(index, index)])


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_a_newton_step_solves_the_free_problem(epsilon):
    X, y = real_targets(n=60)
    K = rbf(X, 0.5)
    K.flags.writeable = False
    upper = np.where(np.arange(60) < 10, 1e6, 0.0)
    u = np.zeros(60)
    u[:10] = np.linspace(-3, 3, 10)
    f = K @ u
    steps, m, _ = newton_steps(BoxProblem(K, y, -upper, upper, epsilon), u, f, 1e9, 60)
    free = np.flatnonzero(u)
    assert steps >= 1
    assert m == 10
    assert free.size <= 10
    assert abs(u.sum()) < 1e-9
    np.testing.assert_allclose(f, K @ u, atol=1e-9)
    gradient = y[free] - f[free] - epsilon * np.sign(u[free])
    assert np.ptp(gradient) < 1e-7


def test_newton_steps_never_leave_the_box_nor_lower_the_dual():
    X, y = two_classes(n=60)
    K = X @ X.T
    K.flags.writeable = False
    lower, upper = np.minimum(y, 0.0), np.maximum(y, 0.0)
    share = np.random.default_rng(0).uniform(0.1, 0.9, size=60)
    u = np.where(y > 0, share / share[y > 0].sum(), -share / share[y < 0].sum())
    f = K @ u
    before = np.abs(u).sum() - 0.5 * u @ K @ u
    problem = BoxProblem(K, y, lower, upper)
    steps, m, _ = newton_steps(problem, u, f, 1e9, 60)
    assert m == 60
    assert steps > 1
    assert np.all((u >= lower) & (u <= upper))
    assert np.abs(u).sum() - 0.5 * u @ K @ u >= before
    assert newton_steps(problem, u, f, 1e9, 1) == (0, 0, 0.0)


def test_offsets_of_all_samples_are_those_that_a_step_writes():
    u = np.array([-2.0, -0.5, 0.0, 0.0, 0.5, 2.0])
    lower, upper = np.full(6, -2.0), np.full(6, 2.0)
    lower[2], upper[3] = 0.0, 0.0
    all_up, all_down, up, down = np.empty((4, 6))
    all_up[:], all_down[:] = smo.offsets(u, lower, upper, 0.25)
    for k in range(6):
        _njit_smo._set_offsets.py_func(k, u, lower, upper, up, down, 0.25)
    np.testing.assert_array_equal(all_up, up)
    np.testing.assert_array_equal(all_down, down)
