from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))


@pytest.fixture
def by_landmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let more than 400 rows be learned by landmarks, as otherwise more than 5,000 are."""
    monkeypatch.setattr("kernelweave.evidence.read_table.FACTOR_ROWS", 400)


@pytest.fixture
def one_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let more than 400 rows share a metric of 200 of them, as otherwise more than 2,000 do."""
    for name in ("fit", "learn", "findings"):
        monkeypatch.setattr(f"kernelweave.evidence.{name}.SHARED_METRIC", 400)
    for name in ("fit", "learn"):
        monkeypatch.setattr(f"kernelweave.evidence.{name}.METRIC_ROWS", 200)
