"""Learned tessellated kernels: iterations and solves to a gap, cost of an iteration, memory."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ._measure import checkered, exponent

if TYPE_CHECKING:
    from kernelweave.kernels_core import Problem, Result

M, C = 150, 10.0
TASKS = ("classes", "numbers")
LOOSE, TIGHT = (1e-2, 1e-3), (1e-2, 1e-4, 1e-6)
# what is never reached counts as so many: higher is worse
LIMIT = 400
_Counts = dict[tuple[str, float, str], int]


def problem(task: str, n_samples: int = M, n_features: int = 5) -> Problem:
    from kernelweave.kernels_core import Problem, TessellatedFamily
    from kernelweave.qp_smo import SVC, SVR
    from kernelweave.spectahedron import Spectahedron

    X, y = checkered(n_samples, n_features)
    corner = np.full(n_features, 0.1)
    family = TessellatedFamily(1, lower=-corner, upper=1.0 + corner)
    if task == "classes":
        return Problem(family, SVC(C=C), Spectahedron(), X, y)
    z = np.sin(5.0 * X[:, 0]) + 2.0 * np.abs(X[:, 1] - 0.5) + X[:, 2] * X[:, 3]
    z = (z - z.mean()) / z.std()
    return Problem(family, SVR(C=C, epsilon=0.1), Spectahedron(), X, z)


def run(algorithm: str, case: Problem, tol: float, max_iter: int = LIMIT) -> Result:
    from kernelweave.kernels_core import solve

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solve(case, algorithm, tol=tol, max_iter=max_iter, max_time=30.0)


def reached(result: Result, tol: float, what: str | None = None) -> int:
    """Return iterations, or another count, until the gap was first within ``tol``."""
    at = np.flatnonzero(result.history.gap <= tol)
    if len(at) == 0:
        return 10 * LIMIT
    return int(at[0] if what is None else result.history.counts[what][at[0]])


class FrankWolfe:
    """Counts of ``tkl-frank-wolfe``."""

    params = (TASKS, LOOSE)
    param_names = ("task", "gap")

    def setup_cache(self) -> _Counts:
        found = {}
        for task in TASKS:
            result = run("tkl-frank-wolfe", problem(task), min(LOOSE))
            for gap in LOOSE:
                found[task, gap, "iterations"] = reached(result, gap)
                found[task, gap, "solves"] = reached(result, gap, "n_solves")
        return found

    def track_iterations(self, found: _Counts, task: str, gap: float) -> int:
        return found[task, gap, "iterations"]

    def track_solves(self, found: _Counts, task: str, gap: float) -> int:
        return found[task, gap, "solves"]


def breast_cancer() -> Problem:
    """Return a problem on which factors crawl: 569 samples, 30 features, full degree 1."""
    from kernelweave.kernels_core import Problem, TessellatedFamily
    from kernelweave.qp_smo import SVC
    from kernelweave.spectahedron import Spectahedron
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    corner = np.full(30, 0.1)
    family = TessellatedFamily(1, lower=-corner, upper=1.0 + corner)
    return Problem(family, SVC(C=C), Spectahedron(), X, np.where(y == 1, 1.0, -1.0))


class LowRank:
    """Counts of ``tkl-low-rank``: learner solves, and the steps of the learner's own solver."""

    params = ((*TASKS, "breast-cancer"), TIGHT)
    param_names = ("task", "gap")

    def setup_cache(self) -> _Counts:
        found = {}
        for task in self.params[0]:
            case = breast_cancer() if task == "breast-cancer" else problem(task)
            # a gap that is negligible beside a constant prediction would end the run earlier
            result = run("tkl-low-rank", case, 1e-2 * min(TIGHT))
            for gap in TIGHT:
                found[task, gap, "solves"] = reached(result, gap, "n_solves")
                found[task, gap, "steps"] = reached(result, gap, "n_inner_iterations")
        return found

    def track_solves(self, found: _Counts, task: str, gap: float) -> int:
        return found[task, gap, "solves"]

    def track_smo_steps(self, found: _Counts, task: str, gap: float) -> int:
        return found[task, gap, "steps"]


class InteriorPoint:
    """Iterations of ``tkl-interior-point``, which solves no learner."""

    params = (TASKS, TIGHT)
    param_names = ("task", "gap")

    def setup_cache(self) -> dict[tuple[str, float], int]:
        found = {}
        for task in TASKS:
            result = run("tkl-interior-point", problem(task), min(TIGHT))
            for gap in TIGHT:
                found[task, gap] = reached(result, gap)
        return found

    def track_iterations(self, found: dict[tuple[str, float], int], task: str, gap: float) -> int:
        return found[task, gap]


class Search:
    """Learner solves of a search over five values of C and five folds, and of one cold fit."""

    def setup_cache(self) -> dict[str, int]:
        from kernelweave.spectahedron import (
            TessellatedKernelClassifier,
            TessellatedKernelClassifierCV,
        )
        from sklearn.datasets import load_iris

        X, y = load_iris(return_X_y=True)
        search = TessellatedKernelClassifierCV().fit(X, y)
        one = TessellatedKernelClassifier(C=search.best_params_["C"]).fit(X, y)
        return {
            "search": search.n_solves_,
            "fit": one.result_.history.counts["n_solves"][-1],
        }

    def track_solves(self, found: dict[str, int]) -> int:
        return found["search"]

    def track_search_in_fits(self, found: dict[str, int]) -> float:
        return found["search"] / found["fit"]


def per_iteration(n_samples: int, n_features: int, algorithm: str = "tkl-frank-wolfe") -> float:
    """Return seconds per iteration: the smallest median of three runs of eight."""
    case = problem("classes", n_samples, n_features)
    medians = []
    for _ in range(3):
        result = run(algorithm, case, 0.0, max_iter=8)
        medians.append(float(np.median(np.diff(result.history.seconds))))
    return min(medians)


class Iteration:
    """Seconds per iteration at 200 samples and 8 features, and how they grow."""

    params = ("tkl-frank-wolfe", "tkl-low-rank")
    param_names = ("algorithm",)

    def setup_cache(self) -> dict[tuple[str, str], float]:
        from kernelweave.kernels_core import config_context

        sizes, features = (200, 400, 800), (8, 16, 32)
        n_P = [2 * (2 * n + 1) for n in features]
        found = {}
        with config_context(n_threads=1):
            for name in self.params:
                per_iteration(50, 4, name)
                by_m = [per_iteration(m, 8, name) for m in sizes]
                by_n = [per_iteration(300, n, name) for n in features]
                found[name, "seconds"] = by_m[0]
                found[name, "m"] = exponent(sizes, by_m)
                found[name, "n_P"] = exponent(n_P, by_n)
        return found

    def track_seconds(self, found: dict[tuple[str, str], float], algorithm: str) -> float:
        return found[algorithm, "seconds"]

    track_seconds.unit = "seconds"

    def track_exponent_in_m(self, found: dict[tuple[str, str], float], algorithm: str) -> float:
        return found[algorithm, "m"]

    def track_exponent_in_n_P(self, found: dict[tuple[str, str], float], algorithm: str) -> float:
        return found[algorithm, "n_P"]


class Parts:
    """How the parts of a Frank-Wolfe iteration grow with m and n_P, monomials of x alone."""

    params = ("Gram", "D", "SMO", "iteration")
    param_names = ("part",)

    def setup_cache(self) -> dict[tuple[str, str], float]:
        from kernelweave.kernels_core import Problem, TessellatedFamily
        from kernelweave.papers.measuring import exponents
        from kernelweave.papers.tessellated.scaling import parts_of
        from kernelweave.qp_smo import SVC
        from kernelweave.spectahedron import Spectahedron

        rows = []
        for m in (250, 500, 1000):
            for n in (2, 4, 6, 8):
                X, y = checkered(m, n)
                corner = np.full(n, 0.5)
                family = TessellatedFamily(1, lower=-corner, upper=1.0 + corner, z_degree=0)
                found = parts_of(Problem(family, SVC(C=0.1), Spectahedron(), X, y))
                rows.append((m, found))
        sizes, n_P = [m for m, _ in rows], [found["n_P"] for _, found in rows]
        growth = {}
        for part in self.params:
            seconds = [found[part] for _, found in rows]
            growth[part, "m"], growth[part, "n_P"] = exponents(sizes, n_P, seconds)
        return growth

    def track_exponent_in_m(self, growth: dict[tuple[str, str], float], part: str) -> float:
        return growth[part, "m"]

    def track_exponent_in_n_P(self, growth: dict[tuple[str, str], float], part: str) -> float:
        return growth[part, "n_P"]


class LargeFit:
    """Peak memory of fits of 2500 samples: stored (50 MB an array), in float32, and in blocks."""

    params = ("stored", "float32", "blocks")
    param_names = ("gram",)

    def peakmem_fit(self, gram: str) -> None:
        from kernelweave.spectahedron import TessellatedKernelRegressor

        X, _ = checkered(2500, 5)
        z = np.sin(5.0 * X[:, 0]) + X[:, 2] * X[:, 3]
        settings: dict[str, Any] = {"gram": "blocks", "memory_limit": 2**25}
        settings = settings if gram == "blocks" else {"gram": "stored"}
        dtype = "float32" if gram == "float32" else "float64"
        TessellatedKernelRegressor(C=0.01, units="absolute", tol=0.1, dtype=dtype, **settings).fit(
            X, z
        )


class Fit:
    """A whole fit of the classifier."""

    def setup(self) -> None:
        self.X, self.y = checkered(400, 5)

    def _fit(self) -> None:
        from kernelweave.spectahedron import TessellatedKernelClassifier

        TessellatedKernelClassifier(C=C, units="absolute", tol=0.1).fit(self.X, self.y)

    def time_fit(self) -> None:
        self._fit()

    def peakmem_fit(self) -> None:
        self._fit()
