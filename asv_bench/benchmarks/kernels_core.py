"""The tessellated family: rank-one Gram and moment matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ._measure import exponent, seconds

if TYPE_CHECKING:
    from kernelweave.kernels_core import TessellatedFamily

SIZES = (250, 500, 1000)
FEATURES = (8, 24, 64)


def family(n_features: int) -> TessellatedFamily:
    from kernelweave.kernels_core import TessellatedFamily

    return TessellatedFamily(1, lower=np.full(n_features, -0.5), upper=np.full(n_features, 1.5))


class Parts:
    """One family bound to samples, a direction v and weights w."""

    def __init__(self, n_samples: int, n_features: int) -> None:
        rng = np.random.default_rng(0)
        self.X = rng.random((n_samples, n_features))
        self.family = family(n_features)
        self.prepared = self.family.prepare(self.X)
        self.v = rng.standard_normal(self.family.n_P)
        self.w = rng.standard_normal(n_samples)
        self.w -= self.w.mean()
        self.out = np.empty((n_samples, n_samples))

    def rank_one(self) -> None:
        self.prepared.gram_rank_one(self.v, out=self.out)

    def moment(self) -> None:
        self.prepared.moment(self.w)


class Times:
    """Seconds of each operation at 500 samples and 8 features."""

    def setup(self) -> None:
        self.parts = Parts(500, 8)

    def time_rank_one_gram(self) -> None:
        self.parts.rank_one()

    def time_moment(self) -> None:
        self.parts.moment()


class Growth:
    """Exponents and ratios, measured together in one process and on one thread."""

    def setup_cache(self) -> dict[str, float]:
        from kernelweave.kernels_core import config_context

        with config_context(n_threads=1):
            return {**self._exponents(), **self._ratios()}

    def _exponents(self) -> dict[str, float]:
        found = {}
        by_m = [Parts(m, 8) for m in SIZES]
        by_n = [Parts(500, n) for n in FEATURES]
        n_P = [parts.family.n_P for parts in by_n]
        for operation in ("rank_one", "moment"):
            times = [seconds(getattr(parts, operation), 3) for parts in by_m]
            found[f"{operation} m"] = exponent(SIZES, times)
            times = [seconds(getattr(parts, operation), 3) for parts in by_n]
            found[f"{operation} n_P"] = exponent(n_P, times)
        return found

    def _ratios(self) -> dict[str, float]:
        from sklearn.metrics.pairwise import rbf_kernel

        parts = Parts(1000, 8)
        other = seconds(lambda: rbf_kernel(parts.X))
        return {"over rbf_kernel": seconds(parts.rank_one) / other}

    def track_rank_one_gram_exponent_in_m(self, found: dict[str, float]) -> float:
        return found["rank_one m"]

    def track_rank_one_gram_exponent_in_n_P(self, found: dict[str, float]) -> float:
        return found["rank_one n_P"]

    def track_moment_exponent_in_m(self, found: dict[str, float]) -> float:
        return found["moment m"]

    def track_moment_exponent_in_n_P(self, found: dict[str, float]) -> float:
        return found["moment n_P"]

    def track_rank_one_gram_over_rbf_kernel(self, found: dict[str, float]) -> float:
        return found["over rbf_kernel"]
