"""A table of a few hundred rows that the estimators take for a large one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import read_table
from kernelweave.evidence.large.plan import LargePlan

QUICK: dict[str, Any] = {"precisions": (5.0,), "max_iter": 10, "warp": False}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let 200 rows be many; in double precision, for the last bit of a mean moves a float32."""

    def plan(path: Any, n_landmarks: int | str, n_folds: int) -> LargePlan:
        most = 40 if isinstance(n_landmarks, str) else n_landmarks
        return LargePlan(
            path, metric_rows=60, sample_rows=300, first=20, most=most,
            n_folds=n_folds, dtype=np.float64,
        )  # fmt: skip

    monkeypatch.setattr(read_table, "FACTOR_ROWS", 200)
    monkeypatch.setattr(LargePlan, "of", plan)


def table(n: int) -> pd.DataFrame:
    """Return rows sorted by their price, a sum of two numbers' and a word's parts."""
    state = np.random.RandomState(0)
    frame = pd.DataFrame({"a": state.rand(n), "b": state.rand(n)})
    frame["word"] = np.where(state.rand(n) < 0.5, "red", "blue")
    noise = 0.2 * state.randn(n)
    frame["price"] = np.sin(4 * frame["a"]) + frame["b"] + (frame["word"] == "red") + noise
    return frame.sort_values("price", ignore_index=True)
