"""Support vector machine duals: counts to a tolerance, cold and along a path, and ratios."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ._measure import checkered, seconds

if TYPE_CHECKING:
    from kernelweave.kernels_core import Kernel

M, C = 300, 10.0
TOLERANCES = (1e-3, 1e-6)
KERNELS = ("rbf", "linear")
STEPS = 20
_Counts = dict[tuple[str, str, float], tuple[int, int]]


def kernel_of(name: str) -> Kernel:
    """Return an easy kernel, or one whose Gram matrix has the rank of the features."""
    from kernelweave.kernels_core import RBF, Linear

    return {"rbf": RBF(gamma=3.0), "linear": Linear()}[name]


def path(X: np.ndarray) -> list[np.ndarray]:
    """Return Gram matrices between two kernels, each close to the one before."""
    from kernelweave.kernels_core import RBF

    first, last = RBF(gamma=1.0)(X), RBF(gamma=8.0)(X)
    return [(1.0 - s) * first + s * last for s in np.linspace(0.0, 1.0, STEPS)]


class Counts:
    """Steps and kernel rows of our SMO: the same on every machine."""

    params = (KERNELS, TOLERANCES)
    param_names = ("kernel", "tol")

    def setup_cache(self) -> _Counts:
        from kernelweave.qp_smo import solve_svc, solve_svr

        X, y = checkered(M, 5)
        found = {}
        for name in KERNELS:
            K = kernel_of(name)(X)
            for tol in TOLERANCES:
                solution = solve_svc(K, y, C=C, tol=tol, backend="smo")
                found["svc", name, tol] = (solution.n_iter, solution.n_kernel_rows)
                z = np.sin(5.0 * X[:, 0]) + X[:, 1]
                solution = solve_svr(K, z, C=C, epsilon=0.1, tol=tol, backend="smo")
                found["svr", name, tol] = (solution.n_iter, solution.n_kernel_rows)
        return found

    def track_svc_iterations(self, found: _Counts, kernel: str, tol: float) -> int:
        return found["svc", kernel, tol][0]

    def track_svc_kernel_rows(self, found: _Counts, kernel: str, tol: float) -> int:
        return found["svc", kernel, tol][1]

    def track_svr_iterations(self, found: _Counts, kernel: str, tol: float) -> int:
        return found["svr", kernel, tol][0]

    def track_svr_kernel_rows(self, found: _Counts, kernel: str, tol: float) -> int:
        return found["svr", kernel, tol][1]


class Path:
    """A path of slowly changing Gram matrices, each solved from the last solution."""

    def setup_cache(self) -> dict[str, float]:
        from kernelweave.qp_smo import solve_svc

        X, y = checkered(M, 5)
        grams = path(X)
        warm_rows = warm_steps = cold_rows = 0
        alpha = None
        for K in grams:
            solution = solve_svc(K, y, C=C, tol=1e-3, alpha0=alpha, backend="smo")
            alpha = solution.alpha
            warm_rows += solution.n_kernel_rows
            warm_steps += solution.n_iter
            cold_rows += solve_svc(K, y, C=C, tol=1e-3, backend="smo").n_kernel_rows
        again = solve_svc(grams[-1], y, C=C, tol=1e-3, alpha0=alpha, backend="smo")
        return {
            "rows": warm_rows,
            "steps": warm_steps,
            "share": warm_rows / cold_rows,
            "again": again.n_iter,
        }

    def track_kernel_rows(self, found: dict[str, float]) -> float:
        return found["rows"]

    def track_iterations(self, found: dict[str, float]) -> float:
        return found["steps"]

    def track_kernel_rows_warm_over_cold(self, found: dict[str, float]) -> float:
        return found["share"]

    def track_iterations_from_the_optimum(self, found: dict[str, float]) -> float:
        return found["again"]


class Ratio:
    """Our seconds over those of scikit-learn's precomputed SVC, in the same process."""

    params = KERNELS
    param_names = ("kernel",)

    def setup_cache(self) -> dict[str, float]:
        from kernelweave.qp_smo import solve_svc
        from sklearn.svm import SVC

        X, y = checkered(M, 5)
        found = {}
        for name in KERNELS:
            K = kernel_of(name)(X)
            theirs = SVC(kernel="precomputed", C=C, tol=1e-3)
            found[name] = seconds(lambda K=K: solve_svc(K, y, C=C, tol=1e-3)) / seconds(
                lambda K=K, theirs=theirs: theirs.fit(K, y)
            )
        return found

    def track_svc_over_scikit_learn(self, found: dict[str, float], kernel: str) -> float:
        return found[kernel]


class Times:
    """Seconds of one cold solve."""

    def setup(self) -> None:
        X, self.y = checkered(M, 5)
        self.K = kernel_of("rbf")(X)

    def time_svc(self) -> None:
        from kernelweave.qp_smo import solve_svc

        solve_svc(self.K, self.y, C=C, tol=1e-3)
