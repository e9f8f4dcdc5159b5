"""The data sets of the sparse multiple kernel learning paper, as its authors split them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import default_kernels

Case = tuple[Any, Any, dict[str, Any]]


@pytest.fixture(scope="session")
def paper_set(shared: Path) -> Callable[[str], Case]:
    """Return a reader: the eight Gram matrices and labels of the training part, the setting."""
    settings = json.loads((shared / "golden" / "smkl_settings.json").read_text())["sets"]

    def read(name: str) -> Case:
        setting = settings[name]
        table = np.loadtxt(shared / "data" / setting["file"], delimiter=",", skiprows=1)
        X, y = table[:, :-1], table[:, -1]
        if setting["columns"] is not None:
            X = X[:, setting["columns"]]
        X, y = X[setting["train"]], y[setting["train"]]
        spread = X.std(axis=0, ddof=1)
        spread[spread == 0.0] = 1e-8
        return default_kernels().fit_grams((X - X.mean(axis=0)) / spread).grams, y, setting

    return read
