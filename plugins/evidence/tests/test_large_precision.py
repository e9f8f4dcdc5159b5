"""Coefficients of rows as landmarks are solved in double precision, and multiplied in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernelweave.evidence import EvidenceKernelRegressor, read_table
from kernelweave.evidence.large.plan import LargePlan


@pytest.fixture(autouse=True)
def rows_are_landmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let 300 rows be many, all of them landmarks, with features in single precision."""

    def plan(path: Any, n_landmarks: int | str, n_folds: int) -> LargePlan:
        return LargePlan(
            path, metric_rows=200, sample_rows=600, first=20, most=600, all_rows=600,
            n_folds=n_folds, dtype=np.float32,
        )  # fmt: skip

    monkeypatch.setattr(read_table, "EXACT_ROWS", 300)
    monkeypatch.setattr(LargePlan, "of", plan)


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
