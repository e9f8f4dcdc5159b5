"""Evidence kernels of many rows: seconds of the sums over them, and how they grow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ._measure import exponent, seconds

if TYPE_CHECKING:
    from kernelweave.evidence.large.features import Landmarks

ROWS = (5_000, 10_000, 20_000)
LANDMARKS = (500, 1000, 2000)


def landmarks(n: int) -> Landmarks:
    """Return landmarks with made-up scales of ten columns."""
    from kernelweave.evidence.large.features import Landmarks
    from kernelweave.evidence.terms import Scales
    from kernelweave.evidence.views import Views

    state = np.random.RandomState(0)
    X, codes = state.rand(n, 10), np.zeros((n, 0), dtype=np.int64)
    views = Views.of(X, codes)
    scales = Scales(state.rand(10), state.rand(10), np.array([0.3, 0.2, 0.1, 0.4, 0.2]), 0.05)
    return Landmarks(views, views.points(X, codes), (scales,))


def sum_seconds(n_rows: int, n_landmarks: int) -> float:
    """Return the seconds that the sums over rows take."""
    from kernelweave.evidence.large.sums import block_sums
    from kernelweave.evidence.rows import Rows, Standardised

    X = np.random.RandomState(1).rand(n_rows, 10)
    rows = Rows(X, np.zeros((n_rows, 0), dtype=np.int64), X[:, :1].T)
    own, targets = landmarks(n_landmarks), Standardised.of(rows)
    return seconds(lambda: block_sums(own, rows, targets), repeats=3)


class Sums:
    """The sums over rows: seconds of 20,000 at 2000 landmarks, exponents in rows and landmarks."""

    def setup_cache(self) -> dict[tuple[int, int], float]:
        from kernelweave.kernels_core import config_context

        with config_context(n_threads=1):
            found = {(n, 2000): sum_seconds(n, 2000) for n in ROWS}
            found.update({(20_000, m): sum_seconds(20_000, m) for m in LANDMARKS[:-1]})
        return found

    def track_seconds(self, found: dict[tuple[int, int], float]) -> float:
        return found[20_000, 2000]

    track_seconds.unit = "seconds"

    def track_exponent_in_n(self, found: dict[tuple[int, int], float]) -> float:
        return exponent(ROWS, [found[n, 2000] for n in ROWS])

    def track_exponent_in_m(self, found: dict[tuple[int, int], float]) -> float:
        return exponent(LANDMARKS, [found[20_000, m] for m in LANDMARKS])


class Features:
    """Rows a second whose features at 2000 landmarks one core works out."""

    def track_rows_a_second(self) -> float:
        own, X = landmarks(2000), np.random.RandomState(1).rand(4096, 10)
        codes = np.zeros((4096, 0), dtype=np.int64)
        return 4096 / seconds(lambda: own.features(X, codes), repeats=3)

    track_rows_a_second.unit = "rows/s"
