"""Time limits, interruption, extreme scales, threads, laziness."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from kernelweave.kernels_core import SolveStatus
from kernelweave.kernels_core.clock import time_limit
from kernelweave.qp_smo import SVC, solve_svc, solve_svr
from kernelweave.qp_smo.problem import Budget, classification
from kernelweave.qp_smo.smo import smo
from svm_problems import rbf, real_targets, two_classes


def endless(n=300, d=24):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X @ X.T, np.where(rng.random(n) > 0.5, 1.0, -1.0)


@pytest.mark.parametrize("backend", ["auto", "smo", "interior-point"])
def test_max_time_ends_a_hopeless_solve_with_valid_bounds(backend):
    K, y = endless()
    solve_svc(K[:20, :20].copy(), y[:20], C=1.0)
    with pytest.warns(match=r"max_time|stalled"):
        solution = solve_svc(K, y, C=1e300, max_time=0.2, backend=backend)
    assert solution.status in (SolveStatus.MAX_TIME, SolveStatus.STALLED)
    assert 0.0 <= solution.lower_bound <= solution.upper_bound
    assert solution.dual_coef.sum() == 0.0


def test_the_deadline_of_the_running_solve_holds():
    K, y = endless()
    with time_limit(0.1), pytest.warns(match="max_time"):
        solution = solve_svc(K, y, C=1e300)
    assert solution.status is SolveStatus.MAX_TIME


def test_learners_report_instead_of_warning():
    K, y = endless()
    solution = SVC(C=1e300).solve(K, np.stack([y, -y]), max_time=0.05)
    assert solution.status is SolveStatus.MAX_TIME
    assert solution.status.message.startswith("the time limit")
    assert solution.lower_bound <= solution.upper_bound


@pytest.mark.parametrize(("C", "status"), [(1e300, SolveStatus.ENDLESS), (2e4, None)])
def test_steps_that_do_not_reach_their_bounds_end(C, status):
    """Pairs move some 0.2 a step along a direction of no curvature: to 2e4, not to 1e300."""
    K, y = endless(40, 5)
    K.flags.writeable = False
    run = smo(classification(K, y, np.full(40, C)), np.zeros(40), np.zeros(40), Budget(1e-3, 10**7))
    if status is None:
        assert run.status is SolveStatus.CONVERGED
        assert np.abs(run.u).max() == C
    else:
        assert run.status is status
        assert run.n_iter < 1_000_000


def test_an_endless_solve_is_interrupted():
    K, y = endless()
    solve_svc(K[:20, :20].copy(), y[:20], C=1.0)
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        solve_svc(K, y, C=1e300, max_iter=10**12, backend="smo")
    timer.join()


@pytest.mark.parametrize("C", [1e-300, 1e-12, 1.0, 1e12, 1e300])
@pytest.mark.parametrize("scale", [1e-300, 1e-16, 1.0, 1e16, 1e150])
@pytest.mark.parametrize("rank", ["full", "deficient"])
def test_extreme_scales_end_with_an_ordered_interval(C, scale, rank):
    X, y = two_classes(n=40, d=3, noise=2.0)
    K = scale * (rbf(X, 0.5) if rank == "full" else X @ X.T)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = solve_svc(K, y, C=C, max_iter=20_000)
    assert np.isfinite(solution.alpha).all()
    assert 0.0 <= solution.lower_bound <= solution.upper_bound
    assert solution.dual_coef.sum() == 0.0
    assert np.all((solution.alpha >= 0.0) & (solution.alpha <= C))


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_a_rescaled_regression_is_the_same(scale):
    X, y = real_targets()
    one = solve_svr(rbf(X, 0.5), y, C=1.0, epsilon=0.1, tol=1e-6)
    other = solve_svr(scale * rbf(X, 0.5), y, C=1.0 / scale, epsilon=0.1, tol=1e-6)
    assert scale * other.objective == pytest.approx(one.objective, rel=1e-6)


def test_threads_do_not_disturb_one_another():
    X, y = two_classes(n=150)
    grams = [rbf(X, g) for g in (0.1, 0.3, 0.5, 1.0) * 4]
    alone = [solve_svc(K, y, C=2.0).objective for K in grams]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda K: solve_svc(K, y, C=2.0).objective, grams))
    assert alone == together


def test_the_same_call_gives_the_same_answer():
    X, y = two_classes(n=150)
    K = rbf(X, 0.5)
    first, second = solve_svc(K, y, C=2.0), solve_svc(K, y, C=2.0)
    np.testing.assert_array_equal(first.alpha, second.alpha)
    assert (first.n_iter, first.n_kernel_rows) == (second.n_iter, second.n_kernel_rows)


def test_permuting_samples_permutes_the_answer():
    X, y = two_classes(n=80)
    K = rbf(X, 0.5)
    order = np.random.default_rng(0).permutation(80)
    one = solve_svc(K, y, C=2.0, tol=1e-10)
    other = solve_svc(K[np.ix_(order, order)], y[order], C=2.0, tol=1e-10)
    np.testing.assert_allclose(other.alpha, one.alpha[order], atol=1e-8)


def test_import_is_light():
    code = (
        "import sys, kernelweave.qp_smo as q; dir(q); "
        "heavy = {'numba', 'scipy', 'sklearn', 'cvxpy'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_is_an_attribute_error():
    import kernelweave.qp_smo as package

    with pytest.raises(AttributeError, match="solve_everything"):
        package.solve_everything  # noqa: B018


def test_solutions_survive_pickling():
    X, y = two_classes(n=20)
    solution = solve_svc(rbf(X, 0.5), y, C=1.0)
    copy = pickle.loads(pickle.dumps(solution))
    assert copy.status is SolveStatus.CONVERGED
    assert str(copy.status) == "converged"
    assert copy.gap == solution.gap


def test_warnings_point_at_the_caller():
    K, y = endless(n=60)
    with pytest.warns(match="max_iter") as caught:
        solve_svc(K, y, C=100.0, max_iter=3)
    assert caught[0].filename == __file__
