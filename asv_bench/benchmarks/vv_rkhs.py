"""Matrix-valued kernels: steps and products to a gap, the choice of the C solver, exponents."""

from __future__ import annotations

import math
import time
import warnings
from typing import Any

import numpy as np

from ._measure import exponent

LIMIT = 4000  # what is never reached counts as so many: higher is worse
METHODS = ("eigen", "cholesky", "cg", "columns")


def problem(l: int = 100, n: int = 8, m: int = 10, lam: float = 1e-2, **what: bool) -> Any:
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


def run(case: Any, tol: float, algorithm: str = "vv-spg", **params: Any) -> Any:
    from kernelweave.kernels_core import solve

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solve(
            case, algorithm, tol=tol, stationarity_tol=tol, max_iter=400, max_time=30.0, **params
        )


class Steps:
    """Steps, and products of K with a column, until what is learned is within a gap."""

    params = (("input", "output", "both"), (1e-2, 1e-4, 1e-6))
    param_names = ("learned", "gap")
    timeout = 120

    def setup_cache(self) -> dict[Any, tuple[int, int]]:
        found = {}
        for learned in self.params[0]:
            case = problem(learn_input=learned != "output", learn_output=learned != "input")
            for tol in self.params[1]:
                result = run(case, tol, method="columns")
                done = result.status.success
                columns = result.history.counts["n_columns"][-1]
                found[learned, tol] = (result.n_iter, columns) if done else (LIMIT, 10**9)
        return found

    def track_steps(self, found: dict[Any, Any], learned: str, gap: float) -> int:
        return int(found[learned, gap][0])

    def track_matvecs(self, found: dict[Any, Any], learned: str, gap: float) -> int:
        return int(found[learned, gap][1])


class ChosenSolver:
    """The time of the chosen C solver over that of the fastest, median of five of each."""

    params = ((200, 600, 1500), (5, 100), (1e-1, 1e-3, 1e-5))
    param_names = ("n_samples", "n_outputs", "lam")
    timeout = 600

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


def median_seconds(call: Any, limit: float = 4.0) -> float:
    """Return the median processor time of five calls, of one where it takes longer than a limit."""
    spent: list[float] = []
    while len(spent) < 5 and (not spent or spent[0] < limit):
        started = time.process_time()
        call()
        spent.append(time.process_time() - started)
    return float(np.median(spent))


class Growth:
    """Exponents of the processor time of one step in samples, outputs and kernels."""

    timeout = 300

    def _exponent(self, name: str, sizes: tuple[int, ...], **fixed: int) -> float:
        costs = []
        for size in sizes:
            case = problem(**{**fixed, name: size})
            started = time.process_time()
            result = run(case, 1e-3)
            costs.append((time.process_time() - started) / max(1, result.n_iter))
        return exponent(sizes, costs)

    def track_samples(self) -> float:
        return self._exponent("l", (200, 400, 800), n=10, m=10)

    def track_outputs(self) -> float:
        return self._exponent("n", (10, 40, 160), l=200, m=5)

    def track_kernels(self) -> float:
        return self._exponent("m", (10, 40, 160), l=200, n=5)


class Stationary:
    """Steps of joint learning to a stationarity of 1e-5 at (l, n, m) = (150, 30, 30)."""

    params = (1e-1, 1e-2, 1e-3)
    param_names = ("lam",)
    timeout = 300

    def track_steps(self, lam: float) -> float:
        result = run(problem(150, 30, 30, lam), 1e-5)
        return result.n_iter if result.status.label == "stationary" else math.inf
