"""What a bar shows of a fit of many rows: stages by their work, which end when the fit ends."""

from __future__ import annotations

import numpy as np
from kernelweave.evidence import EvidenceKernelRegressor
from kernelweave.evidence.large.stages import Stages
from kernelweave.kernels_core import Progress, watch
from large_tables import QUICK, small  # noqa: F401
from sklearn.datasets import make_friedman1


def test_the_share_rises_and_ends_with_the_fit() -> None:
    X, y = make_friedman1(900, noise=1.0, random_state=0)
    shares: list[float] = []

    def see(now: Progress) -> None:
        if now.done is not None:
            shares.append(now.done)

    with watch(see):
        EvidenceKernelRegressor(**QUICK).fit(X, y)
    assert len(shares) > 2
    assert np.diff(shares).min() >= 0.0
    assert shares[-1] == 1.0
    # rows are judged after the last sum
    assert max(shares[:-1]) < 0.98


def test_a_pass_over_all_rows_is_expected_where_few_are_drawn() -> None:
    told: list[float] = []

    def tell(what: str, rows: int, n_rows: int, share: float) -> None:
        told.append(share)

    stages = Stages(tell, 100, 100_000, 10_000)
    stages.summed(500, 10_000, 10_000)
    stages.summed(500, 100_000, 100_000)
    # two passes over those drawn, one over all, and half of one that judges
    work = 500**2 * np.array([10_000, 10_000, 100_000, 50_000])
    before, after = 28.0 * 100**3, 12.0 * 100**3
    np.testing.assert_allclose(told[0], (before + work[0]) / (before + after + work.sum()))
    # the second over those drawn was not needed
    done = before + work[0] + work[2]
    np.testing.assert_allclose(told[1], done / (done + after + work[3]))
