"""Targets without noise, where one metric serves all folds: nothing is in single precision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from kernelweave.evidence import EvidenceKernelRegressor, fit, learn


@pytest.fixture(autouse=True)
def rows_share_a_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let 300 rows be many, of which 200 learn the metric."""
    for module in (learn, fit):
        monkeypatch.setattr(module, "SHARED_METRIC", 300)
        monkeypatch.setattr(module, "METRIC_ROWS", 200)


@pytest.mark.parametrize(
    "function",
    [
        lambda X: X[:, 0] ** 3 - 2.0 * X[:, 0] * X[:, 1] + X[:, 2] ** 2,
        lambda X: X[:, 0] + X[:, 1],
        lambda X: X[:, 0] * X[:, 1],
    ],
    ids=["cubic", "sum", "product"],
)
def test_targets_without_noise_keep_their_digits(
    function: Callable[[np.ndarray], np.ndarray],
) -> None:
    X = np.random.RandomState(0).uniform(-1.0, 1.0, (1100, 3))
    y = function(X)
    model = EvidenceKernelRegressor().fit(X[:500], y[:500])
    new, truth = X[500:], y[500:]
    lost = np.mean((model.predict(new) - truth) ** 2) / truth.var()
    assert lost < 20.0 * (1.0 - model.held_out_score_)
    low, high = model.predict_interval(new)
    assert np.mean((low <= truth) & (truth <= high)) > 0.8
