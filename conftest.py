"""Fixtures for every test: golden values that are always there, fetched data that may not be."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent


@pytest.fixture(autouse=True, scope="session")
def ctrl_c() -> None:
    """Let SIGINT interrupt: a process that a shell starts in the background ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def golden() -> Callable[[str], Any]:
    """Return a reader of ``tests/golden/<name>.json``."""

    def read(name: str) -> Any:
        return json.loads((ROOT / "tests" / "golden" / f"{name}.json").read_text())

    return read


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of fetched data beside the checkout, or skip with the reason."""
    folder = ROOT.parent / "shared"
    if not (folder / "data").is_dir():
        pytest.skip("needs the fetched data sets in ../shared, which are not here")
    return folder
