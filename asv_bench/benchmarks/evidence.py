"""Kernels by the evidence: cost of an evaluation and of a fit; weights of given kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ._measure import exponent, seconds

if TYPE_CHECKING:
    from kernelweave.evidence import EvidenceKernelRegressor, EvidenceMKLRegressor

M, N = 150, 6
ROWS, COLUMNS = (M, 2 * M, 4 * M), (N, 2 * N, 4 * N)


def table(n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return uniform columns and a function of five of them, with noise."""
    rng = np.random.default_rng(0)
    X = rng.random((n_rows, n_columns))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3]
    return X, y + 5 * X[:, 4] + 0.5 * rng.standard_normal(n_rows)


def evaluation(n_rows: int, n_columns: int) -> float:
    """Return the seconds of one evaluation of the evidence and its gradient."""
    from kernelweave.evidence.objective import Evidence, start
    from kernelweave.evidence.views import Views

    X, y = table(n_rows, n_columns)
    nothing = np.empty((n_rows, 0), dtype=np.int64)
    views = Views.of(X, nothing)
    evidence = Evidence(
        views.points(X, nothing), views.match_weight, (y - y.mean())[None] / y.std(), 5.0
    )
    theta = start(n_columns)
    return seconds(lambda: evidence(theta))


class Evaluation:
    """How one evaluation grows with rows and columns."""

    def setup_cache(self) -> dict[str, list[float]]:
        from kernelweave.kernels_core import config_context

        with config_context(n_threads=1):
            return {
                "m": [evaluation(m, N) for m in ROWS],
                "n": [evaluation(2 * M, n) for n in COLUMNS],
            }

    def track_seconds(self, found: dict[str, list[float]]) -> float:
        return found["m"][-1]

    track_seconds.unit = "seconds"

    def track_exponent_in_m(self, found: dict[str, list[float]]) -> float:
        return exponent(ROWS, found["m"])

    def track_exponent_in_n(self, found: dict[str, list[float]]) -> float:
        return exponent(COLUMNS, found["n"])


class Fit:
    """A whole fit, folds included: evaluations of the evidence on all rows, seconds, memory."""

    def setup(self) -> None:
        self.X, self.y = table(M, N)

    def _fit(self) -> EvidenceKernelRegressor:
        from kernelweave.evidence import EvidenceKernelRegressor

        return EvidenceKernelRegressor().fit(self.X, self.y)

    def track_evaluations(self) -> int:
        return int(self._fit().n_iter_)

    def time_fit(self) -> None:
        self._fit()

    def peakmem_fit(self) -> None:
        self._fit()


class Weights:
    """Weights of the default kernels, by each algorithm: convex steps and seconds."""

    params = ("path", "lbfgs", "majorize")
    param_names = ("algorithm",)

    def setup(self, algorithm: str) -> None:
        self.X, self.y = table(M, N)

    def _fit(self, algorithm: str) -> EvidenceMKLRegressor:
        from kernelweave.evidence import EvidenceMKLRegressor

        return EvidenceMKLRegressor(algorithm=algorithm).fit(self.X, self.y)

    def track_steps(self, algorithm: str) -> int:
        return int(self._fit(algorithm).n_iter_)

    def time_fit(self, algorithm: str) -> None:
        self._fit(algorithm)
