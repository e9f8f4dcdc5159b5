"""Kernel learning for ridge regression: evaluations to a certified gap, cost of one, a fit."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from ._measure import exponent, seconds

if TYPE_CHECKING:
    from kernelweave.kernels_core import Problem

ALGORITHMS = ("krr-auto", "krr-newton", "krr-spg", "krr-mm")
NORMS = (1.0, 2.0)
M, TOL = 400, 1e-8
# what is never reached counts as so many: higher is worse
LIMIT = 1000
_Counts = dict[tuple[str, float], int]


def grams(n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return 30 Gaussian Gram matrices, three widths on each of ten columns, and targets."""
    from kernelweave.kernels_core import RBF, KernelDictionary

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, 10))
    kernels = [RBF(2.0**e).on([c]) for c in range(10) for e in (-2, 0, 2)]
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 - 1 + 0.3 * rng.standard_normal(n_samples)
    return KernelDictionary(kernels).fit_grams(X).grams, y - y.mean()


def problem(q: float, lam: float, n_samples: int = M) -> Problem:
    from kernelweave.kernels_core import Problem
    from kernelweave.kernels_core.grams import PrecomputedDictionary
    from kernelweave.qp_smo import Ridge
    from kernelweave.ridge_mkl import LqBall

    stack, y = grams(n_samples)
    X = np.arange(n_samples, dtype=float)[:, None]
    ball = LqBall(q=q, center=0.0)
    return Problem(PrecomputedDictionary(stack), Ridge(C=1.0 / lam), ball, X, y)


class Evaluations:
    """Evaluations of the objective to a relative gap of 1e-8, the more of λ = .01 and λ = 1."""

    params = (ALGORITHMS, NORMS)
    param_names = ("algorithm", "q")

    def setup_cache(self) -> _Counts:
        from kernelweave.kernels_core import solve

        found: _Counts = {}
        for name in ALGORITHMS:
            for q in NORMS:
                most = 0
                for lam in (1e-2, 1.0):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        result = solve(problem(q, lam), name, tol=TOL, max_iter=60, max_time=20.0)
                    count = int(result.history.counts["n_evaluations"][-1])
                    most = max(most, count if result.gap <= TOL else LIMIT)
                found[name, q] = most
        return found

    def track_evaluations(self, found: _Counts, algorithm: str, q: float) -> int:
        return found[algorithm, q]


def evaluation(n_samples: int) -> float:
    """Return the seconds of one evaluation with its bounds."""
    from kernelweave.ridge_mkl.oracle import Oracle

    oracle = Oracle(problem(1.0, 1.0, n_samples))
    mu = np.full(30, 1.0 / 30.0)
    return seconds(lambda: oracle.evaluate(mu), repeats=3)


class Evaluation:
    """Seconds of an evaluation at 200 samples, and how they grow."""

    def setup_cache(self) -> dict[str, float]:
        from kernelweave.kernels_core import config_context

        sizes = (200, 400, 800)
        with config_context(n_threads=1):
            found = [evaluation(m) for m in sizes]
        return {"seconds": found[0], "m": exponent(sizes, found)}

    def track_seconds(self, found: dict[str, float]) -> float:
        return found["seconds"]

    track_seconds.unit = "seconds"

    def track_exponent_in_m(self, found: dict[str, float]) -> float:
        return found["m"]


class Fit:
    """A whole fit of the regressor on features."""

    def setup(self) -> None:
        rng = np.random.default_rng(0)
        self.X = rng.standard_normal((400, 5))
        self.y = np.sin(2 * self.X[:, 0]) + self.X[:, 1] ** 2

    def _fit(self) -> None:
        from kernelweave.ridge_mkl import RidgeMKLRegressor

        RidgeMKLRegressor(q=1, center=0.0).fit(self.X, self.y)

    def time_fit(self) -> None:
        self._fit()

    def peakmem_fit(self) -> None:
        self._fit()
