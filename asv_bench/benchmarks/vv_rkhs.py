"""Matrix-valued kernels: steps and products to a gap, the choice of the C solver, exponents."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ._measure import exponent

if TYPE_CHECKING:
    from kernelweave.kernels_core import Problem, Result

LIMIT = 4000  # what is never reached counts as so many: higher is worse
_Counts = dict[tuple[str, float], tuple[int, int]]
_Ratios = dict[tuple[str, float], float]
METHODS = ("eigen", "cholesky", "cg", "columns", "nystrom")


def problem(l: int = 100, n: int = 8, m: int = 10, lam: float = 1e-2, **what: bool) -> Problem:
    from kernelweave.kernels_core import Problem
    from kernelweave.vv_rkhs import PrecomputedFamily, SeparableKernels, VectorLeastSquares

    rng = np.random.default_rng(0)
    X = rng.standard_normal((l, 10))
    grams = np.stack(
        [
            np.exp(-(0.1, 0.5, 2.0)[j // 10 % 3] * (X[:, j % 10, None] - X[:, j % 10]) ** 2)
            for j in range(m)
        ]
    )
    shared = np.stack([np.sin(2 * X[:, k % 4] + k) for k in range(5)], axis=1)
    Y = shared @ rng.standard_normal((5, n)) + 0.3 * rng.standard_normal((l, n))
    positions = np.arange(float(l))[:, None]
    family, learner = PrecomputedFamily(grams), VectorLeastSquares(lam)
    return Problem(family, learner, SeparableKernels(**what), positions, Y.T)


def run(case: Problem, tol: float, algorithm: str = "vv-spg", **params: Any) -> Result:
    from kernelweave.kernels_core import solve

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solve(
            case, algorithm, tol=tol, stationarity_tol=tol, max_iter=400, max_time=30.0, **params
        )


class Steps:
    """Steps, and products of K with a column, until what is learned is within a tolerance.

    Of the gap; learned together, which has no gap to close, of stationarity.
    """

    params = (("input", "output", "both"), (1e-2, 1e-4, 1e-6))
    param_names = ("learned", "tol")

    def setup_cache(self) -> _Counts:
        found = {}
        for learned in self.params[0]:
            case = problem(learn_input=learned != "output", learn_output=learned != "input")
            for tol in self.params[1]:
                result = run(case, tol, method="columns")
                ended = result.status.label
                done = ended == ("stationary" if learned == "both" else "converged")
                columns = result.history.counts["n_columns"][-1]
                found[learned, tol] = (result.n_iter, columns) if done else (LIMIT, 10**9)
        return found

    def track_steps(self, found: _Counts, learned: str, tol: float) -> int:
        return int(found[learned, tol][0])

    def track_matvecs(self, found: _Counts, learned: str, tol: float) -> int:
        return int(found[learned, tol][1])


class ChosenSolver:
    """The time of the chosen C solver over that of the fastest, median of five of each."""

    params = ((200, 600, 1500), (5, 100), (1e-1, 1e-3, 1e-5))
    param_names = ("n_samples", "n_outputs", "lam")

    def track_ratio(self, l: int, n: int, lam: float) -> float:
        from kernelweave.vv_rkhs import solve_sylvester

        K, L, Y = system(l, n)
        times = {}
        for method in (*METHODS, "auto"):
            if method == "cholesky" and n * l > 100 * 600:
                continue  # a hundred factorisations, never the fastest
            times[method] = median_seconds(
                lambda method=method: solve_sylvester(K, L, Y, lam * l, method=method)
            )
        return times.pop("auto") / min(times.values())


def system(l: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((l, 10))
    squares = (X**2).sum(axis=1)
    K = np.exp(-0.1 * np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0.0))
    W = rng.standard_normal((n, max(2, n // 2)))
    L = W @ W.T + 0.1 * np.eye(n)
    Y = np.sin(X @ rng.standard_normal((10, n))) + 0.1 * rng.standard_normal((l, n))
    return K, n * L / np.trace(L), Y


def median_seconds(call: Callable[[], object], limit: float = 4.0) -> float:
    """Return the median processor time of five calls, of one where it takes longer than a limit."""
    spent: list[float] = []
    while len(spent) < 5 and (not spent or spent[0] < limit):
        started = time.process_time()
        call()
        spent.append(time.process_time() - started)
    return float(np.median(spent))


class Growth:
    """Exponents of the processor time of one step in samples, outputs and kernels."""

    params = (("vv-spg", "vv-block-descent", "vv-dinuzzo"),)
    param_names = ("algorithm",)

    def _exponent(self, algorithm: str, name: str, sizes: tuple[int, ...], **fixed: int) -> float:
        costs = [step_seconds(algorithm, problem(**{**fixed, name: size})) for size in sizes]
        return exponent(sizes, costs)

    def track_samples(self, algorithm: str) -> float:
        return self._exponent(algorithm, "l", (200, 400, 800), n=10, m=10)

    def track_outputs(self, algorithm: str) -> float:
        return self._exponent(algorithm, "n", (10, 40, 160), l=200, m=5)

    def track_kernels(self, algorithm: str) -> float:
        return self._exponent(algorithm, "m", (10, 40, 160), l=200, n=5)


def step_seconds(algorithm: str, case: Problem) -> float:
    """Return processor seconds per evaluation, the first one with what it prepares included."""
    from kernelweave.kernels_core import Problem, solve
    from kernelweave.vv_rkhs import FrobeniusOutputKernels

    if algorithm == "vv-dinuzzo":
        what = FrobeniusOutputKernels(5.0)
        case = Problem(case.family, case.learner, what, case.X, case.y)

    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = solve(case, algorithm, tol=1e-3, max_iter=6)
    return (time.process_time() - started) / (1 + result.n_iter)


class Dinuzzo:
    """Processor time to 1e-3 of one's own optimum over that of ``vv-dinuzzo``.

    102 classes of 30 samples and 10 kernels, the problem of V's Figures 1 and 2. The method
    decomposes one fixed combination of the kernels; ρ is the one of two at which it is faster.
    """

    params = (("output", "both"), (1.0, 10.0))
    param_names = ("learned", "tau_over_n")

    def setup_cache(self) -> _Ratios:
        from kernelweave.vv_rkhs import FrobeniusOutputKernels, SeparableKernels, SquaredLpNorm

        grams, Y = classes()
        theirs = seconds_to(grams, Y, "vv-dinuzzo", FrobeniusOutputKernels(0.5), 15)
        found = {}
        for ratio in self.params[1]:
            tau = ratio * Y.shape[1]
            for learned in self.params[0]:
                what = SeparableKernels(SquaredLpNorm(1.7), tau, learn_input=learned == "both")
                found[learned, ratio] = seconds_to(grams, Y, "vv-spg", what, 6) / theirs
        return found

    def track_ratio(self, found: _Ratios, learned: str, tau_over_n: float) -> float:
        return found[learned, tau_over_n]


def classes() -> tuple[np.ndarray, np.ndarray]:
    """Return ten Gram matrices and centred one-hot targets."""
    from kernelweave.kernels_core import RBF
    from kernelweave.papers.matrix_valued import paper

    X, labels, _, _ = paper.classes(102, 1)
    kernels = [RBF(gamma=1.0 / 16.0).on(list(range(4 * k, 4 * k + 4))) for k in range(10)]
    Y = np.eye(102)[labels]
    return np.stack([kernel(X) for kernel in kernels]), Y - Y.mean(axis=0)


def seconds_to(grams: np.ndarray, Y: np.ndarray, algorithm: str, what: object, steps: int) -> float:
    """Return processor seconds until the value is within 1e-3 of that after all steps."""
    from kernelweave.kernels_core import Problem, solve
    from kernelweave.vv_rkhs import PrecomputedFamily, VectorLeastSquares

    positions = np.arange(float(len(Y)))[:, None]
    case = Problem(PrecomputedFamily(grams), VectorLeastSquares(1e-3), what, positions, Y.T)
    wall, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        history = solve(case, algorithm, tol=1e-6, max_iter=steps).history
    share = (time.process_time() - cpu) / (time.perf_counter() - wall)
    value = np.array(history.value)
    first = int(np.flatnonzero(value <= 1.001 * value.min())[0])
    return float(history.seconds[first] * share)


class Stationary:
    """Steps of joint learning to a stationarity of 1e-5 at (l, n, m) = (150, 30, 30)."""

    params = (1e-1, 1e-2, 1e-3)
    param_names = ("lam",)

    def track_steps(self, lam: float) -> float:
        result = run(problem(150, 30, 30, lam), 1e-5)
        return result.n_iter if result.status.label == "stationary" else math.inf
