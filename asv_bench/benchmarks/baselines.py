"""Classic multiple kernel learning: solves to a gap, cost of the rules and of a fit."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from ._measure import checkered, exponent, seconds

if TYPE_CHECKING:
    from kernelweave.kernels_core import Problem, Result

M, C = 300, 10.0
GAPS = (1e-2, 1e-4)
RULES = ("average", "easymkl", "alignment")
# what is never reached counts as so many: higher is worse
LIMIT = 5000


def grams(n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    from kernelweave.kernels_core import default_kernels

    X, y = checkered(n_samples, 5)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return default_kernels().fit_grams(X).grams, y


def problem(n_samples: int = M) -> Problem:
    from kernelweave.baselines import Simplex
    from kernelweave.kernels_core import Problem
    from kernelweave.kernels_core.grams import PrecomputedDictionary
    from kernelweave.qp_smo import SVC

    stack, y = grams(n_samples)
    X = np.arange(n_samples, dtype=float)[:, None]
    return Problem(PrecomputedDictionary(stack), SVC(C=C), Simplex(), X, y)


def reached(result: Result, tol: float) -> int:
    """Return the learner solves until the gap was first within ``tol``."""
    at = np.flatnonzero(result.history.gap <= tol)
    return int(result.history.counts["n_svm_solves"][at[0]]) if len(at) else LIMIT


class SimpleMKL:
    """Learner solves to a gap."""

    params = GAPS
    param_names = ("gap",)

    def setup_cache(self) -> dict[float, int]:
        from kernelweave.kernels_core import solve

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = solve(problem(), "mkl-simple", tol=min(GAPS), max_iter=200, max_time=60.0)
        return {gap: reached(result, gap) for gap in GAPS}

    def track_solves(self, found: dict[float, int], gap: float) -> int:
        return found[gap]


def rule(name: str, n_samples: int) -> float:
    """Return the seconds that a rule takes for its weights."""
    from kernelweave.baselines import AverageWeights, alignment_weights, easymkl_weights

    stack, y = grams(n_samples)
    run = {
        "average": lambda: AverageWeights().weights(stack, y),
        "easymkl": lambda: easymkl_weights(stack, y),
        "alignment": lambda: alignment_weights(stack, y),
    }
    return seconds(run[name])


class Rules:
    """Seconds of a rule at 300 samples, and how those of two grow with their number."""

    params = RULES
    param_names = ("rule",)

    def setup_cache(self) -> dict[str, list[float]]:
        from kernelweave.kernels_core import config_context

        with config_context(n_threads=1):
            return {name: [rule(name, m) for m in (M, 2 * M, 4 * M)] for name in RULES}

    def track_seconds(self, found: dict[str, list[float]], name: str) -> float:
        return found[name][0]

    track_seconds.unit = "seconds"

    def track_exponent_in_m(self, found: dict[str, list[float]], name: str) -> float:
        # equal weights take the same time whatever m
        if name == "average":
            return 0.0
        return exponent((M, 2 * M, 4 * M), found[name])


class Fit:
    """A whole fit of SimpleMKL on features."""

    def setup(self) -> None:
        self.X, self.y = checkered(400, 5)

    def _fit(self) -> None:
        from kernelweave.baselines import SimpleMKLClassifier

        SimpleMKLClassifier(C=C, tol=1e-3).fit(self.X, self.y)

    def time_fit(self) -> None:
        self._fit()

    def peakmem_fit(self) -> None:
        self._fit()
