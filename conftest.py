"""Fixtures for every test: golden values that are always there, fetched data that may not be."""

from __future__ import annotations

import json
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the thousands of cells of the fault matrix uncollected where they are not wanted."""
    wanted = [part.strip() for part in config.option.markexpr.split(" and ")]
    return True if "not faults" in wanted and collection_path == ROOT / "tests/faults" else None


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
def conic_optimum() -> Callable[..., tuple[float, float]]:
    """Return a solver of cvxpy problems by Clarabel: the optimum, and the digits it vouches for."""

    def solved(problem: Any, tol: float = 1e-8) -> tuple[float, float]:
        with warnings.catch_warnings():
            # what it says of its digits is heard below, by its status
            warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
            value = problem.solve(
                solver="CLARABEL", tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=max(tol, 1e-11)
            )
        # 5e-5 where it says "inaccurate", which depends on the processor
        return float(value), {"optimal": 10.0 * tol, "optimal_inaccurate": 1e-4}[problem.status]

    return solved


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of fetched data beside the checkout, or skip with the reason."""
    folder = ROOT.parent / "shared"
    if not (folder / "data").is_dir():
        pytest.skip("needs the fetched data sets in ../shared, which are not here")
    return folder
