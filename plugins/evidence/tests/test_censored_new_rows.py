"""Calibration of new rows, where only some rows of training gave the residuals."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import EvidenceKernelRegressor
from kernelweave.evidence.censored.judging import measures_of, new_targets
from kernelweave.evidence.censored.residuals import ResidualDistribution
from kernelweave.evidence.rows import Rows

INF = np.inf


def predictor_of(rng: np.random.Generator, n: int, n_held_out: int, weight: float = 1.0) -> Any:
    """Return what predicts 0 with the deviation 1, which is right, with residuals of some rows."""
    fold = np.where(np.arange(n) < n_held_out, np.arange(n) % 3, -1)
    targets = rng.standard_normal(n)
    held_out = np.where(fold >= 0, 0.0, np.nan)[:, None]
    mass, codes = np.full(n, weight), np.empty((n, 0), dtype=np.int64)
    ends = np.array([targets, targets])
    rows = Rows(np.zeros((n, 1)), codes, targets[None], mass, ends=ends, information=np.ones(n))
    told = ResidualDistribution.of(ends[:, :n_held_out], mass[:n_held_out])

    def moments(numeric: Any, codes: Any) -> Any:
        return np.array([numeric[:, 0], 0.0 * numeric[:, 0], np.ones(len(numeric))])

    return SimpleNamespace(
        fold=fold, held_out=held_out, rows=rows, distribution=told, moments=moments
    )


@pytest.mark.parametrize(
    ("n", "n_held_out", "n_new"), [(120, 60, 1000), (700, 140, 300)], ids=["order", "landmarks"]
)
def test_right_predictions_of_new_rows_are_rarely_rejected(
    n: int, n_held_out: int, n_new: int
) -> None:
    rng = np.random.default_rng(0)
    found = []
    for _ in range(80):
        predictor = predictor_of(rng, n, n_held_out)
        f = rng.standard_normal((n_new, 1))
        t, c = f[:, 0] + rng.standard_normal(n_new), rng.standard_normal(n_new) + 0.8
        ends = np.array([np.minimum(t, c), np.where(t <= c, t, INF)])
        judged = new_targets(predictor, f, np.empty((n_new, 0), dtype=np.int64), ends)
        found.append(measures_of(judged, log=False).calibration_p)
    assert np.mean(np.array(found) < 0.05) < 0.15
    assert 0.3 < np.median(found) < 0.85


@pytest.mark.parametrize("weight", [1.0, 7.0])
def test_only_rows_held_out_count_as_residuals(weight: float) -> None:
    predictor = predictor_of(np.random.default_rng(1), 50, 20, weight)
    judged = new_targets(predictor, np.zeros((1, 1)), np.empty((1, 0)), np.zeros((2, 1)))
    assert judged.n_residuals == pytest.approx(20.0)


def test_later_rows_are_judged_by_the_residuals_of_those_held_out() -> None:
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.standard_normal((60, 1)), columns=["a"])
    days = np.exp(X["a"] + 0.5 * rng.standard_normal(60))
    y = pd.DataFrame({"died": days < 3.0, "days": np.minimum(days, 3.0)})
    model = EvidenceKernelRegressor(precisions=(10.0,), warp=False, tol=1e-3)
    model.fit(X, y, order=np.arange(60))
    predictor, encoded = model._predictor, model._encoded(X)
    judged = new_targets(predictor, encoded.numeric, encoded.codes, np.zeros((2, 60)))
    n_held_out = int((model.held_out_fold_ >= 0).sum())
    assert 0 < n_held_out < 60
    assert judged.n_residuals is not None
    assert 0.0 < judged.n_residuals < n_held_out
