"""Bounds and optima of sparse kernel weights: solves to a fixed gap, and how the cost grows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from ._measure import checkered, exponent

if TYPE_CHECKING:
    from kernelweave.kernels_core.grams import GramStack
    from kernelweave.qp_smo import KernelWeights
    from kernelweave.relaxations import GlobalOptimum

C, LAM, K0 = 10.0, 0.1, 3
GAP = 1e-5
SIZES, KERNELS = (200, 400, 800), (8, 16, 32)
_Counts = dict[tuple[int, str], tuple[int, int]]


def stack_of(n_samples: int, n_kernels: int) -> tuple[GramStack, np.ndarray]:
    """Return Gaussian Grams of widths from coarse to fine, checked once, and labels."""
    from kernelweave.kernels_core import RBF, KernelDictionary
    from kernelweave.kernels_core.grams import GramStack

    X, y = checkered(n_samples, 5)
    widths = np.geomspace(0.05, 50.0, n_kernels)
    grams = KernelDictionary([RBF(gamma=g) for g in widths]).fit_grams(X).grams
    return GramStack(grams, check=False), y


def relaxation(stack: GramStack, y: np.ndarray) -> KernelWeights:
    from kernelweave.qp_smo import KSupport, solve_kernel_weights

    return solve_kernel_weights(stack, y, C=C, penalty=KSupport(LAM, K0), tol=GAP)


def optimum(stack: GramStack, y: np.ndarray) -> GlobalOptimum:
    from kernelweave.relaxations import solve_global

    return solve_global(stack, y, C=C, lam=LAM, k0=K0, tol=1e-4)


class Counts:
    """Learner and master solves, by number of kernels: nearly the same on every machine."""

    params = (KERNELS, ("relaxation", "optimum"))
    param_names = ("kernels", "what")

    def setup_cache(self) -> _Counts:
        found = {}
        for q in KERNELS:
            stack, y = stack_of(200, q)
            for name, solve in (("relaxation", relaxation), ("optimum", optimum)):
                counts = solve(stack, y).counts
                found[q, name] = (counts.n_svm_solves, counts.n_master_solves)
        return found

    def track_svm_solves(self, found: _Counts, kernels: int, what: str) -> int:
        return found[kernels, what][0]

    def track_master_solves(self, found: _Counts, kernels: int, what: str) -> int:
        return found[kernels, what][1]


class Growth:
    """Exponents in the number of samples n and of kernels q, and the cost in SVM fits."""

    def setup_cache(self) -> dict[str, float]:
        relaxation(*stack_of(60, 4))
        optimum(*stack_of(60, 4))
        by_n = [self._run(*stack_of(n, 8)) for n in SIZES]
        by_q = [self._run(*stack_of(200, q)) for q in KERNELS]
        return {
            "seconds_in_n": exponent(SIZES, [seconds for seconds, _ in by_n]),
            "seconds_in_q": exponent(KERNELS, [seconds for seconds, _ in by_q]),
            "solves_in_n": exponent(SIZES, [solves for _, solves in by_n]),
            "solves_in_q": exponent(KERNELS, [solves for _, solves in by_q]),
            "fits": self._fits(*stack_of(800, 8)),
        }

    def _run(self, stack: GramStack, y: np.ndarray) -> tuple[float, int]:
        best = np.inf
        for _ in range(3):
            started = time.perf_counter()
            found = relaxation(stack, y)
            best = min(best, time.perf_counter() - started)
        return best, found.n_svm_solves

    def _fits(self, stack: GramStack, y: np.ndarray) -> float:
        """Return the time of the relaxation in fits of scikit-learn's SVC at its weights."""
        from sklearn.svm import SVC

        seconds, _ = self._run(stack, y)
        K = stack.combine(relaxation(stack, y).weights)
        times = []
        for _ in range(5):
            started = time.perf_counter()
            SVC(kernel="precomputed", C=C, tol=1e-3).fit(K, y)
            times.append(time.perf_counter() - started)
        return seconds / min(times)

    def track_seconds_exponent_in_n(self, found: dict[str, float]) -> float:
        return found["seconds_in_n"]

    def track_seconds_exponent_in_q(self, found: dict[str, float]) -> float:
        return found["seconds_in_q"]

    def track_solves_exponent_in_n(self, found: dict[str, float]) -> float:
        return found["solves_in_n"]

    def track_solves_exponent_in_q(self, found: dict[str, float]) -> float:
        return found["solves_in_q"]

    def track_svc_fits(self, found: dict[str, float]) -> float:
        return found["fits"]
